//! Parses references: `app.log`, `app.log?lines=50&level=warn`, `by-date/2026-11-21/app.log`.

use belljar_guest::{Error, Result, reference};
use jiff::Timestamp;
use jiff::civil::Date;
use regex::{Regex, RegexBuilder};

use crate::level::Level;
use crate::line;
use crate::time::Calendar;

/// The most lines in one read.
pub(crate) const MAX_LINES: usize = 10_000;

/// The first segment of references by day.
pub(crate) const BY_DATE: &str = "by-date";

/// A parsed reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// The path of the log, decoded.
    pub(crate) path: String,
    /// The most lines to return.
    pub(crate) lines: usize,
    /// Entries from this time on.
    pub(crate) since: Option<Timestamp>,
    /// Entries before this time.
    pub(crate) until: Option<Timestamp>,
    /// Entries of this level and worse.
    pub(crate) level: Option<Level>,
    /// Entries that contain this, in lower case.
    pub(crate) text: Option<String>,
    /// Entries with a line that matches this.
    pub(crate) regex: Option<Pattern>,
    /// Entries before this place in the log.
    pub(crate) before: Option<Place>,
}

/// A regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// The most memory of a compiled expression, and of its cache, in bytes.
    const MAX_MEMORY: usize = 2 * 1024 * 1024;

    fn parse(text: &str) -> Result<Self> {
        let built = RegexBuilder::new(text).size_limit(Self::MAX_MEMORY).dfa_size_limit(Self::MAX_MEMORY).build();
        built.map(Pattern).map_err(|error| {
            // The other lines of the message draw the expression.
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Error::invalid(format_args!(
                "\"regex\" is \"{text}\": {why}; expected an expression such as time(d )?out|(?i)refused"
            ))
        })
    }

    /// True if a line matches.
    pub(crate) fn is_match(&self, line: &str) -> bool {
        self.0.is_match(line)
    }
}

/// A place in a log between two lines, at which a read stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The name of the file.
    pub(crate) file: String,
    /// The position in the unpacked file, in bytes.
    pub(crate) offset: u64,
    /// Tells the file from others, because rotation renames files.
    pub(crate) fingerprint: u32,
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, ':');
        let (fingerprint, offset, file) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Place {
            file: file.to_owned(),
            offset: offset.parse().ok()?,
            fingerprint: u32::from_str_radix(fingerprint, 16).ok()?,
        })
    }

    /// The value of the parameter `before`, encoded.
    pub(crate) fn encoded(&self) -> String {
        let Place { file, offset, fingerprint } = self;
        let name = reference::encode_segment(file).replace('&', "%26");
        format!("{name}:{offset}:{fingerprint:x}")
    }
}

impl Query {
    /// Parses a reference. `lines` is the default number of lines.
    pub(crate) fn parse(encoded: &str, calendar: &Calendar, lines: usize) -> Result<Query> {
        let (path, query) = reference::split(encoded);
        let path = path.split('/').map(reference::decode).collect::<Result<Vec<_>>>()?;
        // An encoded slash cannot be part of a file name.
        if path.iter().any(|segment| segment.contains('/')) {
            return Err(Error::NotFound);
        }
        let (date, path) = match path.as_slice() {
            [first, date, rest @ ..] if first == BY_DATE && !rest.is_empty() => (Some(day(date)?), rest.join("/")),
            path => (None, path.join("/")),
        };
        let mut wanted =
            Query { path, lines: 0, since: None, until: None, level: None, text: None, regex: None, before: None };
        if let Some(date) = date {
            let (since, until) = calendar.day(date).ok_or_else(|| not_a_day(&date.to_string()))?;
            (wanted.since, wanted.until) = (Some(since), Some(until));
        }
        let mut asked = None;
        for (key, value) in reference::pairs(query) {
            let value = reference::decode(value)?;
            // A client that fills in a template may leave a variable empty.
            if value.is_empty() {
                continue;
            }
            match reference::decode(key)?.as_str() {
                "lines" => asked = Some(self::lines(&value)?),
                "since" if date.is_none() => wanted.since = Some(time(&value, calendar)?),
                "until" => {
                    let until = time(&value, calendar)?;
                    wanted.until = Some(wanted.until.map_or(until, |end| end.min(until)));
                }
                "level" => wanted.level = Some(line::level_named(&value)?),
                "text" => wanted.text = Some(value.to_lowercase()),
                "regex" => wanted.regex = Some(Pattern::parse(&value)?),
                "before" => {
                    wanted.before = Some(Place::parse(&value).ok_or_else(|| {
                        Error::invalid(format_args!("\"before\" is \"{value}\": expected the value that a read gave"))
                    })?);
                }
                other => {
                    let since = if date.is_some() { "" } else { "since, " };
                    let known = format!("lines, {since}until, level, text, regex, before");
                    return Err(Error::invalid(format_args!("unknown parameter \"{other}\": expected one of {known}")));
                }
            }
        }
        // A reference with a start time asks for all entries since then.
        wanted.lines = asked.unwrap_or(if wanted.since.is_some() { MAX_LINES } else { lines });
        Ok(wanted)
    }

