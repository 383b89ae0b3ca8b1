//! Views: SQL statements that the operator names in the setting `VIEWS`. Parses the setting, finds parameters, runs views.
//! `statement` makes sure that a view only reads.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, Statement};

use crate::rows::PAGE_BYTES;
use crate::snapshot::error;
use crate::statement::{self, Rows, Wrong};

/// A statement with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// Parses the setting. Each view begins on a new line with `name = SELECT` (or `WITH`, `VALUES`) and ends where the next
/// one begins.
pub(crate) fn parse(setting: &str) -> Result<Vec<View>> {
    let mut views: Vec<View> = Vec::new();
    for line in setting.lines() {
        match (first_line(line), views.last_mut()) {
            (Some((name, sql)), _) => {
                if views.iter().any(|view| view.name == name) {
                    return Err(Error::failed(format_args!("VIEWS names \"{name}\" twice")));
                }
                views.push(View { name: name.to_owned(), sql: sql.to_owned() });
            }
            (None, Some(view)) => {
                view.sql.push('\n');
                view.sql.push_str(line);
            }
            (None, None) if line.trim().is_empty() || line.trim_start().starts_with("--") => {}
            (None, None) => {
                return Err(Error::failed(format_args!(
                    "VIEWS has the line \"{line}\": expected a name, \"=\" and a SELECT, as in  late = SELECT * FROM orders"
                )));
            }
        }
    }
    for view in &mut views {
        view.sql.truncate(view.sql.trim_end().trim_end_matches(';').trim_end().len());
    }
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

fn first_line(line: &str) -> Option<(&str, &str)> {
    let (name, sql) = line.split_once('=')?;
    let (name, sql) = (name.trim(), sql.trim_start());
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
    let selects = ["SELECT", "WITH", "VALUES"].iter().any(|known| word.eq_ignore_ascii_case(known));
    (plain && selects).then_some((name, sql))
}

impl View {
    /// The names of the parameters, in order.
    pub(crate) fn parameters(&self, connection: &Connection) -> Result<Vec<String>> {
        let statement = self.prepare(connection)?;
        (1..=statement.parameter_count())
            .map(|index| {
                let name = statement.parameter_name(index).map(|name| name.trim_start_matches([':', '@', '$']));
                match name.filter(|name| !name.starts_with('?')) {
                    None => Err(self.wrong("has a parameter without a name; write :name for each")),
                    Some("limit") => {
                        Err(self.wrong("has a parameter \"limit\", but every view has one already; rename it"))
                    }
                    Some(name) if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                        Err(self.wrong("has a parameter whose name is not made of letters, digits and _"))
                    }
                    Some(name) => Ok(name.to_owned()),
                }
            })
            .collect()
    }

    /// Runs the view with the parameters `given`: at most `limit` rows.
    pub(crate) fn run(&self, connection: &Connection, given: &BTreeMap<String, String>, limit: usize) -> Result<Rows> {
        let names = self.parameters(connection)?;
        if let Some(unknown) = given.keys().find(|name| !names.contains(name)) {
            return Err(Error::invalid(format_args!("the view \"{}\" has no parameter \"{unknown}\"", self.name)));
        }
        let mut statement = self.prepare(connection)?;
        for (index, name) in names.iter().enumerate() {
            let text = given.get(name).ok_or_else(|| {
                Error::invalid(format_args!("the view \"{}\" needs \"{name}\": add ?{name}=...", self.name))
            })?;
            statement.raw_bind_parameter(index + 1, parameter_value(text)).map_err(error)?;
        }
        statement::rows(&mut statement, limit, PAGE_BYTES)
    }

    fn prepare<'a>(&self, connection: &'a Connection) -> Result<Statement<'a>> {
        statement::prepare(connection, &self.sql).map_err(|wrong| match wrong {
            Wrong::Statement(why) => self.wrong(&format!("is not a valid statement: {why}")),
            Wrong::Writes => {
                Error::denied(format_args!("the view \"{}\" does more than read; use one SELECT statement", self.name))
            }
            Wrong::Other(error) => error,
        })
    }

    fn wrong(&self, why: &str) -> Error {
        Error::failed(format_args!("the view \"{}\" {why}", self.name))
    }
}

/// The value of a parameter: a number if it is spelled as one. SQLite does not convert text where no column has an affinity.
fn parameter_value(text: &str) -> Value {
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) if number.to_string() == text => Value::Integer(number),
        (_, Ok(number)) if number.is_finite() && format!("{number:?}") == text => Value::Real(number),
        _ => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_ends_where_the_next_one_begins() {
        let views = parse("\n-- what is late\nlate = select *\n  from orders\n  where a\n = 1;\n\nby-day=WITH x AS (SELECT 1)\nSELECT * FROM x").unwrap();
        let of = |name: &str, sql: &str| View { name: name.into(), sql: sql.into() };
        let expected = [
            of("by-day", "WITH x AS (SELECT 1)\nSELECT * FROM x"),
            of("late", "select *\n  from orders\n  where a\n = 1"),
        ];
        assert_eq!(views, expected);
        assert_eq!(parse(""), Ok(Vec::new()));
        assert!(parse("DROP TABLE x").is_err());
        assert!(parse("a = SELECT 1\na = SELECT 2").is_err());
    }

    #[test]
    fn a_parameter_spelled_as_a_number_is_bound_as_a_number() {
        assert_eq!(parameter_value("7"), Value::Integer(7));
        assert_eq!(parameter_value("1.5"), Value::Real(1.5));
        for text in ["007", "", "1e3", "NaN", " 7"] {
            assert_eq!(parameter_value(text), Value::Text(text.to_owned()));
        }
    }
}
