//! Computes revisions from names, sizes and modification times, without opening files.

use std::hash::{DefaultHasher, Hash, Hasher};

use belljar_guest::{Error, Result};
use belljar_tree::{Kind, Path, Tree};

use crate::index;

/// The revision of the resource at `wanted`.
pub(crate) fn of_resource(tree: &Tree, wanted: &Path, query: &str) -> Result<String> {
    let meta = tree.meta(&wanted.path)?;
    match meta.kind {
        Kind::Directory => of_index(tree, wanted, query),
        Kind::File if wanted.is_directory => Err(Error::NotFound),
        Kind::File => Ok(meta.revision()),
        Kind::Symlink | Kind::Other => Err(Error::denied("the path is neither a file nor a directory")),
    }
}

/// The revision of a directory: a hash of everything that its listing shows.
fn of_index(tree: &Tree, directory: &Path, query: &str) -> Result<String> {
    let found = index::entries(tree, directory, query)?;
    let mut hasher = DefaultHasher::new();
    (found.left, found.unnamed).hash(&mut hasher);
    for entry in &found.entries {
        let meta = tree.meta(&directory.child(&entry.name)).ok();
        // The listing shows neither size nor time of a directory, so they do not count.
        let shown = meta.map(|meta| (meta.kind, (meta.kind == Kind::File).then(|| meta.facts())));
        (&entry.name, shown).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}
