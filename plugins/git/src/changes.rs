//! Compares two trees: the files that differ, sorted by path. Equal directories are not read.

use std::cmp::Ordering;

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::tree::{EntryKind, EntryMode, EntryRef};

use crate::objects::{Object, Objects};
use crate::tree;

/// The deepest level of directories that is compared.
const MAX_DEPTH: usize = 256;

/// One side of a change: mode and object; `None` where the file does not exist.
pub(crate) type Side = Option<(EntryMode, ObjectId)>;

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) path: Vec<u8>,
    pub(crate) before: Side,
    pub(crate) after: Side,
    /// The earlier path of a renamed file, and the similarity of the contents in percent.
    pub(crate) renamed: Option<(Vec<u8>, u32)>,
}

impl Changed {
    /// The letter of `git diff --name-status`.
    pub(crate) fn sign(&self) -> char {
        match (&self.before, &self.after) {
            _ if self.renamed.is_some() => 'R',
            (None, _) => 'A',
            (_, None) => 'D',
            _ if self.has_other_type() => 'T',
            _ => 'M',
        }
    }

    /// True if a file became a symbolic link or a submodule, or the other way round.
    pub(crate) fn has_other_type(&self) -> bool {
        let kind = |side: &Side| side.map(|(mode, _)| if mode.is_blob() { EntryKind::Blob } else { mode.kind() });
        self.before.is_some() && self.after.is_some() && kind(&self.before) != kind(&self.after)
    }
}

/// The differences of two trees.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) files: Vec<Changed>,
    /// True if more files differ.
    pub(crate) is_cut: bool,
    /// Directories that could not be compared because a tree is absent.
    pub(crate) absent: Vec<(Vec<u8>, ObjectId)>,
}

/// Which differences are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scope<'a> {
    /// Only this file or directory; empty for all.
    pub(crate) path: &'a [u8],
    /// Only paths after this one.
    pub(crate) after: &'a [u8],
    /// At most so many files.
    pub(crate) most: usize,
}

/// The files that differ between two trees.
pub(crate) fn between(
    objects: &Objects,
    before: Option<ObjectId>,
    after: Option<ObjectId>,
    scope: Scope<'_>,
) -> Result<Changes> {
    let mut changes = Changes::default();
    if before != after {
        compare(objects, (before, after), &[], scope.path, &scope, MAX_DEPTH, &mut changes)?;
    }
    Ok(changes)
}

/// Compares two directories at `path`. `wanted` is the rest of the path of the scope.
fn compare(
    objects: &Objects,
    (before, after): (Option<ObjectId>, Option<ObjectId>),
    path: &[u8],
    wanted: &[u8],
    scope: &Scope<'_>,
    depth: usize,
    changes: &mut Changes,
) -> Result<()> {
    let mut load = |id: Option<ObjectId>| -> Result<Option<Option<Object>>> {
        let Some(id) = id else { return Ok(Some(None)) };
        let object = objects.find(&id)?;
        if object.is_none() {
            changes.absent.push((path.to_vec(), id));
        }
        Ok(object.map(Some))
    };
    let (Some(old), Some(new)) = (load(before)?, load(after)?) else { return Ok(()) };
    let wanted_here = wanted.split(|byte| *byte == b'/').next().unwrap_or_default();
    let wanted_below = wanted.get(wanted_here.len() + 1..).unwrap_or_default();
    let mut pairs = Pairs::of((before, old.as_ref()), (after, new.as_ref()))?;
    while let Some((old, new)) = pairs.next()? {
        let Some(name) = old.or(new).map(|entry| entry.filename) else { continue };
        let side = |entry: Option<EntryRef<'_>>| entry.map(|entry| (entry.mode, entry.oid.to_owned()));
        let (before, after) = (side(old), side(new));
        if before == after || !(wanted_here.is_empty() || wanted_here == name) {
            continue;
        }
        let whole = tree::join(path, name);
        if before.or(after).is_some_and(|(mode, _)| mode.is_tree()) {
            if depth == 0 {
                return Err(Error::failed(format_args!(
                    "directories are more than {MAX_DEPTH} deep; ask for a \"path\""
                )));
            }
            if tree::has_paths_after(&whole, scope.after) {
                let ids = (before.map(|(_, id)| id), after.map(|(_, id)| id));
                compare(objects, ids, &whole, wanted_below, scope, depth - 1, changes)?;
            }
        } else if wanted_below.is_empty() && whole.as_slice() > scope.after {
            if changes.files.len() >= scope.most {
                changes.is_cut = true;
            } else {
                changes.files.push(Changed { path: whole, before, after, renamed: None });
            }
        }
        if changes.is_cut {
            return Ok(());
        }
    }
    Ok(())
}

/// The entries of two trees side by side, in Git's order.
struct Pairs<'a> {
    old: Entries<'a>,
    new: Entries<'a>,
}

struct Entries<'a> {
    id: ObjectId,
    rest: Option<gix_object::TreeRefIter<'a>>,
    next: Option<EntryRef<'a>>,
}

impl<'a> Entries<'a> {
    fn of((id, object): (Option<ObjectId>, Option<&'a Object>)) -> Result<Entries<'a>> {
        let id = id.unwrap_or(ObjectId::null(gix_hash::Kind::Sha1));
        let rest = object.map(|object| tree::iterate(&id, object)).transpose()?;
        let mut entries = Entries { id, rest, next: None };
        entries.advance()?;
        Ok(entries)
    }

    fn advance(&mut self) -> Result<Option<EntryRef<'a>>> {
        let next = self.rest.as_mut().and_then(Iterator::next).transpose();
        let next = next.map_err(|error| tree::damaged(&self.id, &error.to_string()))?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

impl<'a> Pairs<'a> {
    fn of(old: (Option<ObjectId>, Option<&'a Object>), new: (Option<ObjectId>, Option<&'a Object>)) -> Result<Self> {
        Ok(Pairs { old: Entries::of(old)?, new: Entries::of(new)? })
    }

    fn next(&mut self) -> Result<Option<(Option<EntryRef<'a>>, Option<EntryRef<'a>>)>> {
        let order = match (&self.old.next, &self.new.next) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => {
                gix_object::tree::name_order(old.filename, old.mode.is_tree(), new.filename, new.mode.is_tree())
            }
        };
        let old = if order == Ordering::Greater { None } else { self.old.advance()? };
        let new = if order == Ordering::Less { None } else { self.new.advance()? };
        Ok(Some((old, new)))
    }
}
