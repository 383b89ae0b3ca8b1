//! The parameters `where`, `match` and `sort` of a page: parses them, and writes them as SQL. Values are bound and never a
//! part of the SQL.

use belljar_guest::{Error, Result};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};

use crate::modules;
use crate::one_of;
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

/// How a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    ContainsNot,
}

/// The operators, longer ones before those that they begin with.
const OPERATORS: [(&str, Operator); 10] = [
    ("!=", Operator::NotEqual),
    ("<>", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!~", Operator::ContainsNot),
    ("==", Operator::Equal),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

const FORM: &str = "a column, one of = != < <= > >= ~ !~ and a value, as in price>10, or a column and \"is empty\" or \"is not empty\"";

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
    let mut whole = Condition::default();
    let mut rest = filter;
    // A value may contain the word: what follows it must begin with a column.
    while let Some((at, next)) = rest.match_indices(['a', 'A']).find_map(|(at, _)| {
        let next = rest.get(at..)?.strip_prefix_ignore_case("and ")?;
        let before =
            rest.get(..at).filter(|before| before.ends_with(' ') && before.matches('"').count().is_multiple_of(2))?;
        (split(table, next).is_some() && split(table, before).is_some()).then_some((at, next))
    }) {
        whole = whole.and(one(table, rest.get(..at).unwrap_or_default())?);
        rest = next;
    }
    Ok(whole.and(one(table, rest)?))
}

trait StripPrefix {
    fn strip_prefix_ignore_case(&self, prefix: &str) -> Option<&str>;
}

impl StripPrefix for str {
    fn strip_prefix_ignore_case(&self, prefix: &str) -> Option<&str> {
        let (head, rest) = self.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then_some(rest)
    }
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
    let of = |name: &str| {
        let (name, descending) = match name.strip_prefix('-') {
            // A column may have such a name.
            Some(rest) if find(table, name).is_none() => (rest, true),
            _ => (name, false),
        };
        let column = find(table, name)?;
        let not_null =
            column.not_null || matches!(&table.keys, Keys::Rowid { column: Some(key), .. } if *key == column.name);
        Some(Sort { sql: quote(&column.name), descending, not_null })
    };
    // The name of a column may contain a comma.
    if let Some(only) = of(text) {
        return Ok(vec![only]);
    }
    let rowid = |name: &str| match &table.keys {
        Keys::Rowid { alias, .. } if name.trim_start_matches('-').eq_ignore_ascii_case("rowid") => {
            Some(Sort { sql: quote(alias), descending: name.starts_with('-'), not_null: true })
        }
        _ => None,
    };
    text.split(',')
        .map(|name| {
            of(name.trim()).or_else(|| rowid(name.trim())).ok_or_else(|| {
                Error::invalid(format_args!(
                    "\"sort\" names \"{name}\": expected {}, or - and one of them",
                    known(table)
                ))
            })
        })
        .collect()
}

fn find<'a>(table: &'a Table, name: &str) -> Option<&'a Column> {
    let exact = table.columns.iter().find(|column| column.name == name);
    exact.or_else(|| table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)))
}

fn known(table: &Table) -> String {
    one_of(table.columns.iter().map(|column| column.name.as_str()))
}

/// The column of a filter, and its comparison.
fn split<'a, 'b>(table: &'a Table, filter: &'b str) -> Option<(&'a Column, Comparison<'b>)> {
    let text = filter.trim_start();
    // The longest name that an operator follows: names may contain spaces and operators.
    let mut longest: Option<(&Column, &str)> = None;
    for column in &table.columns {
        let quoted = format!("\"{}\"", column.name.replace('"', "\"\""));
        for spelling in [&column.name, &quoted] {
            let Some(rest) = text.strip_prefix_ignore_case(spelling) else { continue };
            let rest = rest.trim_start();
            let is_longer = longest.is_none_or(|(_, known)| rest.len() < known.len());
            if comparison(rest).is_some() && is_longer {
                longest = Some((column, rest));
            }
        }
    }
    let (column, rest) = longest?;
    Some((column, comparison(rest)?))
}

fn one(table: &Table, filter: &str) -> Result<Condition> {
    let (column, comparison) = split(table, filter).ok_or_else(|| {
        let known = known(table);
        Error::invalid(format_args!("\"where\" is \"{filter}\": expected {FORM}; the columns: {known}"))
    })?;
    Ok(match comparison {
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
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison<'a> {
    /// With nothing: `is empty` or `is not empty`.
    Empty(bool),
    With(Operator, &'a str),
}

/// What follows the name of a column.
fn comparison(text: &str) -> Option<Comparison<'_>> {
    let words: Vec<String> = text.split_whitespace().take(4).map(str::to_ascii_lowercase).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["is", "empty"] => return Some(Comparison::Empty(true)),
        ["is", "not", "empty"] => return Some(Comparison::Empty(false)),
        _ => {}
    }
    let (operator, value) =
        OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?.trim())))?;
    Some(match (operator, value) {
        (Operator::Equal, "") => Comparison::Empty(true),
        (Operator::NotEqual, "") => Comparison::Empty(false),
        _ => Comparison::With(operator, value),
    })
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

/// The value without the quotes around it, and true if it had some.
fn unquoted(value: &str) -> (String, bool) {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return (inner.replace(&format!("{quote}{quote}"), &quote.to_string()), true);
        }
    }
    (value.to_owned(), false)
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
            let error = one(&table(), wrong).unwrap_err();
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
