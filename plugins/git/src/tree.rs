//! Git trees: finds the entry at a path, lists a directory, and lists all files sorted by path.

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::tree::{EntryKind, EntryMode};
use gix_object::{Kind, TreeRefIter};

use crate::objects::{Object, Objects};

/// The deepest level of directories that the list of files visits.
const MAX_DEPTH: usize = 256;

/// About the fuel to compare one byte of a tree with a name.
const SEARCH_WORK: u64 = 4;

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name within its directory, or the path from the root.
    pub(crate) path: Vec<u8>,
    pub(crate) mode: EntryMode,
    pub(crate) id: ObjectId,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Entry(Entry),
    /// Into a submodule: its entry, and the path within it.
    Inside(Entry, Vec<u8>),
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
        let entry = entry.map_err(|error| damaged(id, &error.to_string()))?;
        all.push(Entry { path: entry.filename.to_vec(), mode: entry.mode, id: entry.oid.to_owned() });
    }
    Ok(all)
}

/// At most `most` entries of a directory after the name `after`, in Git's order, and whether there are more.
pub(crate) fn page(objects: &Objects, id: &ObjectId, after: Option<&[u8]>, most: usize) -> Result<(Vec<Entry>, bool)> {
    let object = objects.get(id)?;
    let mut found = Vec::new();
    let mut is_before = after.is_some();
    for entry in iterate(id, &object)? {
        let entry = entry.map_err(|error| damaged(id, &error.to_string()))?;
        if is_before {
            is_before = Some(entry.filename.as_ref()) != after;
            continue;
        }
        if found.len() == most {
            return Ok((found, true));
        }
        found.push(Entry { path: entry.filename.to_vec(), mode: entry.mode, id: entry.oid.to_owned() });
    }
    if is_before {
        return Err(Error::invalid(format_args!(
            "there is no entry \"{}\" after which the page begins; read the directory from its begin",
            crate::names::shown(after.unwrap_or_default())
        )));
    }
    Ok((found, false))
}

/// The entry at a path below a tree, or the submodule in which the path is.
pub(crate) fn find(objects: &Objects, root: &ObjectId, path: &[u8]) -> Result<Option<Found>> {
    let mut found = Entry { path: Vec::new(), mode: EntryKind::Tree.into(), id: *root };
    let mut rest = path;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'/');
        let (segment, after) = end.and_then(|end| rest.split_at_checked(end)).unwrap_or((rest, &[]));
        let after = after.strip_prefix(b"/").unwrap_or(after);
        if segment.is_empty() {
            rest = after;
            continue;
        }
        match found.mode.kind() {
            EntryKind::Tree => {}
            EntryKind::Commit => return Ok(Some(Found::Inside(found, rest.to_vec()))),
            _ => return Ok(None),
        }
        let object = objects.get(&found.id)?;
        let Some((mode, id)) = search(objects, &found.id, &object, segment)? else { return Ok(None) };
        found = Entry { path: join(&found.path, segment), mode, id };
        rest = after;
    }
    Ok(Some(Found::Entry(found)))
}

/// The entry at a path below a tree, without its contents being checked. For searches.
pub(crate) fn child(objects: &Objects, tree: &ObjectId, name: &[u8]) -> Result<Option<(EntryMode, ObjectId)>> {
    let object = objects.find_unchecked(tree)?.ok_or_else(|| objects.missing(tree))?;
    search(objects, tree, &object, name)
}

/// Finds a name in a tree. Does not parse the other entries.
pub(crate) fn search(
    objects: &Objects,
    id: &ObjectId,
    object: &Object,
    name: &[u8],
) -> Result<Option<(EntryMode, ObjectId)>> {
    if object.kind != Kind::Tree {
        return Err(Error::failed(format_args!("the object {id} is a {}: expected a tree", object.kind)));
    }
    let length = id.kind().len_in_bytes();
    let mut rest = object.data.as_slice();
    while !rest.is_empty() {
        let parsed = memchr::memchr(0, rest).and_then(|end| {
            let (head, tail) = rest.split_at_checked(end)?;
            let space = memchr::memchr(b' ', head.get(..head.len().min(8))?)?;
            Some((head.get(..space)?, head.get(space + 1..)?, tail.get(1..=length)?, tail.get(1 + length..)?))
        });
        let (mode, entry, target, after) = parsed.ok_or_else(|| damaged(id, "an entry in it is malformed"))?;
        if entry == name {
            objects.add_work((object.data.len() - after.len()) as u64 * SEARCH_WORK);
            let mode = std::str::from_utf8(mode).ok().and_then(|mode| u32::from_str_radix(mode, 8).ok());
            let mode = mode.and_then(|mode| EntryMode::try_from(mode).ok());
            let mode = mode.ok_or_else(|| damaged(id, "an entry in it has an unknown mode"))?;
            let target = ObjectId::try_from(target).map_err(|error| damaged(id, &error.to_string()))?;
            return Ok(Some((mode, target)));
        }
        // A directory `a` comes after a file `a-b`, as if it were called `a/`.
        if entry > name && !entry.starts_with(name) {
            break;
        }
        rest = after;
    }
    objects.add_work((object.data.len() - rest.len()) as u64 * SEARCH_WORK);
    Ok(None)
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
            if has_paths_after(&whole, after) && depth > 0 {
                walk(objects, &entry.id, &whole, after, most, depth - 1, found)?;
            }
        } else if whole.as_slice() > after {
            found.push(Entry { path: whole, ..entry });
        }
    }
    Ok(())
}

/// True if a directory may contain paths that come after this one.
pub(crate) fn has_paths_after(directory: &[u8], after: &[u8]) -> bool {
    let below = [directory, b"/"].concat();
    after < below.as_slice() || after.starts_with(&below)
}

/// The entries of a tree, one after the other.
pub(crate) fn iterate<'a>(id: &ObjectId, object: &'a Object) -> Result<TreeRefIter<'a>> {
    if object.kind != Kind::Tree {
        return Err(Error::failed(format_args!("the object {id} is a {}: expected a tree", object.kind)));
    }
    Ok(TreeRefIter::from_bytes(&object.data, id.kind()))
}

/// The error for a damaged tree.
pub(crate) fn damaged(id: &ObjectId, why: &str) -> Error {
    Error::failed(format_args!("the tree {id} is damaged: {why}; run  git fsck"))
}

/// The path of a name in a directory.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
