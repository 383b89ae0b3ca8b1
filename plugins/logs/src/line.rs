//! Cleans the bytes of a line, and parses its level and its time.

use std::borrow::Cow;

use belljar_guest::Error;
use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::level::Level;
use crate::time::{self, Calendar};

/// The longest line in a read, in bytes. Longer lines are cut, with a note of the missing bytes.
pub(crate) const MAX_LINE_BYTES: usize = 8 * 1024;

/// The fields of a JSON line that may contain its level.
const LEVEL_FIELDS: [&str; 8] =
    ["level", "lvl", "severity", "log.level", "levelname", "loglevel", "severity_text", "PRIORITY"];

/// The fields of a JSON line that may contain its time.
const TIME_FIELDS: [&str; 9] =
    ["time", "ts", "timestamp", "@timestamp", "datetime", "date", "asctime", "eventTime", "__REALTIME_TIMESTAMP"];

/// Converts bytes to text without escape sequences and control characters. Replaces bytes that are not UTF-8. `cut` is the
/// number of bytes missing at the end of the line.
pub(crate) fn clean(bytes: &[u8], cut: u64) -> Cow<'_, str> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    // A byte order mark, at the beginning of a file.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    // A cut line may end within a character.
    let bytes = if cut > 0 { without_half_character(bytes) } else { bytes };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(bytes) || !text.contains(is_control) => Cow::Borrowed(text),
        Ok(text) => Cow::Owned(stripped(text)),
        Err(_) => Cow::Owned(stripped(&String::from_utf8_lossy(bytes))),
    };
    if cut == 0 { text } else { Cow::Owned(format!("{text} ... ({cut} more bytes)")) }
}

fn without_half_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

fn stripped(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string().replace(is_control, "")
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// True if all bytes are printable ASCII, as in most lines. Tests eight bytes at once.
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let (chunks, rest) = bytes.as_chunks::<8>();
    let odd = chunks.iter().fold(0, |odd, chunk| {
        let word = u64::from_ne_bytes(*chunk);
        // The high bit of a byte ends up set if it was set before, if the byte is below a space, or if it is 127.
        odd | word | word.wrapping_sub(ONES * 0x20) | word.wrapping_add(ONES)
    });
    odd & HIGH == 0 && rest.iter().all(|byte| (b' '..0x7f).contains(byte))
}

/// A line, parsed as far as its format is known.
#[derive(Debug)]
pub(crate) enum ParsedLine<'a> {
    Text(&'a str),
    Json(Fields),
}

/// Level and time of a JSON line.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    level: Option<Level>,
    time: Option<Value>,
    /// The level in the text of Docker's `log`, if there is no other.
    inner: Option<Level>,
}

/// How the first line of an entry is recognised in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Each entry begins with a line that has a time.
    Timed,
    /// The log has no times; each entry begins with a line that has a level.
    Levelled,
    /// The log has neither; each entry begins with a line that is not indented.
    Plain,
}

impl Shape {
    /// The shape of a log, from a sample of its lines.
    pub(crate) fn of<'a>(lines: impl Iterator<Item = Cow<'a, str>>) -> Shape {
        let mut shape = Shape::Plain;
        for line in lines {
            let parsed = ParsedLine::of(&line);
            if parsed.has_time() {
                return Shape::Timed;
            }
            if shape == Shape::Plain && parsed.level().is_some() {
                shape = Shape::Levelled;
            }
        }
        shape
    }

    /// True if an entry begins with this line. Other lines belong to the entry before them.
    pub(crate) fn begins(self, line: &str, parsed: &ParsedLine<'_>) -> bool {
        match line.as_bytes().first() {
            None | Some(b' ' | b'\t') => false,
            Some(_) => match self {
                Shape::Timed => parsed.has_time(),
                Shape::Levelled => parsed.level().is_some(),
                Shape::Plain => true,
            },
        }
    }
}

