//! Reads the last lines of a log that a query selects, across its files, from the newest to the oldest.
//!
//! The unit of selection is the entry: a line, and the lines after it that belong to it, such as a stack trace.

use std::collections::VecDeque;
use std::time::SystemTime;

use belljar_guest::{Error, Result};
use jiff::{Timestamp, ToSpan};

use crate::line::{self, ParsedLine, Shape};
use crate::query::Query;
use crate::source::{self, Budget, End, Source};
use crate::store::{Log, LogFile};
use crate::time::Calendar;

/// The most text in one read, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// How many bytes of a file's end are sampled for its [`Shape`].
const SAMPLE: u64 = 16 * 1024;

/// The size of a probe of the binary search for a time, in bytes.
const PROBE: u64 = 64 * 1024;

/// How far entries may be out of order, in seconds.
const DISORDER: i64 = 60;

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
    /// True if a last line has no line end: a program may still be writing it.
    pub(crate) unfinished: bool,
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
    /// True if a line of the pending entry contains the text of the query. Dropped lines count too.
    pending_matches: bool,
    /// True if any line had a time.
    timed: bool,
    note: Option<String>,
}

/// The decision to take further lines or to stop.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Take further lines.
    On,
    /// The text has reached its limit.
    Full,
    /// The query is complete.
    Done,
}

/// The decision whether the query selects an entry.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The query selects the entry.
    In,
    /// The query does not select the entry.
    Out,
    /// This entry and all older ones are before the start time of the query.
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

