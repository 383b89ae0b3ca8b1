//! JSON: the selected value, pretty-printed. Numbers keep their digits.

use belljar_guest::{Body, Error, Result};
use serde_json::Value;

/// The type of JSON.
pub(crate) const MEDIA: &str = "application/json";

/// The most keys that an error names.
const NAMED: usize = 12;

/// The selected value of a JSON text, and its media type: a string is text, anything else JSON.
pub(crate) fn read(text: &str, select: Option<&str>) -> Result<(Body, &'static str)> {
    let whole: Value = serde_json::from_str(text).map_err(|why| {
        Error::failed(format_args!("the answer is not JSON ({why}); set kind = \"raw\" to read it unchanged"))
    })?;
    let value = match select {
        Some(pointer) => whole.pointer(pointer).ok_or_else(|| missing(&whole, pointer))?,
        None => &whole,
    };
    match (value, select) {
        (Value::String(text), Some(_)) => Ok((Body::Text(text.clone()), "text/plain")),
        (value, _) => {
            let text = serde_json::to_string_pretty(value).map_err(Error::failed)?;
            Ok((Body::Text(text + "\n"), MEDIA))
        }
    }
}

/// The error for a pointer that selects no value. The error names the last part of the pointer that exists.
fn missing(whole: &Value, pointer: &str) -> Error {
    let (mut here, mut at) = (whole, 0);
    for (end, _) in pointer.match_indices('/').skip(1).chain([(pointer.len(), "")]) {
        match whole.pointer(pointer.get(..end).unwrap_or_default()) {
            Some(value) => (here, at) = (value, end),
            None => break,
        }
    }
    let found = match here {
        Value::Object(map) => {
            let names: Vec<String> = map.keys().take(NAMED).map(|key| format!("\"{key}\"")).collect();
            let more = if map.len() > NAMED { ", ..." } else { "" };
            format!("an object with {}{more}", if names.is_empty() { "nothing".to_owned() } else { names.join(", ") })
        }
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::String(_) => "a string".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Null => "null".to_owned(),
    };
    let before = pointer.get(..at).unwrap_or_default();
    Error::failed(format_args!("the answer has nothing at \"{pointer}\" (select): at \"{before}\" it has {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#"{"z": {"list": [1.10, 12345678901234567890123, {"name": "Ann \u00e9"}], "a/b": null}, "a": true}"#;

    fn text(select: Option<&str>) -> (String, &'static str) {
        match read(TEXT, select).unwrap() {
            (Body::Text(text), media) => (text, media),
            (Body::Blob(_), _) => panic!("a blob"),
        }
    }

    #[test]
    fn key_order_and_digits_are_kept() {
        let (text, media) = text(None);
        assert_eq!(media, MEDIA);
        assert_eq!(
            text,
            "{\n  \"z\": {\n    \"list\": [\n      1.10,\n      12345678901234567890123,\n      {\n        \"name\": \
             \"Ann é\"\n      }\n    ],\n    \"a/b\": null\n  },\n  \"a\": true\n}\n"
        );
    }

    #[test]
    fn a_pointer_selects_a_value() {
        assert_eq!(text(Some("/z/list/1")), ("12345678901234567890123\n".to_owned(), MEDIA));
        assert_eq!(text(Some("/z/a~1b")), ("null\n".to_owned(), MEDIA));
        assert_eq!(text(Some("/z/list/2/name")), ("Ann é".to_owned(), "text/plain"));
        assert_eq!(text(Some("")).1, MEDIA);
    }

    #[test]
    fn a_missing_value_gives_an_error_with_the_existing_keys() {
        let why = |pointer| read(TEXT, Some(pointer)).unwrap_err().to_string();
        assert!(why("/y/x").ends_with("at \"\" it has an object with \"z\", \"a\""), "{}", why("/y/x"));
        assert!(why("/z/list/3").ends_with("at \"/z/list\" it has an array of 3 items"), "{}", why("/z/list/3"));
        assert!(why("/a/b").ends_with("at \"/a\" it has a boolean"), "{}", why("/a/b"));
    }

    #[test]
    fn malformed_json_fails() {
        let deep = "[".repeat(100_000);
        for text in ["", "<html>", "{\"a\":", "{} {}", deep.as_str()] {
            assert!(matches!(read(text, None), Err(Error::Failed(_))));
        }
    }
}