impl<'a> ParsedLine<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        if line.starts_with('{') { ParsedLine::Json(fields(line)) } else { ParsedLine::Text(line) }
    }

    fn has_time(&self) -> bool {
        match self {
            ParsedLine::Text(line) => time::find(line).is_some(),
            ParsedLine::Json(fields) => fields.time.is_some(),
        }
    }

    /// The level of the line.
    pub(crate) fn level(&self) -> Option<Level> {
        match self {
            ParsedLine::Text(line) => Level::of_text(line),
            ParsedLine::Json(fields) => fields.level.or(fields.inner),
        }
    }

    /// The level of an entry that begins with this line. Java's logging writes the level at the beginning of the second line.
    pub(crate) fn level_with(&self, second: Option<&str>) -> Option<Level> {
        self.level().or_else(|| match self {
            ParsedLine::Text(line) if time::find(line).is_some_and(|time| time.is_of_java()) => Level::of_text(second?),
            _ => None,
        })
    }

    /// The time of the line. `written` is the modification time of the file, which gives a missing year.
    pub(crate) fn time(&self, calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
        let of_text = |text: &str| time::find(text).and_then(|found| found.time(calendar, written));
        match self {
            ParsedLine::Text(line) => of_text(line),
            ParsedLine::Json(fields) => match fields.time.as_ref()? {
                Value::Number(number) => time::of_number(number.as_f64()?),
                Value::String(text) => of_text(text).or_else(|| time::of_number(text.parse().ok()?)),
                _ => None,
            },
        }
    }
}

/// Parses a line as JSON. If the line is malformed or cut, returns the fields before the error.
fn fields(line: &str) -> Fields {
    struct FieldsVisitor<'a>(&'a mut Fields);

    impl<'de> Visitor<'de> for FieldsVisitor<'_> {
        type Value = ();

        fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            to.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if LEVEL_FIELDS.contains(&&*key) {
                    self.0.level = self.0.level.or(Level::of_json(&map.next_value()?));
                } else if TIME_FIELDS.contains(&&*key) && self.0.time.is_none() {
                    self.0.time = Some(map.next_value()?);
                } else if key == "log" {
                    let inner: Value = map.next_value()?;
                    self.0.inner = inner.as_str().and_then(Level::of_text);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }

    let mut fields = Fields::default();
    let mut json = serde_json::Deserializer::from_str(line);
    // An error is ignored: `fields` has the values before it.
    let _ = serde::Deserializer::deserialize_map(&mut json, FieldsVisitor(&mut fields));
    fields
}

/// A level by its name in a query.
pub(crate) fn level_named(name: &str) -> Result<Level, Error> {
    let known = crate::level::NAMES;
    known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, level)| *level).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Error::invalid(format_args!("unknown level \"{name}\": expected one of {}", names.join(", ")))
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
    fn json_lines_have_a_time_and_a_level() {
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
            let parsed = ParsedLine::of(line);
            assert_eq!(parsed.level(), Some(Level::Error), "{line}");
            assert_eq!(parsed.time(&calendar, now), Some(expected), "{line}");
            assert!(Shape::Timed.begins(line, &parsed));
        }
        for line in ["{", "{}", "{x}", r#"{"level":[],"time":{}}"#, r#"{"time":0.25,"msg":"a duration"}"#] {
            let parsed = ParsedLine::of(line);
            assert_eq!((parsed.level(), parsed.time(&calendar, now)), (None, None), "{line}");
        }
    }

    #[test]
    fn the_shape_decides_where_entries_begin() {
        let of = |lines: &[&'static str]| Shape::of(lines.iter().map(|line| Cow::Borrowed(*line)));
        let begins = |shape: Shape, lines: &[&str]| -> Vec<bool> {
            lines.iter().map(|line| shape.begins(line, &ParsedLine::of(line))).collect()
        };
        let timed = ["2026-11-21 10:00:00 ERROR x", "java.lang.Exception: y", "\tat z", "Caused by: w", ""];
        assert_eq!(of(&timed), Shape::Timed);
        assert_eq!(begins(Shape::Timed, &timed), [true, false, false, false, false]);
        let levelled = ["ERROR: x", "Traceback (most recent call last):", "  File y", "ValueError: z"];
        assert_eq!(of(&levelled), Shape::Levelled);
        assert_eq!(begins(Shape::Levelled, &levelled), [true, false, false, false]);
        let plain = ["one", "  and more", "two"];
        assert_eq!(of(&plain), Shape::Plain);
        assert_eq!(begins(Shape::Plain, &plain), [true, false, true]);
    }

    #[test]
    fn a_byte_outside_printable_ascii_is_found_at_any_position() {
        for length in 0..20 {
            assert!(is_plain(&vec![b'~'; length]) && is_plain(&vec![b' '; length]));
            for at in 0..length {
                for byte in [0, b'\t', 0x1b, 0x1f, 0x7f, 0x80, 0xc2, 0xff] {
                    let mut bytes = vec![b'x'; length];
                    bytes[at] = byte;
                    assert!(!is_plain(&bytes), "{byte} at {at} of {length}");
                }
            }
        }
    }
}
