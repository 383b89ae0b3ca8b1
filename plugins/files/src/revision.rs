//! Tells whether something changed by what is known without opening a file: names, sizes and times. No content is read.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::UNIX_EPOCH;

use belljar_guest::{Error, Result};

use crate::index;
use crate::tree::{Entry, Kind, Meta, Path, Tree, join};

/// How many entries are looked at for the revision of the list. Each costs the host a look, and the answer has to come in
/// one call; the list itself comes in pages.
pub(crate) const MOST: usize = 100_000;

/// The revision of the list: of every file in it, its path, size and time.
pub(crate) fn of_list(tree: &Tree, most: usize) -> Result<String> {
    // In whatever order directories give their entries, which need not be the same twice.
    let (mut sum, mut files, mut seen) = (0_u64, 0_u64, 0);
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        let entries = match tree.entries(&directory) {
            Ok(entries) => entries,
            // As in the list: a part that cannot be read is left out, the whole is not.
            Err(error) if directory.is_empty() => return Err(error),
            Err(_) => continue,
        };
        for entry in entries {
            seen += 1;
            if seen > most {
                return Err(Error::failed(format_args!(
                    "there are more than {most} entries: too many to look at each of them to see what changed"
                )));
            }
            let path = join(&directory, &entry.name);
            if entry.kind == Kind::Directory {
                directories.push(path);
            } else if let Some(meta) = file(tree, &path, &entry) {
                sum = sum.wrapping_add(hash(&(path, facts(&meta))));
                files += 1;
            }
        }
    }
    Ok(format!("{files}-{sum:016x}"))
}

/// What is known of an entry, if that is a file, or leads to one.
fn file(tree: &Tree, path: &str, entry: &Entry) -> Option<Meta> {
    if entry.kind == Kind::Other {
        return None;
    }
    tree.meta(path).ok().filter(|meta| meta.kind == Kind::File)
}

/// The revision of what reading `wanted` gives.
pub(crate) fn of_resource(tree: &Tree, wanted: &Path, query: &str) -> Result<String> {
    let meta = tree.meta(&wanted.path)?;
    match meta.kind {
        Kind::Directory => of_index(tree, wanted, query),
        Kind::File if wanted.is_directory => Err(Error::NotFound),
        Kind::File => {
            let (size, time) = facts(&meta);
            Ok(format!("{size:x}-{time:x}"))
        }
        Kind::Symlink | Kind::Other => Err(Error::denied("neither a file nor a directory")),
    }
}

/// The revision of a directory: of all that its index shows.
fn of_index(tree: &Tree, directory: &Path, query: &str) -> Result<String> {
    let found = index::entries(tree, directory, query)?;
    let mut hasher = DefaultHasher::new();
    found.seen.hash(&mut hasher);
    for entry in &found.entries {
        let meta = tree.meta(&directory.child(&entry.name)).ok();
        // What is in a directory is not shown, so that it may change.
        let shown = meta.map(|meta| (meta.kind, (meta.kind == Kind::File).then(|| facts(&meta))));
        (&entry.name, shown).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Size, and nanoseconds since 1970.
fn facts(meta: &Meta) -> (u64, i128) {
    let nanoseconds = |time: u128| i128::try_from(time).unwrap_or(i128::MAX);
    let time = meta.modified.map(|time| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => nanoseconds(after.as_nanos()),
        Err(before) => -nanoseconds(before.duration().as_nanos()),
    });
    (meta.size, time.unwrap_or_default())
}

fn hash(facts: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    facts.hash(&mut hasher);
    hasher.finish()
}
