//! Reads the last lines of a log that a query selects, across its files, from the newest to the oldest.
//!
//! The unit of selection is the entry: a line, and the lines after it that belong to it, such as a stack trace.

mod order;

use std::borrow::Cow;
use std::collections::VecDeque;

use belljar_guest::{Error, Result};
use belljar_tree::contains;
use jiff::Timestamp;

use crate::line::{self, ParsedLine, Shape};
use crate::query::{Place, Query};
use crate::source::{self, Budget, End, RawLine, Source};
use crate::store::{Log, LogFile};
use crate::time::Calendar;
use crate::unpack::{FORMATS, MAX_KEPT};
use order::{early, first_time, first_time_of, late, position_of, whole_lines};

pub(crate) use order::days;

/// The most text in one read, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// How many bytes of a file's end are sampled for its [`Shape`].
const SAMPLE: u64 = 16 * 1024;

/// How much of an ordered file is searched before the first entry that is too old, in bytes: single entries may be out of
/// order.
const BEHIND: u64 = 4 * 1024;

/// A compressed file of more bytes is skipped if its first entry is too new. A smaller one is unpacked: its times may run
/// backwards.
const LARGE_PACKED: u64 = 256 * 1024;

/// The result of a read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The oldest line first.
    pub(crate) lines: Vec<String>,
    /// The files that the lines are from, newest first.
    pub(crate) files: Vec<String>,
    /// The reason why matching lines may be missing.
    pub(crate) note: Option<String>,
    /// True if a file was rotated or truncated since the log was looked up.
    pub(crate) changed: bool,
    /// True if a last line was returned that has no line end: a program may still be writing it.
    pub(crate) unfinished: bool,
    /// Where a read of older entries continues.
    pub(crate) before: Option<Place>,
}

/// The lines collected so far, going backwards.
#[derive(Debug)]
struct Collected<'q> {
    query: &'q Query,
    /// The newest first.
    lines: Vec<String>,
    bytes: usize,
    /// Lines of an entry whose first line is not reached yet, newest first.
    pending: VecDeque<String>,
    pending_bytes: usize,
    /// What lines of the pending entry say. Dropped lines count too.
    pending_words: Words,
    /// True if any line had a time.
    timed: bool,
    /// True if any judged entry had a level.
    levelled: bool,
    /// True if any entry was judged by its level.
    judged: bool,
    /// True if a line had bytes that are not UTF-8.
    invalid: bool,
    /// The most bytes of text.
    most: usize,
    notes: Vec<String>,
}

/// Whether lines contain the text and match the expression of the query.
#[derive(Debug, Clone, Copy, Default)]
struct Words {
    text: bool,
    regex: bool,
}

/// The decision to take further lines or to stop.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Take further lines.
    On,
    /// The text has reached its limit, without the last entry.
    Full,
    /// The query is complete with the last entry.
    Last,
    /// The query is complete without the last entry.
    Done,
    /// Take further lines: this entry is too old.
    Old,
}

/// The decision whether the query selects an entry.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The query selects the entry.
    In,
    /// The query does not select the entry.
    Out,
    /// The entry is before the start time of the query, and so are all older ones if the file is ordered.
    Before,
}

/// What to do with a last line without a line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLine {
    /// Return it: some files end this way.
    Given,
    /// Leave it out: it is being written.
    LeftOut,
}

