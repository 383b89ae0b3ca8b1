//! The last lines of a log that a query wants, across its files, from the newest back.
//!
//! The unit of what is chosen is the entry: a line, and those after it that belong to it, such as a stack trace.

use std::collections::VecDeque;
use std::time::SystemTime;

use belljar_guest::{Error, Result};
use jiff::{Timestamp, ToSpan};

use crate::line::{self, Said, Shape};
use crate::query::Query;
use crate::source::{self, Budget, End, Source};
use crate::store::{Log, LogFile};
use crate::time::Calendar;

/// How much text one reading gives.
pub(crate) const LARGEST: usize = 1024 * 1024;

/// Of how much of its end a log's shape is told.
const SAMPLE: u64 = 16 * 1024;

/// How much is looked at for one time, on the way to a day.
const PROBE: u64 = 64 * 1024;

/// By how much entries may be out of order.
const DISORDER: i64 = 60;

/// What a reading gives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The oldest line first.
    pub(crate) lines: Vec<String>,
    /// The files that they are from, the newest first.
    pub(crate) files: Vec<String>,
    /// Why there may be more that were asked for.
    pub(crate) note: Option<String>,
    /// A file was not what it was when the log was looked up.
    pub(crate) changed: bool,
    /// A last line has no end: perhaps it is just being written.
    pub(crate) unfinished: bool,
}

/// What has been collected on the way back.
#[derive(Debug)]
struct Collected<'q> {
    query: &'q Query,
    /// The newest first.
    lines: Vec<String>,
    bytes: usize,
    /// The lines of the entry whose beginning is still to come, the newest first.
    pending: VecDeque<String>,
    pending_bytes: usize,
    /// Whether the text that is asked for is in a line of it, also in one that is not held.
    pending_matches: bool,
    /// Whether any line had a time.
    timed: bool,
    note: Option<String>,
}

/// Whether to go on.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    On,
    /// The text is as long as it may be.
    Full,
    Done,
}

/// What is thought of an entry.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    In,
    Out,
    /// It and all that is older is before what was asked for.
    Before,
}

/// What to do with a last line that has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLine {
    /// Some files are like that.
    Given,
    /// It is being written.
    LeftOut,
}

/// Reads what a query wants of a log.
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
        // Nothing in a file is newer than itself.
        if query.since.is_some_and(|since| written < early(since)) {
            break;
        }
        // And nothing in a compressed one older than its beginning: it need not be unpacked to its end to know.
        if file.packed
            && query.until.is_some_and(|until| begun(file, calendar).is_some_and(|begun| begun >= late(until)))
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
        // It was renamed since it was read by the name that it had.
        if known.as_ref().is_some_and(|mark| source.has(mark, budget)) {
            tail.changed = true;
            continue;
        }
        // An unfinished guess is made again with an older file, which may have more to tell by.
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
            collected.note.get_or_insert(format!("{} is damaged or unfinished: it was read up to there", file.name));
        }
        match step {
            Taken::End(End::Beginning) => {}
            Taken::End(End::Changed) => {
                tail.changed = true;
                break;
            }
            Taken::End(End::Spent) => {
                let at = first_time(source.oldest(), calendar, written);
                collected.note = Some(format!("stopped before all was searched{}", go_on(at)));
                break;
            }
            Taken::End(End::TooLarge) => {
                collected.note = Some(format!(
                    "{} was not read: it is damaged, or unpacking it is more work than one reading may be ({} MiB)",
                    file.name,
                    Budget::ALL >> 20
                ));
                break;
            }
            Taken::End(End::Dropped) => {
                collected.note.get_or_insert(format!(
                    "{} is large when unpacked: only its last {} MiB were searched",
                    file.name,
                    source::KEPT >> 20
                ));
                break;
            }
            Taken::Full => {
                let mut oldest = collected.lines.iter().rev().take(1000);
                let at = oldest.find_map(|line| Said::of(line).time(calendar, written));
                collected.note = Some(format!("stopped at {} KiB of text{}", LARGEST >> 10, go_on(at)));
                break;
            }
            Taken::Done => break,
        }
    }
    // What has no beginning is an entry that says nothing of itself.
    collected.finish();
    if any && !collected.timed && (query.since.is_some() || query.until.is_some()) {
        return Err(Error::invalid(format_args!(
            "no line of \"{}\" has a time that is understood: ask for a number of lines instead, such as ?lines=100",
            log.path
        )));
    }
    collected.lines.reverse();
    Ok(Tail { lines: collected.lines, note: collected.note, ..tail })
}

/// How reading a file ended.
enum Taken {
    End(End),
    /// There is as much text as there may be.
    Full,
    /// All that was asked for is there.
    Done,
}

