//! Converts row keys to text and back. A key is one value, or several separated by commas. A value that would be
//! ambiguous is written as an SQL literal: `'a,b'`, `x'00ff'`. Text that a reference cannot carry is written as its bytes:
//! `t'610a'`. `rowid=7` is the row with rowid 7.

use belljar_guest::{Error, Result};
use rusqlite::types::{Value, ValueRef};

use crate::name;
use crate::schema::Affinity;
use crate::value::Parameter;

/// A parsed key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Key {
    /// SQLite's rowid.
    Rowid(i64),
    /// A value for each column of the primary key.
    Values(Vec<Parameter>),
}

const ROWID: &str = "rowid=";

impl Key {
    /// Parses a key; `columns` holds the affinity of each key column.
    pub(crate) fn parse(text: &str, columns: &[Affinity]) -> Result<Key> {
        if let Some(number) = text.strip_prefix(ROWID).and_then(|number| number.parse().ok()) {
            return Ok(Key::Rowid(number));
        }
        let wrong = |why: &str| Error::invalid(format_args!("the key \"{text}\" {why}"));
        // The text of a single-column key may contain commas.
        let tokens = match columns {
            [_] if !is_quoted(text) => vec![text],
            _ => split(text).ok_or_else(|| wrong("has a quote without its end"))?,
        };
        if tokens.len() != columns.len() {
            return Err(wrong(&format!("has {} values: the primary key has {}", tokens.len(), columns.len())));
        }
        let values = tokens.iter().zip(columns).map(|(token, affinity)| value(token, *affinity));
        values
            .collect::<Option<_>>()
            .map(Key::Values)
            .ok_or_else(|| wrong("has a malformed value: quote text as 'text' and bytes as x'00ff'"))
    }

