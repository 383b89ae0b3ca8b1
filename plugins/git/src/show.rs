//! A commit as text in the format of `git show`: author, dates, message and diff. Also the diff of two trees.

use std::fmt::{self, Write as _};
use std::ops::ControlFlow;
use std::time::Instant;

use belljar_guest::{Error, Result};
use gix_diff::tree::recorder::Change;
use gix_diff::tree::{Recorder, State, Visit, visit};
use gix_hash::ObjectId;
use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter};
use gix_object::TreeRefIter;
use gix_object::bstr::BStr;
use gix_object::tree::{EntryKind, EntryMode};

use crate::repository::{Repository, commit};
use crate::tree::{self, Entry};

/// The most changed files that are shown.
const MAX_FILES: usize = 2_000;

/// The largest file that is compared line by line, in bytes.
const MAX_COMPARED: u64 = 1024 * 1024;

/// The length of all diffs of a commit together, in bytes.
const MAX_DIFF_BYTES: usize = 512 * 1024;

/// One side of a change: mode and object; `None` where the file does not exist.
type Side = Option<(EntryMode, ObjectId)>;

/// A changed file.
struct Changed {
    path: Vec<u8>,
    before: Side,
    after: Side,
}

/// A commit with its diff from the first parent. Computes no further diff after the time `until`.
pub(crate) fn text(repository: &Repository, id: &ObjectId, until: Instant) -> Result<String> {
    let object = repository.objects.get(id)?;
    let read = commit(id, &object)?;
    let parents = repository.parents_in(id, &read);
    let mut text = format!("commit {id}\n");
    for parent in read.parents() {
        let _ = writeln!(text, "parent {parent}");
    }
    for (role, who) in [("Author", read.author()), ("Commit", read.committer())] {
        let Ok(who) = who else { continue };
        let name = |bytes: &BStr| String::from_utf8_lossy(bytes).trim().to_owned();
        let date = who
            .time()
            .map_or_else(|_| who.time.to_owned(), |time| time.format_or_unix(gix_date::time::format::ISO8601_STRICT));
        let _ = writeln!(text, "{role}: {} <{}>\n{role}Date: {date}", name(who.name), name(who.email));
    }
    text.push('\n');
    for line in String::from_utf8_lossy(read.message).trim_end().lines() {
        let _ = writeln!(text, "{}", format!("    {line}").trim_end());
    }
    let before = parents.first().map(|parent| repository.tree_of(*parent)).transpose()?;
    text.push('\n');
    if parents.len() > 1 {
        let _ = writeln!(text, "This is a merge commit; the diff is from its first parent.");
    }
    let trees = (before.as_ref(), &read.tree());
    text.push_str(&diff(repository, trees, None, MAX_DIFF_BYTES, until)?.text);
    Ok(text)
}

/// The changes from one tree to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The number of files, their names, and their unified diffs.
    pub(crate) text: String,
    /// True if a diff is left out.
    pub(crate) cut: bool,
}

/// The changes from the first tree to the second, or only those of the file or directory `path`. The diffs have at most `max`
/// bytes together. Computes no further diff after the time `until`.
pub(crate) fn diff(
    repository: &Repository,
    (before, after): (Option<&ObjectId>, &ObjectId),
    path: Option<&str>,
    max: usize,
    until: Instant,
) -> Result<Difference> {
    let (changes, cut) = match path {
        None => changes(repository, before, Some(after))?,
        Some(path) => changes_below(repository, before, after, path)?,
    };
    let mut text = String::new();
    let (more, files) = (if cut { "more than " } else { "" }, if changes.len() == 1 { "file" } else { "files" });
    let _ = writeln!(text, "{more}{} {files} changed", changes.len());
    for change in &changes {
        let _ = writeln!(text, "{} {}", sign(change), String::from_utf8_lossy(&change.path));
    }
    let mut left_out = 0;
    let begin = text.len();
    for change in &changes {
        let room = max.saturating_sub(text.len() - begin);
        let difference = if room == 0 || Instant::now() > until { None } else { Some(difference(repository, change)?) };
        match difference.filter(|difference| difference.len() <= room) {
            Some(difference) => {
                let _ = write!(text, "\n{difference}");
            }
            None => left_out += 1,
        }
    }
    if left_out > 0 || cut {
        let _ = writeln!(
            text,
            "\n[git: the diffs of {left_out} of these files are left out: too many files, or diffs too long]"
        );
    }
    Ok(Difference { text, cut: left_out > 0 || cut })
}

