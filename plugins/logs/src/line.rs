//! A line: from bytes to clean text, and what it says of itself.

use std::borrow::Cow;

use belljar_guest::Error;
use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::level::Level;
use crate::time::{self, Calendar};

/// The longest line that is given whole. Longer ones are cut, and say so.
pub(crate) const LONGEST: usize = 8 * 1024;

/// Names of the fields of a JSON line that hold its level.
const LEVELS: [&str; 8] =
    ["level", "lvl", "severity", "log.level", "levelname", "loglevel", "severity_text", "PRIORITY"];

/// Those that hold its time.
const TIMES: [&str; 9] =
    ["time", "ts", "timestamp", "@timestamp", "datetime", "date", "asctime", "eventTime", "__REALTIME_TIMESTAMP"];

/// Bytes as text that steers nothing: not UTF-8 is replaced, escape sequences are removed. `cut` bytes of it are not here.
pub(crate) fn clean(bytes: &[u8], cut: u64) -> String {
    let text = String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes));
    // The last one begins the second block of controls, and some letters.
    let steers = |byte: u8| byte < b' ' && byte != b'\t' || byte == 0x7f || byte == 0xc2;
    let mut text = match text {
        Cow::Borrowed(text) if !text.bytes().any(steers) => text.to_owned(),
        text => anstream::adapter::strip_str(&text).to_string().replace(|c: char| c.is_control() && c != '\t', ""),
    };
    if cut > 0 {
        text.push_str(&format!(" ... ({cut} more bytes)"));
    }
    text
}

/// What a line of JSON says of itself.
#[derive(Debug, Default)]
struct Fields {
    level: Option<Level>,
    time: Option<Value>,
}

/// How entries are told apart in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Each entry begins with a line that has a time.
    Timed,
    /// Without times, with a line that states a level.
    Levelled,
    /// With neither, with a line that is not indented.
    Plain,
}

impl Shape {
    /// The shape of a log of which these are some lines.
    pub(crate) fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Shape {
        let mut shape = Shape::Plain;
        for line in lines {
            if has_time(line) {
                return Shape::Timed;
            }
            if shape == Shape::Plain && level(line).is_some() {
                shape = Shape::Levelled;
            }
        }
        shape
    }

    /// Whether an entry begins with this line. Other lines belong to the entry before them.
    pub(crate) fn begins(self, line: &str) -> bool {
        match line.as_bytes().first() {
            None | Some(b' ' | b'\t') => false,
            Some(_) => match self {
                Shape::Timed => has_time(line),
                Shape::Levelled => level(line).is_some(),
                Shape::Plain => true,
            },
        }
    }
}

fn has_time(line: &str) -> bool {
    if line.starts_with('{') { fields(line).time.is_some() } else { time::find(line).is_some() }
}

/// The level that a line states.
pub(crate) fn level(line: &str) -> Option<Level> {
    if line.starts_with('{') { fields(line).level } else { Level::of_text(line) }
}

/// When a line was written.
pub(crate) fn time(line: &str, calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
    let of_text = |text: &str| time::find(text).and_then(|found| found.time(calendar, written));
    if !line.starts_with('{') {
        return of_text(line);
    }
    match fields(line).time? {
        Value::Number(number) => time::of_number(number.as_f64()?),
        Value::String(text) => of_text(&text).or_else(|| time::of_number(text.parse().ok()?)),
        _ => None,
    }
}

/// Reads a line as JSON. What is none, or cut, says nothing of itself beyond where it breaks off.
fn fields(line: &str) -> Fields {
    struct Wanted<'a>(&'a mut Fields);

    impl<'de> Visitor<'de> for Wanted<'_> {
        type Value = ();

        fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            to.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if LEVELS.contains(&&*key) {
                    self.0.level = self.0.level.or(Level::of_json(&map.next_value()?));
                } else if TIMES.contains(&&*key) && self.0.time.is_none() {
                    self.0.time = Some(map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }

    let mut fields = Fields::default();
    let mut json = serde_json::Deserializer::from_str(line);
    // What was read before an error stands.
    let _ = serde::Deserializer::deserialize_map(&mut json, Wanted(&mut fields));
    fields
}

/// A level by its name in a query.
pub(crate) fn level_named(name: &str) -> Result<Level, Error> {
    let known = crate::level::NAMES;
    known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, level)| *level).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Error::invalid(format_args!("the level \"{name}\" is none of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cleaned() {
        for (bytes, expected) in [
            (&b"plain\tand tab\r"[..], "plain\tand tab"),
            (b"\x1b[31mred\x1b[0m \x1b[1;32mgreen", "red green"),
            (b"bad \xff byte", "bad \u{fffd} byte"),
            (b"\0\0\0after a hole", "after a hole"),
            (b"bell\x07 and title \x1b]0;title\x07x", "bell and title x"),
            ("gr\u{fc}n \u{a7}1 \u{9b}2J".as_bytes(), "gr\u{fc}n \u{a7}1 2J"),
        ] {
            assert_eq!(clean(bytes, 0), expected);
        }
        assert_eq!(clean(b"x", 12), "x ... (12 more bytes)");
    }

    #[test]
    fn json_lines_say_when_and_how_bad() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let calendar = Calendar { zone: jiff::tz::TimeZone::UTC, now };
        let expected: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for line in [
            r#"{"level":"error","time":"2026-11-21T10:00:00Z","msg":"x"}"#,
            r#"{"level":50,"time":1795255200000,"pid":1,"msg":"x"}"#,
            r#"{"msg":"x","ts":1795255200.0,"level":"error","more":{"level":"info","ts":1}}"#,
            r#"{"@timestamp":"2026-11-21T10:00:00.000Z","log.level":"ERROR"}"#,
            r#"{"severity":"ERROR","timestamp":"2026-11-21 10:00:00,000"}"#,
            // Cut in the middle of a value.
            r#"{"PRIORITY":"3","__REALTIME_TIMESTAMP":"1795255200000000","msg":"x"#,
        ] {
            assert_eq!(level(line), Some(Level::Error), "{line}");
            assert_eq!(time(line, &calendar, now), Some(expected), "{line}");
            assert!(Shape::Timed.begins(line));
        }
        for line in ["{", "{}", "{x}", r#"{"level":[],"time":{}}"#, r#"{"time":0.25,"msg":"a duration"}"#] {
            assert_eq!((level(line), time(line, &calendar, now)), (None, None), "{line}");
        }
    }

    #[test]
    fn the_shape_tells_where_entries_begin() {
        let timed = ["2026-11-21 10:00:00 ERROR x", "java.lang.Exception: y", "\tat z", "Caused by: w", ""];
        assert_eq!(Shape::of(timed.into_iter()), Shape::Timed);
        assert_eq!(timed.map(|line| Shape::Timed.begins(line)), [true, false, false, false, false]);
        let levelled = ["ERROR: x", "Traceback (most recent call last):", "  File y", "ValueError: z"];
        assert_eq!(Shape::of(levelled.into_iter()), Shape::Levelled);
        assert_eq!(levelled.map(|line| Shape::Levelled.begins(line)), [true, false, false, false]);
        let plain = ["one", "  and more", "two"];
        assert_eq!(Shape::of(plain.into_iter()), Shape::Plain);
        assert_eq!(plain.map(|line| Shape::Plain.begins(line)), [true, false, true]);
    }
}
