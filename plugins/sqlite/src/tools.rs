//! The tool `query`: one SELECT with parameters. `statement` makes sure that it only reads.

use belljar_guest::{Error, Result, Tool, ToolResult, ToolSet, Tools};
use belljar_sql::markdown::{self, Found, OUTPUT};
use belljar_sql::output::json_of;
use rusqlite::Statement;
use rusqlite::types::Value;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::snapshot::{self, Snapshot, error};
use crate::statement::{self, Wrong};
use crate::{Sqlite, one_of};
use belljar_sql::page::MAX_ROWS;

/// Rows of a result when the call has no `limit`.
const ROWS: usize = 100;

/// The approximate size of a result as JSON, in bytes. A model has to read it, so it is smaller than a page.
const MAX_BYTES: usize = 128 * 1024;

/// The schema of [`Query`]. A text, because the code that makes schemas from types has 110 KB.
const INPUT: &str = r#"{"type":"object","properties":{"sql":{"type":"string","description":"One SELECT"},"parameters":{"type":["array","object"],"description":"Values of ? as array, of :name as object"},"database":{"type":"string","description":"Needed if there are several"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Most rows; 100 by default"}},"required":["sql"],"additionalProperties":false}"#;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    sql: String,
    parameters: Option<Json>,
    database: Option<String>,
    limit: Option<usize>,
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
        Ok(ToolResult::text(markdown::table(&found)).structured(json_of(&found)))
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