    /// Writes a key. `None` if a value is NULL (NULL identifies no row).
    pub(crate) fn write(values: &[(ValueRef<'_>, Affinity)]) -> Option<String> {
        let alone = values.len() == 1;
        let texts: Option<Vec<String>> =
            values.iter().map(|(value, affinity)| plain(*value, *affinity, alone)).collect();
        texts.map(|texts| texts.join(","))
    }

    /// Writes the key of the row with this rowid.
    pub(crate) fn write_rowid(rowid: i64) -> String {
        format!("{ROWID}{rowid}")
    }
}

fn is_quoted(token: &str) -> bool {
    token.starts_with('\'') || token.starts_with("x'") || name::unescape(token).is_some()
}

/// Splits at commas outside quotes. `None` if a quote does not end.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            ',' if !quoted => {
                tokens.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    tokens.push(text.get(start..)?);
    (!quoted).then_some(tokens)
}

fn value(token: &str, affinity: Affinity) -> Option<Parameter> {
    if let Some(rest) = token.strip_prefix("x'") {
        return name::unhex(rest.strip_suffix('\'')?).map(|bytes| Value::Blob(bytes).into());
    }
    if let Some(rest) = token.strip_prefix('\'') {
        return rest.strip_suffix('\'').map(|text| Value::Text(text.replace("''", "'")).into());
    }
    if let Some(bytes) = name::unescape(token) {
        return Some(Parameter::text(bytes));
    }
    let value = if affinity == Affinity::Text { Value::Text(token.to_owned()) } else { guess(token) };
    Some(value.into())
}

/// The infinite numbers, as SQLite itself writes them: numbers that are too large for a double.
const INFINITE: [(&str, f64); 2] = [("9e999", f64::INFINITY), ("-9e999", f64::NEG_INFINITY)];

fn guess(token: &str) -> Value {
    // Only the spelling that this module writes counts as a number: `inf` and `1e5` may be text.
    match (token.parse::<i64>(), token.parse::<f64>()) {
        (Ok(number), _) if number.to_string() == token => Value::Integer(number),
        (_, Ok(number)) if real(number) == token => Value::Real(number),
        _ => Value::Text(token.to_owned()),
    }
}

fn real(number: f64) -> String {
    match INFINITE.iter().find(|(_, infinite)| *infinite == number) {
        Some((text, _)) => (*text).to_owned(),
        None if number.is_nan() => String::new(),
        None => format!("{number:?}"),
    }
}

fn plain(value: ValueRef<'_>, affinity: Affinity, alone: bool) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(real(number)),
        ValueRef::Blob(bytes) => Some(name::hex("x", bytes)),
        ValueRef::Text(bytes) => {
            // SQLite does not check that text is UTF-8.
            let Ok(text) = std::str::from_utf8(bytes) else { return Some(name::hex("t", bytes)) };
            let comma = if alone { is_quoted(text) } else { text.contains([',', '\'']) || is_quoted(text) };
            let odd = text.is_empty() || text.starts_with(ROWID) || comma || name::is_refused(text);
            let number = affinity != Affinity::Text && !matches!(guess(text), Value::Text(_));
            let written = if odd || number { format!("'{}'", text.replace('\'', "''")) } else { text.to_owned() };
            Some(if name::is_refused(&written) { name::hex("t", bytes) } else { written })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_key(values: &[(Value, Affinity)]) -> String {
        let refs: Vec<_> = values.iter().map(|(value, affinity)| (ValueRef::from(value), *affinity)).collect();
        let text = Key::write(&refs).unwrap();
        let affinities: Vec<_> = values.iter().map(|(_, affinity)| *affinity).collect();
        let expected: Vec<Parameter> = values.iter().map(|(value, _)| value.clone().into()).collect();
        assert!(!name::is_refused(&text), "{text}");
        assert_eq!(Key::parse(&text, &affinities), Ok(Key::Values(expected)), "{text}");
        text
    }

    #[test]
    fn a_written_key_parses_to_the_same_values() {
        use Affinity::{Blob, Integer, Text};
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(written_key(&[(Value::Integer(-7), Integer)]), "-7");
        assert_eq!(written_key(&[(text("a, b's"), Text)]), "a, b's");
        assert_eq!(written_key(&[(text("007"), Text)]), "007");
        assert_eq!(written_key(&[(text("7"), Text)]), "7");
        assert_eq!(written_key(&[(text("7"), Blob)]), "'7'");
        assert_eq!(written_key(&[(text("1.5"), Blob)]), "'1.5'");
        assert_eq!(written_key(&[(text("x'y"), Text)]), "'x''y'");
        for odd in [
            "",
            ".",
            "..",
            "'",
            "''",
            "'a'",
            "x'00'",
            "rowid=5",
            "a/b?c#d%2e",
            "ü,ü",
            "1e5",
            "inf",
            "NaN",
            "9e999",
            "a\nb",
            "\0",
            "a/../b",
            "../a",
            "a\\..",
            "t'61'",
            "t'is",
            "\u{85}",
        ] {
            for affinity in [Text, Blob] {
                written_key(&[(text(odd), affinity)]);
                written_key(&[(text(odd), affinity), (Value::Real(0.1), Blob), (Value::Integer(i64::MIN), Integer)]);
            }
        }
        assert_eq!(written_key(&[(Value::Blob(vec![0, 171]), Blob), (text("a,b"), Text)]), "x'00ab','a,b'");
        assert_eq!(written_key(&[(Value::Real(1e300), Blob)]), "1e300");
        for real in [f64::INFINITY, f64::NEG_INFINITY, -0.5, 1e16, 5e-324, f64::MAX, 9_007_199_254_740_993.0] {
            for affinity in [Affinity::Real, Blob, Affinity::Numeric] {
                written_key(&[(Value::Real(real), affinity)]);
                written_key(&[(Value::Real(real), affinity), (text("a"), Text)]);
            }
        }
        assert_eq!(written_key(&[(Value::Real(f64::INFINITY), Blob)]), "9e999");
        assert_eq!(written_key(&[(text("a\nb"), Text)]), "t'610a62'");
    }

    #[test]
    fn text_that_is_not_utf8_keeps_its_bytes() {
        let key = Key::write(&[(ValueRef::Text(b"a\xff"), Affinity::Text)]).unwrap();
        assert_eq!(key, "t'61ff'");
        assert_eq!(Key::parse(&key, &[Affinity::Text]), Ok(Key::Values(vec![Parameter::text(b"a\xff".to_vec())])));
    }

    #[test]
    fn malformed_keys_are_invalid() {
        for wrong in ["a", "a,b,c", "'a,b", "x'0',b", "x'zz',b"] {
            let parsed = Key::parse(wrong, &[Affinity::Text, Affinity::Text]);
            assert!(matches!(parsed, Err(Error::Invalid(_))), "{wrong}: {parsed:?}");
        }
        assert_eq!(Key::parse("rowid=12", &[Affinity::Text]), Ok(Key::Rowid(12)));
        assert_eq!(Key::write(&[(ValueRef::Null, Affinity::Text)]), None);
    }
}
