//! Converts between references and decoded paths, names and queries.
//!
//! A reference is percent-encoded (RFC 3986); paths and names are not. Encode once when listing, decode once when
//! reading:
//!
//! ```
//! use belljar_guest::reference;
//!
//! assert_eq!(reference::encode("letters/für Anna.md"), "letters/f%C3%BCr%20Anna.md");
//! assert_eq!(reference::decode("letters/f%C3%BCr%20Anna.md")?, "letters/für Anna.md");
//!
//! let (path, query) = reference::split("search?q=two%20words&page=3");
//! assert_eq!(path, "search");
//! assert_eq!(reference::query_value(query, "q")?.as_deref(), Some("two words"));
//! # Ok::<(), belljar_guest::Error>(())
//! ```

use std::collections::BTreeMap;
use std::str::Utf8Error;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{Error, Result};

/// The characters that a path segment may contain unencoded: `unreserved`, `sub-delims` and `@` (RFC 3986 section 3.3). A
/// `:` is allowed, too, but not in the first segment of a relative reference (section 4.2), so it is always encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// Encodes a relative path, such as `letters/to Anna.md`. Each `/` stays a `/`.
///
/// The path must not begin with `/`, and no segment may be `.` or `..`: references do not allow these in any spelling, and
/// the host leaves such entries out.
pub fn encode(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// Encodes one segment, such as a title or a key. A `/` in it becomes `%2F`.
pub fn encode_segment(segment: &str) -> String {
    utf8_percent_encode(segment, SEGMENT).to_string()
}

/// Decodes a reference, or a part of one. Fails with [`Error::Invalid`] when it is not UTF-8.
///
/// If segments may contain an encoded `/`, split at `/` first and decode each segment.
pub fn decode(reference: &str) -> Result<String> {
    let not_utf8 = |_: Utf8Error| Error::invalid(format_args!("\"{reference}\" is not UTF-8 once decoded"));
    Ok(percent_decode_str(reference).decode_utf8().map_err(not_utf8)?.into_owned())
}

/// Splits a reference into its path and its query, both still encoded. Without a `?` the query is empty.
pub fn split(reference: &str) -> (&str, &str) {
    reference.split_once('?').unwrap_or((reference, ""))
}

/// The names and values of a query such as `q=two%20words&page=3`, in order and still encoded. A name without a `=` has
/// the value `""`.
pub fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let given = query.split('&').filter(|pair| !pair.is_empty());
    given.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// All names and values of a query, decoded.
///
/// Fails with [`Error::Invalid`] for a name that is given twice.
pub fn parameters(query: &str) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (name, value) in pairs(query) {
        let name = decode(name)?;
        if all.contains_key(&name) {
            return Err(Error::invalid(format_args!("\"{name}\" is given twice")));
        }
        all.insert(name, decode(value)?);
    }
    Ok(all)
}

/// The decoded value of `name` in a query such as `q=two%20words&page=3`: `None` if the name is absent, `""` if it has no
/// value.
///
/// Decodes only percent-encoding: a `+` stays a plus.
pub fn query_value(query: &str, name: &str) -> Result<Option<String>> {
    for (key, value) in pairs(query) {
        if decode(key)? == name {
            return decode(value).map(Some);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_and_decoding_are_inverse() {
        for path in
            ["", "plain.md", "a b/c#d?e.md", "100%.txt", "a:b", "[x]/{y}|z", "ümläut/日本語", "it's (1)+2,3;4=5@!$&*~"]
        {
            let encoded = encode(path);
            assert!(encoded.bytes().all(|b| b.is_ascii_graphic()), "{encoded}");
            assert_eq!(decode(&encoded).as_deref(), Ok(path));
        }
    }

    #[test]
    fn reserved_characters_are_encoded() {
        assert_eq!(encode("a?b#c:d"), "a%3Fb%23c%3Ad");
        assert_eq!(encode("a/b"), "a/b");
        assert_eq!(encode_segment("a/b"), "a%2Fb");
        assert_eq!(encode("%2e%2e"), "%252e%252e");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_invalid() {
        assert!(matches!(decode("%FF"), Err(Error::Invalid(_))));
    }

    #[test]
    fn splits_at_the_first_question_mark() {
        assert_eq!(split("a?b?c"), ("a", "b?c"));
        assert_eq!(split("a"), ("a", ""));
        assert_eq!(split(""), ("", ""));
    }

    #[test]
    fn finds_query_values() {
        assert_eq!(query_value("a=1&b=x%26y&c", "b"), Ok(Some("x&y".into())));
        assert_eq!(query_value("a=1&b=x%26y&c", "c"), Ok(Some(String::new())));
        assert_eq!(query_value("a=1+1", "a"), Ok(Some("1+1".into())));
        assert_eq!(query_value("", ""), Ok(None));
    }
}
