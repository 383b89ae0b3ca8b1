//! Parses the names of rotated files into log and age. `app.log`, `app.log.1`, `app.log.2.gz`, `app.log-20261121` and
//! `app-2026-11-21.log` all belong to the log `app.log`.

use jiff::civil::Date;

/// A parsed file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// The name of the log.
    pub(crate) log: String,
    pub(crate) age: Age,
    /// True if the file is compressed in a format that is read.
    pub(crate) packed: bool,
}

/// The age of a file within its log. The smallest age is the current file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Age {
    /// A file with the name of the log.
    Current,
    /// A suffix such as `.1`: a greater number is older.
    Number(u32),
    /// The suffix `.old`: the previous file.
    Old,
    /// A date or time in the name.
    Dated(std::cmp::Reverse<Stamp>),
}

/// The time in a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    pub(crate) date: Date,
    /// Hour, minute and second, as far as the name contains them.
    time: Vec<u8>,
    /// The position among files of the same time: a greater index is newer.
    index: i64,
}

/// Name endings of files that are not logs.
const FOREIGN: [&str; 5] = [".journal", ".pid", ".lock", ".sock", ".swp"];

/// Name endings of compressed files that are read.
const PACKED: [&str; 5] = [".gz", ".xz", ".bz2", ".zst", ".lz4"];

/// Name endings of compressed files that are not read. They are named in notes.
const UNREAD: [&str; 8] = [".zip", ".7z", ".z", ".lzma", ".lzo", ".br", ".rar", ".tgz"];

/// The characters between a name and a date.
const SEPARATORS: [char; 3] = ['-', '_', '.'];

impl Name {
    /// Parses a file name. `None` for a file that is not a log.
    pub(crate) fn parse(name: &str) -> Option<Name> {
        if name.starts_with('.') || without(name, &FOREIGN).or_else(|| without(name, &UNREAD)).is_some() {
            return None;
        }
        let (stem, packed) = without(name, &PACKED).map_or((name, false), |stem| (stem, true));
        let (rest, number) = numbered(stem);
        if let Some((log, stamp)) = dated(rest, number) {
            return Some(Name { log, age: Age::Dated(std::cmp::Reverse(stamp)), packed });
        }
        let (log, age) = match (number, stem.strip_suffix(".old")) {
            (Some(number), _) => (rest, Age::Number(number)),
            (None, Some(log)) if !log.is_empty() => (log, Age::Old),
            (None, _) => (stem, Age::Current),
        };
        (!log.is_empty()).then(|| Name { log: log.to_owned(), age, packed })
    }

    /// The log of a compressed file that is not read. `None` for other files, and for archives that are no logs.
    pub(crate) fn unread(name: &str) -> Option<String> {
        let parsed = Name::parse(without(name, &UNREAD)?)?;
        let is_log = parsed.age != Age::Current || parsed.log.to_ascii_lowercase().contains("log");
        (is_log && !parsed.packed).then_some(parsed.log)
    }

    /// The day in the name.
    pub(crate) fn date(&self) -> Option<Date> {
        match &self.age {
            Age::Dated(stamp) => Some(stamp.0.date),
            Age::Current | Age::Number(_) | Age::Old => None,
        }
    }
}

/// The name without one of these endings, in upper or lower case.
fn without<'n>(name: &'n str, endings: &[&str]) -> Option<&'n str> {
    let lower = name.to_ascii_lowercase();
    let ending = endings.iter().find(|ending| lower.ends_with(**ending))?;
    name.get(..name.len() - ending.len())
}

/// Splits `app.log.3` into `app.log` and 3.
fn numbered(name: &str) -> (&str, Option<u32>) {
    let split = name.rsplit_once('.').filter(|(rest, _)| !rest.is_empty());
    match split {
        // More than four digits are a date or a time.
        Some((rest, digits)) if (1..=4).contains(&digits.len()) && is_digits(digits) => (rest, digits.parse().ok()),
        _ => (name, None),
    }
}

/// Splits the date from a name. `number` is the numeric suffix that the caller has split off.
fn dated(name: &str, number: Option<u32>) -> Option<(String, Stamp)> {
    // A date does not begin within a number.
    let starts = (0..name.len()).filter(|at| {
        let before = name.as_bytes().get(at.wrapping_sub(1));
        !before.is_some_and(u8::is_ascii_digit)
    });
    let (start, date, mut end) = starts.rev().find_map(|start| date_at(name, start))?;
    let mut time = Vec::new();
    while let Some((value, after)) = two_digits(name, end, if time.is_empty() { 24 } else { 60 }) {
        if time.len() == 3 {
            break;
        }
        time.push(value);
        end = after;
    }
    let mut index = 0;
    if let Some((value, after)) = index_at(name, end) {
        index = value;
        end = after;
    }
    let before = name.get(..start)?.trim_end_matches(SEPARATORS);
    let after = name.get(end..)?;
    // `app.log.2026-11-21.2` is the second file of that day, so newer than `.1`. `app-2026-11-21.log.2` was rotated twice,
    // so it is older than `.1`.
    if let Some(number) = number {
        index = if after.is_empty() { i64::from(number) } else { -i64::from(number) };
    }
    let before = if before.is_empty() { "dated" } else { before };
    Some((format!("{before}{after}"), Stamp { date, time, index }))
}

