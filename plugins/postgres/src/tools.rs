//! The tool `query`: one SELECT with parameters. The grant and the server make sure that it only reads.

use belljar_guest::{Error, Result, Tool, ToolResult, ToolSet, Tools};
use belljar_sql::markdown::{OUTPUT, escaped, of_cells};
use belljar_sql::one_of;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::connection::{Connection, Query};
use crate::failure::Failure;
use crate::statement::{self, Rows};
use crate::types::Kind;
use crate::value::{self, IN_PAGE};
use crate::{Postgres, catalog, literal};
use belljar_sql::page::MAX_ROWS;

/// Rows of a result when the call has no `limit`.
const ROWS: usize = 100;

/// The approximate size of a result as JSON, in bytes. A model has to read it, so it is smaller than a page.
const MAX_BYTES: usize = 128 * 1024;

/// The schema of [`Arguments`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"sql":{"type":"string","description":"One SELECT, or EXPLAIN of one"},"parameters":{"type":["array","object"],"description":"Values of $1 as array, of :name as object"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most rows; 100 by default"}},"required":["sql"],"additionalProperties":false}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    sql: String,
    parameters: Option<Json>,
    limit: Option<usize>,
}

impl Tools for Postgres {
    fn tools() -> ToolSet<Self> {
        let query = Tool::reading("query", "Runs a read-only SQL query (PostgreSQL).");
        ToolSet::new().tool_with_schemas(query.input(INPUT).output(OUTPUT), Postgres::query)
    }
}

impl Postgres {
    fn query(&self, arguments: Arguments) -> Result<ToolResult> {
        let limit = arguments.limit.unwrap_or(ROWS);
        if !(1..=MAX_ROWS).contains(&limit) {
            return Err(Error::invalid(format_args!("\"limit\" is {limit}: expected a number from 1 to {MAX_ROWS}")));
        }
        let query = bind(&arguments.sql, arguments.parameters.as_ref())?;
        let mut connection = Connection::open()?;
        let found = statement::run(&mut connection, query, limit, MAX_BYTES).map_err(explain)?;
        let cells = found.texts().map(|row| row.into_iter().map(|(kind, text)| cell(kind, text.as_deref())).collect());
        let markdown = of_cells(&found.columns, cells, found.cut);
        Ok(ToolResult::text(markdown).structured(structured(&found)))
    }
}

/// The error of a statement, with what was expected. An unknown table is answered with the names of the tables.
fn explain(failure: Failure) -> Error {
    let Failure::Server(error) = failure else { return failure.into() };
    let words = error.words();
    match error.code.as_str() {
        "42P01" => {
            let known =
                Connection::open().and_then(|mut connection| catalog::list(&mut connection)).unwrap_or_default();
            let names: Vec<String> = known.iter().map(|entry| entry.written()).collect();
            let known = one_of(names.iter().map(String::as_str));
            Error::invalid(format_args!("\"sql\" is not valid: {words}; expected {known}"))
        }
        "42P18" => Error::invalid(format_args!(
            "\"sql\" is not valid: {words}; write the type of the parameter, as in $1::int"
        )),
        "25006" => Error::invalid(format_args!("\"sql\" does more than read: expected one SELECT; {words}")),
        "08P01" if error.message.contains("values") || error.message.contains("parameters") => Error::invalid(
            format_args!("\"parameters\" does not fit \"sql\": {words}; expected one value for each parameter"),
        ),
        code if code.starts_with("42501") => error.explain(),
        // Syntax, names, types, values, features that are missing.
        code if ["42", "22", "21", "0A"].iter().any(|class| code.starts_with(class)) => {
            Error::invalid(format_args!("\"sql\" is not valid: {words}; expected one SELECT"))
        }
        _ => error.explain(),
    }
}

/// The statement with its parameters: an array by number, an object by name.
fn bind(sql: &str, given: Option<&Json>) -> Result<Query> {
    let numbered = statement::number(sql);
    match given {
        None | Some(Json::Null) if numbered.names.is_empty() => Ok(Query::new(sql, Vec::new())),
        None | Some(Json::Null) => {
            let needed = numbered.names.join(", ");
            Err(Error::invalid(format_args!("\"parameters\" is missing: expected values of {needed}")))
        }
        Some(Json::Array(values)) => {
            if let Some(name) = numbered.names.first() {
                return Err(Error::invalid(format_args!(
                    "the parameter \"{name}\" has a name: expected \"parameters\" to be an object, or $1 in \"sql\""
                )));
            }
            let values = (1..).zip(values).map(|(at, value): (usize, _)| text_of(&at.to_string(), value));
            Ok(Query::new(sql, values.collect::<Result<_>>()?))
        }
        Some(Json::Object(_)) if numbered.has_numbers => Err(Error::invalid(
            "the parameters have numbers: expected \"parameters\" to be an array, or :name in \"sql\"",
        )),
        Some(Json::Object(values)) => {
            let of = |name: &String| {
                let value = values.get(name).ok_or_else(|| {
                    Error::invalid(format_args!("\"parameters\" has no \"{name}\": expected its value"))
                })?;
                text_of(name, value)
            };
            let bound = numbered.names.iter().map(of).collect::<Result<_>>()?;
            match values.keys().find(|name| !numbered.names.contains(name)) {
                Some(unknown) => {
                    let known = one_of(numbered.names.iter().map(String::as_str));
                    Err(Error::invalid(format_args!("\"sql\" has no parameter \"{unknown}\": expected {known}")))
                }
                None => Ok(Query::new(numbered.sql, bound)),
            }
        }
        Some(_) => Err(Error::invalid("\"parameters\" is neither an array nor an object: expected one of them")),
    }
}