/// Reads the entries of a log that a query selects, of at most `most` bytes.
pub(crate) fn read(
    log: &Log,
    query: &Query,
    calendar: &Calendar,
    last_line: LastLine,
    most: usize,
    budget: &mut Budget,
) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut collected = Collected::new(query, most);
    let (mut shape, mut any, mut known) = (None, false, None);
    let (files, mut limit) = files_before(log, query.before.as_ref())?;
    let mut is_whole = true;
    for file in files {
        let limit = limit.take();
        let written = file.modified.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(calendar.now);
        // No entry is newer than the modification time of its file.
        if query.since.is_some_and(|since| written < early(since)) {
            is_whole = false;
            break;
        }
        // Skips a large compressed file whose first entry is too new, without unpacking all of it.
        if file.packed
            && file.size > LARGE_PACKED
            && query.until.is_some_and(|until| first_time_of(file, calendar).is_some_and(|first| first >= late(until)))
        {
            continue;
        }
        let beyond = |block: &[u8]| {
            query.until.is_some_and(|until| {
                let time = whole_lines(block).and_then(|lines| first_time(lines, calendar, written));
                time.is_some_and(|time| time >= late(until))
            })
        };
        let Some(mut source) = Source::open(file, limit, budget, beyond)? else {
            tail.changed = true;
            continue;
        };
        if source.is_empty() {
            continue;
        }
        // A rotation renamed the file that was just read; it must not be read twice.
        if known.as_ref().is_some_and(|mark| source.has(mark, budget)) {
            tail.changed = true;
            continue;
        }
        // While the shape is only `Plain`, an older file may show times or levels.
        let shape = match shape {
            Some(Shape::Timed | Shape::Levelled) => shape.unwrap_or(Shape::Plain),
            _ => *shape.insert(sample(&mut source, budget)),
        };
        let has_times = query.since.is_some() || query.until.is_some();
        let is_ordered = has_times && order::is_ordered(&mut source, calendar, written, budget);
        if let Some(until) = query.until
            && source.is_plain()
            && is_ordered
        {
            let position = position_of(&mut source, until, calendar, written, budget);
            source.seek(position);
        }
        if last_line == LastLine::LeftOut && limit.is_none() {
            source.leave_out_unfinished();
        }
        any = true;
        let before = collected.lines.len() + collected.pending.len();
        let look = Look { shape, calendar, written, is_ordered };
        let (step, offset) = collected.take(&mut source, look, budget)?;
        known = source.mark();
        tail.changed |= known.as_ref().is_some_and(|mark| !source.has(mark, budget));
        tail.unfinished |= source.is_unfinished() && limit.is_none();
        if collected.lines.len() + collected.pending.len() > before {
            tail.files.push(file.name.clone());
        }
        let name = &file.name;
        if let Some(why) = &source.damage {
            collected.notes.push(format!("{name} is damaged or incomplete, it was read up to that point: {why}"));
        }
        let mut place = |offset| {
            let fingerprint = source.fingerprint(file, offset)?;
            Some(Place { file: name.clone(), offset, fingerprint })
        };
        let why = match step {
            ReadEnd::End(End::Beginning) => continue,
            ReadEnd::End(End::Changed) => {
                tail.changed = true;
                None
            }
            ReadEnd::Done => {
                tail.before = place(offset).filter(|_| offset > 0);
                None
            }
            ReadEnd::End(End::Spent) => Some((offset, "stopped at the work limit of one read".to_owned())),
            ReadEnd::End(End::TooLarge) => Some((
                Budget::ALL / 2,
                format!(
                    "{name} was not read: it unpacks to more than one read may unpack, {} MiB or two seconds",
                    Budget::ALL >> 20
                ),
            )),
            ReadEnd::End(End::Dropped) => Some((
                offset,
                format!("{name} is large when unpacked: only {} MiB of it were searched", MAX_KEPT >> 20),
            )),
            ReadEnd::Full => Some((offset, format!("stopped at {} KiB of text", most >> 10))),
        };
        if let Some((offset, why)) = why {
            tail.before = place(offset);
            let hint = tail.before.as_ref().map(Place::encoded);
            let hint = hint.map(|before| format!("; for older entries, read again with before={before}"));
            collected.notes.push(why + &hint.unwrap_or_default());
        }
        is_whole = false;
        break;
    }
    // Pending lines without a first line form an entry without time and level.
    collected.finish();
    if any && !collected.timed && (query.since.is_some() || query.until.is_some()) {
        return Err(Error::invalid(format_args!(
            "no line of \"{}\" has a time in a known format: ask for a number of lines instead, such as ?lines=100",
            log.path
        )));
    }
    if is_whole && !log.unread.is_empty() {
        collected.notes.push(format!("not read, because the compression is not {FORMATS}: {}", log.unread.join(", ")));
    }
    collected.lines.reverse();
    let note = collected.note();
    Ok(Tail { lines: collected.lines, note, ..tail })
}

