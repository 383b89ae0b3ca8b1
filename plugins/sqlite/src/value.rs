//! Values as JSON with their types. A value without a JSON equivalent becomes an object that names its type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value as Json, json};

/// The largest integer that every JSON parser reads exactly (RFC 8259, section 6).
const MAX_EXACT: u64 = (1 << 53) - 1;

/// A row: names and values in column order. The map of `serde_json` is not used, because it sorts by name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<(String, Json)>);

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The value of a parameter of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parameter {
    /// Any value; text is UTF-8.
    Value(Value),
    /// Text that is not UTF-8.
    Text(Vec<u8>),
}

impl Parameter {
    /// Text of these bytes, which may be any.
    pub(crate) fn text(bytes: Vec<u8>) -> Parameter {
        match String::from_utf8(bytes) {
            Ok(text) => Value::Text(text).into(),
            Err(error) => Parameter::Text(error.into_bytes()),
        }
    }
}

impl From<Value> for Parameter {
    fn from(value: Value) -> Self {
        Parameter::Value(value)
    }
}

impl From<ValueRef<'_>> for Parameter {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Value::Null.into(),
            ValueRef::Integer(number) => Value::Integer(number).into(),
            ValueRef::Real(number) => Value::Real(number).into(),
            ValueRef::Text(bytes) => Parameter::text(bytes.to_vec()),
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()).into(),
        }
    }
}

impl ToSql for Parameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Parameter::Value(value) => value.into(),
            Parameter::Text(bytes) => ValueRef::Text(bytes),
        }))
    }
}

/// How many bytes of each value a row includes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimits {
    pub(crate) text: usize,
    pub(crate) blob: usize,
}

/// In a page of rows.
pub(crate) const IN_PAGE: SizeLimits = SizeLimits { text: 4 * 1024, blob: 256 };

/// In a row that is read alone.
pub(crate) const IN_ROW: SizeLimits = SizeLimits { text: 64 * 1024, blob: 4 * 1024 };

/// A value as JSON. Text over the limit is cut, a blob over the limit is left out; both then carry their `size` in bytes.
pub(crate) fn json(value: ValueRef<'_>, limits: SizeLimits) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) if number.unsigned_abs() <= MAX_EXACT => json!(number),
        ValueRef::Integer(number) => json!({ "integer": number.to_string() }),
        ValueRef::Real(number) if number.is_finite() => json!(number),
        ValueRef::Real(number) => json!({ "real": if number > 0.0 { "Infinity" } else { "-Infinity" } }),
        ValueRef::Text(bytes) => text(bytes, limits.text),
        ValueRef::Blob(bytes) if bytes.len() <= limits.blob => {
            json!({ "blob": STANDARD.encode(bytes), "size": bytes.len() })
        }
        ValueRef::Blob(bytes) => json!({ "blob": null, "size": bytes.len() }),
    }
}

fn text(bytes: &[u8], max: usize) -> Json {
    let given = bytes.get(..max).unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(whole) if given.len() == bytes.len() => json!(whole),
        Ok(whole) => {
            let end = (0..=max).rev().find(|end| whole.is_char_boundary(*end)).unwrap_or(0);
            json!({ "text": whole.get(..end), "size": bytes.len(), "cut": true })
        }
        // SQLite does not check that text is UTF-8.
        Err(_) => {
            let cut = given.len() < bytes.len();
            json!({ "text": String::from_utf8_lossy(given), "bytes": STANDARD.encode(given), "size": bytes.len(), "cut": cut })
        }
    }
}

/// A placeholder for a large value: its type, its size in bytes and the reference that reads it.
pub(crate) fn placeholder(kind: &str, size: i64, reference: Option<&str>) -> Json {
    json!({ kind: null, "size": size, "read": reference })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_kept() {
        let of = |value| json(value, IN_PAGE).to_string();
        assert_eq!(of(ValueRef::Null), "null");
        assert_eq!(of(ValueRef::Integer(-9_007_199_254_740_991)), "-9007199254740991");
        assert_eq!(of(ValueRef::Integer(i64::MIN)), r#"{"integer":"-9223372036854775808"}"#);
        assert_eq!(of(ValueRef::Integer(9_007_199_254_740_992)), r#"{"integer":"9007199254740992"}"#);
        assert_eq!(of(ValueRef::Real(1.0)), "1.0");
        assert_eq!(of(ValueRef::Real(f64::NEG_INFINITY)), r#"{"real":"-Infinity"}"#);
        assert_eq!(of(ValueRef::Text("a\"b\0ü".as_bytes())), r#""a\"b\u0000ü""#);
        assert_eq!(of(ValueRef::Blob(&[0, 255])), r#"{"blob":"AP8=","size":2}"#);
    }

    #[test]
    fn values_over_the_limit_are_cut_and_carry_their_size() {
        let limits = SizeLimits { text: 3, blob: 1 };
        assert_eq!(json(ValueRef::Text("aüü".as_bytes()), limits), json!({ "text": "aü", "size": 5, "cut": true }));
        assert_eq!(json(ValueRef::Text("üü".as_bytes()), limits), json!({ "text": "ü", "size": 4, "cut": true }));
        assert_eq!(json(ValueRef::Blob(b"ab"), limits), json!({ "blob": null, "size": 2 }));
        let odd = json(ValueRef::Text(b"a\xFF"), limits);
        assert_eq!(odd, json!({ "text": "a\u{fffd}", "bytes": "Yf8=", "size": 2, "cut": false }));
    }
}
