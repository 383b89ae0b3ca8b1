//! Values of `belljar.toml` that are one text or a list of texts.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::value::KIND;

/// A text, or a list of at least one text. Each is parsed as a `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OneOrMore<T>(pub(super) Vec<T>);

/// What a text of a [`OneOrMore`] is, in words.
pub(super) trait ListItem: Sized {
    /// A text and a list, as examples: `text or an array, such as "a" or ["a", "b"]`.
    const EXPECTED: &str;

    /// Parses one text.
    ///
    /// # Errors
    /// The rule that the text breaks.
    fn parse(text: &str) -> Result<Self, impl fmt::Display>;
}

impl ListItem for String {
    const EXPECTED: &str = "text or an array of texts, such as \"a\" or [\"a\", \"b\"]";

    fn parse(text: &str) -> Result<Self, impl fmt::Display> {
        match text.is_empty() {
            true => Err("the text is empty"),
            false => Ok(text.to_owned()),
        }
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: ListItem> Visitor<'de> for ListVisitor<T> {
    type Value = OneOrMore<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMore<T>, E> {
        T::parse(text).map(|one| OneOrMore(vec![one])).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMore<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(Item(item)) = items.next_element()? {
            list.push(item);
        }
        // An empty list would hold for nothing, and the rule would silently be about nobody or nothing.
        match list.is_empty() {
            true => Err(A::Error::invalid_value(Unexpected::Other("the array is empty"), &self)),
            false => Ok(OneOrMore(list)),
        }
    }
}

/// One entry of the list.
struct Item<T>(T);

impl<'de, T: ListItem> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::parse(&String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

impl<'de, T: ListItem> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

impl<T> JsonSchema for OneOrMore<T> {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "array"], "minLength": 1, "minItems": 1, "items": { "type": "string", "minLength": 1 },
            KIND: "text or array of text",
        })
    }
}