/// The files of a log from the newest to the oldest, or from the place `before`, and the end of the first one.
fn files_before<'l>(log: &'l Log, before: Option<&Place>) -> Result<(&'l [LogFile], Option<u64>)> {
    let Some(place) = before else { return Ok((&log.files, None)) };
    let is_file = |file: &LogFile| source::fingerprint(file, place.offset) == Some(place.fingerprint);
    let named = log.files.iter().position(|file| file.name == place.file && is_file(file));
    let at = named.or_else(|| log.files.iter().position(is_file));
    let rest = at.and_then(|at| log.files.get(at..)).ok_or_else(|| {
        Error::invalid(format_args!(
            "\"before\" names a place in \"{}\", which was changed, compressed or deleted: read again without it",
            place.file
        ))
    })?;
    Ok((rest, Some(place.offset)))
}

/// What is known about a file while it is read.
#[derive(Clone, Copy)]
struct Look<'c> {
    shape: Shape,
    calendar: &'c Calendar,
    written: Timestamp,
    /// True if no entry is much older than the one before it.
    is_ordered: bool,
}

/// The reason why reading a file ended.
enum ReadEnd {
    End(End),
    /// The text has reached its limit.
    Full,
    /// The query is complete.
    Done,
}

impl<'q> Collected<'q> {
    fn new(query: &'q Query, most: usize) -> Self {
        Collected {
            query,
            lines: Vec::new(),
            bytes: 0,
            pending: VecDeque::new(),
            pending_bytes: 0,
            pending_words: Words::default(),
            timed: false,
            levelled: false,
            judged: false,
            invalid: false,
            most,
            notes: Vec::new(),
        }
    }

    /// Takes lines of a file from its end. Also returns where the last entry begins that was taken or left out.
    fn take(&mut self, source: &mut Source, look: Look<'_>, budget: &mut Budget) -> Result<(ReadEnd, u64)> {
        let mut done = source.offset();
        // Where the first entry begins that is too old.
        let mut old: Option<u64> = None;
        loop {
            let text = match source.previous(budget)? {
                Ok(RawLine { bytes, cut }) => {
                    let text = line::clean(bytes, cut);
                    self.invalid |= matches!(text, Cow::Owned(_)) && std::str::from_utf8(bytes).is_err();
                    text
                }
                Err(end) => return Ok((ReadEnd::End(end), done)),
            };
            let step = if !self.query.has_filter() {
                self.push(text.into_owned())
            } else {
                let parsed = ParsedLine::of(&text);
                if !look.shape.begins(&text, &parsed) {
                    self.hold(text.into_owned());
                    continue;
                }
                let verdict = self.judge(&parsed, look);
                match verdict {
                    Verdict::In if self.has_words(&text) => {
                        old = None;
                        self.hold(text.into_owned());
                        self.accept()
                    }
                    Verdict::In | Verdict::Out => {
                        old = None;
                        self.drop_pending();
                        Step::On
                    }
                    Verdict::Before => {
                        self.drop_pending();
                        Step::Old
                    }
                }
            };
            let offset = source.offset();
            match step {
                Step::On => done = offset,
                Step::Old => {
                    done = offset;
                    // There are no older entries that are not too old.
                    if look.is_ordered && offset + BEHIND < *old.get_or_insert(offset) {
                        return Ok((ReadEnd::Done, 0));
                    }
                }
                Step::Full => return Ok((ReadEnd::Full, done)),
                Step::Last => return Ok((ReadEnd::Done, offset)),
                Step::Done => return Ok((ReadEnd::Done, done)),
            }
        }
    }

    /// The notes as one text.
    fn note(&mut self) -> Option<String> {
        if self.judged && !self.levelled {
            self.notes.push("no entry here has a level in a known format, so \"level\" selects none".to_owned());
        }
        if self.invalid && self.lines.iter().any(|line| line.contains(char::REPLACEMENT_CHARACTER)) {
            self.notes.push(
                "bytes that are not UTF-8 are shown as \u{fffd}: convert the log, such as with iconv, to read them"
                    .to_owned(),
            );
        }
        (!self.notes.is_empty()).then(|| self.notes.join("; "))
    }

