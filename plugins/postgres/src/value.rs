//! Writes values as JSON text. The server's text of a value decides: no number is converted, so none loses a digit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::literal::{self, Element, RangeText};
use crate::types::Kind;

/// The largest integer below which every integer is exact in JSON, 2^53 - 1.
const MAX_EXACT: u64 = 9_007_199_254_740_991;

/// The most digits of a decimal number that a JSON reader keeps.
const MAX_DIGITS: usize = 15;

/// How many bytes of each value a row includes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimits {
    pub(crate) text: usize,
    pub(crate) blob: usize,
}

/// In a page of rows.
pub(crate) const IN_PAGE: SizeLimits = SizeLimits { text: 4 * 1024, blob: 256 };

/// In a row that is read alone.
pub(crate) const IN_ROW: SizeLimits = SizeLimits { text: 64 * 1024, blob: 4 * 1024 };

/// Arrays, JSON and the like are written whole or not at all; up to this multiple of the limit of a text.
const WHOLE: usize = 4;

/// Writes a value. A text over the limit is cut, other values are left out; both then carry their `size` in bytes.
pub(crate) fn write(kind: &Kind, text: Option<&str>, limits: SizeLimits, out: &mut String) {
    let Some(text) = text else { return out.push_str("null") };
    match kind {
        Kind::Bool => out.push_str(if text == "t" { "true" } else { "false" }),
        Kind::Integer => match text.parse::<i64>() {
            Ok(number) if number.unsigned_abs() <= MAX_EXACT => out.push_str(text),
            _ => tagged("integer", text, out),
        },
        Kind::Float if is_number(text) => out.push_str(text),
        Kind::Float => tagged("real", text, out),
        Kind::Numeric if is_number(text) && digits(text) <= MAX_DIGITS => out.push_str(text),
        Kind::Numeric => tagged("numeric", text, out),
        Kind::Bytes => bytes(text, limits.blob, out),
        Kind::Timestamp | Kind::TimestampTz => string(&iso(kind, text), out),
        Kind::Text => cut(text, limits.text, out),
        Kind::Json | Kind::Array(..) | Kind::Range(_) | Kind::Multirange(_) | Kind::Record(_)
            if text.len() > limits.text.saturating_mul(WHOLE) =>
        {
            placeholder(kind, text.len() as u64, None, out);
        }
        Kind::Json => match serde_json::from_str::<Json>(text) {
            Ok(_) => out.push_str(&text.replace(['\n', '\r'], " ")),
            // Deeper or larger numbers than a reader of JSON takes.
            Err(_) => tagged("json", text, out),
        },
        Kind::Array(element, delimiter) => match literal::array(text, *delimiter) {
            Some(elements) => list(element, &elements, limits, out),
            None => string(text, out),
        },
        Kind::Range(part) => match literal::range(text) {
            Some(range) => one_range(part, &range, limits, out),
            None => string(text, out),
        },
        Kind::Multirange(part) => match literal::multirange(text) {
            Some(ranges) => joined('[', ']', &ranges, out, |range, out| one_range(part, range, limits, out)),
            None => string(text, out),
        },
        Kind::Record(fields) => match literal::record(text) {
            Some(values) if values.len() == fields.len() => {
                let both: Vec<_> = fields.iter().zip(&values).collect();
                joined('{', '}', &both, out, |((name, kind), value), out| {
                    string(name, out);
                    out.push(':');
                    write(kind, value.as_deref(), limits, out);
                });
            }
            _ => string(text, out),
        },
    }
}

/// Writes a placeholder for a large value: its kind, its size in bytes and the reference that reads it.
pub(crate) fn placeholder(kind: &Kind, size: u64, reference: Option<&str>, out: &mut String) {
    let kind = match kind {
        Kind::Bytes => "blob",
        Kind::Json => "json",
        Kind::Array(..) => "array",
        Kind::Record(_) => "record",
        _ => "text",
    };
    out.push_str(&format!("{{\"{kind}\":null,\"size\":{size},\"read\":"));
    match reference {
        Some(reference) => string(reference, out),
        None => out.push_str("null"),
    }
    out.push('}');
}

/// Writes a JSON string.
pub(crate) fn string(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

fn tagged(name: &str, text: &str, out: &mut String) {
    out.push_str(&format!("{{\"{name}\":"));
    string(text, out);
    out.push('}');
}

fn joined<T>(open: char, close: char, items: &[T], out: &mut String, one: impl Fn(&T, &mut String)) {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        one(item, out);
    }
    out.push(close);
}

fn list(kind: &Kind, elements: &[Element], limits: SizeLimits, out: &mut String) {
    joined('[', ']', elements, out, |element, out| match element {
        Element::Null => out.push_str("null"),
        Element::Text(text) => write(kind, Some(text), limits, out),
        Element::List(elements) => list(kind, elements, limits, out),
    });
}

fn one_range(part: &Kind, range: &RangeText, limits: SizeLimits, out: &mut String) {
    match range {
        RangeText::Empty => out.push_str("{\"empty\":true}"),
        RangeText::Bounds(lower, upper, brackets) => {
            out.push_str("{\"lower\":");
            write(part, lower.as_deref(), limits, out);
            out.push_str(",\"upper\":");
            write(part, upper.as_deref(), limits, out);
            out.push_str(",\"bounds\":");
            string(brackets, out);
            out.push('}');
        }
    }
}

