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

/// Bytes as text that steers nothing: what is not UTF-8 is replaced, escape sequences are removed. `cut` bytes of the line
/// are not here.
pub(crate) fn clean(bytes: &[u8], cut: u64) -> Cow<'_, str> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(bytes) || !text.contains(steers) => Cow::Borrowed(text),
        Ok(text) => Cow::Owned(stripped(text)),
        Err(_) => Cow::Owned(stripped(&String::from_utf8_lossy(bytes))),
    };
    if cut == 0 { text } else { Cow::Owned(format!("{text} ... ({cut} more bytes)")) }
}

fn stripped(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string().replace(steers, "")
}

fn steers(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// Whether all bytes are printable ASCII: so are most lines, and eight bytes are looked at together.
fn is_plain(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let (chunks, rest) = bytes.as_chunks::<8>();
    let odd = chunks.iter().fold(0, |odd, chunk| {
        let word = u64::from_ne_bytes(*chunk);
        // The high bit of a byte: it was set, it is below a space, or it is 127.
        odd | word | word.wrapping_sub(ONES * 0x20) | word.wrapping_add(ONES)
    });
    odd & HIGH == 0 && rest.iter().all(|byte| (b' '..0x7f).contains(byte))
}

/// What a line says of itself.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    Text(&'a str),
    Json(Fields),
}

/// What a line of JSON says.
#[derive(Debug, Default)]
pub(crate) struct Fields {
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
    pub(crate) fn of<'a>(lines: impl Iterator<Item = Cow<'a, str>>) -> Shape {
        let mut shape = Shape::Plain;
        for line in lines {
            let said = Said::of(&line);
            if said.has_time() {
                return Shape::Timed;
            }
            if shape == Shape::Plain && said.level().is_some() {
                shape = Shape::Levelled;
            }
        }
        shape
    }

    /// Whether an entry begins with this line. Other lines belong to the entry before them.
    pub(crate) fn begins(self, line: &str, said: &Said<'_>) -> bool {
        match line.as_bytes().first() {
            None | Some(b' ' | b'\t') => false,
            Some(_) => match self {
                Shape::Timed => said.has_time(),
                Shape::Levelled => said.level().is_some(),
                Shape::Plain => true,
            },
        }
    }
}

impl<'a> Said<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        if line.starts_with('{') { Said::Json(fields(line)) } else { Said::Text(line) }
    }

    fn has_time(&self) -> bool {
        match self {
            Said::Text(line) => time::find(line).is_some(),
            Said::Json(fields) => fields.time.is_some(),
        }
    }

    /// The level that the line states.
    pub(crate) fn level(&self) -> Option<Level> {
        match self {
            Said::Text(line) => Level::of_text(line),
            Said::Json(fields) => fields.level,
        }
    }

    /// When it was written. `written` is when the file was.
    pub(crate) fn time(&self, calendar: &Calendar, written: Timestamp) -> Option<Timestamp> {
        let of_text = |text: &str| time::find(text).and_then(|found| found.time(calendar, written));
        match self {
            Said::Text(line) => of_text(line),
            Said::Json(fields) => match fields.time.as_ref()? {
                Value::Number(number) => time::of_number(number.as_f64()?),
                Value::String(text) => of_text(text).or_else(|| time::of_number(text.parse().ok()?)),
                _ => None,
            },
        }
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
            let said = Said::of(line);
            assert_eq!(said.level(), Some(Level::Error), "{line}");
            assert_eq!(said.time(&calendar, now), Some(expected), "{line}");
            assert!(Shape::Timed.begins(line, &said));
        }
        for line in ["{", "{}", "{x}", r#"{"level":[],"time":{}}"#, r#"{"time":0.25,"msg":"a duration"}"#] {
            let said = Said::of(line);
            assert_eq!((said.level(), said.time(&calendar, now)), (None, None), "{line}");
        }
    }

    #[test]
    fn the_shape_tells_where_entries_begin() {
        let of = |lines: &[&'static str]| Shape::of(lines.iter().map(|line| Cow::Borrowed(*line)));
        let begins = |shape: Shape, lines: &[&str]| -> Vec<bool> {
            lines.iter().map(|line| shape.begins(line, &Said::of(line))).collect()
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
    fn plain_bytes_are_told_from_others_wherever_they_stand() {
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
