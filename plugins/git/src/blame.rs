//! Blame: for each line of a file, the commit that last changed it. Follows the lines from commit to commit as `git blame`
//! does, through renamed files too.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use belljar_guest::{Error, Extent, Positions, Result, Unit, reference};
use gix_hash::ObjectId;

use crate::budget::Budget;
use crate::changes::{self, Scope};
use crate::charset::Charset;
use crate::history::Path;
use crate::names::{referable, shown};
use crate::repository::{Repository, commit};
use crate::{patch, renames};

/// The largest file whose lines are followed, in bytes.
const MAX_FILE: u64 = 2 * 1024 * 1024;

/// The most changed files among which the earlier name of a file is searched.
const MAX_CHANGED: usize = 1_000;

/// The digits of a commit ID before each line.
const DIGITS: usize = 12;

/// A file in a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Suspect {
    commit: ObjectId,
    path: Vec<u8>,
    blob: ObjectId,
}

/// Lines of the blamed file, which stand together in a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lines {
    /// The first line in the blamed file.
    at: u32,
    /// The first line in the suspect.
    from: u32,
    count: u32,
}

/// What is known of some lines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    suspect: Suspect,
    from: u32,
    count: u32,
    /// False if the search ended here: the commit, or an earlier one, changed the lines.
    is_final: bool,
}

/// Searches the commits of lines.
struct Search<'a> {
    repository: &'a Repository,
    /// Newest commits first.
    heap: BinaryHeap<(i64, Reverse<usize>, Suspect)>,
    waiting: HashMap<Suspect, Vec<Lines>>,
    added: usize,
    paths: HashMap<Vec<u8>, Path>,
    /// By the first line in the blamed file.
    answers: BTreeMap<u32, Answer>,
}

/// The lines of the file at a path, each with its commit, author and date: all, or those at the positions. Also says which
/// lines these are.
pub(crate) fn text(
    repository: &Repository,
    (id, path): (ObjectId, &[u8]),
    wanted: Option<Positions>,
    budget: &Budget,
) -> Result<(String, Extent)> {
    let tree = repository.tree_of(id)?;
    let (mode, blob) = Path::new(path).at(repository, tree)?.ok_or(Error::NotFound)?;
    if !mode.is_blob() {
        return Err(Error::invalid(format_args!(
            "\"{}\" is not a file: only the lines of files have commits",
            shown(path)
        )));
    }
    let data = contents(repository, &blob)?;
    let lines: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    let total = lines.len() as u64;
    let (first, last) = wanted.map_or((0, total), |wanted| wanted.within(total));
    // A file has fewer lines than `MAX_FILE` bytes.
    let (start, end) = (u32::try_from(first).unwrap_or_default(), u32::try_from(last).unwrap_or_default());
    let mut search = Search {
        repository,
        heap: BinaryHeap::new(),
        waiting: HashMap::new(),
        added: 0,
        paths: HashMap::new(),
        answers: BTreeMap::new(),
    };
    if start < end {
        let suspect = Suspect { commit: id, path: path.to_vec(), blob };
        search.add(suspect, vec![Lines { at: start, from: start, count: end - start }])?;
    }
    search.run(budget)?;
    let text = print(repository, path, &lines, &search.answers)?;
    Ok((text, Extent::new(Unit::Lines, first, last, total)))
}

