//! The types of values in `belljar.toml`: times, sizes, numbers and percentages with bounds, base URIs, and file names.
//! The deserializer and the JSON schema take the bounds from the same type.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::error::show_bytes;
use crate::model::reference;

/// The property of a schema that has the bounds of a value, in words. It is not part of the printed schema.
pub(super) const BOUNDS: &str = "x-bounds";

/// The property of a schema that has the type of a value, in words. It is not part of the printed schema.
pub(super) const KIND: &str = "x-kind";

/// The form of a time, as a regular expression: numbers, each with a unit that `humantime` knows.
const TIME_PATTERN: &str = "^ *0 *$|^ *([0-9]+(\\.[0-9]+)? *(nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s\
    |minutes|minute|mins|min|m|hours|hour|hrs|hr|h|days|day|d|weeks|week|wks|wk|w|months|month|M|years|year|yrs|yr|y) *)+$";

/// The form of a size, as a regular expression: a number, and a unit that `bytesize` knows.
const SIZE_PATTERN: &str = "^([0-9]+\\.?[0-9]*|\\.[0-9]+) *([kKmMgGtTpPeE][iI]?)?[bB]?$";

/// The form of a percentage, as a regular expression.
const PERCENT_PATTERN: &str = "^[0-9]+ *%$";

/// A time from `MIN` to `MAX` milliseconds, written as `"5s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time<const MIN: u64, const MAX: u64>(pub(super) Duration);

/// A size from `MIN` to `MAX` bytes, written as `"64MiB"` or as a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size<const MIN: u64, const MAX: u64>(pub(super) u64);

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count<const MIN: u64, const MAX: u64>(pub(super) u64);

/// A part of a processor from `MIN` to `MAX` percent, written as `"150%"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percent<const MIN: u64, const MAX: u64>(pub(super) u64);

/// The longest time that an answer may be served again: `"off"`, or a time of at most `MAX` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freshness<const MAX: u64>(pub(super) Duration);

/// A base URI: absolute, and it ends in `/` or, for schemes such as `urn:`, in `:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseUri(pub(super) String);

/// The first part of the public names of a mount's tools and prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolPrefix(pub(super) String);

impl<'de> Deserialize<'de> for ToolPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "at most 32 letters, digits and \"-\"";
        let prefix = deserializer.deserialize_str(TextVisitor(expected))?;
        let is_fine = prefix.len() <= 32 && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        match is_fine {
            true => Ok(Self(prefix)),
            false => Err(D::Error::invalid_value(Unexpected::Str(&prefix), &expected)),
        }
    }
}

impl JsonSchema for ToolPrefix {
    fn schema_name() -> Cow<'static, str> {
        "ToolPrefix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9-]{0,32}$" })
    }
}

/// The file name of a component, without a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComponentFile(pub(super) String);

/// Reads text, and nothing else.
struct TextVisitor<'a>(&'a str);

impl Visitor<'_> for TextVisitor<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

/// Reads a whole number or text.
struct NumberVisitor<'a> {
    expected: &'a str,
    /// True if the value may be text instead of a number.
    takes_text: bool,
}

