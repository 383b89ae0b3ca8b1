//! The provider `tables` over the corpus, compared with pyarrow, openpyxl, xlrd, pyxlsb, pandas and Python's csv.

use serde_json::Value;
use serde_json::value::RawValue;

/// An answer as JSON, whose cells keep the digits that the provider writes.
#[derive(serde::Deserialize)]
struct Answer<'a> {
    columns: Vec<String>,
    #[serde(borrow)]
    rows: Vec<Vec<&'a RawValue>>,
}

#[test]
fn tables_agree_with_native_libraries() {
    super::compare("tables", "", |case, answer| {
        let expected = &case.expected;
        if let Some(words) = expected["error"].as_str() {
            return match answer {
                Err(message) if message.contains(words) => Ok(()),
                Err(message) => Err(format!("an error with \"{words}\" was expected: {message}")),
                Ok(text) => Err(format!("an error with \"{words}\" was expected: {}", shortened(text))),
            };
        }
        let text = answer.map_err(|message| format!("an error: {message}"))?;
        if let Some(words) = expected["says"].as_array() {
            let missing: Vec<&str> =
                words.iter().filter_map(Value::as_str).filter(|word| !text.contains(word)).collect();
            return if missing.is_empty() { Ok(()) } else { Err(format!("does not say {missing:?}: {text}")) };
        }
        let answer: Answer<'_> = serde_json::from_str(text).map_err(|error| format!("{error}: {}", shortened(text)))?;
        if let Some(header) = expected["header"].as_array() {
            let names: Vec<&str> = header.iter().filter_map(Value::as_str).collect();
            if names != answer.columns {
                return Err(format!("the columns are {names:?}, and the answer has {:?}", answer.columns));
            }
        }
        let rows = expected["rows"].as_array().ok_or("the case expects nothing")?;
        if rows.len() != answer.rows.len() {
            return Err(format!("{} rows, and the answer has {}", rows.len(), answer.rows.len()));
        }
        for (number, (wanted, found)) in rows.iter().zip(&answer.rows).enumerate() {
            let wanted = wanted.as_array().ok_or("a row is not an array")?;
            for column in 0..wanted.len().max(found.len()) {
                let wanted = wanted.get(column).unwrap_or(&Value::Null);
                let found = found.get(column).map_or("null", |raw| raw.get());
                if !is_same(wanted, found) {
                    return Err(format!(
                        "row {}, column {}: {wanted}, and the answer has {found}",
                        number + 1,
                        column + 1
                    ));
                }
            }
        }
        Ok(())
    });
}

/// True if a cell in JSON is the expected value: a text, `null`, or nested JSON.
fn is_same(wanted: &Value, found: &str) -> bool {
    let parsed: Value = serde_json::from_str(found).unwrap_or_default();
    let text = match (&parsed, wanted) {
        (Value::Null, wanted) => return wanted.is_null(),
        (Value::Array(_) | Value::Object(_), wanted) => {
            return numbers_as_doubles(&parsed) == numbers_as_doubles(wanted);
        }
        (Value::String(text), _) => text.as_str(),
        _ => found,
    };
    let Some(wanted) = wanted.as_str() else { return false };
    let is_integer = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    wanted == text
        || match (wanted.parse::<f64>(), text.parse::<f64>()) {
            // Two integers are the same only with the same digits.
            (Ok(one), Ok(other)) => one == other && !(is_integer(wanted) && is_integer(text)),
            _ => false,
        }
}

fn numbers_as_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Array(items) => items.iter().map(numbers_as_doubles).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), numbers_as_doubles(value))).collect(),
        other => other.clone(),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(500).collect()
}