impl Search<'_> {
    /// Adds lines to those that a suspect may have changed.
    fn add(&mut self, suspect: Suspect, lines: Vec<Lines>) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(others) = self.waiting.get_mut(&suspect) {
            others.extend(lines);
            return Ok(());
        }
        let seconds = self.repository.node(&suspect.commit)?.node.seconds;
        self.added += 1;
        self.heap.push((seconds, Reverse(self.added), suspect.clone()));
        self.waiting.insert(suspect, lines);
        Ok(())
    }

    fn run(&mut self, budget: &Budget) -> Result<()> {
        let mut steps = 0;
        while let Some((_, _, suspect)) = self.heap.pop() {
            let Some(mut lines) = self.waiting.remove(&suspect) else { continue };
            lines.sort_by_key(|lines| lines.from);
            steps += 1;
            let is_final = steps == 1 || !budget.is_spent(&self.repository.objects);
            if is_final {
                lines = self.pass(&suspect, lines)?;
            }
            for Lines { at, from, count } in lines {
                self.answers.insert(at, Answer { suspect: suspect.clone(), from, count, is_final });
            }
        }
        Ok(())
    }

    /// Gives lines that a commit did not change to its parents. Returns the others.
    fn pass(&mut self, suspect: &Suspect, mut lines: Vec<Lines>) -> Result<Vec<Lines>> {
        let commit = self.repository.node(&suspect.commit)?;
        let parents = commit.node.parents.clone();
        let path = self.paths.entry(suspect.path.clone()).or_insert_with(|| Path::new(&suspect.path));
        let mut origins: Vec<Option<Suspect>> = Vec::new();
        for (number, parent) in parents.iter().enumerate() {
            let filter = commit.position.filter(|_| number == 0);
            let blob = match filter.and_then(|position| self.repository.graph()?.may_have_changed(position, path.key()))
            {
                Some(false) => Some(suspect.blob),
                _ => {
                    let tree = self.repository.node(parent)?.node.tree;
                    path.at(self.repository, tree)?.filter(|(mode, _)| mode.is_blob()).map(|(_, blob)| blob)
                }
            };
            let origin = blob.map(|blob| Suspect { commit: *parent, path: suspect.path.clone(), blob });
            if let Some(origin) = origin.as_ref().filter(|origin| origin.blob == suspect.blob) {
                self.add(origin.clone(), lines)?;
                return Ok(Vec::new());
            }
            origins.push(origin);
        }
        for (parent, origin) in parents.iter().zip(&mut origins).filter(|(_, origin)| origin.is_none()) {
            *origin = self.renamed(suspect, commit.node.tree, *parent)?;
            if let Some(origin) = origin.as_ref().filter(|origin| origin.blob == suspect.blob) {
                self.add(origin.clone(), lines)?;
                return Ok(Vec::new());
            }
        }
        let mut seen = HashSet::new();
        let mut after = None;
        for origin in origins.into_iter().flatten().filter(|origin| seen.insert(origin.blob)) {
            if lines.is_empty() {
                break;
            }
            // Only now are the contents needed.
            let after = match &after {
                Some(after) => after,
                None => after.insert(contents(self.repository, &suspect.blob)?),
            };
            let before = contents(self.repository, &origin.blob)?;
            let (diff, _) = patch::compare(&self.repository.objects, &before, after);
            let hunks: Vec<(Range<u32>, Range<u32>)> = diff.hunks().map(|hunk| (hunk.before, hunk.after)).collect();
            let (passed, kept) = split(&lines, &hunks);
            self.add(origin, passed)?;
            lines = kept;
        }
        Ok(lines)
    }

    /// The file in a parent that was renamed to the suspect.
    fn renamed(&self, suspect: &Suspect, tree: ObjectId, parent: ObjectId) -> Result<Option<Suspect>> {
        let before = self.repository.node(&parent)?.node.tree;
        let scope = Scope { most: MAX_CHANGED, ..Scope::default() };
        let mut changed = changes::between(&self.repository.objects, Some(before), Some(tree), scope)?;
        // Other added files are not of interest.
        changed.files.retain(|change| change.after.is_none() || change.path == suspect.path);
        renames::find(&self.repository.objects, &mut changed.files)?;
        let found = changed.files.into_iter().find(|change| change.path == suspect.path);
        Ok(found.and_then(|change| {
            let ((path, _), (_, blob)) = (change.renamed?, change.before?);
            Some(Suspect { commit: parent, path, blob })
        }))
    }
}

/// Splits lines at the hunks of a diff: first those that the parent has too, with their places there, then the others.
fn split(lines: &[Lines], hunks: &[(Range<u32>, Range<u32>)]) -> (Vec<Lines>, Vec<Lines>) {
    let (mut passed, mut kept) = (Vec::new(), Vec::new());
    for Lines { at, from, count } in lines.iter().copied() {
        let (mut here, end) = (from, from + count);
        // The lines before the first hunk have the same place.
        let mut first = hunks.partition_point(|(_, after)| after.end <= here);
        let mut shift = match first.checked_sub(1).and_then(|last| hunks.get(last)) {
            Some((before, after)) => i64::from(before.end) - i64::from(after.end),
            None => 0,
        };
        while here < end {
            let next = hunks.get(first);
            let until = next.map_or(end, |(_, after)| after.start.clamp(here, end));
            if until > here {
                let place = u32::try_from(i64::from(here) + shift).unwrap_or_default();
                passed.push(Lines { at: at + (here - from), from: place, count: until - here });
            }
            here = until;
            let Some((before, after)) = next.filter(|_| here < end) else { break };
            let until = after.end.clamp(here, end);
            if until > here {
                kept.push(Lines { at: at + (here - from), from: here, count: until - here });
            }
            here = until;
            shift = i64::from(before.end) - i64::from(after.end);
            first += 1;
        }
    }
    (passed, kept)
}