/// A whole number or text of the file.
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl Visitor<'_> for NumberVisitor<'_> {
    type Value = NumberOrText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<NumberOrText, E> {
        match u64::try_from(number) {
            Ok(number) => Ok(NumberOrText::Number(number)),
            Err(_) => Err(E::invalid_value(Unexpected::Other("the number is negative"), &self.expected)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NumberOrText, E> {
        Ok(NumberOrText::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NumberOrText, E> {
        match self.takes_text {
            true => Ok(NumberOrText::Text(text.to_owned())),
            false => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }
}

/// Refuses a value that is out of bounds.
fn check<E: Error>(fits: bool, bounds: &str) -> Result<(), E> {
    if fits { Ok(()) } else { Err(E::invalid_value(Unexpected::Unit, &bounds)) }
}

/// Adds the properties [`KIND`] and [`BOUNDS`] to a schema: the type and the bounds of a value, in words.
fn described(mut schema: Schema, kind: &str, bounds: Option<String>) -> Schema {
    schema.insert(KIND.to_owned(), kind.into());
    if let Some(bounds) = bounds {
        schema.insert(BOUNDS.to_owned(), bounds.into());
    }
    schema
}

fn show_time(milliseconds: u64) -> String {
    humantime::format_duration(Duration::from_millis(milliseconds)).to_string()
}

impl<const MIN: u64, const MAX: u64> Time<MIN, MAX> {
    const EXPECTED: &str = "a time such as \"5s\" or \"500ms\"";

    fn bounds() -> Option<String> {
        (MAX != u64::MAX).then(|| format!("{} to {}", show_time(MIN), show_time(MAX)))
    }
}

/// Reads a time of any length.
fn parse_time<E: Error>(text: &str, expected: &str) -> Result<Duration, E> {
    humantime::parse_duration(text).map_err(|error| {
        let details = format!("{error}; write a number and a unit: \"500ms\", \"5s\", \"2m\"");
        E::invalid_value(Unexpected::Other(&details), &expected)
    })
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Time<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_str(TextVisitor(Self::EXPECTED))?;
        let time = parse_time(&text, Self::EXPECTED)?;
        if let Some(bounds) = Self::bounds() {
            check(time >= Duration::from_millis(MIN) && time <= Duration::from_millis(MAX), &bounds)?;
        }
        Ok(Self(time))
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Time<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Time<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Time_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        described(json_schema!({ "type": "string", "pattern": TIME_PATTERN }), "time", Self::bounds())
    }
}

impl<const MIN: u64, const MAX: u64> Size<MIN, MAX> {
    const EXPECTED: &str = "a size such as \"64MiB\", where MiB is 1,048,576 bytes; M and MB are 1,000,000";

    fn bounds() -> Option<String> {
        (MAX != u64::MAX).then(|| format!("{} to {}", show_bytes(MIN), show_bytes(MAX)))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Size<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = NumberVisitor { expected: Self::EXPECTED, takes_text: true };
        let size = match deserializer.deserialize_any(visitor)? {
            NumberOrText::Number(size) => size,
            NumberOrText::Text(text) => {
                let parsed = text.parse::<bytesize::ByteSize>();
                parsed.map_err(|error| D::Error::invalid_value(Unexpected::Other(&error), &Self::EXPECTED))?.as_u64()
            }
        };
        if let Some(bounds) = Self::bounds() {
            check((MIN..=MAX).contains(&size), &bounds)?;
        }
        Ok(Self(size))
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Size<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&show_bytes(self.0))
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Size<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Size_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": ["string", "integer"], "pattern": SIZE_PATTERN, "minimum": MIN });
        if MAX != u64::MAX {
            schema.insert("maximum".to_owned(), MAX.into());
        }
        described(schema, "size", Self::bounds())
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = format!("a number, {MIN} to {MAX}");
        let visitor = NumberVisitor { expected: &expected, takes_text: false };
        let NumberOrText::Number(number) = deserializer.deserialize_any(visitor)? else {
            return Err(D::Error::invalid_type(Unexpected::Other("text"), &expected.as_str()));
        };
        check((MIN..=MAX).contains(&number), &format!("{MIN} to {MAX}"))?;
        Ok(Self(number))
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Count<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Count<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Count_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX });
        described(schema, "number", Some(format!("{MIN} to {MAX}")))
    }
}

impl<const MIN: u64, const MAX: u64> Percent<MIN, MAX> {
    const EXPECTED: &str = "a part of a processor such as \"50%\" or \"200%\"";

    fn bounds() -> String {
        format!("\"{MIN}%\" to \"{MAX}%\"")
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Percent<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_str(TextVisitor(Self::EXPECTED))?;
        let wrong = |details: &str| D::Error::invalid_value(Unexpected::Other(details), &Self::EXPECTED);
        let number = text.strip_suffix('%').ok_or_else(|| wrong("\"%\" is missing"))?;
        let number = number.trim_end().parse().map_err(|error: std::num::ParseIntError| wrong(&error.to_string()))?;
        check((MIN..=MAX).contains(&number), &Self::bounds())?;
        Ok(Self(number))
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Percent<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}%", self.0))
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Percent<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Percent_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        described(json_schema!({ "type": "string", "pattern": PERCENT_PATTERN }), "percentage", Some(Self::bounds()))
    }
}

impl<const MAX: u64> Freshness<MAX> {
    const EXPECTED: &str = "\"off\" or the longest time that an answer is served again, such as \"10m\"";
}

impl<'de, const MAX: u64> Deserialize<'de> for Freshness<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_str(TextVisitor(Self::EXPECTED))?;
        if text == "off" {
            return Ok(Self(Duration::ZERO));
        }
        let expected = format!("{}, at most {}", Self::EXPECTED, show_time(MAX));
        let time = parse_time(&text, &expected)?;
        check(time <= Duration::from_millis(MAX), &expected)?;
        Ok(Self(time))
    }
}

impl<const MAX: u64> Serialize for Freshness<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_zero() {
            return serializer.serialize_str("off");
        }
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl<const MAX: u64> JsonSchema for Freshness<MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Freshness_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = json_schema!({ "type": "string", "anyOf": [{ "const": "off" }, { "pattern": TIME_PATTERN }] });
        described(schema, "time or \"off\"", Some(format!("at most {}", show_time(MAX))))
    }
}

impl<'de> Deserialize<'de> for BaseUri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let uri = deserializer.deserialize_str(TextVisitor("a URI that ends in \"/\""))?;
        reference::check_base(&uri).map_err(D::Error::custom)?;
        Ok(Self(uri))
    }
}

impl JsonSchema for BaseUri {
    fn schema_name() -> Cow<'static, str> {
        "BaseUri".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9+.-]*:([^?#{}]*[/:])?$" })
    }
}

impl<'de> Deserialize<'de> for ComponentFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the name of a .wasm file in the plugin directory, without a path";
        let file = deserializer.deserialize_str(TextVisitor(expected))?;
        let is_path = file.contains(['/', '\\', '\0']) || file.starts_with('.');
        if is_path || !file.ends_with(".wasm") {
            return Err(D::Error::invalid_value(Unexpected::Str(&file), &expected));
        }
        Ok(Self(file))
    }
}

impl JsonSchema for ComponentFile {
    fn schema_name() -> Cow<'static, str> {
        "ComponentFile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[^./\\\\][^/\\\\]*\\.wasm$" })
    }
}
