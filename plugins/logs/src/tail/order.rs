//! The order of entries by time: whether a file has one, and where in a file a time is.

use std::time::SystemTime;

use jiff::{Timestamp, ToSpan};

use crate::line::{self, ParsedLine};
use crate::source::{self, Budget, Source};
use crate::store::{Log, LogFile};
use crate::time::Calendar;

/// The size of a probe of the binary search for a time, in bytes.
const PROBE: u64 = 64 * 1024;

/// How far entries of an ordered file may be out of order, in seconds.
const DISORDER: i64 = 60;

/// The most probes of the order of a file, and the least distance of two of them in bytes.
const PROBES: u64 = 24;
const DISTANCE: u64 = 8 * 1024;

/// The size of a probe of the order, in bytes. It has at least one whole line of most logs.
const PROBE_OF_ORDER: u64 = 2 * 1024;

/// `since` less the tolerated disorder: in an ordered file, older entries need no search.
pub(super) fn early(since: Timestamp) -> Timestamp {
    since.checked_sub(DISORDER.seconds()).unwrap_or(Timestamp::MIN)
}

/// `until` plus the tolerated disorder: in an ordered file, newer entries need no search.
pub(super) fn late(until: Timestamp) -> Timestamp {
    until.checked_add(DISORDER.seconds()).unwrap_or(Timestamp::MAX)
}

/// True if the times of a file seem to run forwards. Looks at places all over the file. A file that is so small that it has
/// no such places counts as unordered: it can be read whole.
pub(super) fn is_ordered(source: &mut Source, calendar: &Calendar, written: Timestamp, budget: &mut Budget) -> bool {
    let length = source.length();
    let probes = (length / DISTANCE).min(PROBES);
    let mut latest = Timestamp::MIN;
    for probe in 0..probes {
        let bytes = source.peek_text(length / probes * probe, PROBE_OF_ORDER, budget);
        let whole = if probe == 0 { Some(&*bytes) } else { whole_lines(&bytes) };
        let Some(time) = whole.and_then(|lines| first_time(lines, calendar, written)) else { continue };
        if time < early(latest) {
            return false;
        }
        latest = latest.max(time);
    }
    probes > 1
}

/// The bytes after the first line, which may be incomplete.
pub(super) fn whole_lines(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(memchr::memchr(b'\n', bytes)? + 1..)
}

/// A position after all entries before `until`, found by binary search without reading the file.
pub(super) fn position_of(
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
        let bytes = source.peek_text(middle, PROBE.min(high - middle), budget);
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

/// The first time in these lines.
pub(super) fn first_time(bytes: &[u8], calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
    bytes.split(|byte| *byte == b'\n').find_map(|bytes| {
        let text = line::clean(bytes.get(..line::MAX_LINE_BYTES).unwrap_or(bytes), 0);
        ParsedLine::of(&text).time(calendar, written)
    })
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
pub(super) fn first_time_of(file: &LogFile, calendar: &Calendar) -> Option<Timestamp> {
    let written = Timestamp::try_from(file.modified?).ok()?;
    first_time(&source::head(file, super::SAMPLE), calendar, written)
}
