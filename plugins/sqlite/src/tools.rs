//! The tool `query`: one SELECT with parameters. `statement` makes sure that it only reads.

use belljar_guest::{Error, Result, Tool, ToolResult, ToolSet, Tools};
use rusqlite::Statement;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::address::MAX_ROWS;
use crate::output::json_of;
use crate::snapshot::{self, Snapshot, error};
use crate::statement::{self, Wrong};
use crate::{Sqlite, one_of};

/// Rows of a result when the call has no `limit`.
const ROWS: usize = 100;

/// The approximate size of a result as JSON, in bytes. A model has to read it, so it is smaller than a page.
const MAX_BYTES: usize = 128 * 1024;

/// The schema of [`Query`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"sql":{"type":"string","description":"One SELECT"},"parameters":{"type":["array","object"],"description":"Values of ? as array, of :name as object"},"database":{"type":"string","description":"Needed if there are several"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most rows; 100 by default"}},"required":["sql"],"additionalProperties":false}"#;

/// The schema of [`Found`].
const OUTPUT: &str = r#"{"type":"object","properties":{"columns":{"type":"array","items":{"type":"string"}},"rows":{"type":"array","items":{"type":"array"}},"truncated":{"type":"boolean"}},"required":["columns","rows","truncated"]}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    sql: String,
    parameters: Option<Json>,
    database: Option<String>,
    limit: Option<usize>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Found {
    columns: Vec<String>,
    rows: Vec<Vec<Json>>,
    truncated: bool,
}

impl Tools for Sqlite {
    fn tools() -> ToolSet<Self> {
        let query = Tool::reading("query", "Runs a read-only SQL query (SQLite). The tables are in sqlite_schema.");
        ToolSet::new().tool_with_schemas(query.input(INPUT).output(OUTPUT), Sqlite::query)
    }
}

impl Sqlite {
    fn query(&self, query: Query) -> Result<ToolResult> {
        let limit = query.limit.unwrap_or(ROWS);
        if !(1..=MAX_ROWS).contains(&limit) {
            return Err(Error::invalid(format_args!("\"limit\" is {limit}: expected a number from 1 to {MAX_ROWS}")));
        }
        let database = self.chosen(query.database.as_deref())?;
        let found = snapshot::with(&database, |snapshot| {
            let mut statement = statement::prepare(snapshot, &query.sql).map_err(|wrong| explain(snapshot, wrong))?;
            bind(&mut statement, query.parameters.as_ref())?;
            statement::rows(&mut statement, 0, limit, MAX_BYTES)
        })?;
        let rows = found.rows.into_iter().map(|row| row.0.into_iter().map(|(_, value)| value).collect()).collect();
        let found = Found { columns: found.columns, rows, truncated: found.cut };
        Ok(ToolResult::text(markdown(&found)).structured(json_of(&found)))
    }
}

/// The error of a statement, with what was expected. An unknown name is answered with the names of the tables.
fn explain(snapshot: &Snapshot, wrong: Wrong) -> Error {
    match wrong {
        Wrong::Statement(why) if why.contains("no such table") => {
            let known = one_of(snapshot.catalog.listed().iter().map(|entry| entry.name.as_str()));
            Error::invalid(format_args!("\"sql\" is not valid: {why}; expected {known}"))
        }
        Wrong::Statement(why) => Error::invalid(format_args!("\"sql\" is not valid: {why}; expected one SELECT")),
        Wrong::Writes => Error::invalid("\"sql\" does more than read: expected one SELECT"),
        Wrong::Other(error) => error,
    }
}

/// Binds the parameters: an array by position, an object by name.
fn bind(statement: &mut Statement<'_>, given: Option<&Json>) -> Result<()> {
    let count = statement.parameter_count();
    let name = |statement: &Statement<'_>, at: usize| {
        statement.parameter_name(at).map(|name| name.trim_start_matches([':', '@', '$']).to_owned())
    };
    match given {
        None | Some(Json::Null) if count == 0 => Ok(()),
        None | Some(Json::Null) => {
            let names = (1..=count).map(|at| name(statement, at).unwrap_or_else(|| format!("?{at}")));
            let needed = names.collect::<Vec<_>>().join(", ");
            Err(Error::invalid(format_args!("\"parameters\" is missing: expected values of {needed}")))
        }
        Some(Json::Array(values)) if values.len() == count => {
            for (at, value) in (1..).zip(values) {
                statement.raw_bind_parameter(at, value_of(&at.to_string(), value)?).map_err(error)?;
            }
            Ok(())
        }
        Some(Json::Array(values)) => {
            let given = values.len();
            Err(Error::invalid(format_args!(
                "\"parameters\" has {given} values: expected {count}, one for each parameter"
            )))
        }
        Some(Json::Object(values)) => {
            let mut names = Vec::new();
            for at in 1..=count {
                let name = name(statement, at).filter(|name| !name.starts_with('?')).ok_or_else(|| {
                    Error::invalid(format_args!(
                        "the parameter {at} has no name: expected \"parameters\" to be an array"
                    ))
                })?;
                let value = values.get(&name).ok_or_else(|| {
                    Error::invalid(format_args!("\"parameters\" has no \"{name}\": expected its value"))
                })?;
                statement.raw_bind_parameter(at, value_of(&name, value)?).map_err(error)?;
                names.push(name);
            }
            match values.keys().find(|name| !names.contains(name)) {
                Some(unknown) => {
                    let known = one_of(names.iter().map(String::as_str));
                    Err(Error::invalid(format_args!("\"sql\" has no parameter \"{unknown}\": expected {known}")))
                }
                None => Ok(()),
            }
        }
        Some(_) => Err(Error::invalid("\"parameters\" is neither an array nor an object: expected one of them")),
    }
}

fn value_of(name: &str, value: &Json) -> Result<Value> {
    Ok(match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Integer(i64::from(*truth)),
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(number)) => Value::Real(number),
            (None, None) => return Err(Error::invalid(format_args!("the parameter \"{name}\" is not a number"))),
        },
        Json::Array(_) | Json::Object(_) => {
            return Err(Error::invalid(format_args!(
                "the parameter \"{name}\" is an array or an object: expected a text, a number, true, false or null"
            )));
        }
    })
}

/// The result as a Markdown table.
fn markdown(found: &Found) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(found.columns.iter().map(|name| escaped(name)).collect());
    text += &line(found.columns.iter().map(|_| "---".to_owned()).collect());
    for row in &found.rows {
        text += &line(row.iter().map(cell).collect());
    }
    match (found.rows.len(), found.truncated) {
        (0, _) => text + "\nno rows\n",
        (1, false) => text + "\n1 row\n",
        (count, false) => text + &format!("\n{count} rows\n"),
        (count, true) => text + &format!("\nthe first {count} rows; there are more\n"),
    }
}

/// A value as a cell. NULL is not a text, so a text of this spelling has quotes.
fn cell(value: &Json) -> String {
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
fn escaped(text: &str) -> String {
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
