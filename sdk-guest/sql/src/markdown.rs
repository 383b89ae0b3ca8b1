//! The result of a query: as a Markdown table, and as JSON.

use serde::Serialize;
use serde_json::Value as Json;

/// The schema of [`Found`].
pub const OUTPUT: &str = r#"{"type":"object","properties":{"columns":{"type":"array","items":{"type":"string"}},"rows":{"type":"array","items":{"type":"array"}},"truncated":{"type":"boolean"}},"required":["columns","rows","truncated"]}"#;

/// The result of a query.
#[derive(Debug, Serialize)]
pub struct Found {
    /// The names of the columns, each once.
    pub columns: Vec<String>,
    /// The values of each row.
    pub rows: Vec<Vec<Json>>,
    /// True if there are more rows.
    pub truncated: bool,
}

/// The result as a Markdown table.
pub fn table(found: &Found) -> String {
    let rows = found.rows.iter().map(|row| row.iter().map(cell).collect());
    of_cells(&found.columns, rows, found.truncated)
}

/// A Markdown table of these columns and cells. `truncated`: there are more rows.
pub fn of_cells(columns: &[String], rows: impl Iterator<Item = Vec<String>>, truncated: bool) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(columns.iter().map(|name| escaped(name)).collect());
    text += &line(columns.iter().map(|_| "---".to_owned()).collect());
    let mut count = 0;
    for row in rows {
        text += &line(row);
        count += 1;
    }
    match (count, truncated) {
        (0, _) => text + "\nno rows\n",
        (1, false) => text + "\n1 row\n",
        (count, false) => text + &format!("\n{count} rows\n"),
        (count, true) => text + &format!("\nthe first {count} rows; there are more\n"),
    }
}

/// A value as a cell. NULL is not a text, so a text of this spelling has quotes.
pub fn cell(value: &Json) -> String {
    match value {
        Json::Null => "NULL".to_owned(),
        Json::String(text) if text == "NULL" => "'NULL'".to_owned(),
        Json::String(text) => escaped(text),
        other => match other.get("integer").and_then(Json::as_str) {
            Some(digits) => digits.to_owned(),
            None => escaped(&other.to_string()),
        },
    }
}

/// Text that cannot end its cell.
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_cannot_end_and_null_is_not_a_text() {
        assert_eq!(cell(&json!("a|b\\\nc\r\nd")), "a\\|b\\\\<br>c<br>d");
        assert_eq!([cell(&Json::Null), cell(&json!("NULL"))], ["NULL", "'NULL'"]);
        assert_eq!(cell(&json!({ "integer": "9223372036854775807" })), "9223372036854775807");
        assert_eq!(cell(&json!({ "blob": "AP8=", "size": 2 })), r#"{"blob":"AP8=","size":2}"#);
        assert_eq!([cell(&json!(1)), cell(&json!(1.0))], ["1", "1.0"]);
    }
}
