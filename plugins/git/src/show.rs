//! A commit as text in the format of `git show`: author, dates, message and diff. Also the diff of two trees, as text and in
//! numbers.

use std::fmt::Write as _;

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::bstr::BStr;
use serde_json::{Value as Json, json};

use crate::budget::Budget;
use crate::changes::{self, Changed, Changes, Scope};
use crate::charset::Charset;
use crate::names::shown;
use crate::repository::{Repository, commit};
use crate::{patch, renames, tree};

/// The most changed files that are shown.
const MAX_FILES: usize = 2_000;

/// The length of all diffs of a page together, in bytes. The last one may go beyond it.
const MAX_DIFF_BYTES: usize = 512 * 1024;

/// Which differences are wanted, and how.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// Only this file or directory.
    pub(crate) path: Option<&'a str>,
    /// Only paths after this one.
    pub(crate) after: Option<&'a str>,
    /// True if deleted and added files that are similar become renamed ones.
    pub(crate) finds_renames: bool,
    /// The length of all diffs together, in bytes. Longer ones are left out. `None`: the text ends with a path, after which
    /// the next page begins.
    pub(crate) most: Option<usize>,
}

/// The differences of two trees as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The number of files, their names, and their unified diffs.
    pub(crate) text: String,
    /// True if a diff is left out.
    pub(crate) is_cut: bool,
    /// The path after which the next page begins.
    pub(crate) next: Option<Vec<u8>>,
}

/// A commit with its diff from the first parent.
pub(crate) fn text(repository: &Repository, id: &ObjectId, wanted: Wanted<'_>, budget: &Budget) -> Result<Difference> {
    let object = repository.objects.get(id)?;
    let read = commit(id, &object)?;
    let charset = Charset::named(read.encoding.map(|name| name.as_ref()));
    let parents = repository.parents_in(id, &read);
    let mut text = format!("commit {id}\n");
    for parent in read.parents() {
        let _ = writeln!(text, "parent {parent}");
    }
    for (role, who) in [("Author", read.author()), ("Commit", read.committer())] {
        let Ok(who) = who else { continue };
        let name = |bytes: &BStr| charset.text(bytes).trim().to_owned();
        let date = who
            .time()
            .map_or_else(|_| who.time.to_owned(), |time| time.format_or_unix(gix_date::time::format::ISO8601_STRICT));
        let _ = writeln!(text, "{role}: {} <{}>\n{role}Date: {date}", name(who.name), name(who.email));
    }
    if let (Charset::Unknown, Some(name)) = (charset, read.encoding) {
        let _ = writeln!(text, "[git: the encoding \"{}\" is not known; the text is shown as UTF-8]", shown(name));
    }
    text.push('\n');
    for line in charset.text(read.message).trim_end().lines() {
        let _ = writeln!(text, "{}", format!("    {line}").trim_end());
    }
    text.push('\n');
    if parents.len() > 1 {
        let _ = writeln!(text, "This is a merge commit; the diff is from its first parent.");
    }
    let before = match parents.first() {
        None => Ok(None),
        Some(parent) => repository.tree_of(*parent).map(Some),
    };
    let found = match before {
        Ok(before) => diff(repository, (before, read.tree()), wanted, budget)?,
        // A parent that is there but damaged is an error.
        Err(error) if parents.first().is_some_and(|parent| repository.objects.contains(parent).unwrap_or(true)) => {
            return Err(error);
        }
        Err(error) => {
            Difference { text: format!("[git: no diff from the first parent: {error}]\n"), ..Difference::default() }
        }
    };
    Ok(Difference { text: text + &found.text, ..found })
}

