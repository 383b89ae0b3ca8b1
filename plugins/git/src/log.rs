//! The log: commits from the newest to the oldest, all of them or those that changed a path. A page names the commits at
//! which the next page begins, so every page costs the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Instant;

use belljar_guest::Result;
use gix_hash::ObjectId;
use serde_json::{Value as Json, json};

use crate::objects::Object;
use crate::repository::{Repository, commit};
use crate::tree;

/// The most commits that one page visits.
const MAX_VISITED: usize = 5_000;

/// A page of the log.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) commits: Vec<Json>,
    /// The commits at which the next page begins; empty at the end.
    pub(crate) next: Vec<ObjectId>,
    /// True if the search stopped at a limit of commits or time, before the page was full.
    pub(crate) unfinished: bool,
}

/// The commits to visit, newest first.
struct Queue<'a> {
    repository: &'a Repository,
    heap: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    objects: HashMap<ObjectId, Object>,
    seen: HashSet<ObjectId>,
}

impl Queue<'_> {
    fn push(&mut self, id: ObjectId) -> Result<()> {
        if self.seen.insert(id) {
            let object = self.repository.objects.get(&id)?;
            let seconds =
                commit(&id, &object)?.committer().ok().and_then(|who| who.time().ok()).map_or(0, |time| time.seconds);
            // Commits of the same second keep the order in which they were found.
            self.heap.push((seconds, Reverse(self.seen.len()), id));
            self.objects.insert(id, object);
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<(ObjectId, Object)> {
        let (_, _, id) = self.heap.pop()?;
        self.objects.remove(&id).map(|object| (id, object))
    }
}

/// The commits that a page shows. By default all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Filter<'a> {
    /// Only commits that changed this file or directory.
    pub(crate) path: Option<&'a str>,
    /// Only commits whose message contains this, in lower case.
    pub(crate) text: Option<&'a str>,
}

/// At most `limit` commits that `filter` selects: `from` and their ancestors. Stops at the time `until`.
pub(crate) fn page(
    repository: &Repository,
    from: &[ObjectId],
    filter: Filter<'_>,
    limit: usize,
    until: Instant,
) -> Result<Page> {
    let mut queue = Queue { repository, heap: BinaryHeap::new(), objects: HashMap::new(), seen: HashSet::new() };
    for id in from {
        queue.push(*id)?;
    }
    let mut page = Page { commits: Vec::new(), next: Vec::new(), unfinished: false };
    let (mut visited, mut entries) = (0, EntryCache::default());
    while page.commits.len() < limit {
        visited += 1;
        if visited > MAX_VISITED || Instant::now() > until {
            page.unfinished = !queue.heap.is_empty();
            break;
        }
        let Some((id, object)) = queue.pop() else { break };
        let read = commit(&id, &object)?;
        let mut parents = repository.parents_in(&id, &read);
        let mut is_shown = true;
        if let Some(path) = filter.path {
            let own = entries.at(repository, &id, path)?;
            let mut same = None;
            for parent in &parents {
                if entries.at(repository, parent, path)? == own {
                    same = Some(*parent);
                    break;
                }
            }
            // Git's history simplification: if one parent has the same entry, the log follows only this parent.
            is_shown = if parents.is_empty() { own.is_some() } else { same.is_none() };
            parents = same.map_or(parents, |same| vec![same]);
        }
        let has_text = |text: &str| String::from_utf8_lossy(read.message).to_lowercase().contains(text);
        if is_shown && filter.text.is_none_or(has_text) {
            page.commits.push(describe(&id, &object)?);
        }
        for parent in parents {
            queue.push(parent)?;
        }
    }
    while let Some((id, _)) = queue.pop() {
        page.next.push(id);
    }
    Ok(page)
}

/// The entries of commits at one path. Cached, because each commit is needed twice: as a parent and as itself.
#[derive(Default)]
struct EntryCache(HashMap<ObjectId, Option<(u16, ObjectId)>>);

impl EntryCache {
    fn at(&mut self, repository: &Repository, id: &ObjectId, path: &str) -> Result<Option<(u16, ObjectId)>> {
        if let Some(found) = self.0.get(id) {
            return Ok(*found);
        }
        let tree = repository.tree_of(*id)?;
        let found = tree::find(&repository.objects, &tree, path)?.map(|entry| (entry.mode.value(), entry.id));
        self.0.insert(*id, found);
        Ok(found)
    }
}

/// The summary of a commit as JSON.
pub(crate) fn describe(id: &ObjectId, object: &Object) -> Result<Json> {
    let read = commit(id, object)?;
    let message = String::from_utf8_lossy(read.message);
    let subject: Vec<&str> = message.trim_start().lines().take_while(|line| !line.trim().is_empty()).collect();
    let author = read.author().ok();
    let time = read.committer().ok().and_then(|who| who.time().ok());
    Ok(json!({
        "id": id.to_string(),
        "date": time.map(|time| time.format_or_unix(gix_date::time::format::ISO8601_STRICT)),
        "author": author.map(|author| String::from_utf8_lossy(author.name).trim().to_owned()),
        "email": author.map(|author| String::from_utf8_lossy(author.email).trim().to_owned()),
        "subject": subject.join(" "),
        "parents": read.parents().map(|parent| parent.to_string()).collect::<Vec<_>>(),
        "read": format!("commits/{id}"),
    }))
}
