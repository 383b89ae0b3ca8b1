//! The parameters `where`, `match` and `sort` of a page as SQL. `belljar_sql` parses them. Values are bound and never a
//! part of the SQL.

use belljar_guest::{Error, Result};
use belljar_sql::filter::{self as grammar, Comparison, Operator, Term, unquoted};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};

use crate::modules;
use crate::schema::{Affinity, Column, Keys, Table, quote};
use crate::snapshot::error;
use crate::value::Parameter;

/// An SQL condition and the values of its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) values: Vec<Parameter>,
}

impl Condition {
    pub(crate) fn new(sql: impl Into<String>, values: Vec<Parameter>) -> Condition {
        Condition { sql: sql.into(), values }
    }

    /// This condition and another one. The empty condition is true.
    pub(crate) fn and(mut self, other: Condition) -> Condition {
        if !self.sql.is_empty() && !other.sql.is_empty() {
            self.sql += " AND ";
        }
        self.sql += &other.sql;
        self.values.extend(other.values);
        self
    }

    /// As the WHERE clause of a statement.
    pub(crate) fn clause(&self) -> String {
        if self.sql.is_empty() { String::new() } else { format!(" WHERE {}", self.sql) }
    }
}

/// One column of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sort {
    /// The quoted name of the column.
    pub(crate) sql: String,
    pub(crate) descending: bool,
    /// True if the column cannot be NULL.
    pub(crate) not_null: bool,
}

/// The function that `~` calls. Upper and lower case are equal, also beyond ASCII.
const CONTAINS: &str = "text_contains";

/// Registers the function of `~`.
fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    let contains = |context: &rusqlite::functions::Context<'_>| {
        let text = match context.get_raw(0) {
            ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).to_lowercase(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => format!("{number:?}"),
            ValueRef::Null | ValueRef::Blob(_) => return Ok(false),
        };
        Ok(text.contains(context.get_raw(1).as_str()?))
    };
    connection.create_scalar_function(CONTAINS, 2, flags, contains).map_err(error)
}

/// The condition of all filters together.
pub(crate) fn condition(connection: &Connection, table: &Table, filters: &[String]) -> Result<Condition> {
    let mut whole = Condition::default();
    for filter in filters {
        whole = whole.and(all(table, filter)?);
    }
    if whole.sql.contains(CONTAINS) {
        register(connection)?;
    }
    Ok(whole)
}

/// The conditions of one parameter, which ` and ` separates.
fn all(table: &Table, filter: &str) -> Result<Condition> {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let mut whole = Condition::default();
    for clause in grammar::parse(&names, filter)? {
        if let Some(column) = table.columns.get(clause.column) {
            whole = whole.and(of_clause(column, clause.comparison));
        }
    }
    Ok(whole)
}

/// The condition of a full-text search.
pub(crate) fn matching(table: &Table, text: &str) -> Result<Condition> {
    match table.kind.module() {
        Some(module) if modules::is_text_index(module) => {
            Ok(Condition::new(format!("{} MATCH ?", quote(&table.name)), vec![Value::Text(text.to_owned()).into()]))
        }
        _ => Err(Error::invalid(format_args!(
            "\"match\" is for full-text tables (fts3, fts4, fts5), and \"{}\" is none: expected \"where\", as in \
             where=name~{text}",
            table.name
        ))),
    }
}

/// The columns of an order: `name`, `-name`, `a,-b`.
pub(crate) fn order(table: &Table, text: &str) -> Result<Vec<Sort>> {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let alias = match &table.keys {
        Keys::Rowid { alias, .. } => Some(alias),
        Keys::Primary(_) | Keys::None => None,
    };
    let terms = grammar::order(&names, alias.map(|_| "rowid"), text)?;
    let of = |term: Term| match (table.columns.get(term.column), alias) {
        (Some(column), _) => {
            let is_key = matches!(&table.keys, Keys::Rowid { column: Some(key), .. } if *key == column.name);
            let not_null = column.not_null || is_key;
            Some(Sort { sql: quote(&column.name), descending: term.descending, not_null })
        }
        (None, Some(alias)) => Some(Sort { sql: quote(alias), descending: term.descending, not_null: true }),
        (None, None) => None,
    };
    Ok(terms.into_iter().filter_map(of).collect())
}

fn of_clause(column: &Column, comparison: Comparison<'_>) -> Condition {
    match comparison {
        Comparison::Empty(is_empty) => {
            let name = quote(&column.name);
            let sql = if is_empty {
                format!("({name} IS NULL OR {name} = '')")
            } else {
                format!("({name} IS NOT NULL AND {name} <> '')")
            };
            Condition::new(sql, Vec::new())
        }
        Comparison::With(operator, value) => compare(column, operator, value),
    }
}

/// A number, if the text is spelled as one.
fn number(text: &str) -> Option<Value> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return None;
    }
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) => Some(Value::Integer(number)),
        (_, Ok(number)) if text.bytes().all(|byte| !byte.is_ascii_alphabetic() || matches!(byte, b'e' | b'E')) => {
            Some(Value::Real(number))
        }
        _ => None,
    }
}