/// A value as the server reads it. An array of JSON becomes one of PostgreSQL, an object stays JSON.
fn text_of(name: &str, value: &Json) -> Result<Option<String>> {
    Ok(match value {
        Json::Null => None,
        Json::Bool(truth) => Some(truth.to_string()),
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Object(_) => Some(value.to_string()),
        Json::Array(values) if values.iter().any(Json::is_array) => {
            return Err(Error::invalid(format_args!(
                "the parameter \"{name}\" is an array of arrays: expected a text such as {{{{1,2}},{{3,4}}}}"
            )));
        }
        Json::Array(values) => {
            let elements: Vec<_> = values.iter().map(|value| text_of(name, value)).collect::<Result<_>>()?;
            Some(literal::write_array(&elements))
        }
    })
}

/// A value as a cell. NULL is not a text, so a text of this spelling has quotes.
fn cell(kind: &Kind, text: Option<&str>) -> String {
    let mut out = String::new();
    match (kind, text) {
        (_, None) => return "NULL".to_owned(),
        (Kind::Text, Some("NULL")) => return "'NULL'".to_owned(),
        (Kind::Text, Some(text)) if text.len() <= IN_PAGE.text => out.push_str(text),
        (Kind::Integer | Kind::Float | Kind::Numeric, Some(text)) => out.push_str(text),
        (Kind::Timestamp | Kind::TimestampTz, text) => {
            value::write(kind, text, IN_PAGE, &mut out);
            out = out.trim_matches('"').to_owned();
        }
        (kind, text) => value::write(kind, text, IN_PAGE, &mut out),
    }
    escaped(&out)
}

fn structured(found: &Rows) -> String {
    let columns = serde_json::to_string(&found.columns).unwrap_or_default();
    let rows: Vec<String> = found.values().map(|values| format!("[{}]", values.join(","))).collect();
    format!("{{\"columns\":{columns},\"rows\":[{}],\"truncated\":{}}}", rows.join(","), found.cut)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_bound_by_number_or_by_name() {
        let values = |sql: &str, given: Json| bind(sql, Some(&given)).map(|query| (query.sql, query.values));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(values("SELECT $1, $2", json!([1, null])).unwrap().1, [some("1"), None]);
        assert_eq!(
            values("SELECT :b, :a, :b", json!({ "a": true, "b": [1, null, "x\""] })).unwrap(),
            ("SELECT $1, $2, $1".to_owned(), vec![some("{\"1\",NULL,\"x\\\"\"}"), some("true")])
        );
        assert_eq!(values("SELECT :a", json!({ "a": { "b": 1 } })).unwrap().1, [some("{\"b\":1}")]);
        for (sql, given, why) in [
            ("SELECT :a", json!([1]), "expected \"parameters\" to be an object"),
            ("SELECT $1", json!({ "a": 1 }), "expected \"parameters\" to be an array"),
            ("SELECT :a", json!({}), "has no \"a\""),
            ("SELECT :a", json!({ "a": 1, "b": 2 }), "no parameter \"b\""),
            ("SELECT $1", json!([[[1]]]), "array of arrays"),
            ("SELECT :a", Json::Null, "expected values of a"),
            ("SELECT :a", json!(7), "neither an array nor an object"),
        ] {
            let error = bind(sql, Some(&given)).unwrap_err().to_string();
            assert!(error.contains(why), "{sql}: {error}");
        }
    }

    #[test]
    fn cells_cannot_end_and_null_is_not_a_text() {
        assert_eq!(
            [cell(&Kind::Text, None), cell(&Kind::Text, Some("NULL")), cell(&Kind::Text, Some("a|b\n"))],
            ["NULL", "'NULL'", "a\\|b<br>"]
        );
        assert_eq!(cell(&Kind::Numeric, Some("12345678901234567890.5")), "12345678901234567890.5");
        assert_eq!(cell(&Kind::TimestampTz, Some("2026-01-01 00:00:00+00")), "2026-01-01T00:00:00+00:00");
    }
}