/// The date at `start`, as `20261121` or with separators, and the position of its end.
fn date_at(name: &str, start: usize) -> Option<(usize, Date, usize)> {
    let text = name.get(start..)?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (parts, length) = match digits {
        // Ten digits are a date and an hour.
        8 | 10 => ([text.get(..4)?, text.get(4..6)?, text.get(6..8)?], 8),
        4 => {
            let separator = text.get(4..5).filter(|c| c.starts_with(SEPARATORS))?;
            if text.get(7..8)? != separator || text.as_bytes().get(10).is_some_and(u8::is_ascii_digit) {
                return None;
            }
            ([text.get(..4)?, text.get(5..7)?, text.get(8..10)?], 10)
        }
        _ => return None,
    };
    let [year, month, day] = parts;
    let (year, month, day) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let date = Date::new(year, month, day).ok().filter(|date| (1990..2100).contains(&date.year()))?;
    Some((start, date, start + length))
}

/// A number of exactly two digits at `at`, less than `below`, and the position of its end. A separator may precede it.
fn two_digits(name: &str, at: usize, below: u8) -> Option<(u8, usize)> {
    let text = name.get(at..)?;
    let from = usize::from(text.starts_with(['-', '_', '.', 'T', ':', 'h']));
    let digits = text.get(from..from + 2).filter(|digits| is_digits(digits))?;
    if text.as_bytes().get(from + 2).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.parse().ok().filter(|value| *value < below)?;
    Some((value, at + from + 2))
}

/// An index such as `-17` or `.17` at `at` that ends this part of the name.
fn index_at(name: &str, at: usize) -> Option<(i64, usize)> {
    let text = name.get(at..)?.strip_prefix(SEPARATORS)?;
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let ends = text.get(length..).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let value = text.get(..length)?.parse().ok()?;
    ends.then_some((value, at + 1 + length))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_log_have_its_name() {
        for name in [
            "app.log",
            "app.log.1",
            "app.log.12",
            "app.log.2.gz",
            "app.log.2.xz",
            "app.log.3.BZ2",
            "app.log-20261121.zst",
            "app.log.lz4",
            "app.log.old",
            "app.log-20261121",
            "app.log-20261121.gz",
            "app.log-2026112110",
            "app.log-20261121-1763683200",
            "app.log.2026-11-21",
            "app.log.2026-11-21_10",
            "app.log.2026-11-21.1",
            "app.log.2026-11-21.gz",
            "app-2026-11-21.log",
            "app_20261121.log",
            "app.2026-11-21.log",
            "app-2026-11-21.3.log",
            "app-2026-11-21.log.gz",
            "app-2026-11-21.log.1",
            "app__2026-11-21_00-00-00.log",
            "app-2026_11_21T10.30.log",
        ] {
            assert_eq!(Name::parse(name).map(|name| name.log).as_deref(), Some("app.log"), "{name}");
        }
    }

    #[test]
    fn other_numbers_are_part_of_a_name() {
        for name in [
            "app",
            "worker.1.log",
            "app-2026.log",
            "app-20261341.log",
            "app-2026-13-41.log",
            "app-123456789.log",
            "app-12026-11-21.log",
            "x-2026-11-215.log",
            "v1.22222",
        ] {
            assert_eq!(Name::parse(name).map(|name| name.log).as_deref(), Some(name));
        }
        assert_eq!(Name::parse("2026-11-21.log").unwrap().log, "dated.log");
        assert_eq!(Name::parse("localhost_access_log.2026-11-21.txt").unwrap().log, "localhost_access_log.txt");
    }

    #[test]
    fn other_names_are_not_logs() {
        for name in ["", ".gz", ".hidden.log", "app.log.7z", "app.zip", "system.journal", "nginx.pid", ".1"] {
            assert_eq!(Name::parse(name), None, "{name}");
        }
    }

    #[test]
    fn compressed_files_that_are_not_read_belong_to_their_log() {
        for name in ["app.log.2.zip", "app.log.7z", "app.log-20261121.Z", "app-2026-11-21.log.br"] {
            assert_eq!(Name::unread(name).as_deref(), Some("app.log"), "{name}");
        }
        for name in ["photos.zip", "app.log.2.gz", "app.log", ".zip", "app.log.gz.zip"] {
            assert_eq!(Name::unread(name), None, "{name}");
        }
    }

    #[test]
    fn the_newest_comes_first() {
        for sorted in [
            &["a.log", "a.log.0", "a.log.1", "a.log.2.gz", "a.log.10.gz"][..],
            &["a.log", "a.log.old"],
            &["a.log", "a.log-20261121", "a.log-20261120.gz", "a.log-20251231.gz"],
            &[
                "a-2026-11-21.3.log",
                "a-2026-11-21.2.log",
                "a-2026-11-21.log",
                "a-2026-11-20.10.log",
                "a-2026-11-20.9.log",
            ],
            &["a-2026-11-21.log", "a-2026-11-21.log.1", "a-2026-11-21.log.2", "a-2026-11-20.log"],
            &["a.log.2026-11-21.2", "a.log.2026-11-21.1", "a.log.2026-11-21"],
            &["a.log-2026112111", "a.log-2026112110", "a.log-2026112100"],
        ] {
            let ages: Vec<Age> = sorted.iter().map(|name| Name::parse(name).unwrap().age).collect();
            assert!(ages.is_sorted() && ages.windows(2).all(|pair| pair[0] != pair[1]), "{sorted:?}");
        }
    }
}
