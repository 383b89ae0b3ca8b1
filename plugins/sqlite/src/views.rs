//! Views: SQL statements that the operator names in the setting `VIEWS`. Parses the setting, finds parameters, runs views.
//! `statement` makes sure that a view only reads.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};
use rusqlite::Statement;
use rusqlite::types::Value;

use crate::address;
use crate::rows::PAGE_BYTES;
use crate::snapshot::{Snapshot, error};
use crate::statement::{self, Rows, Wrong};

/// A statement with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// Parses the setting. Each view begins on a new line with `name = SELECT` (or `WITH`, `VALUES`) and ends where the next
/// one begins. A line that looks like the beginning of a view and is none is an error: glued to the view above, it would
/// fail there, or change it.
pub(crate) fn parse(setting: &str) -> Result<Vec<View>> {
    let mut views: Vec<View> = Vec::new();
    // How far the line is indented that began the last view.
    let mut indent = 0;
    for line in setting.lines() {
        let depth = line.len() - line.trim_start().len();
        let begins = definition(line);
        match (begins, views.last_mut()) {
            (Some((name, sql)), _) if selects(sql) => {
                if views.iter().any(|view| view.name == name) {
                    return Err(Error::failed(format_args!("VIEWS names \"{name}\" twice")));
                }
                views.push(View { name: name.to_owned(), sql: sql.to_owned() });
                indent = depth;
            }
            (Some((_, sql)), Some(_)) if depth <= indent || changes(sql) => return Err(wrong_line(line)),
            (_, Some(view)) if !is_ended(&view.sql) || is_blank(line) => {
                view.sql.push('\n');
                view.sql.push_str(line);
            }
            (_, None) if is_blank(line) => {}
            _ => return Err(wrong_line(line)),
        }
    }
    for view in &mut views {
        view.sql.truncate(view.sql.trim_end().trim_end_matches(';').trim_end().len());
    }
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

fn wrong_line(line: &str) -> Error {
    let line = line.trim();
    Error::failed(format_args!(
        "VIEWS has the line \"{line}\": expected a name, \"=\" and a SELECT, as in  late = SELECT * FROM orders ; if the line \
         belongs to the view above, indent it"
    ))
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with("--")
}

/// True if the statement has its semicolon.
fn is_ended(sql: &str) -> bool {
    // A semicolon inside quotes has an odd number of quotes before it.
    sql.trim_end().ends_with(';') && ['\'', '"'].iter().all(|quote| sql.matches(*quote).count().is_multiple_of(2))
}

/// The name and the rest of a line `name = rest`.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, sql) = line.split_once('=')?;
    let (name, sql) = (name.trim(), sql.trim_start());
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_plain.then_some((name, sql))
}

fn begins_with(sql: &str, words: &[&str]) -> bool {
    let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn selects(sql: &str) -> bool {
    begins_with(sql, &["SELECT", "WITH", "VALUES"])
}

/// True for a statement that is not a SELECT. `REPLACE(` is a function.
fn changes(sql: &str) -> bool {
    const OTHERS: &[&str] = &[
        "ALTER",
        "ANALYZE",
        "ATTACH",
        "BEGIN",
        "COMMIT",
        "CREATE",
        "DELETE",
        "DETACH",
        "DROP",
        "EXPLAIN",
        "INSERT",
        "PRAGMA",
        "REINDEX",
        "REPLACE",
        "ROLLBACK",
        "SAVEPOINT",
        "UPDATE",
        "VACUUM",
    ];
    let rest = sql.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start();
    begins_with(sql, OTHERS) && !rest.starts_with('(')
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
        let limit = address::limit(&mut given)?.unwrap_or(default);
        let can_skip = !names.iter().any(|name| name == "skip");
        let skip = if can_skip { address::number(&mut given, "skip", "rows")?.unwrap_or_default() } else { 0 };
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

    fn prepare<'a>(&self, snapshot: &'a Snapshot) -> Result<Statement<'a>> {
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
        for setting in [
            "a = SELECT 1\ngone = DELETE FROM t",
            "  a = SELECT 1\n  gone = DELETE FROM t",
            "a = SELECT 1\n   gone = PRAGMA journal_mode",
            "a = SELECT 1\ngone = SELCT 2",
            "a = SELECT 1;\ngone: SELECT 2",
            "a = SELECT 1;\nDROP TABLE t",
        ] {
            let line = setting.lines().last().unwrap().trim();
            let error = parse(setting).unwrap_err().to_string();
            assert!(error.contains(&format!("\"{line}\"")), "{setting}: {error}");
        }
        for setting in [
            "a = SELECT 1 WHERE ';\n' = x\nAND b = 1",
            "a = SELECT x FROM t WHERE\n  x = REPLACE(y, 'a', 'b')",
            "  a = SELECT x FROM t WHERE\n    x = 5;\n  -- end\n\n  b = VALUES (1)",
        ] {
            assert!(parse(setting).is_ok(), "{setting}: {:?}", parse(setting));
        }
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
