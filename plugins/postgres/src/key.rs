//! Converts row keys to text and back. A key is one value, or several separated by commas. A value that would be ambiguous is
//! written as in SQL: `'a,b'`. Text that a reference cannot carry is written as its bytes: `t'610a'`; bytes are `x'00ff'`.
//! `ctid=0,1` is the row at a place in a table without a key.

use belljar_guest::{Error, Result};
use belljar_sql::name;

use crate::types::Kind;

/// A parsed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// A place in the table: a block, and a row in it.
    Place(u64, u32),
    /// A value for each column of the key, as the server reads it.
    Values(Vec<String>),
}

const PLACE: &str = "ctid=";

impl Key {
    /// Parses a key; `columns` is the number of its columns.
    pub(crate) fn parse(text: &str, columns: usize) -> Result<Key> {
        if let Some((block, row)) = text.strip_prefix(PLACE).and_then(|place| place.split_once(','))
            && let (Ok(block), Ok(row)) = (block.parse::<u32>(), row.parse::<u16>())
        {
            return Ok(Key::Place(block.into(), row.into()));
        }
        let wrong = |why: &str| Error::invalid(format_args!("the key \"{text}\" {why}"));
        // The text of a key of one column may contain commas.
        let tokens = match columns {
            1 if !is_quoted(text) => vec![text],
            _ => split(text).ok_or_else(|| wrong("has a quote without its end"))?,
        };
        if tokens.len() != columns {
            return Err(wrong(&format!("has {} values: the key has {columns}", tokens.len())));
        }
        let values: Option<Vec<String>> = tokens.into_iter().map(value).collect();
        values
            .map(Key::Values)
            .ok_or_else(|| wrong("has a malformed value: quote text as 'text', and bytes as x'00ff'"))
    }

    /// Writes a key. `None` if a value is NULL (NULL identifies no row).
    pub(crate) fn write(values: &[(&Kind, Option<&str>)]) -> Option<String> {
        let is_alone = values.len() == 1;
        let texts: Option<Vec<String>> =
            values.iter().map(|(kind, text)| text.map(|text| plain(kind, text, is_alone))).collect();
        texts.map(|texts| texts.join(","))
    }

    /// Writes the place `(0,1)`, as the server writes it.
    pub(crate) fn write_place(ctid: &str) -> String {
        format!("{PLACE}{}", ctid.trim_matches(['(', ')']))
    }
}

/// The place as the server reads it.
pub(crate) fn place(block: u64, row: u32) -> String {
    format!("({block},{row})")
}

fn is_quoted(token: &str) -> bool {
    token.starts_with('\'') || token.starts_with("x'") || name::unescape(token).is_some()
}

/// Splits at commas outside quotes. `None` if a quote does not end.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => is_inside = !is_inside,
            ',' if !is_inside => {
                tokens.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    tokens.push(text.get(start..)?);
    (!is_inside).then_some(tokens)
}

fn value(token: &str) -> Option<String> {
    if let Some(rest) = token.strip_prefix("x'") {
        let digits = rest.strip_suffix('\'')?;
        return name::unhex(digits).map(|_| format!("\\x{digits}"));
    }
    if let Some(bytes) = name::unescape(token) {
        return String::from_utf8(bytes).ok();
    }
    if let Some(rest) = token.strip_prefix('\'') {
        return rest.strip_suffix('\'').map(|text| text.replace("''", "'"));
    }
    Some(token.to_owned())
}

fn plain(kind: &Kind, text: &str, is_alone: bool) -> String {
    if *kind == Kind::Bytes {
        return format!("x'{}'", text.strip_prefix("\\x").unwrap_or(text));
    }
    if text.is_empty() || name::is_refused(text) {
        return name::hex("t", text.as_bytes());
    }
    let is_ambiguous = is_quoted(text) || text.starts_with(PLACE) || (!is_alone && text.contains([',', '\'']));
    if is_ambiguous { format!("'{}'", text.replace('\'', "''")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_the_way_there_and_back() {
        for values in [
            &["7"][..],
            &["a,b"],
            &["it's"],
            &["'quoted'"],
            &["x'00'"],
            &["t'61'"],
            &[""],
            &["a\nb"],
            &["../x"],
            &["ctid=1,2"],
            &["7", "a,b", "it's", "", "2026-01-01 00:00:00+00"],
            &["ü", "a'b,c", "..", "'"],
        ] {
            let texts: Vec<_> = values.iter().map(|value| (&Kind::Text, Some(*value))).collect();
            let key = Key::write(&texts).unwrap();
            assert!(!name::is_refused(&key), "{key}");
            let back = Key::parse(&key, values.len()).unwrap();
            assert_eq!(back, Key::Values(values.iter().map(|value| (*value).to_owned()).collect()), "{key}");
        }
    }

    #[test]
    fn bytes_places_and_nulls() {
        assert_eq!(Key::write(&[(&Kind::Bytes, Some("\\x00ff"))]).as_deref(), Some("x'00ff'"));
        assert_eq!(Key::parse("x'00ff'", 1), Ok(Key::Values(vec!["\\x00ff".into()])));
        assert_eq!(Key::write(&[(&Kind::Integer, Some("1")), (&Kind::Text, None)]), None);
        assert_eq!(Key::write_place("(3,4)"), "ctid=3,4");
        assert_eq!(Key::parse("ctid=3,4", 0), Ok(Key::Place(3, 4)));
        for (wrong, columns) in [("1,2", 1 + 2), ("'a", 2), ("x'0'", 1), ("x'zz'", 1), ("ctid=-1,2", 2 + 1), ("", 2)] {
            assert!(matches!(Key::parse(wrong, columns), Err(Error::Invalid(_))), "{wrong}");
        }
    }
}