/// Compares numbers with numbers, and text with text. SQLite alone says that every text is greater than every number.
fn compare(column: &Column, operator: Operator, value: &str) -> Condition {
    let name = quote(&column.name);
    let (text, is_quoted) = unquoted(value);
    let number = number(&text).filter(|_| !is_quoted && column.affinity != Affinity::Text);
    let needle = text.to_lowercase();
    let contains = |sign: &str| {
        let needle = Value::Text(needle.clone()).into();
        Condition::new(format!("{sign}{CONTAINS}({name}, ?)"), vec![needle])
    };
    let text: Parameter = Value::Text(text).into();
    let has_number = number.is_some();
    let value: Parameter = number.map_or_else(|| text.clone(), Parameter::from);
    let range = |sign: &str| {
        let kind = match (has_number, sign) {
            // Nothing but NULL is less than a number.
            (true, "<" | "<=") => "",
            (true, _) => " AND typeof({}) IN ('integer', 'real')",
            (false, _) => " AND typeof({}) = 'text'",
        };
        Condition::new(format!("({name} {sign} ?{})", kind.replace("{}", &name)), vec![value.clone()])
    };
    // In a column without a type, 7 and '7' are different values.
    let has_both = has_number && column.affinity == Affinity::Blob;
    match operator {
        Operator::Equal if has_both => Condition::new(format!("{name} IN (?, ?)"), vec![value, text]),
        Operator::NotEqual if has_both => {
            Condition::new(format!("({name} IS NULL OR {name} NOT IN (?, ?))"), vec![value, text])
        }
        Operator::Equal => Condition::new(format!("{name} = ?"), vec![value]),
        Operator::NotEqual => Condition::new(format!("{name} IS NOT ?"), vec![value]),
        Operator::Less => range("<"),
        Operator::LessOrEqual => range("<="),
        Operator::Greater => range(">"),
        Operator::GreaterOrEqual => range(">="),
        Operator::Contains => contains(""),
        Operator::ContainsNot => contains("NOT "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Kind;

    fn table() -> Table {
        let columns = [("id", "INTEGER"), ("a", "TEXT"), ("a b", ""), ("a=b", "REAL"), ("-x", "")];
        let columns = columns.map(|(name, kind)| Column::for_test(name, kind)).to_vec();
        let keys = Keys::Rowid { alias: "id".into(), column: Some("id".into()), others: Vec::new() };
        Table { name: "t".into(), kind: Kind::Table, columns, keys, left_out: 0 }
    }

    fn sql(filter: &str) -> (String, Vec<Parameter>) {
        let condition = all(&table(), filter).unwrap();
        (condition.sql, condition.values)
    }

    #[test]
    fn the_longest_column_and_the_operator_are_found() {
        let text = |text: &str| Parameter::from(Value::Text(text.to_owned()));
        let int = |number| Parameter::from(Value::Integer(number));
        assert_eq!(sql("id>=7"), ("(\"id\" >= ? AND typeof(\"id\") IN ('integer', 'real'))".into(), vec![int(7)]));
        assert_eq!(sql("A = 7"), ("\"a\" = ?".into(), vec![text("7")]));
        assert_eq!(sql("a b!=x"), ("\"a b\" IS NOT ?".into(), vec![text("x")]));
        assert_eq!(sql("a b=7"), ("\"a b\" IN (?, ?)".into(), vec![int(7), text("7")]));
        assert_eq!(sql("a=b=1"), ("\"a=b\" = ?".into(), vec![int(1)]));
        assert_eq!(sql("\"a\"=b=1"), ("\"a\" = ?".into(), vec![text("b=1")]));
        assert_eq!(sql("a='it''s'"), ("\"a\" = ?".into(), vec![text("it's")]));
        assert_eq!(sql("id='7'"), ("\"id\" = ?".into(), vec![text("7")]));
        assert_eq!(sql("a is  EMPTY").0, "(\"a\" IS NULL OR \"a\" = '')");
        assert_eq!(sql("id<1.5"), ("(\"id\" < ?)".into(), vec![Parameter::from(Value::Real(1.5))]));
        assert_eq!(sql("id<abc").0, "(\"id\" < ? AND typeof(\"id\") = 'text')");
        assert_eq!(sql("a~'; DROP TABLE t; --").1, vec![text("'; drop table t; --")]);
        assert_eq!(sql("a=").0, "(\"a\" IS NULL OR \"a\" = '')");
        assert_eq!(sql("a!=").0, "(\"a\" IS NOT NULL AND \"a\" <> '')");
        assert_eq!(sql("id=1 and a=salt and pepper AND a b=2").1, [int(1), text("salt and pepper"), int(2), text("2")]);
        assert_eq!(sql("a=\"x and a=y\"").1, [text("x and a=y")]);
        for wrong in ["b=1", "id", "id is", "", "=", "id is emptyish", "\u{fc}\u{fc}=1"] {
            let error = all(&table(), wrong).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid(why) if why.contains("price>10") && why.contains("\"a=b\"")),
                "{error}"
            );
        }
    }

    #[test]
    fn an_order_has_several_columns() {
        let sort = |sql: &str, descending, not_null| Sort { sql: sql.into(), descending, not_null };
        assert_eq!(order(&table(), "-id"), Ok(vec![sort("\"id\"", true, true)]));
        assert_eq!(order(&table(), "a,-a b"), Ok(vec![sort("\"a\"", false, false), sort("\"a b\"", true, false)]));
        assert_eq!(order(&table(), "-x"), Ok(vec![sort("\"-x\"", false, false)]));
        assert_eq!(order(&table(), "-rowid"), Ok(vec![sort("\"id\"", true, true)]));
        assert!(matches!(order(&table(), "a,none"), Err(Error::Invalid(why)) if why.contains("\"none\"")));
    }
}
