//! Git trees: finds the entry at a path, lists a directory, and lists all files sorted by path.

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::tree::{EntryKind, EntryMode};
use gix_object::{Kind, TreeRefIter};

use crate::objects::{Object, Objects};

/// The deepest level of directories that the list of files visits.
const MAX_DEPTH: usize = 128;

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name within its directory, or the path from the root.
    pub(crate) path: Vec<u8>,
    pub(crate) mode: EntryMode,
    pub(crate) id: ObjectId,
}

impl Entry {
    /// The kind of entry, for display.
    pub(crate) fn kind(&self) -> &'static str {
        match self.mode.kind() {
            EntryKind::Tree => "directory",
            EntryKind::Blob | EntryKind::BlobExecutable => "file",
            EntryKind::Link => "symlink",
            EntryKind::Commit => "submodule",
        }
    }
}

/// The entries of a directory in Git's order.
pub(crate) fn entries(objects: &Objects, id: &ObjectId) -> Result<Vec<Entry>> {
    let object = objects.get(id)?;
    let mut all = Vec::new();
    for entry in iterate(id, &object)? {
        let entry = entry.map_err(|error| Error::failed(format_args!("the tree {id} is damaged: {error}")))?;
        all.push(Entry { path: entry.filename.to_vec(), mode: entry.mode, id: entry.oid.to_owned() });
    }
    Ok(all)
}

/// The entry at a path below a tree.
pub(crate) fn find(objects: &Objects, root: &ObjectId, path: &str) -> Result<Option<Entry>> {
    let mut found = Entry { path: Vec::new(), mode: EntryKind::Tree.into(), id: *root };
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        if found.mode.kind() != EntryKind::Tree {
            return Ok(None);
        }
        let object = objects.get(&found.id)?;
        let mut next = None;
        for entry in iterate(&found.id, &object)? {
            let entry =
                entry.map_err(|error| Error::failed(format_args!("the tree {} is damaged: {error}", found.id)))?;
            if entry.filename == segment.as_bytes() {
                next = Some((entry.mode, entry.oid.to_owned()));
                break;
            }
        }
        let Some((mode, id)) = next else { return Ok(None) };
        found = Entry { path: join(&found.path, segment.as_bytes()), mode, id };
    }
    Ok(Some(found))
}

/// At most `most` files after the path `after`, sorted by path. Does not read directories that end before `after`.
pub(crate) fn files(objects: &Objects, root: &ObjectId, after: &[u8], most: usize) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(objects, root, &[], after, most, MAX_DEPTH, &mut found)?;
    Ok(found)
}

fn walk(
    objects: &Objects,
    id: &ObjectId,
    path: &[u8],
    after: &[u8],
    most: usize,
    depth: usize,
    found: &mut Vec<Entry>,
) -> Result<()> {
    for entry in entries(objects, id)? {
        if found.len() >= most {
            return Ok(());
        }
        let whole = join(path, &entry.path);
        if entry.mode.kind() == EntryKind::Tree {
            let mut below = whole.clone();
            below.push(b'/');
            if (after < below.as_slice() || after.starts_with(&below)) && depth > 0 {
                walk(objects, &entry.id, &whole, after, most, depth - 1, found)?;
            }
        } else if whole.as_slice() > after {
            found.push(Entry { path: whole, ..entry });
        }
    }
    Ok(())
}

fn iterate<'a>(id: &ObjectId, object: &'a Object) -> Result<TreeRefIter<'a>> {
    if object.kind != Kind::Tree {
        return Err(Error::failed(format_args!("the object {id} is a {}: expected a tree", object.kind)));
    }
    Ok(TreeRefIter::from_bytes(&object.data, gix_hash::Kind::Sha1))
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