fn sign(change: &Changed) -> char {
    match (&change.before, &change.after) {
        (None, _) => 'A',
        (_, None) => 'D',
        _ => 'M',
    }
}

/// The files that differ at `path`, or below it. Like [`changes`], which compares whole trees.
fn changes_below(
    repository: &Repository,
    before: Option<&ObjectId>,
    after: &ObjectId,
    path: &str,
) -> Result<(Vec<Changed>, bool)> {
    let find = |root: &ObjectId| tree::find(&repository.objects, root, path);
    let (before, after) = (before.map(find).transpose()?.flatten(), find(after)?);
    if before.is_none() && after.is_none() {
        return Err(Error::invalid(format_args!(
            "\"path\" is \"{path}\": expected a file or a directory of one of the two revisions"
        )));
    }
    let id = |entry: &Option<Entry>| entry.as_ref().filter(|entry| entry.mode.is_tree()).map(|entry| entry.id);
    let (mut changed, cut) = match (id(&before), id(&after)) {
        (None, None) => (Vec::new(), false),
        (before, after) => changes(repository, before.as_ref(), after.as_ref())?,
    };
    let whole = before.as_ref().or(after.as_ref()).map(|entry| entry.path.clone()).unwrap_or_default();
    for change in changed.iter_mut().filter(|_| !whole.is_empty()) {
        change.path = [whole.as_slice(), b"/", &change.path].concat();
    }
    let side = |entry: Option<Entry>| entry.filter(|entry| !entry.mode.is_tree()).map(|entry| (entry.mode, entry.id));
    let (before, after) = (side(before), side(after));
    if before != after {
        changed.insert(0, Changed { path: whole, before, after });
    }
    Ok((changed, cut))
}

/// At most [`MAX_FILES`] files that differ between two trees, sorted by path. The flag is true if more files differ.
fn changes(
    repository: &Repository,
    before: Option<&ObjectId>,
    after: Option<&ObjectId>,
) -> Result<(Vec<Changed>, bool)> {
    let data = |id: Option<&ObjectId>| -> Result<_> {
        Ok(match id {
            Some(id) => repository.objects.get(id)?.data,
            None => std::rc::Rc::default(),
        })
    };
    let (before, after) = (data(before)?, data(after)?);
    let tree = |data| TreeRefIter::from_bytes(data, gix_hash::Kind::Sha1);
    let mut visitor = Capped { recorder: Recorder::default(), left: MAX_FILES };
    let compared = gix_diff::tree(tree(&before), tree(&after), State::default(), &repository.objects, &mut visitor);
    let cut = match compared {
        Ok(()) => false,
        Err(gix_diff::tree::Error::Cancelled) => true,
        Err(error) => return Err(Error::failed(format_args!("two trees cannot be compared: {error}"))),
    };
    let mut changes: Vec<Changed> = visitor
        .recorder
        .records
        .into_iter()
        .map(|record| match record {
            Change::Addition { entry_mode, oid, path, .. } => {
                Changed { path: path.into(), before: None, after: Some((entry_mode, oid)) }
            }
            Change::Deletion { entry_mode, oid, path, .. } => {
                Changed { path: path.into(), before: Some((entry_mode, oid)), after: None }
            }
            Change::Modification { previous_entry_mode, previous_oid, entry_mode, oid, path } => Changed {
                path: path.into(),
                before: Some((previous_entry_mode, previous_oid)),
                after: Some((entry_mode, oid)),
            },
        })
        .map(|mut change| {
            // The files of a directory are changes of their own.
            change.before = change.before.filter(|(mode, _)| !mode.is_tree());
            change.after = change.after.filter(|(mode, _)| !mode.is_tree());
            change
        })
        .filter(|change| change.before.is_some() || change.after.is_some())
        .collect();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok((changes, cut))
}

/// Records changes up to a limit.
struct Capped {
    recorder: Recorder,
    left: usize,
}

impl Visit for Capped {
    fn pop_front_tracked_path_and_set_current(&mut self) {
        self.recorder.pop_front_tracked_path_and_set_current();
    }

    fn push_back_tracked_path_component(&mut self, component: &BStr) {
        self.recorder.push_back_tracked_path_component(component);
    }

    fn push_path_component(&mut self, component: &BStr) {
        self.recorder.push_path_component(component);
    }

    fn pop_path_component(&mut self) {
        self.recorder.pop_path_component();
    }

