//! Views: SQL statements that the operator names in the setting `VIEWS`. Finds parameters, runs views. `belljar_sql`
//! parses the setting.
//! `statement` makes sure that a view only reads.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};
use belljar_sql::page;
use belljar_sql::setting::{self, Statement};
use rusqlite::types::Value;

use crate::rows::PAGE_BYTES;
use crate::snapshot::{Snapshot, error};
use crate::statement::{self, Rows, Wrong};

/// A statement with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// Parses the setting.
pub(crate) fn parse(setting: &str) -> Result<Vec<View>> {
    let statements = setting::parse(setting)?;
    Ok(statements.into_iter().map(|Statement { name, sql }| View { name, sql }).collect())
}

/// A page of the rows of a view.
#[derive(Debug, PartialEq)]
pub(crate) struct ViewPage {
    pub(crate) rows: Rows,
    /// The reference of the next page, below the database.
    pub(crate) next: Option<String>,
    /// The position of the first row.
    pub(crate) start: u64,
    /// The position after the last row.
    pub(crate) end: u64,
}

impl View {
    /// The names of the parameters, in order.
    pub(crate) fn parameters(&self, snapshot: &Snapshot) -> Result<Vec<String>> {
        let statement = self.prepare(snapshot)?;
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

    /// Runs the view with the parameters `given`, and gives a page of its rows. The page's own parameters are `limit`, and
    /// `skip`, unless the view has a parameter of this name. `rows` are the positions of the rows that are wanted, if the
    /// caller names positions.
    pub(crate) fn run(
        &self,
        snapshot: &Snapshot,
        given: &BTreeMap<String, String>,
        default: usize,
        lines: Option<(u64, usize)>,
    ) -> Result<ViewPage> {
        let names = self.parameters(snapshot)?;
        let mut given = given.clone();
        let limit = page::limit(&mut given)?.unwrap_or(default);
        let can_skip = !names.iter().any(|name| name == "skip");
        let skip = if can_skip { page::number(&mut given, "skip", "rows")?.unwrap_or_default() } else { 0 };
        let (skip, limit) = lines.map_or((skip, limit), |(first, count)| (skip.saturating_add(first), count));
        if let Some(unknown) = given.keys().find(|name| !names.contains(name)) {
            return Err(Error::invalid(format_args!("the view \"{}\" has no parameter \"{unknown}\"", self.name)));
        }
        let mut statement = self.prepare(snapshot)?;
        for (index, name) in names.iter().enumerate() {
            let text = given.get(name).ok_or_else(|| {
                Error::invalid(format_args!("the view \"{}\" needs \"{name}\": add ?{name}=...", self.name))
            })?;
            statement.raw_bind_parameter(index + 1, parameter_value(text)).map_err(error)?;
        }
        let rows = statement::rows(&mut statement, skip, limit, PAGE_BYTES)?;
        let end = skip + rows.rows.len() as u64;
        let next = (rows.cut && can_skip).then(|| {
            let own = given.iter().map(|(name, value)| {
                format!("{}={}&", reference::encode_segment(name), reference::encode_segment(value).replace('&', "%26"))
            });
            format!("views/{}?{}skip={end}&limit={limit}", self.name, own.collect::<String>())
        });
        Ok(ViewPage { rows, next, start: skip, end })
    }

    fn prepare<'a>(&self, snapshot: &'a Snapshot) -> Result<rusqlite::Statement<'a>> {
        statement::prepare(snapshot, &self.sql).map_err(|wrong| match wrong {
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
    fn a_parameter_spelled_as_a_number_is_bound_as_a_number() {
        assert_eq!(parameter_value("7"), Value::Integer(7));
        assert_eq!(parameter_value("1.5"), Value::Real(1.5));
        for text in ["007", "", "1e3", "NaN", " 7"] {
            assert_eq!(parameter_value(text), Value::Text(text.to_owned()));
        }
    }
}
