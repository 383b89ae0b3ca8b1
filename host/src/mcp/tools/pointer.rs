//! JSON pointers (RFC 6901): extracts one value from a JSON text, byte for byte as the text has it.
//!
//! The text is parsed once, and values off the path are skipped without memory. The order of names and the digits of
//! numbers are unchanged.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::text;

/// Most reference tokens of a pointer.
const MAX_TOKENS: usize = 32;

/// The error of a missing name lists at most this many present ones.
const NAMES: usize = 20;

/// The reason why a pointer has no value. The text completes "the pointer ...".
#[derive(Debug, thiserror::Error)]
pub enum BadPointer {
    /// It does not begin with a slash.
    #[error("is malformed; expected a JSON pointer (RFC 6901) such as \"/items/0/name\"")]
    Malformed,
    /// It has too many reference tokens.
    #[error("is malformed; expected at most {MAX_TOKENS} reference tokens")]
    TooManyTokens,
    /// The text is not JSON.
    #[error("leads nowhere: the contents are not JSON ({0})")]
    NotJson(serde_json::Error),
    /// The string that it points to has an invalid escape.
    #[error("leads to a string with an invalid escape ({0})")]
    NotText(serde_json::Error),
    /// There is no such value.
    #[error("leads nowhere: at \"{reached}\" there is {there}")]
    Missing {
        /// The part of the pointer that has a value, shortened.
        reached: String,
        /// A description of that value.
        there: String,
    },
}

/// The value that `pointer` selects in the JSON `text`: a string unescaped, any other value as it is written.
///
/// # Errors
/// The pointer or the text is malformed, or the value does not exist.
pub fn resolve(text: &str, pointer: &str) -> Result<String, BadPointer> {
    let tokens: Vec<Cow<'_, str>> = match pointer.strip_prefix('/') {
        None if pointer.is_empty() => Vec::new(),
        None => return Err(BadPointer::Malformed),
        Some(tokens) => tokens.split('/').map(unescape).collect(),
    };
    if tokens.len() > MAX_TOKENS {
        return Err(BadPointer::TooManyTokens);
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let target = PointerVisitor { tokens: &tokens, taken: 0 }
        .deserialize(&mut json)
        .and_then(|target| json.end().map(|()| target));
    let target = target.map_err(BadPointer::NotJson)?;
    match target {
        Target::Value(value) if value.get().starts_with('"') => {
            serde_json::from_str(value.get()).map_err(BadPointer::NotText)
        }
        Target::Value(value) => Ok(value.get().to_owned()),
        Target::Missing { at, there } => {
            let reached: String = pointer.split_inclusive('/').take(at + 1).collect();
            let reached = reached.strip_suffix('/').unwrap_or(&reached);
            Err(BadPointer::Missing { reached: text::excerpt(reached, 200), there })
        }
    }
}

fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

/// The result of following a pointer.
enum Target<'t> {
    Value(&'t RawValue),
    /// No value after `at` reference tokens; `there` describes the value at that place.
    Missing {
        at: usize,
        there: String,
    },
}

/// Follows a pointer from a value on, after `taken` of its reference tokens.
#[derive(Clone, Copy)]
struct PointerVisitor<'s> {
    tokens: &'s [Cow<'s, str>],
    taken: usize,
}

impl<'s> PointerVisitor<'s> {
    fn token(&self) -> &'s str {
        self.tokens.get(self.taken).map_or("", AsRef::as_ref)
    }

    fn next(self) -> Self {
        Self { taken: self.taken + 1, ..self }
    }

    fn missing<'t>(&self, there: String) -> Target<'t> {
        Target::Missing { at: self.taken, there }
    }

    fn missing_in_scalar<'t, E>(&self) -> Result<Target<'t>, E> {
        Ok(self.missing("neither an object nor an array".to_owned()))
    }
}

