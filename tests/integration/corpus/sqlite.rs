//! `plugins/sqlite` against Python's `sqlite3`: each table page by page, each row by its key, filters, orders and searches.

use belljar_tests::{Client, Stdio};
use serde_json::{Map, Value, json};

use super::Case;

const BASE: &str = "belljar://sqlite/";

fn read(client: &mut Client<Stdio>, reference: &str) -> Result<Value, String> {
    let result =
        client.read(&format!("{BASE}{reference}")).map_err(|error| format!("{}: {:?}", error.message, error.data))?;
    let text = result["contents"][0]["text"].as_str().ok_or("the contents are bytes")?;
    serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))
}

/// A row and its key.
type Row = (Option<String>, Value);

/// The rows of all pages, and the notices.
fn pages(client: &mut Client<Stdio>, reference: &str) -> Result<(Vec<Row>, Vec<String>), String> {
    let (mut rows, mut notices) = (Vec::new(), Vec::new());
    let mut next = Some(reference.to_owned());
    while let Some(reference) = next {
        let page = read(client, &reference)?;
        for row in page["rows"].as_array().ok_or("no rows")? {
            let key = row["key"].as_str().filter(|_| row["row"].is_object()).map(str::to_owned);
            let row = if key.is_some() { row["row"].clone() } else { row.clone() };
            rows.push((key, row));
        }
        notices.extend(page["notice"].as_str().map(str::to_owned));
        next = page["next"].as_str().map(str::to_owned);
        if rows.len() > 5_000 {
            return Err("the pages do not end".to_owned());
        }
    }
    Ok((rows, notices))
}

/// The row with this key, as the page shows it.
fn by_key(client: &mut Client<Stdio>, table: &str, key: &str) -> Result<Value, String> {
    let encoded = |byte: u8| match byte {
        // Kept as they are, because a reference has at most 2 KiB.
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'\'' | b',' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let key: String = key.bytes().map(encoded).collect();
    // A segment of dots is refused in any spelling, and the provider does not give one.
    Ok(read(client, &format!("{table}/rows/{key}"))?["row"].take())
}

fn equal(found: &Value, expected: &Value, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found}, expected {expected}")) }
}

fn judge(case: &Case, client: &mut Client<Stdio>) -> Result<(), String> {
    let (reference, expected) = (case.reference.as_str(), &case.expected);
    if let Some(words) = expected["error"].as_str() {
        return match read(client, reference) {
            Err(error) if error.contains(words) => Ok(()),
            other => Err(format!("{other:?}, expected an error with \"{words}\"")),
        };
    }
    if let Some(text) = expected["text"].as_str() {
        let result = client.read(&format!("{BASE}{reference}")).map_err(|error| error.message)?;
        return equal(&result["contents"][0]["text"], &json!(text), "the text");
    }
    if let Some(most) = expected["at_least"].as_u64() {
        let (rows, notices) = pages(client, reference)?;
        let words = expected["notice"].as_str().unwrap_or_default();
        let is_said = notices.iter().any(|notice| notice.contains(words));
        return if rows.len() as u64 >= most && is_said {
            Ok(())
        } else {
            Err(format!("{} rows, {notices:?}", rows.len()))
        };
    }
    if expected["names"].is_array() {
        let overview = read(client, reference)?;
        let tables = overview["tables"].as_array().ok_or("no tables")?;
        return equal(&tables.iter().map(|table| table["name"].clone()).collect(), &expected["names"], "the names");
    }
    if let Some(columns) = expected["columns"].as_array() {
        let schema = read(client, reference)?;
        let names =
            |key: &str| schema[key].as_array().map(|all| all.iter().map(|one| one["name"].clone()).collect::<Value>());
        equal(&names("indexes").unwrap_or_default(), &expected["indexes"], "the indexes")?;
        let foreign = schema["foreign_keys"].as_array().ok_or("no foreign keys")?;
        let foreign = foreign.iter().map(|key| json!([key["column"], key["table"], key["references"]])).collect();
        equal(&foreign, &expected["foreign"], "the foreign keys")?;
        let described = schema["columns"].as_array().ok_or("no columns")?;
        let described: Value = described
            .iter()
            .map(|column| {
                let flag = |name: &str| i64::from(column[name] == true);
                json!([column["name"], column["type"], flag("not_null"), column["default"], flag("primary_key")])
            })
            .collect();
        let columns: Value = columns
            .iter()
            .map(|column| json!([column[0], column[1], column[2], column[3], i64::from(column[4] != 0)]))
            .collect();
        return equal(&described, &columns, "the columns");
    }
    if let Some(size) = expected["large"][0].as_u64() {
        let value = read(client, reference)?["rows"][0]["row"]["v"].take();
        equal(&value["size"], &json!(size), "the size")?;
        return read(client, value["read"].as_str().unwrap_or_default()).map(drop).or_else(|error| {
            // The value is text and not JSON.
            if error.contains("line 0") { Ok(()) } else { Err(error) }
        });
    }
    let rows = expected["rows"].as_array().ok_or("an unknown case")?;
    let (found, _) = pages(client, reference)?;
    let shown: Vec<&Value> = found.iter().map(|(_, row)| row).collect();
    if shown.len() != rows.len() {
        return Err(format!("{} rows, expected {}: {shown:?}", shown.len(), rows.len()));
    }
    for (row, expected) in shown.iter().zip(rows) {
        let fields = expected.as_array().into_iter().flatten();
        let fields: Map<String, Value> =
            fields.map(|field| (field[0].as_str().unwrap_or_default().to_owned(), field[1].clone())).collect();
        equal(row, &Value::Object(fields), "a row")?;
    }
    let table = reference.split('?').next().unwrap_or_default();
    let keys = usize::try_from(expected["keys"].as_u64().unwrap_or_default()).unwrap_or_default();
    for (key, row) in found.iter().take(keys) {
        if let Some(key) = key {
            equal(&by_key(client, table, key).map_err(|error| format!("the key {key}: {error}"))?, row, key)?;
        }
    }
    Ok(())
}

#[test]
fn databases_are_read_as_python_reads_them() {
    super::compare_reads("sqlite", "", judge);
}