/// The contents of a file whose lines are followed.
fn contents(repository: &Repository, id: &ObjectId) -> Result<std::rc::Rc<Vec<u8>>> {
    match repository.objects.header(id)? {
        Some((_, size)) if size > MAX_FILE => Err(Error::failed(format_args!(
            "the file has {size} bytes at a commit of its history; lines of files of up to {MAX_FILE} are followed"
        ))),
        _ => Ok(repository.objects.get(id)?.data),
    }
}

/// The lines in the format of `git blame`, and where to go on for lines whose commit is not found yet.
fn print(repository: &Repository, path: &[u8], lines: &[&[u8]], answers: &BTreeMap<u32, Answer>) -> Result<String> {
    let mut authors: HashMap<ObjectId, (String, String)> = HashMap::new();
    for Answer { suspect, .. } in answers.values() {
        if let Entry::Vacant(new) = authors.entry(suspect.commit) {
            new.insert(author(repository, &suspect.commit)?);
        }
    }
    let width = authors.values().map(|(author, _)| author.chars().count()).max().unwrap_or_default();
    let is_renamed = answers.values().any(|answer| answer.suspect.path != path);
    let digits = answers.iter().next_back().map_or(1, |(at, answer)| (at + answer.count).to_string().len());
    let (mut text, mut notes) = (String::new(), String::new());
    for (at, Answer { suspect, from, count, is_final }) in answers {
        let id = suspect.commit.to_hex_with_len(DIGITS);
        let (author, date) = authors.get(&suspect.commit).cloned().unwrap_or_default();
        let padding = " ".repeat(width.saturating_sub(author.chars().count()));
        let name = if is_renamed { format!("{} ", shown(&suspect.path)) } else { String::new() };
        let sign = if *is_final { "" } else { ">" };
        for number in *at..at + count {
            let line = lines.get(usize::try_from(number).unwrap_or(usize::MAX)).copied().unwrap_or_default();
            let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line));
            let _ = writeln!(text, "{sign}{id} {name}({author}{padding} {date} {:>digits$}) {line}", number + 1);
        }
        if !is_final {
            let path = reference::encode(&referable(&suspect.path));
            let _ = writeln!(
                notes,
                "[git: the search stopped at a limit; lines {}-{} are as old as {id} or older; it continues with \
                 blame/{}/{path}?lines={}-{}]",
                at + 1,
                at + count,
                suspect.commit,
                from + 1,
                from + count
            );
        }
    }
    if notes.is_empty() { Ok(text) } else { Ok(format!("{text}\n{notes}")) }
}

/// The author and the date of a commit.
fn author(repository: &Repository, id: &ObjectId) -> Result<(String, String)> {
    let object = repository.objects.get(id)?;
    let read = commit(id, &object)?;
    let charset = Charset::named(read.encoding.map(|name| name.as_ref()));
    let Ok(who) = read.author() else { return Ok(Default::default()) };
    let date = who.time().map(|time| time.format_or_unix(gix_date::time::format::ISO8601));
    Ok((charset.text(who.name).trim().to_owned(), date.unwrap_or_else(|_| who.time.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_at_hunks() {
        // The parent has lines 0 1 2 3 4 5; the commit replaced 1 by two lines, and deleted 4.
        let hunks = [(1..2, 1..3), (4..5, 5..5)];
        let all = [Lines { at: 10, from: 0, count: 6 }];
        let of = |at, from, count| Lines { at, from, count };
        assert_eq!(split(&all, &hunks), (vec![of(10, 0, 1), of(13, 2, 2), of(15, 5, 1)], vec![of(11, 1, 2)]));
        let inner = [Lines { at: 0, from: 2, count: 2 }];
        assert_eq!(split(&inner, &hunks), (vec![of(1, 2, 1)], vec![of(0, 2, 1)]));
        assert_eq!(split(&all, &[]), (all.to_vec(), vec![]));
    }
}
