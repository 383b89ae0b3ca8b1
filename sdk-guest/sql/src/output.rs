//! Contents of resources as JSON text, with the fields in a chosen order.

use belljar_guest::Contents;
use serde_json::Value as Json;

/// The type of all contents but views.
pub const JSON: &str = "application/json";

/// `value` as JSON on one line.
pub fn json_of(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Contents with one field or element of `value` on a line.
pub fn lines(asked: &str, value: &Json) -> Contents {
    Contents::text(asked, serde_json::to_string_pretty(value).unwrap_or_default()).mime_type(JSON)
}

/// A JSON object of the fields `head` in this order, followed by `rest`, which is JSON text.
pub fn object(head: &[(&str, Json)], rest: &str) -> String {
    let head: String = head.iter().map(|(name, value)| format!("\"{name}\": {value},\n")).collect();
    format!("{{\n{head}{rest}\n}}\n")
}

/// A JSON object of the fields `head` and the array `rows`, with one row a line.
pub fn table_of(head: &[(&str, Json)], rows: impl Iterator<Item = String>) -> String {
    let rows: Vec<String> = rows.collect();
    object(head, &format!("\"rows\": [\n{}\n]", rows.join(",\n")))
}