impl<'t> DeserializeSeed<'t> for PointerVisitor<'_> {
    type Value = Target<'t>;

    fn deserialize<D: Deserializer<'t>>(self, json: D) -> Result<Self::Value, D::Error> {
        if self.taken == self.tokens.len() {
            return <&RawValue>::deserialize(json).map(Target::Value);
        }
        json.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for PointerVisitor<'_> {
    type Value = Target<'t>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut names, mut count) = (None, Vec::new(), 0usize);
        while let Some(name) = map.next_key::<String>()? {
            count += 1;
            // Of equal names the last one counts, as in most JSON parsers.
            if name == self.token() {
                found = Some(map.next_value_seed(self.next())?);
                continue;
            }
            map.next_value::<IgnoredAny>()?;
            if names.len() < NAMES {
                names.push(format!("\"{}\"", text::excerpt(&name, 60)));
            }
        }
        let more = if count > names.len() { ", ..." } else { "" };
        Ok(found.unwrap_or_else(|| self.missing(format!("an object with {}{more}", names.join(", ")))))
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let is_plain = self.token() == "0" || !self.token().starts_with(['0', '+']);
        let wanted = self.token().parse::<usize>().ok().filter(|_| is_plain);
        let (mut found, mut count) = (None, 0usize);
        loop {
            if wanted == Some(count) {
                match items.next_element_seed(self.next())? {
                    Some(value) => found = Some(value),
                    None => break,
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            count += 1;
        }
        Ok(found.unwrap_or_else(|| self.missing(format!("an array of {count}"))))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        self.missing_in_scalar()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        self.missing_in_scalar()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        self.missing_in_scalar()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        self.missing_in_scalar()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        self.missing_in_scalar()
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.missing_in_scalar()
    }
}

#[cfg(test)]
mod tests {
    /// The value, or the text of the error.
    fn pointed(text: &str, pointer: &str) -> Result<String, String> {
        super::resolve(text, pointer).map_err(|why| why.to_string())
    }

    #[test]
    fn a_value_is_given_as_it_is_written() {
        let text = r#" {"items":[{"name":"a\nb","n":1}, 12345678901234567890123],"a/b":{"m~n":true, "b":{"z":1,"a":2}},"":0,"x":1,"x":2}"#;
        for (pointer, expected) in [
            ("/items/0/name", "a\nb"),
            ("/items/0/n", "1"),
            ("/items/1", "12345678901234567890123"),
            ("/a~1b/m~0n", "true"),
            ("/a~1b/b", r#"{"z":1,"a":2}"#),
            ("/", "0"),
            ("/x", "2"),
            ("", text.trim()),
        ] {
            assert_eq!(pointed(text, pointer).as_deref(), Ok(expected), "{pointer}");
        }
        assert_eq!(pointed("\"\\u00e9\"", "").as_deref(), Ok("\u{e9}"));
    }

    #[test]
    fn the_error_of_a_missing_value_names_the_part_that_exists() {
        let text = r#"{"items":[{"name":"a"}],"b":{},"c":1.5,"d":-1,"e":null,"f":false}"#;
        for (pointer, expected) in [
            ("items", "expected a JSON pointer"),
            ("/items/1/name", "at \"/items\" there is an array of 1"),
            ("/items/00", "at \"/items\" there is an array of 1"),
            ("/items/+0", "at \"/items\" there is an array of 1"),
            ("/items/-", "at \"/items\" there is an array of 1"),
            ("/nope", "at \"\" there is an object with \"items\", \"b\", \"c\""),
            ("/items/0/name/x", "at \"/items/0/name\" there is neither"),
            ("/b/x", "at \"/b\" there is an object with "),
            ("/c/x", "neither"),
            ("/d/x", "neither"),
            ("/e/x", "neither"),
            ("/f/x", "neither"),
        ] {
            let why = pointed(text, pointer).unwrap_err();
            assert!(why.contains(expected), "{pointer}: {why}");
        }
        assert!(pointed("[1] 2", "/0").unwrap_err().contains("not JSON"));
        assert!(pointed("# A", "/a").unwrap_err().contains("not JSON"));
        assert!(pointed("[1]", &"/0".repeat(33)).unwrap_err().contains("at most 32"));
        let many: String = (0..30).map(|n| format!("\"n{n}\":0,")).collect();
        assert!(pointed(&format!("{{{many}\"z\":0}}"), "/a").unwrap_err().ends_with("\"n19\", ..."));
    }

    #[test]
    fn deep_and_long_texts_take_no_stack() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(pointed(&deep(1_000_000), "/0/0").unwrap(), deep(999_998));
        assert!(pointed(&"[".repeat(1_000_000), "/1").unwrap_err().contains("not JSON"));
        let long = format!("[{}]", "{\"a\":1},".repeat(300_000) + "2");
        assert_eq!(pointed(&long, "/300000").unwrap(), "2");
    }
}
