//! Entry points for a fuzzer: this crate's own parsers of what a stranger or a server writes. None may panic or hang.

use crate::address::Address;
use crate::key::Key;
use crate::table::TableName;
use crate::types::Kind;
use crate::value::{self, IN_PAGE};
use crate::{connection, literal, statement};

/// Messages of a server.
pub fn messages(bytes: &[u8]) {
    connection::parse_messages(bytes);
}

/// Texts of values, as each kind of value. Each must become JSON.
pub fn values(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let integer = || Box::new(Kind::Integer);
    let fields = vec![("a".to_owned(), Kind::Numeric), ("b".to_owned(), Kind::Array(Box::new(Kind::Float), ';'))];
    for kind in [
        Kind::Bytes,
        Kind::Json,
        Kind::Numeric,
        Kind::Float,
        Kind::TimestampTz,
        Kind::Text,
        Kind::Array(Box::new(Kind::Array(Box::new(Kind::Text), ',')), ','),
        Kind::Range(integer()),
        Kind::Multirange(integer()),
        Kind::Record(fields),
    ] {
        let mut out = String::new();
        value::write(&kind, Some(&text), IN_PAGE, &mut out);
        // A server never writes these as numbers.
        if !matches!(kind, Kind::Numeric | Kind::Float | Kind::Record(_)) {
            assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{kind:?}: {out}");
        }
    }
    if let Some(elements) = literal::record(&text) {
        let again = literal::array(&literal::write_array(&elements), ',');
        assert!(again.is_some_and(|again| again.len() == elements.len()), "{elements:?}");
    }
}

/// References, names of tables and keys.
pub fn references(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Address::parse(text);
    let _ = TableName::parse(text);
    for columns in 0..4 {
        if let Ok(Key::Values(values)) = Key::parse(text, columns) {
            assert_eq!(values.len(), columns);
        }
    }
}

/// SQL with named parameters.
pub fn sql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let numbered = statement::number(text);
    // What is left has no names: a second time changes nothing.
    assert!(numbered.names.len() <= text.matches(':').count());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings of the characters that the parsers know.
    #[test]
    fn the_parsers_take_anything() {
        const PARTS: &[&str] = &[
            "a",
            "1",
            "\"",
            "\"\"",
            "'",
            "x'",
            "t'",
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ",",
            ";",
            "\\",
            "\\x",
            "NULL",
            "empty",
            "NaN",
            "+00",
            " ",
            ":",
            ":a",
            "::",
            "$",
            "$1",
            "$$",
            "E'",
            "--",
            "/*",
            "*/",
            "\n",
            "ü",
            "ctid=",
            "0,1",
            "tables/",
            "/rows/",
            "where=",
            "=",
            "?",
            "&",
            "/",
            "..",
            "%2F",
            "explain",
            "views/",
            "1e999",
            "D\0\0\0\u{b}\0\u{1}",
            "Z\0\0\0\u{5}I",
            "E\0\0\0",
            "\0",
        ];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..=state % 9 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += PARTS[(state >> 33) as usize % PARTS.len()];
            }
            for target in [messages, values, references, sql] {
                target(text.as_bytes());
            }
        }
        for bytes in [&b""[..], b"D\x7f\xff\xff\xff", &[0xff; 200]] {
            messages(bytes);
            values(bytes);
        }
    }
}
