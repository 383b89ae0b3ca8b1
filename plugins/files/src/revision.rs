//! Tells whether something changed by what is known without opening a file: names, sizes and times. No content is read.

use std::hash::{DefaultHasher, Hash, Hasher};

use belljar_guest::{Error, Result};
use belljar_tree::{Kind, Path, Tree};

use crate::index;

/// The revision of what reading `wanted` gives.
pub(crate) fn of_resource(tree: &Tree, wanted: &Path, query: &str) -> Result<String> {
    let meta = tree.meta(&wanted.path)?;
    match meta.kind {
        Kind::Directory => of_index(tree, wanted, query),
        Kind::File if wanted.is_directory => Err(Error::NotFound),
        Kind::File => Ok(meta.revision()),
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
        let shown = meta.map(|meta| (meta.kind, (meta.kind == Kind::File).then(|| meta.facts())));
        (&entry.name, shown).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}