/// True if the server's text of a number is one of JSON, too: not `NaN` or `Infinity`.
fn is_number(text: &str) -> bool {
    text.strip_prefix('-').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

/// The significant digits of a decimal number.
fn digits(text: &str) -> usize {
    let digits = text.trim_start_matches(['-', '0', '.']);
    digits.bytes().filter(u8::is_ascii_digit).count()
}

/// A time as in ISO 8601. `infinity` and years before Christ have no such form.
fn iso(kind: &Kind, text: &str) -> String {
    let mut text = text.replacen(' ', "T", 1);
    if *kind == Kind::TimestampTz
        && let Some(at) = text.find("+00")
        && !text.contains("+00:")
    {
        text.insert_str(at + 3, ":00");
    }
    text
}

fn bytes(text: &str, max: usize, out: &mut String) {
    let digits = text.strip_prefix("\\x").unwrap_or(text);
    let size = digits.len() / 2;
    let bytes = if size <= max { belljar_sql::name::unhex(digits) } else { None };
    match bytes {
        Some(bytes) => out.push_str(&format!("{{\"blob\":\"{}\",\"size\":{size}}}", STANDARD.encode(bytes))),
        None => out.push_str(&format!("{{\"blob\":null,\"size\":{size}}}")),
    }
}

fn cut(text: &str, max: usize, out: &mut String) {
    if text.len() <= max {
        return string(text, out);
    }
    let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    out.push_str("{\"text\":");
    string(text.get(..end).unwrap_or_default(), out);
    out.push_str(&format!(",\"size\":{},\"cut\":true}}", text.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, text: &str) -> String {
        let mut out = String::new();
        write(&kind, Some(text), IN_PAGE, &mut out);
        serde_json::from_str::<Json>(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        out
    }

    #[test]
    fn numbers_lose_nothing() {
        assert_eq!(
            [of(Kind::Integer, "-9007199254740991"), of(Kind::Integer, "9007199254740992")],
            ["-9007199254740991", r#"{"integer":"9007199254740992"}"#]
        );
        assert_eq!([of(Kind::Numeric, "12.50"), of(Kind::Numeric, "-0.00000012")], ["12.50", "-0.00000012"]);
        assert_eq!(of(Kind::Numeric, "1234567890123456.7"), r#"{"numeric":"1234567890123456.7"}"#);
        assert_eq!(
            [of(Kind::Numeric, "NaN"), of(Kind::Numeric, "-Infinity")],
            [r#"{"numeric":"NaN"}"#, r#"{"numeric":"-Infinity"}"#]
        );
        assert_eq!(
            [of(Kind::Float, "1e+20"), of(Kind::Float, "-0"), of(Kind::Float, "NaN")],
            ["1e+20", "-0", r#"{"real":"NaN"}"#]
        );
    }

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(of(Kind::TimestampTz, "2026-01-01 12:00:00.5+00"), "\"2026-01-01T12:00:00.5+00:00\"");
        assert_eq!(of(Kind::TimestampTz, "0044-03-15 12:00:00+00 BC"), "\"0044-03-15T12:00:00+00:00 BC\"");
        assert_eq!(of(Kind::TimestampTz, "infinity"), "\"infinity\"");
        assert_eq!(of(Kind::Timestamp, "2026-01-01 12:00:00"), "\"2026-01-01T12:00:00\"");
    }

    #[test]
    fn composite_values_are_nested_json() {
        let ints = || Box::new(Kind::Integer);
        assert_eq!(
            of(Kind::Array(ints(), ','), "{{1,NULL},{9007199254740993,4}}"),
            r#"[[1,null],[{"integer":"9007199254740993"},4]]"#
        );
        assert_eq!(of(Kind::Range(ints()), "[1,)"), r#"{"lower":1,"upper":null,"bounds":"[)"}"#);
        assert_eq!(
            of(Kind::Multirange(ints()), "{[1,2),[3,4)}"),
            r#"[{"lower":1,"upper":2,"bounds":"[)"},{"lower":3,"upper":4,"bounds":"[)"}]"#
        );
        let fields = vec![("a".to_owned(), Kind::Integer), ("b\"".to_owned(), Kind::Text)];
        assert_eq!(of(Kind::Record(fields.clone()), "(1,\"x y\")"), r#"{"a":1,"b\"":"x y"}"#);
        assert_eq!(of(Kind::Record(fields), "(1)"), "\"(1)\"");
        assert_eq!(of(Kind::Bytes, "\\x00ff"), r#"{"blob":"AP8=","size":2}"#);
        assert_eq!(of(Kind::Json, "{\"a\":\n 1e5}"), "{\"a\":  1e5}");
        assert_eq!(of(Kind::Json, "1e999"), r#"{"json":"1e999"}"#);
        assert_eq!(of(Kind::Json, &"[".repeat(200)), format!("{{\"json\":\"{}\"}}", "[".repeat(200)));
    }

    #[test]
    fn large_values_are_cut_and_carry_their_size() {
        let limits = SizeLimits { text: 3, blob: 1 };
        let of = |kind: &Kind, text: &str| {
            let mut out = String::new();
            write(kind, Some(text), limits, &mut out);
            out
        };
        assert_eq!(of(&Kind::Text, "aüü"), r#"{"text":"aü","size":5,"cut":true}"#);
        assert_eq!(of(&Kind::Bytes, "\\x6162"), r#"{"blob":null,"size":2}"#);
        assert_eq!(of(&Kind::Json, "[1,2,3,4,5,6,7]"), r#"{"json":null,"size":15,"read":null}"#);
    }
}
