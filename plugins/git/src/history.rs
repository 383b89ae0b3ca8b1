//! Walks commits from the newest to the oldest, and compares the entries at one path between a commit and its parents.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use belljar_guest::Result;
use gix_hash::ObjectId;
use gix_object::tree::{EntryKind, EntryMode};

use crate::graph::{Key, Node};
use crate::objects::Object;
use crate::repository::Repository;
use crate::tree;

/// The most entries of trees that a walk remembers.
const MAX_REMEMBERED: usize = 100_000;

/// A commit of a walk.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: ObjectId,
    pub(crate) node: Node,
    /// The position in the commit-graph, if the commit is there.
    pub(crate) position: Option<u32>,
    /// The object, if it was read.
    pub(crate) object: Option<Object>,
}

/// The commits to visit, newest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    commits: HashMap<ObjectId, Commit>,
    /// Commits that were read before they are added.
    loaded: HashMap<ObjectId, Commit>,
    seen: HashSet<ObjectId>,
}

impl Queue {
    /// Adds a commit, unless it was added before.
    pub(crate) fn push(&mut self, repository: &Repository, id: ObjectId) -> Result<()> {
        if self.seen.contains(&id) {
            return Ok(());
        }
        let commit = match self.loaded.remove(&id) {
            Some(commit) => commit,
            None => repository.node(&id)?,
        };
        self.seen.insert(id);
        // Commits of the same second keep the order in which they were found.
        self.heap.push((commit.node.seconds, Reverse(self.seen.len()), id));
        self.commits.insert(id, commit);
        Ok(())
    }

    /// The tree of a commit, which may be added later.
    fn tree(&mut self, repository: &Repository, id: &ObjectId) -> Result<ObjectId> {
        if let Some(commit) = self.commits.get(id).or_else(|| self.loaded.get(id)) {
            return Ok(commit.node.tree);
        }
        let commit = repository.node(id)?;
        let tree = commit.node.tree;
        self.loaded.insert(*id, commit);
        Ok(tree)
    }

    /// The newest commit.
    pub(crate) fn pop(&mut self) -> Option<Commit> {
        let (_, _, id) = self.heap.pop()?;
        self.commits.remove(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// An entry of a tree: its mode and its object.
pub(crate) type At = Option<(EntryMode, ObjectId)>;

/// Looks one path up in many trees.
#[derive(Debug)]
pub(crate) struct Path {
    names: Vec<Vec<u8>>,
    key: Key,
    /// The entry of the name at a level in a tree.
    found: HashMap<(ObjectId, usize), At>,
}

impl Path {
    /// The path of a file or a directory.
    pub(crate) fn new(path: &[u8]) -> Path {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
        Path { names, key: Key::of(path), found: HashMap::new() }
    }

    /// The key of the path for the filters of the commit-graph.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The entry at the path below a tree.
    pub(crate) fn at(&mut self, repository: &Repository, tree: ObjectId) -> Result<At> {
        let mut at = Some((EntryKind::Tree.into(), tree));
        for level in 0..self.names.len() {
            at = self.below(repository, at, level)?;
        }
        Ok(at)
    }

    /// True if two trees have the same entry at the path. Reads them no deeper than they differ.
    pub(crate) fn is_same(&mut self, repository: &Repository, one: ObjectId, other: ObjectId) -> Result<bool> {
        let (mut one, mut other) = (Some((EntryKind::Tree.into(), one)), Some((EntryKind::Tree.into(), other)));
        for level in 0..self.names.len() {
            if one == other {
                return Ok(true);
            }
            one = self.below(repository, one, level)?;
            other = self.below(repository, other, level)?;
        }
        Ok(one == other)
    }

    /// The first parent that has the same entry at the path, if any.
    pub(crate) fn same_parent(
        &mut self,
        repository: &Repository,
        queue: &mut Queue,
        commit: &Commit,
        parents: &[ObjectId],
    ) -> Result<Option<ObjectId>> {
        for (number, parent) in parents.iter().enumerate() {
            // The filter of a commit is about its first parent.
            let known = Some(commit.position)
                .flatten()
                .filter(|_| number == 0)
                .and_then(|position| repository.graph().and_then(|graph| graph.may_have_changed(position, &self.key)));
            if known == Some(false) {
                repository.objects.add_work(5_000);
                return Ok(Some(*parent));
            }
            let tree = queue.tree(repository, parent)?;
            if self.is_same(repository, commit.node.tree, tree)? {
                return Ok(Some(*parent));
            }
        }
        Ok(None)
    }

    fn below(&mut self, repository: &Repository, at: At, level: usize) -> Result<At> {
        let Some((mode, id)) = at.filter(|(mode, _)| mode.is_tree()) else { return Ok(None) };
        if let Some(found) = self.found.get(&(id, level)) {
            return Ok(*found);
        }
        let name = self.names.get(level).map(Vec::as_slice).unwrap_or_default();
        debug_assert!(mode.is_tree());
        let found = tree::child(&repository.objects, &id, name)?;
        if self.found.len() > MAX_REMEMBERED {
            self.found.clear();
        }
        self.found.insert((id, level), found);
        Ok(found)
    }
}

/// The newest common ancestor of two commits. `None` if they have none, or if the walk is too long.
pub(crate) fn merge_base(
    repository: &Repository,
    one: ObjectId,
    other: ObjectId,
    most: usize,
) -> Result<Option<ObjectId>> {
    let mut sides: HashMap<ObjectId, u8> = HashMap::new();
    let mut heap = BinaryHeap::new();
    for (id, side) in [(one, 1), (other, 2)] {
        *sides.entry(id).or_default() |= side;
        heap.push((repository.node(&id)?.node.seconds, id));
    }
    for _ in 0..most {
        let Some((_, id)) = heap.pop() else { return Ok(None) };
        let side = sides.get(&id).copied().unwrap_or_default();
        if side == 3 {
            return Ok(Some(id));
        }
        for parent in repository.node(&id)?.node.parents {
            let known = sides.entry(parent).or_default();
            if *known | side != *known {
                *known |= side;
                heap.push((repository.node(&parent)?.node.seconds, parent));
            }
        }
    }
    Ok(None)
}
