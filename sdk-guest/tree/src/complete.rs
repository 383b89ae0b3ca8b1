//! Suggests paths, one directory at a time.

use belljar_guest::{Error, Result, Suggestions};

use crate::tree::{Kind, Path, Tree, smallest};

/// The paths that begin with `value`: directories, each with a `/` at its end, and the files whose names `is_served` accepts.
pub fn complete(tree: &Tree, value: &str, is_served: fn(&str) -> bool) -> Result<Suggestions> {
    let (directory, begun) = value.rsplit_once('/').unwrap_or(("", value));
    let directory = Path::checked(directory.split('/').filter(|segment| !segment.is_empty()))?;
    let entries = match tree.entries(&directory.path) {
        Ok(entries) => entries
            .filter(|entry| entry.name.starts_with(begun) && (entry.kind == Kind::Directory || is_served(&entry.name))),
        Err(Error::NotFound) => return Ok(Suggestions::default()),
        Err(error) => return Err(error),
    };
    let found = smallest(entries, Suggestions::MAX);
    let total = u32::try_from(found.seen).unwrap_or(u32::MAX);
    Ok(Suggestions::new(found.entries.iter().map(|entry| directory.child(&entry.key()))).total(total))
}