    /// True if the query selects entries by time, level or text.
    pub(crate) fn has_filter(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.level.is_some() || self.has_words()
    }

    /// True if the query selects entries by what their lines say.
    pub(crate) fn has_words(&self) -> bool {
        self.text.is_some() || self.regex.is_some()
    }
}

/// Parses a number of lines; `None` unless it is from 1 to [`MAX_LINES`].
pub(crate) fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number| (1..=MAX_LINES).contains(number))
}

fn lines(text: &str) -> Result<usize> {
    number(text)
        .ok_or_else(|| Error::invalid(format_args!("\"lines\" is \"{text}\": expected a number from 1 to {MAX_LINES}")))
}

fn time(text: &str, calendar: &Calendar) -> Result<Timestamp> {
    calendar.moment(text).ok_or_else(|| {
        Error::invalid(format_args!(
            "\"{text}\" is not a time: expected a time such as 2026-11-21T10:00:00Z or 2026-11-21, or a duration ago such \
             as 15m, 2h or 1d"
        ))
    })
}

fn day(text: &str) -> Result<Date> {
    // The library also accepts other forms, but a day must have only one reference.
    let date = text.parse::<Date>().ok().filter(|date| date.to_string() == text);
    date.ok_or_else(|| not_a_day(text))
}

fn not_a_day(text: &str) -> Error {
    Error::invalid(format_args!("\"{text}\" is not a day: expected a date such as 2026-11-21"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(reference: &str) -> Result<Query> {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        Query::parse(reference, &Calendar { zone: jiff::tz::TimeZone::UTC, now }, 200)
    }

    #[test]
    fn all_parts_are_optional() {
        let plain = parse("sub/app.log").unwrap();
        assert_eq!((plain.path.as_str(), plain.lines, plain.has_filter()), ("sub/app.log", 200, false));
        assert_eq!(parse("sub/app.log?lines=&level=").unwrap(), plain);
        let all = parse("a%20b.log?lines=5&since=15m&level=WARN&text=Disk%20full").unwrap();
        assert_eq!((all.path.as_str(), all.lines, all.level), ("a b.log", 5, Some(Level::Warn)));
        assert_eq!(all.since.unwrap().to_string(), "2026-11-21T11:45:00Z");
        assert_eq!(all.text.as_deref(), Some("disk full"));
        assert_eq!(parse("app.log?since=2h").unwrap().lines, MAX_LINES);
    }

    #[test]
    fn a_day_selects_entries_from_its_beginning_to_its_end() {
        let day = parse("by-date/2026-11-20/sub/app.log?level=error").unwrap();
        assert_eq!((day.path.as_str(), day.level), ("sub/app.log", Some(Level::Error)));
        assert_eq!(day.since.unwrap().to_string(), "2026-11-20T00:00:00Z");
        assert_eq!(day.until.unwrap().to_string(), "2026-11-21T00:00:00Z");
        let noon = parse("by-date/2026-11-20/app.log?until=2026-11-20T12:00:00Z").unwrap();
        assert_eq!(noon.until.unwrap().to_string(), "2026-11-20T12:00:00Z");
        assert_eq!(parse("by-date/2026-11-20/app.log?until=2026-11-25").unwrap().until, day.until);
        // A directory may have the name `by-date`.
        assert_eq!(parse("by-date/app.log").unwrap().path, "by-date/app.log");
    }

    #[test]
    fn a_place_is_given_back_as_it_was() {
        for file in ["app.log", "a:b & c%.log", "x"] {
            let place = Place { file: file.to_owned(), offset: 5_000_000_000, fingerprint: 0xdead_beef };
            assert_eq!(parse(&format!("app.log?before={}", place.encoded())).unwrap().before, Some(place));
        }
    }

    #[test]
    fn errors_say_the_expected_form() {
        for (reference, expected) in [
            ("app.log?lines=0", "from 1 to 10000"),
            ("app.log?lines=10001", "from 1 to 10000"),
            ("app.log?lines=x", "\"lines\" is \"x\": expected a number"),
            ("app.log?since=yesterday", "such as 2026-11-21T10:00:00Z"),
            ("app.log?level=loud", "trace, debug, info, warn, error, fatal"),
            ("app.log?until=soon", "such as 2026-11-21T10:00:00Z"),
            ("app.log?limit=5", "lines, since, until, level, text, regex, before"),
            ("by-date/2026-11-21/app.log?since=1d", "lines, until, level, text, regex, before"),
            ("app.log?regex=a(b", "\"regex\" is \"a(b\": unclosed group; expected"),
            ("app.log?regex=%5Cw%7B1000%7D%7B1000%7D", "exceeds size limit"),
            ("app.log?before=x", "\"before\" is \"x\": expected the value that a read gave"),
            ("by-date/yesterday/app.log", "such as 2026-11-21"),
            ("by-date/20261121/app.log", "such as 2026-11-21"),
            ("by-date/2026-11-31/app.log", "such as 2026-11-21"),
        ] {
            let Err(Error::Invalid(why)) = parse(reference) else { panic!("{reference}") };
            assert!(why.contains(expected), "{reference}: {why}");
        }
        assert_eq!(parse("a%2Fb"), Err(Error::NotFound));
    }
}
