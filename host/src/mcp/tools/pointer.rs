//! JSON pointers (RFC 6901): a value within a text, letter by letter as it stands there.
//!
//! The text is gone through once, and nothing is kept of it but the way: neither the order of names nor the digits of a
//! number are changed, and what is not on the way costs its reading and no memory.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::text;

/// Steps of a pointer.
const STEPS: usize = 32;

/// Names that are told where a pointer leads nowhere.
const NAMES: usize = 20;

/// The value that `pointer` leads to in the JSON `text`: a text as it reads, anything else as it is written.
///
/// # Errors
/// Says how far it leads and what is there, as the end of "the pointer ...".
pub fn pointed(text: &str, pointer: &str) -> Result<String, String> {
    let steps: Vec<Cow<'_, str>> = match pointer.strip_prefix('/') {
        None if pointer.is_empty() => Vec::new(),
        None => return Err("is malformed; expected a JSON pointer (RFC 6901) such as \"/items/0/name\"".to_owned()),
        Some(steps) => steps.split('/').map(unescaped).collect(),
    };
    if steps.len() > STEPS {
        return Err(format!("is malformed; expected at most {STEPS} steps"));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let found = Way { steps: &steps, taken: 0 }.deserialize(&mut json).and_then(|found| json.end().map(|()| found));
    let found = found.map_err(|error| format!("leads nowhere: the contents are not JSON ({error})"))?;
    match found {
        Found::Value(value) if value.get().starts_with('"') => {
            serde_json::from_str(value.get()).map_err(|error| format!("leads to a text that is none ({error})"))
        }
        Found::Value(value) => Ok(value.get().to_owned()),
        Found::Lost { at, there } => {
            let reached: String = pointer.split_inclusive('/').take(at + 1).collect();
            let reached = reached.strip_suffix('/').unwrap_or(&reached);
            Err(format!("leads nowhere: at \"{}\" there is {there}", text::excerpt(reached, 200)))
        }
    }
}

fn unescaped(step: &str) -> Cow<'_, str> {
    if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() }
}

/// Where a way ends.
enum Found<'t> {
    Value(&'t RawValue),
    /// After so many steps, and what is there instead.
    Lost {
        at: usize,
        there: String,
    },
}

/// The way from a value on.
#[derive(Clone, Copy)]
struct Way<'s> {
    steps: &'s [Cow<'s, str>],
    taken: usize,
}

impl<'s> Way<'s> {
    fn step(&self) -> &'s str {
        self.steps.get(self.taken).map_or("", AsRef::as_ref)
    }

    fn next(self) -> Self {
        Self { taken: self.taken + 1, ..self }
    }

    fn lost<'t>(&self, there: String) -> Found<'t> {
        Found::Lost { at: self.taken, there }
    }

    fn at_a_leaf<'t, E>(&self) -> Result<Found<'t>, E> {
        Ok(self.lost("neither an object nor an array".to_owned()))
    }
}

impl<'t> DeserializeSeed<'t> for Way<'_> {
    type Value = Found<'t>;

    fn deserialize<D: Deserializer<'t>>(self, json: D) -> Result<Self::Value, D::Error> {
        if self.taken == self.steps.len() {
            return <&RawValue>::deserialize(json).map(Found::Value);
        }
        json.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Way<'_> {
    type Value = Found<'t>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut names, mut count) = (None, Vec::new(), 0usize);
        while let Some(name) = map.next_key::<String>()? {
            count += 1;
            // The last of a name counts, as with most readers.
            if name == self.step() {
                found = Some(map.next_value_seed(self.next())?);
                continue;
            }
            map.next_value::<IgnoredAny>()?;
            if names.len() < NAMES {
                names.push(format!("\"{}\"", text::excerpt(&name, 60)));
            }
        }
        let more = if count > names.len() { ", ..." } else { "" };
        Ok(found.unwrap_or_else(|| self.lost(format!("an object with {}{more}", names.join(", ")))))
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let is_plain = self.step() == "0" || !self.step().starts_with(['0', '+']);
        let wanted = self.step().parse::<usize>().ok().filter(|_| is_plain);
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
        Ok(found.unwrap_or_else(|| self.lost(format!("an array of {count}"))))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        self.at_a_leaf()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        self.at_a_leaf()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        self.at_a_leaf()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        self.at_a_leaf()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        self.at_a_leaf()
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.at_a_leaf()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_to_a_value_as_it_is_written() {
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
    fn a_pointer_that_leads_nowhere_says_how_far_it_leads() {
        let text = r#"{"items":[{"name":"a"}],"b":{},"c":1.5,"d":-1,"e":null,"f":false}"#;
        for (pointer, told) in [
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
            assert!(why.contains(told), "{pointer}: {why}");
        }
        assert!(pointed("[1] 2", "/0").unwrap_err().contains("not JSON"));
        assert!(pointed("# A", "/a").unwrap_err().contains("not JSON"));
        assert!(pointed("[1]", &"/0".repeat(33)).unwrap_err().contains("at most 32"));
        let many: String = (0..30).map(|n| format!("\"n{n}\":0,")).collect();
        assert!(pointed(&format!("{{{many}\"z\":0}}"), "/a").unwrap_err().ends_with("\"n19\", ..."));
    }

    #[test]
    fn depth_and_length_take_neither_stack_nor_time() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(pointed(&deep(1_000_000), "/0/0").unwrap(), deep(999_998));
        assert!(pointed(&"[".repeat(1_000_000), "/1").unwrap_err().contains("not JSON"));
        let long = format!("[{}]", "{\"a\":1},".repeat(300_000) + "2");
        let began = std::time::Instant::now();
        assert_eq!(pointed(&long, "/300000").unwrap(), "2");
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    }
}