    fn visit(&mut self, change: visit::Change) -> visit::Action {
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        self.recorder.visit(change)
    }
}

/// The unified diff of one file.
fn difference(repository: &Repository, change: &Changed) -> Result<String> {
    let path = String::from_utf8_lossy(&change.path);
    let mut text = format!("diff --git a/{path} b/{path}\n");
    let octal = |mode: &EntryMode| format!("{:06o}", mode.value());
    match (&change.before, &change.after) {
        (None, Some((mode, _))) => text.push_str(&format!("new file mode {}\n", octal(mode))),
        (Some((mode, _)), None) => text.push_str(&format!("deleted file mode {}\n", octal(mode))),
        (Some((old, _)), Some((new, _))) if old != new => {
            text.push_str(&format!("old mode {}\nnew mode {}\n", octal(old), octal(new)));
        }
        _ => {}
    }
    let id = |side: &Side| side.map_or_else(|| ObjectId::null(gix_hash::Kind::Sha1), |(_, id)| id);
    if id(&change.before) == id(&change.after) {
        return Ok(text);
    }
    let _ =
        writeln!(text, "index {}..{}", id(&change.before).to_hex_with_len(12), id(&change.after).to_hex_with_len(12));
    let (before, after) = (content(repository, &change.before)?, content(repository, &change.after)?);
    let (before, after) = match (before, after) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(size), _) | (_, Err(size)) => {
            let _ = writeln!(text, "[git: not compared: the file has {size} bytes, the limit is {MAX_COMPARED}]");
            return Ok(text);
        }
    };
    let is_binary = |bytes: &[u8]| bytes.iter().take(8000).any(|byte| *byte == 0);
    let name = |side: &Side, letter: char| side.map_or_else(|| "/dev/null".to_owned(), |_| format!("{letter}/{path}"));
    let (old, new) = (name(&change.before, 'a'), name(&change.after, 'b'));
    if is_binary(&before) || is_binary(&after) {
        let _ = writeln!(text, "Binary files {old} and {new} differ");
        return Ok(text);
    }
    if before.is_empty() && after.is_empty() {
        return Ok(text);
    }
    if std::str::from_utf8(&before).is_err() || std::str::from_utf8(&after).is_err() {
        text.push_str("[git: this file is not all UTF-8; its other bytes are shown as \u{fffd}]\n");
    }
    let input = InternedInput::new(byte_lines(&before), byte_lines(&after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = LinePrinter(&input.interner);
    let _ = write!(text, "--- {old}\n+++ {new}\n{}", diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input));
    Ok(text)
}

/// The contents of one side of a change, or its size in bytes if it is too large to compare.
fn content(repository: &Repository, side: &Side) -> Result<std::result::Result<Vec<u8>, u64>> {
    let Some((mode, id)) = side else { return Ok(Ok(Vec::new())) };
    if mode.kind() == EntryKind::Commit {
        return Ok(Ok(format!("Subproject commit {id}\n").into_bytes()));
    }
    match repository.objects.header(id)? {
        None => Err(repository.objects.missing(id)),
        Some((_, size)) if size > MAX_COMPARED => Ok(Err(size)),
        Some(_) => Ok(Ok(repository.objects.get(id)?.data.to_vec())),
    }
}

/// Prints lines in the format of `git diff`.
struct LinePrinter<'a>(&'a Interner<&'a [u8]>);

impl LinePrinter<'_> {
    fn line(&self, f: &mut impl fmt::Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(f, "{sign}{}", String::from_utf8_lossy(line))?;
        if line.ends_with(b"\n") { Ok(()) } else { f.write_str("\n\\ No newline at end of file\n") }
    }
}

impl UnifiedDiffPrinter for LinePrinter<'_> {
    fn display_header(
        &self,
        mut f: impl fmt::Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        // The range of an empty side is the line before it, with length 0.
        let side = |start: u32, len: u32| match len {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{len}", start + 1),
        };
        writeln!(f, "@@ -{} +{} @@", side(start_before, len_before), side(start_after, len_after))
    }

    fn display_context_token(&self, mut f: impl fmt::Write, token: Token) -> fmt::Result {
        self.line(&mut f, ' ', token)
    }

    fn display_hunk(&self, mut f: impl fmt::Write, before: &[Token], after: &[Token]) -> fmt::Result {
        before.iter().try_for_each(|token| self.line(&mut f, '-', *token))?;
        after.iter().try_for_each(|token| self.line(&mut f, '+', *token))
    }
}
