//! Members of a JSON value, without parsing the others.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::NAMED;

/// The kind of a value.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    /// An object, with its first keys.
    Object {
        keys: Vec<String>,
        count: usize,
    },
    Array {
        count: usize,
    },
    Other,
}

/// The kind of a value.
pub(super) fn kind(value: &RawValue) -> Kind {
    serde_json::Deserializer::from_str(value.get()).deserialize_any(KindVisitor).unwrap_or(Kind::Other)
}

/// The member of an object with this key, or the item of an array with this index. Of several, the last.
pub(super) fn member<'j>(value: &'j RawValue, key: &str) -> Option<&'j RawValue> {
    match value.get().as_bytes().first() {
        Some(b'{' | b'[') => {
            serde_json::Deserializer::from_str(value.get()).deserialize_any(MemberVisitor { key }).ok().flatten()
        }
        _ => None,
    }
}

struct MemberVisitor<'k> {
    key: &'k str,
}

impl<'j> Visitor<'j> for MemberVisitor<'_> {
    type Value = Option<&'j RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                found = Some(map.next_value::<&RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        // An index has no sign and no leading zeros (RFC 6901).
        let is_index =
            self.key.bytes().all(|byte| byte.is_ascii_digit()) && (self.key == "0" || !self.key.starts_with('0'));
        let index: Option<usize> = self.key.parse().ok().filter(|_| is_index);
        let (mut at, mut found) = (0, None);
        loop {
            if Some(at) == index {
                match items.next_element::<&RawValue>()? {
                    Some(item) => found = Some(item),
                    None => return Ok(found),
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }
}

struct KindVisitor;

impl<'j> Visitor<'j> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Kind, A::Error> {
        let (mut keys, mut count) = (Vec::new(), 0);
        while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
            count += 1;
            if keys.len() < NAMED {
                keys.push(key);
            }
        }
        Ok(Kind::Object { keys, count })
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut count = 0;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Kind::Array { count })
    }
}