    /// Takes one line unconditionally.
    fn push(&mut self, line: String) -> Step {
        if self.bytes + line.len() > self.most && !self.lines.is_empty() {
            return Step::Full;
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
        if self.lines.len() >= self.query.lines { Step::Last } else { Step::On }
    }

    /// Holds a line until the first line of its entry is reached.
    fn hold(&mut self, line: String) {
        self.pending_words = self.words(&line, self.pending_words);
        self.pending_bytes += line.len() + 1;
        self.pending.push_back(line);
        // An overlong entry loses its last lines, because the first ones matter most.
        while self.pending_bytes > self.most || self.pending.len() > self.query.lines.max(1) {
            if let Some(last) = self.pending.pop_front() {
                self.pending_bytes -= last.len() + 1;
            }
        }
    }

    /// What a line and the ones before say.
    fn words(&self, line: &str, before: Words) -> Words {
        let Query { text, regex, .. } = self.query;
        Words {
            text: before.text || text.as_deref().is_none_or(|text| contains(line, text)),
            regex: before.regex || regex.as_ref().is_none_or(|regex| regex.is_match(line)),
        }
    }

    /// True if the pending entry, which begins with this line, says what the query asks for.
    fn has_words(&self, first: &str) -> bool {
        let words = if self.query.has_words() { self.words(first, self.pending_words) } else { return true };
        words.text && words.regex
    }

    /// Judges an entry by its first line.
    fn judge(&mut self, first: &ParsedLine<'_>, look: Look<'_>) -> Verdict {
        let query = self.query;
        if query.since.is_some() || query.until.is_some() {
            let Some(time) = first.time(look.calendar, look.written) else { return Verdict::Out };
            self.timed = true;
            if query.since.is_some_and(|since| time < early(since)) {
                return Verdict::Before;
            }
            if query.since.is_some_and(|since| time < since) || query.until.is_some_and(|until| time >= until) {
                return Verdict::Out;
            }
        }
        if let Some(wanted) = query.level {
            let level = first.level_with(self.pending.back().map(String::as_str));
            self.judged = true;
            self.levelled |= level.is_some();
            if level.is_none_or(|level| level < wanted) {
                return Verdict::Out;
            }
        }
        Verdict::In
    }

    /// Takes the pending entry, if it fits.
    fn accept(&mut self) -> Step {
        // Entries are returned whole, except for the newest one, which may be cut.
        if !self.lines.is_empty() && self.lines.len() + self.pending.len() > self.query.lines {
            self.drop_pending();
            return Step::Done;
        }
        if self.bytes + self.pending_bytes > self.most && !self.lines.is_empty() {
            self.drop_pending();
            return Step::Full;
        }
        self.bytes += self.pending_bytes;
        self.lines.extend(self.pending.drain(..));
        self.drop_pending();
        if self.lines.len() >= self.query.lines { Step::Done } else { Step::On }
    }

    /// Takes the pending lines at the end of all files: an entry without a first line.
    fn finish(&mut self) {
        let query = self.query;
        let Words { text, regex } = self.pending_words;
        if text && regex && query.since.is_none() && query.until.is_none() && query.level.is_none() {
            self.accept();
        }
        self.drop_pending();
    }

    fn drop_pending(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
        self.pending_words = Words::default();
    }
}

/// The shape of a log, from the end of a file.
fn sample(source: &mut Source, budget: &mut Budget) -> Shape {
    let end = source.length();
    let from = end.saturating_sub(SAMPLE);
    let bytes = source.peek_text(from, end - from, budget);
    let mut lines = bytes.split(|byte| *byte == b'\n');
    // The first line is incomplete.
    if from > 0 {
        lines.next();
    }
    Shape::of(lines.map(|bytes| line::clean(bytes.get(..line::MAX_LINE_BYTES).unwrap_or(bytes), 0)))
}
