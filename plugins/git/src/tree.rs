//! Trees: what is at a path, what a directory holds, and all files in the order of their paths.

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::tree::{EntryKind, EntryMode};
use gix_object::{Kind, TreeRefIter};

use crate::objects::{Object, Objects};

/// How deep a tree is looked into.
const DEEPEST: usize = 128;

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name, or its path from the root on.
    pub(crate) path: Vec<u8>,
    pub(crate) mode: EntryMode,
    pub(crate) id: ObjectId,
}

impl Entry {
    /// What it is, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self.mode.kind() {
            EntryKind::Tree => "directory",
            EntryKind::Blob | EntryKind::BlobExecutable => "file",
            EntryKind::Link => "symlink",
            EntryKind::Commit => "submodule",
        }
    }
}

/// What a directory holds, in Git's order.
pub(crate) fn entries(objects: &Objects, id: &ObjectId) -> Result<Vec<Entry>> {
    let object = objects.get(id)?;
    let mut all = Vec::new();
    for entry in iterate(id, &object)? {
        let entry = entry.map_err(|error| Error::failed(format_args!("the tree {id} is damaged: {error}")))?;
        all.push(Entry { path: entry.filename.to_vec(), mode: entry.mode, id: entry.oid.to_owned() });
    }
    Ok(all)
}

/// What is at a path below a tree.
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

/// The next files after the path `after`, in the order of their paths: at most `most`. Directories that are over by then are
/// not read.
pub(crate) fn files(objects: &Objects, root: &ObjectId, after: &[u8], most: usize) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(objects, root, &[], after, most, DEEPEST, &mut found)?;
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
        return Err(Error::failed(format_args!("{id} should be a directory, and is a {}", object.kind)));
    }
    Ok(TreeRefIter::from_bytes(&object.data, gix_hash::Kind::Sha1))
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
