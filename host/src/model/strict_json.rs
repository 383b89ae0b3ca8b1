//! JSON without ambiguity: an object with two members of the same name is refused, at every depth.
//!
//! Parsers differ on which of the two they take. A token that its issuer and belljar read differently is an attack
//! (RFC 7515, 4; RFC 7519, 4).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses a whole text.
///
/// # Errors
/// If the text is not JSON, or an object in it has two members of the same name.
pub fn parse(text: &[u8]) -> Result<Value, NotStrictJson> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = StrictValue.deserialize(&mut deserializer).map_err(|_| NotStrictJson)?;
    deserializer.end().map_err(|_| NotStrictJson)?;
    Ok(value)
}

/// Parses a whole text that must be an object.
///
/// # Errors
/// As for [`parse`], and for another type of value.
pub fn parse_object(text: &[u8]) -> Result<Map<String, Value>, NotStrictJson> {
    match parse(text)? {
        Value::Object(object) => Ok(object),
        _ => Err(NotStrictJson),
    }
}

/// The text is not JSON, or it is ambiguous. Contains nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not JSON, or has two members of the same name")]
pub struct NotStrictJson;

/// Deserializes a [`Value`].
struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = entries.next_element_seed(StrictValue)? {
            all.push(value);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(StrictValue)?;
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("two members of the same name"));
            }
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_and_malformed_texts_are_refused() {
        for wrong in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"b":{"a":1,"a":2}}"#,
            r#"[{"a":1,"a":2}]"#,
            r#"{"a":1} {"#,
            r#"{"a":1,}"#,
            r#"{"a":NaN}"#,
            "",
            "{'a':1}",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(parse(b"{\"a\":\"\xff\"}").is_err());
        assert!(parse(&[b'['; 100_000]).is_err(), "the depth is bounded");
        assert!(parse_object(b"[]").is_err());
    }

    #[test]
    fn other_texts_are_parsed_as_usual() {
        let text = r#"{"a":[1,-2,3.5,"x",null,true,{"a":{}}],"b":18446744073709551615}"#;
        assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }
}