impl Collected<'_> {
    /// Takes lines of a file, from its end on.
    fn take(
        &mut self,
        source: &mut Source,
        shape: Shape,
        calendar: &Calendar,
        written: Timestamp,
        budget: &mut Budget,
    ) -> Result<Taken> {
        loop {
            let text = match source.previous(budget)? {
                Ok(raw) => line::clean(raw.bytes, raw.cut),
                Err(end) => return Ok(Taken::End(end)),
            };
            let step = if !self.query.chooses() {
                self.push(text.into_owned())
            } else {
                let said = Said::of(&text);
                if !shape.begins(&text, &said) {
                    self.hold(text.into_owned());
                    continue;
                }
                match self.judge(&said, calendar, written) {
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
                Step::Full => return Ok(Taken::Full),
                Step::Done => return Ok(Taken::Done),
            }
        }
    }

    /// Takes one line, whatever it says.
    fn push(&mut self, line: String) -> Step {
        if self.bytes + line.len() > LARGEST {
            return Step::Full;
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
        if self.lines.len() >= self.query.lines { Step::Done } else { Step::On }
    }

    /// Holds a line until the entry begins that it belongs to.
    fn hold(&mut self, line: String) {
        self.pending_matches |= self.is_match(&line);
        self.pending_bytes += line.len() + 1;
        self.pending.push_back(line);
        // Of an entry that is too long, the beginning is what counts.
        while self.pending_bytes > LARGEST || self.pending.len() > self.query.lines.max(1) {
            if let Some(last) = self.pending.pop_front() {
                self.pending_bytes -= last.len() + 1;
            }
        }
    }

    /// Whether a line has the text that is asked for.
    fn is_match(&self, line: &str) -> bool {
        self.query.text.as_deref().is_none_or(|text| contains(line, text))
    }

    /// Judges an entry by its first line.
    fn judge(&mut self, first: &Said<'_>, calendar: &Calendar, written: Timestamp) -> Verdict {
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

    /// Takes the entry that is held, if it fits.
    fn accept(&mut self) -> Step {
        // An entry is not begun in its middle; but the newest one is given as far as it goes.
        if !self.lines.is_empty() && self.lines.len() + self.pending.len() > self.query.lines {
            self.drop_pending();
            return Step::Done;
        }
        if self.bytes + self.pending_bytes > LARGEST && !self.lines.is_empty() {
            self.drop_pending();
            return Step::Full;
        }
        self.bytes += self.pending_bytes;
        self.lines.extend(self.pending.drain(..));
        self.drop_pending();
        if self.lines.len() >= self.query.lines { Step::Done } else { Step::On }
    }

    /// What is held at the end has no beginning.
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

/// A time before which nothing that was asked for is found, although entries are not quite in order.
fn early(since: Timestamp) -> Timestamp {
    since.checked_sub(DISORDER.seconds()).unwrap_or(Timestamp::MIN)
}

/// A time after which nothing that was asked for is found, in the same way.
fn late(until: Timestamp) -> Timestamp {
    until.checked_add(DISORDER.seconds()).unwrap_or(Timestamp::MAX)
}

/// Whether a line contains `wanted`, which is in lower case, in whatever case.
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

/// How to get at what is older. Times may be no finer than seconds, so that a second is given twice rather than never.
fn go_on(at: Option<Timestamp>) -> String {
    let at = at.and_then(|at| Timestamp::from_second(at.as_second() + 1).ok());
    at.map(|at| format!("; to go on, ask once more with until={at}")).unwrap_or_default()
}

/// All but the first line of some bytes, which is not whole.
fn whole_lines(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(memchr::memchr(b'\n', bytes)? + 1..)
}

/// The shape of a log, by the end of a file of it.
fn sample(source: &mut Source, budget: &mut Budget) -> Shape {
    let end = source.length();
    let from = end.saturating_sub(SAMPLE);
    let bytes = source.peek(from, end - from, budget);
    let mut lines = bytes.split(|byte| *byte == b'\n');
    // The first one is not whole.
    if from > 0 {
        lines.next();
    }
    Shape::of(lines.map(|bytes| line::clean(bytes.get(..line::LONGEST).unwrap_or(bytes), 0)))
}

/// A place in a file behind all that was written before `until`, found by halving: nothing between is read.
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
        // Where there is no time at all, what comes later is the side on which nothing is missed.
        match first_time(whole, calendar, written) {
            Some(time) if time >= late => high = middle,
            Some(_) | None => low = middle,
        }
    }
    // The entry that was found at `high` may have begun before it, and its line does not end there.
    source.length().min(high + PROBE)
}

/// The days on which a log was written to, as far as the names and times of its files tell, the newest first.
pub(crate) fn days(log: &Log, calendar: &Calendar, most: usize) -> Vec<String> {
    let date = |time: Option<SystemTime>| Some(calendar.date(Timestamp::try_from(time?).ok()?));
    let newest = log.files.iter().filter_map(|file| date(file.modified).max(file.date)).max();
    let oldest = log
        .files
        .iter()
        .filter_map(|file| begun(file, calendar).map(|time| calendar.date(time)).or(file.date).or(date(file.modified)))
        .min();
    let (Some(newest), Some(oldest)) = (newest, oldest) else { return Vec::new() };
    std::iter::successors(Some(newest), |day| day.yesterday().ok().filter(|day| *day >= oldest))
        .take(most)
        .map(|day| day.to_string())
        .collect()
}

/// The first time in a file.
fn begun(file: &LogFile, calendar: &Calendar) -> Option<Timestamp> {
    let written = Timestamp::try_from(file.modified?).ok()?;
    first_time(&source::head(file, SAMPLE), calendar, written)
}

fn first_time(bytes: &[u8], calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
    bytes.split(|byte| *byte == b'\n').find_map(|bytes| {
        let text = line::clean(bytes.get(..line::LONGEST).unwrap_or(bytes), 0);
        Said::of(&text).time(calendar, written)
    })
}
