//! A serde deserializer over parsed TOML. Its errors carry the path, the byte offset and the value of the wrong key. They
//! name TOML's types, never Rust's.
//!
//! The structs of `config/file.rs` derive `Deserialize`; the `toml` crate's own deserializer would report their errors
//! with the names of Rust types and without a path.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer as _, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::model::text;

/// The longest value that a message shows, in characters.
const SHOWN_VALUE: usize = 80;

/// The longest text of a parser that a message shows, in characters.
const SHOWN_DETAILS: usize = 200;

/// Serde's word for an expected type, and the text that a message shows in its place. Types of `config/value.rs` have
/// words of their own.
const TOML_WORDS: [(&str, &str); 6] = [
    ("a boolean", "true or false"),
    ("a map", "a table"),
    ("a sequence", "an array, such as [\"a\", \"b\"]"),
    ("a string", "text in quotation marks"),
    ("path string", "a path in quotation marks"),
    ("u64", "a number"),
];

/// Deserializes a whole file.
///
/// # Errors
/// The first value that is wrong, in the order of the keys.
pub(super) fn deserialize<'i, T: Deserialize<'i>>(table: DeTable<'i>) -> Result<T, DeserializeError> {
    T::deserialize(Node(DeValue::Table(table)))
}

/// One wrong value.
#[derive(Debug)]
pub(super) struct DeserializeError {
    /// The keys that lead to it, outermost first. All entries of an array have the path of the array.
    pub(super) path: Vec<String>,
    /// The offset of its key in the file, in bytes. For an entry of an array, the offset of the entry.
    pub(super) offset: Option<usize>,
    /// The value, ready to be shown. None for an array and for a table.
    pub(super) found: Option<Box<str>>,
    /// The TOML type of the value.
    pub(super) found_type: &'static str,
    /// The rule that it breaks.
    pub(super) reason: Reason,
}

/// The rule that a value breaks.
#[derive(Debug)]
pub(super) enum Reason {
    /// It has the wrong type or form, or is out of bounds.
    Expected {
        /// The values that the key takes, in words.
        expected: String,
        /// The message of the parser of the value.
        details: Option<Box<str>>,
    },
    /// The table has a key that it does not take. The path leads to the table.
    UnknownKey {
        /// The key.
        key: String,
        /// The keys that the table takes.
        known: &'static [&'static str],
    },
    /// Any other rule, in words.
    Message(String),
}

impl DeserializeError {
    fn new(reason: Reason) -> Self {
        Self { path: Vec::new(), offset: None, found: None, found_type: "", reason }
    }

    /// Sets the offset, the value and its TOML type, unless the error has them already.
    fn located(mut self, offset: usize, found: Option<Box<str>>, found_type: &'static str) -> Self {
        if self.offset.is_none() {
            (self.offset, self.found, self.found_type) = (Some(offset), found, found_type);
        }
        self
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Expected { expected, .. } => write!(f, "expected {expected}"),
            Reason::UnknownKey { key, .. } => write!(f, "unknown key \"{key}\""),
            Reason::Message(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for DeserializeError {}

impl serde::de::Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Reason::Message(text::excerpt(&message.to_string(), 300)))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let word = TOML_WORDS.iter().find(|(serde, _)| *serde == expected);
        let expected = word.map_or(expected, |(_, toml)| (*toml).to_owned());
        Self::new(Reason::Expected { expected, details: None })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let details = match unexpected {
            Unexpected::Other(details) => Some(text::excerpt(details, SHOWN_DETAILS).into()),
            _ => None,
        };
        let Reason::Expected { expected, .. } = Self::invalid_type(unexpected, expected).reason else {
            return Self::custom(unexpected);
        };
        Self::new(Reason::Expected { expected, details })
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Reason::Expected { expected: alternatives(expected), details: None })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Reason::UnknownKey { key: field.to_owned(), known: expected })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("the key \"{field}\" is missing"))
    }
}

/// `"a", "b" or "c"`.
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// One value of the file.
struct Node<'i>(DeValue<'i>);

impl Node<'_> {
    /// The value as a message shows it. None for an array and for a table.
    fn shown(&self) -> Option<Box<str>> {
        let shown = match &self.0 {
            DeValue::String(text) => toml::Value::from(&**text).to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) | DeValue::Table(_) => return None,
        };
        Some(text::excerpt(&shown, SHOWN_VALUE).into())
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.0 {
            DeValue::String(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            DeValue::String(Cow::Owned(text)) => visitor.visit_string(text),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => visitor.visit_i64(number),
                Err(_) => Err(DeserializeError::custom("the number needs more than 64 bits")),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(DeserializeError::invalid_type(Unexpected::Other("a float"), &visitor)),
            },
            DeValue::Boolean(value) => visitor.visit_bool(value),
            DeValue::Datetime(_) => Err(DeserializeError::invalid_type(Unexpected::Other("a date"), &visitor)),
            DeValue::Array(array) => visitor.visit_seq(Items(array.into_iter())),
            DeValue::Table(table) => visitor.visit_map(Entries { entries: table.into_iter(), next: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.0 {
            DeValue::String(text) => {
                visitor.visit_enum((&*text).into_deserializer() as StrDeserializer<'_, DeserializeError>)
            }
            DeValue::Table(table) if table.len() == 1 => {
                let entries = Entries { entries: table.into_iter(), next: None };
                visitor.visit_enum(MapAccessDeserializer::new(entries))
            }
            _ => Err(DeserializeError::invalid_type(Unexpected::Other("another type"), &visitor)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The entries of a table.
struct Entries<'i> {
    entries: <DeTable<'i> as IntoIterator>::IntoIter,
    /// The value whose key was read last, with the key and the offset of the key.
    next: Option<(String, usize, Node<'i>)>,
}

impl<'i> MapAccess<'i> for Entries<'i> {
    type Error = DeserializeError;

    fn next_key_seed<K: DeserializeSeed<'i>>(&mut self, seed: K) -> Result<Option<K::Value>, DeserializeError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let (offset, name) = (key.span().start, key.into_inner().into_owned());
        let read = seed.deserialize(name.as_str().into_deserializer());
        let read = read.map_err(|error: DeserializeError| error.located(offset, None, "key"))?;
        self.next = Some((name, offset, Node(value.into_inner())));
        Ok(Some(read))
    }

    fn next_value_seed<V: DeserializeSeed<'i>>(&mut self, seed: V) -> Result<V::Value, DeserializeError> {
        let Some((name, offset, node)) = self.next.take() else {
            return Err(DeserializeError::custom("a value was asked for before its key"));
        };
        let (found, found_type) = (node.shown(), node.0.type_str());
        seed.deserialize(node).map_err(|error| {
            let mut error = error.located(offset, found, found_type);
            error.path.insert(0, name);
            error
        })
    }
}

/// The entries of an array.
struct Items<'i>(<Vec<Spanned<DeValue<'i>>> as IntoIterator>::IntoIter);

impl<'i> SeqAccess<'i> for Items<'i> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'i>>(&mut self, seed: T) -> Result<Option<T::Value>, DeserializeError> {
        let Some(item) = self.0.next() else { return Ok(None) };
        let (offset, node) = (item.span().start, Node(item.into_inner()));
        let (found, found_type) = (node.shown(), node.0.type_str());
        seed.deserialize(node).map(Some).map_err(|error| error.located(offset, found, found_type))
    }
}