/// The changes from the first tree to the second.
pub(crate) fn diff(
    repository: &Repository,
    trees: (Option<ObjectId>, ObjectId),
    wanted: Wanted<'_>,
    budget: &Budget,
) -> Result<Difference> {
    let objects = &repository.objects;
    let (changes, notice) = changes_of(repository, trees, &wanted)?;
    let mut text = String::new();
    let (more, noun) =
        (if changes.is_cut { "more than " } else { "" }, if changes.files.len() == 1 { "file" } else { "files" });
    let after = wanted.after.map(|after| format!(" after {after}")).unwrap_or_default();
    let _ = writeln!(text, "{more}{} {noun} changed{after}", changes.files.len());
    for change in &changes.files {
        match &change.renamed {
            Some((from, percent)) => {
                let _ = writeln!(text, "R {} -> {} ({percent}%)", shown(from), shown(&change.path));
            }
            None => {
                let _ = writeln!(text, "{} {}", change.sign(), shown(&change.path));
            }
        }
    }
    text.push_str(&notice);
    let (mut left_out, begin) = (0, text.len());
    let mut next = changes.files.last().filter(|_| changes.is_cut).map(|last| last.path.clone());
    let mut last: Option<&Changed> = None;
    for change in &changes.files {
        let room = wanted.most.unwrap_or(MAX_DIFF_BYTES).saturating_sub(text.len() - begin);
        let is_full = room == 0 || (last.is_some() && budget.is_spent(objects));
        if is_full && wanted.most.is_none() {
            next = last.map(|last| last.path.clone());
            break;
        }
        let difference = if is_full { None } else { Some(patch::text(objects, change)?) };
        match difference.filter(|difference| wanted.most.is_none() || difference.len() <= room) {
            Some(difference) => {
                let _ = write!(text, "\n{difference}");
            }
            None => left_out += 1,
        }
        last = Some(change);
    }
    let is_cut = left_out > 0 || changes.is_cut || next.is_some();
    if wanted.most.is_some() && is_cut {
        let _ = writeln!(
            text,
            "\n[git: the diffs of {left_out} of these files are left out: too many files, or diffs too long]"
        );
    }
    Ok(Difference { text, is_cut, next: next.filter(|_| wanted.most.is_none()) })
}

/// The changes from the first tree to the second in numbers: the files, whether there are more, and a notice.
pub(crate) fn numbers(
    repository: &Repository,
    trees: (Option<ObjectId>, ObjectId),
    wanted: Wanted<'_>,
    budget: &Budget,
) -> Result<(Vec<Json>, Option<Vec<u8>>, String)> {
    let (changes, notice) = changes_of(repository, trees, &wanted)?;
    let mut lines = Vec::new();
    let mut next = changes.files.last().filter(|_| changes.is_cut).map(|last| last.path.clone());
    let mut last: Option<&Changed> = None;
    for change in &changes.files {
        if let Some(last) = last.filter(|_| budget.is_spent(&repository.objects)) {
            next = Some(last.path.clone());
            break;
        }
        let counted = patch::count(&repository.objects, change)?;
        let mut line = json!({
            "status": change.sign().to_string(),
            "path": shown(&change.path),
            "added": counted.map(|(added, _)| added),
            "deleted": counted.map(|(_, deleted)| deleted),
        });
        if let (Some((from, percent)), Some(line)) = (&change.renamed, line.as_object_mut()) {
            line.insert("from".to_owned(), json!(shown(from)));
            line.insert("similarity".to_owned(), json!(percent));
        }
        lines.push(line);
        last = Some(change);
    }
    Ok((lines, next, notice))
}

/// The wanted changes, and what could not be compared in words.
fn changes_of(
    repository: &Repository,
    (before, after): (Option<ObjectId>, ObjectId),
    wanted: &Wanted<'_>,
) -> Result<(Changes, String)> {
    let objects = &repository.objects;
    let path = wanted.path.map(crate::names::referred).unwrap_or_default();
    let begin = wanted.after.map(crate::names::referred).unwrap_or_default();
    if !path.is_empty() {
        let is_there = |root: &ObjectId| tree::find(objects, root, &path).map(|found| found.is_some());
        if !is_there(&after)? && !before.as_ref().map_or(Ok(false), is_there)? {
            return Err(Error::invalid(format_args!(
                "\"path\" is \"{}\": expected a file or a directory of one of the two revisions",
                wanted.path.unwrap_or_default()
            )));
        }
    }
    let mut notice = String::new();
    if wanted.finds_renames {
        // A renamed file may come from anywhere, so renames are searched before pages are cut.
        let mut changes =
            changes::between(objects, before, Some(after), Scope { path: &path, after: b"", most: MAX_FILES })?;
        let is_complete = !changes.is_cut && renames::find(objects, &mut changes.files)?;
        if !is_complete {
            notice.push_str("[git: renames of changed files are not searched: too many files, or files too large]\n");
        }
        if !changes.is_cut {
            changes.files.retain(|change| change.path.as_slice() > begin.as_ref());
            absent(repository, &changes, &mut notice);
            return Ok((changes, notice));
        }
    }
    let changes =
        changes::between(objects, before, Some(after), Scope { path: &path, after: &begin, most: MAX_FILES })?;
    absent(repository, &changes, &mut notice);
    Ok((changes, notice))
}

/// Says which directories could not be compared.
fn absent(repository: &Repository, changes: &Changes, notice: &mut String) {
    if let Some((path, id)) = changes.absent.first() {
        let place = if path.is_empty() { "the root".to_owned() } else { format!("\"{}\"", shown(path)) };
        let _ = writeln!(
            notice,
            "[git: not compared: {} directories, the first is {place}: the tree {id} is absent: {}]",
            changes.absent.len(),
            repository.objects.gaps().reason()
        );
    }
}