/// Reads the entries of a log that a query selects.
pub(crate) fn read(
    log: &Log,
    query: &Query,
    calendar: &Calendar,
    last_line: LastLine,
    budget: &mut Budget,
) -> Result<Tail> {
    let mut tail = Tail::default();
    let mut collected = Collected {
        query,
        lines: Vec::new(),
        bytes: 0,
        pending: VecDeque::new(),
        pending_bytes: 0,
        pending_matches: false,
        timed: false,
        note: None,
    };
    let mut shape = None;
    let mut any = false;
    let mut known = None;
    for file in &log.files {
        let written = file.modified.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(calendar.now);
        // No entry is newer than the modification time of its file.
        if query.since.is_some_and(|since| written < early(since)) {
            break;
        }
        // Skips a compressed file whose first entry is too new, without unpacking all of it: no entry is older than the first.
        if file.packed
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
        let Some(mut source) = Source::open(file, budget, beyond)? else {
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
        if let Some(until) = query.until
            && source.is_plain()
        {
            let position = position_of(&mut source, until, calendar, written, budget);
            source.seek(position);
        }
        if last_line == LastLine::LeftOut {
            source.leave_out_unfinished();
        }
        any = true;
        let before = collected.lines.len() + collected.pending.len();
        let step = collected.take(&mut source, shape, calendar, written, budget)?;
        known = source.mark();
        tail.changed |= known.as_ref().is_some_and(|mark| !source.has(mark, budget));
        tail.unfinished |= source.is_unfinished();
        if collected.lines.len() + collected.pending.len() > before {
            tail.files.push(file.name.clone());
        }
        if source.is_damaged {
            collected
                .note
                .get_or_insert(format!("{} is damaged or incomplete: it was read up to that point", file.name));
        }
        match step {
            ReadEnd::End(End::Beginning) => {}
            ReadEnd::End(End::Changed) => {
                tail.changed = true;
                break;
            }
            ReadEnd::End(End::Spent) => {
                let at = first_time(source.oldest(), calendar, written);
                collected.note = Some(format!("stopped at the work limit of one read{}", continuation_hint(at)));
                break;
            }
            ReadEnd::End(End::TooLarge) => {
                collected.note = Some(format!(
                    "{} was not read: it is damaged, or unpacks to more than one read may unpack ({} MiB)",
                    file.name,
                    Budget::ALL >> 20
                ));
                break;
            }
            ReadEnd::End(End::Dropped) => {
                collected.note.get_or_insert(format!(
                    "{} is large when unpacked: only its last {} MiB were searched",
                    file.name,
                    source::MAX_KEPT >> 20
                ));
                break;
            }
            ReadEnd::Full => {
                let mut oldest = collected.lines.iter().rev().take(1000);
                let at = oldest.find_map(|line| ParsedLine::of(line).time(calendar, written));
                collected.note =
                    Some(format!("stopped at {} KiB of text{}", MAX_TEXT_BYTES >> 10, continuation_hint(at)));
                break;
            }
            ReadEnd::Done => break,
        }
    }
    // Pending lines without a first line form an entry without time and level.
    collected.finish();
    if any && !collected.timed && (query.since.is_some() || query.until.is_some()) {
        return Err(Error::invalid(format_args!(
            "no line of \"{}\" has a time in a known format: ask for a number of lines instead, such as ?lines=100",
            log.path
        )));
    }
    collected.lines.reverse();
    Ok(Tail { lines: collected.lines, note: collected.note, ..tail })
}

/// The reason why reading a file ended.
enum ReadEnd {
    End(End),
    /// The text has reached its limit.
    Full,
    /// The query is complete.
    Done,
}

impl Collected<'_> {
    /// Takes lines of a file from its end.
    fn take(
        &mut self,
        source: &mut Source,
        shape: Shape,
        calendar: &Calendar,
        written: Timestamp,
        budget: &mut Budget,
    ) -> Result<ReadEnd> {
        loop {
            let text = match source.previous(budget)? {
                Ok(raw) => line::clean(raw.bytes, raw.cut),
                Err(end) => return Ok(ReadEnd::End(end)),
            };
            let step = if !self.query.has_filter() {
                self.push(text.into_owned())
            } else {
                let parsed = ParsedLine::of(&text);
                if !shape.begins(&text, &parsed) {
                    self.hold(text.into_owned());
                    continue;
                }
                match self.judge(&parsed, calendar, written) {
                    Verdict::In if self.pending_matches || self.is_match(&text) => {
                        self.hold(text.into_owned());
                        self.accept()
                    }
                    Verdict::In | Verdict::Out => {
                        self.drop_pending();
                        Step::On
                    }
                    Verdict::Before => Step::Done,
                }
            };
            match step {
                Step::On => {}
                Step::Full => return Ok(ReadEnd::Full),
                Step::Done => return Ok(ReadEnd::Done),
            }
        }
    }

    /// Takes one line unconditionally.
    fn push(&mut self, line: String) -> Step {
        if self.bytes + line.len() > MAX_TEXT_BYTES {
            return Step::Full;
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
        if self.lines.len() >= self.query.lines { Step::Done } else { Step::On }
    }

    /// Holds a line until the first line of its entry is reached.
    fn hold(&mut self, line: String) {
        self.pending_matches |= self.is_match(&line);
        self.pending_bytes += line.len() + 1;
        self.pending.push_back(line);
        // An overlong entry loses its last lines, because the first ones matter most.
        while self.pending_bytes > MAX_TEXT_BYTES || self.pending.len() > self.query.lines.max(1) {
            if let Some(last) = self.pending.pop_front() {
                self.pending_bytes -= last.len() + 1;
            }
        }
    }

    /// True if a line contains the text of the query.
    fn is_match(&self, line: &str) -> bool {
        self.query.text.as_deref().is_none_or(|text| contains(line, text))
    }

    /// Judges an entry by its first line.
    fn judge(&mut self, first: &ParsedLine<'_>, calendar: &Calendar, written: Timestamp) -> Verdict {
        let query = self.query;
        if query.since.is_some() || query.until.is_some() {
            let Some(time) = first.time(calendar, written) else { return Verdict::Out };
            self.timed = true;
            if query.since.is_some_and(|since| time < early(since)) {
                return Verdict::Before;
            }
            if query.since.is_some_and(|since| time < since) || query.until.is_some_and(|until| time >= until) {
                return Verdict::Out;
            }
        }
        if query.level.is_some_and(|wanted| first.level().is_none_or(|level| level < wanted)) {
            return Verdict::Out;
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
        if self.bytes + self.pending_bytes > MAX_TEXT_BYTES && !self.lines.is_empty() {
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
        if self.pending_matches && query.since.is_none() && query.until.is_none() && query.level.is_none() {
            self.accept();
        }
        self.drop_pending();
    }

    fn drop_pending(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
        self.pending_matches = false;
    }
}

/// `since` less the tolerated disorder: older entries need no search.
fn early(since: Timestamp) -> Timestamp {
    since.checked_sub(DISORDER.seconds()).unwrap_or(Timestamp::MIN)
}

/// `until` plus the tolerated disorder: newer entries need no search.
fn late(until: Timestamp) -> Timestamp {
    until.checked_add(DISORDER.seconds()).unwrap_or(Timestamp::MAX)
}

/// True if a line contains `wanted`, ignoring case. `wanted` is in lower case.
fn contains(line: &str, wanted: &str) -> bool {
    if line.is_ascii() && wanted.is_ascii() {
        let (wanted, first) = (wanted.as_bytes(), wanted.as_bytes().first().copied().unwrap_or_default());
        let places = memchr::memchr2_iter(first, first.to_ascii_uppercase(), line.as_bytes());
        return places
            .filter_map(|at| line.as_bytes().get(at..at + wanted.len()))
            .any(|part| part.eq_ignore_ascii_case(wanted));
    }
    line.to_lowercase().contains(wanted)
}

/// A hint how to read older entries. Times may have a resolution of seconds, so the next read repeats the last second: it
/// must not lose entries.
fn continuation_hint(at: Option<Timestamp>) -> String {
    let at = at.and_then(|at| Timestamp::from_second(at.as_second() + 1).ok());
    at.map(|at| format!("; for older entries, read again with until={at}")).unwrap_or_default()
}

/// The bytes after the first line, which may be incomplete.
fn whole_lines(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(memchr::memchr(b'\n', bytes)? + 1..)
}

/// The shape of a log, from the end of a file.
fn sample(source: &mut Source, budget: &mut Budget) -> Shape {
    let end = source.length();
    let from = end.saturating_sub(SAMPLE);
    let bytes = source.peek(from, end - from, budget);
    let mut lines = bytes.split(|byte| *byte == b'\n');
    // The first line is incomplete.
    if from > 0 {
        lines.next();
    }
    Shape::of(lines.map(|bytes| line::clean(bytes.get(..line::MAX_LINE_BYTES).unwrap_or(bytes), 0)))
}

/// A position after all entries before `until`, found by binary search without reading the file.
fn position_of(
    source: &mut Source,
    until: Timestamp,
    calendar: &Calendar,
    written: Timestamp,
    budget: &mut Budget,
) -> u64 {
    let late = late(until);
    let (mut low, mut high) = (0, source.length());
    while high - low > PROBE {
        let middle = low + (high - low) / 2;
        let bytes = source.peek(middle, PROBE.min(high - middle), budget);
        let whole = whole_lines(&bytes).unwrap_or_default();
        // A probe without any time counts as early: the search then ends too late in the file, and misses no entry.
        match first_time(whole, calendar, written) {
            Some(time) if time >= late => high = middle,
            Some(_) | None => low = middle,
        }
    }
    // The probe at `high` left out the line that begins before it. That line may be before `until`, and it ends at most
    // one probe later.
    source.length().min(high + PROBE)
}

/// The days of a log according to the names and times of its files, newest first.
pub(crate) fn days(log: &Log, calendar: &Calendar, most: usize) -> Vec<String> {
    let date = |time: Option<SystemTime>| Some(calendar.date(Timestamp::try_from(time?).ok()?));
    let newest = log.files.iter().filter_map(|file| date(file.modified).max(file.date)).max();
    let oldest = log
        .files
        .iter()
        .filter_map(|file| {
            first_time_of(file, calendar).map(|time| calendar.date(time)).or(file.date).or(date(file.modified))
        })
        .min();
    let (Some(newest), Some(oldest)) = (newest, oldest) else { return Vec::new() };
    std::iter::successors(Some(newest), |day| day.yesterday().ok().filter(|day| *day >= oldest))
        .take(most)
        .map(|day| day.to_string())
        .collect()
}

/// The first time in a file.
fn first_time_of(file: &LogFile, calendar: &Calendar) -> Option<Timestamp> {
    let written = Timestamp::try_from(file.modified?).ok()?;
    first_time(&source::head(file, SAMPLE), calendar, written)
}

fn first_time(bytes: &[u8], calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
    bytes.split(|byte| *byte == b'\n').find_map(|bytes| {
        let text = line::clean(bytes.get(..line::MAX_LINE_BYTES).unwrap_or(bytes), 0);
        ParsedLine::of(&text).time(calendar, written)
    })
}
