//! What providers define: schemas of tools, forms of questions, frontmatter of skills.

use belljar::interfaces::asking::check_form;
use belljar::interfaces::json_schema::Schema;
use belljar::interfaces::skills::frontmatter::Frontmatter;
use serde_json::{Value, json};

use crate::input;

/// Documents that an accepted schema judges, within its bound of work.
fn documents() -> [Value; 4] {
    [
        json!({}),
        json!({ "a": [1, "b", null], "b": { "a": { "a": true } } }),
        json!({ "a": "x".repeat(2000) }),
        json!([1]),
    ]
}

/// An accepted schema is an object that refers to nothing outside of it, and a check against it ends.
pub(super) fn schema(bytes: &[u8]) {
    let text = input::text(bytes);
    let Ok(schema) = Schema::parse(&text) else { return };
    let given: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(given["type"], "object", "{text:?}");
    let served = Value::Object(schema.object().clone());
    assert_eq!(without_words(&served), without_words(&given), "a schema reaches clients unchanged, but for its words");
    for document in documents() {
        if let Err(why) = schema.check(&document) {
            let why = why.to_string();
            assert!(!why.is_empty() && why.len() < 2000 && !why.contains('\n'), "{why:?}");
        }
    }
    assert!(!refers_outside(&given), "{text:?}");
}

/// The schema without the words for people, from which hidden characters are removed.
fn without_words(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_words).collect(),
        Value::Object(fields) => {
            let is_words =
                |key: &str, field: &Value| ["title", "description", "$comment"].contains(&key) && field.is_string();
            let kept = fields.iter().filter(|(key, field)| !is_words(key, field));
            kept.map(|(key, field)| (key.clone(), without_words(field))).collect()
        }
        _ => value.clone(),
    }
}

fn refers_outside(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(refers_outside),
        Value::Object(fields) => fields.iter().any(|(key, field)| match (key.as_str(), field) {
            ("$ref", Value::String(to)) => !to.starts_with('#'),
            _ => refers_outside(field),
        }),
        _ => false,
    }
}

/// An accepted form has only flat fields.
pub(super) fn form(bytes: &[u8]) {
    let text = input::text(bytes);
    let Ok(form) = check_form(&text) else { return };
    let fields = form["properties"].as_object().unwrap();
    assert!((1..=16).contains(&fields.len()), "{text:?}");
    for (name, field) in fields {
        assert!(!name.is_empty() && name.is_ascii(), "{name:?}");
        assert!(field.get("properties").is_none() && field.get("$ref").is_none(), "{field}");
    }
}

/// Accepted frontmatter has a lawful name, and its JSON, read as YAML, means the same.
pub(super) fn frontmatter(bytes: &[u8]) {
    let text = input::text(bytes);
    let Ok(front) = Frontmatter::parse(&text) else { return };
    assert!(front.name.len() <= 64 && !front.name.is_empty(), "{:?}", front.name);
    assert!(front.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{:?}", front.name);
    let mut fields = front.others.clone();
    fields.insert("name".to_owned(), front.name.clone().into());
    fields.insert("description".to_owned(), front.description.clone().into());
    // JSON is YAML, except where the rules refuse a style.
    let flow = Value::Object(fields).to_string();
    if let Ok(again) = Frontmatter::parse(&format!("---\n{flow}\n---\n")) {
        assert_eq!((again.name, again.description, again.others), (front.name, front.description, front.others));
    }
}
