//! SQL that an operator or a caller wrote: its parameters, and the rows that it gives. The server makes sure that it only
//! reads.

use belljar_guest::Error;
use belljar_sql::unique_names;

use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::page::PAGE_BYTES;
use crate::row::Row;
use crate::types::{Kind, Types};
use crate::value::{self, IN_PAGE};

/// A statement whose parameters have numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) sql: String,
    /// The names of `$1`, `$2`, ...
    pub(crate) names: Vec<String>,
    /// True if the statement has a parameter such as `$1` of its own.
    pub(crate) has_numbers: bool,
}

/// The rows of a statement.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The names of the columns, each once.
    pub(crate) columns: Vec<String>,
    kinds: Vec<Kind>,
    rows: Vec<Row>,
    /// True if there are more rows.
    pub(crate) cut: bool,
}

/// The end of a piece of SQL that has no parameters: a text, a name in quotes, a comment. `None`: nothing begins here.
fn end_of_quoted(sql: &str) -> Option<usize> {
    let find = |from: usize, end: &str| {
        let at = sql.get(from..).and_then(|rest| rest.find(end));
        at.map_or(sql.len(), |at| from + at + end.len())
    };
    if sql.starts_with("--") {
        return Some(find(2, "\n"));
    }
    if sql.starts_with("/*") {
        let (mut depth, mut at) = (1, 2);
        while depth > 0 {
            match sql.as_bytes().get(at..at + 2) {
                Some(b"*/") => (depth, at) = (depth - 1, at + 2),
                Some(b"/*") => (depth, at) = (depth + 1, at + 2),
                Some(_) => at += 1,
                None => return Some(sql.len()),
            }
        }
        return Some(at);
    }
    // A doubled quote ends one text and begins the next.
    for quote in ["'", "\""] {
        if sql.starts_with(quote) {
            return Some(find(1, quote));
        }
    }
    if sql.starts_with(['e', 'E']) && sql.get(1..2) == Some("'") {
        let mut is_escaped = false;
        for (at, c) in sql.char_indices().skip(2) {
            match c {
                '\'' if !is_escaped => return Some(at + 1),
                _ => is_escaped = c == '\\' && !is_escaped,
            }
        }
        return Some(sql.len());
    }
    let tag = sql.strip_prefix('$')?;
    let end = tag.find(|c: char| !is_of_word(c))?;
    let is_tag = tag.get(end..)?.starts_with('$') && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| find(end + 2, sql.get(..end + 2).unwrap_or("$$")))
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// Replaces each `:name` by a number.
pub(crate) fn number(sql: &str) -> Numbered {
    let mut numbered = Numbered { sql: String::with_capacity(sql.len()), names: Vec::new(), has_numbers: false };
    let mut rest = sql;
    // The character before decides whether a word or a cast begins.
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        if let Some(end) = end_of_quoted(rest).filter(|_| !is_of_word(before)) {
            let (quoted, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            numbered.sql += quoted;
            (rest, before) = (after, '\'');
            continue;
        }
        let word = rest.get(1..).unwrap_or_default();
        let length = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(word.len());
        let name = word.get(..length).unwrap_or_default();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if c == ':' && before != ':' && is_name {
            let at = numbered.names.iter().position(|known| known == name).unwrap_or_else(|| {
                numbered.names.push(name.to_owned());
                numbered.names.len() - 1
            });
            numbered.sql += &format!("${}", at + 1);
            (rest, before) = (word.get(length..).unwrap_or_default(), 'x');
            continue;
        }
        numbered.has_numbers |= c == '$' && !is_of_word(before) && name.starts_with(|c: char| c.is_ascii_digit());
        numbered.sql.push(c);
        (rest, before) = (rest.get(c.len_utf8()..).unwrap_or_default(), c);
    }
    numbered
}

/// Runs a statement: at most `limit` rows, of about `max_bytes` together.
pub(crate) fn run(connection: &mut Connection, query: Query, limit: usize, max_bytes: usize) -> Outcome<Rows> {
    let max_rows = i32::try_from(limit.saturating_add(1)).unwrap_or(i32::MAX);
    let mut results = connection.send(&[Query { max_rows, ..query }])?;
    let fields = results.columns()?;
    let mut given = Rows::default();
    let mut bytes = 0;
    while let Some(row) = results.row()? {
        if given.rows.len() == limit || bytes > max_bytes.min(PAGE_BYTES) {
            given.cut = true;
            break;
        }
        bytes += row.len();
        given.rows.push(row);
    }
    results.finish()?;
    if fields.is_empty() && given.rows.is_empty() {
        return Err(Error::invalid("the statement gives no rows: expected one SELECT").into());
    }
    let oids: Vec<u32> = fields.iter().map(|field| field.oid).collect();
    let types = Types::look_up(connection, &oids)?;
    given.kinds = oids.into_iter().map(|oid| types.kind(oid)).collect();
    given.columns = unique_names(fields.iter().map(|field| field.name.as_str()));
    Ok(given)
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The values of each row as JSON text.
    pub(crate) fn values(&self) -> impl Iterator<Item = Vec<String>> {
        let of = |row: &Row| {
            let each = self.kinds.iter().enumerate().map(|(at, kind)| {
                let mut out = String::new();
                value::write(kind, row.text(at).as_deref(), IN_PAGE, &mut out);
                out
            });
            each.collect()
        };
        self.rows.iter().map(of)
    }

    /// The texts of each row, with the form of each: `None` for NULL.
    pub(crate) fn texts(&self) -> impl Iterator<Item = Vec<(&Kind, Option<String>)>> {
        let of = |row: &Row| {
            let each = self.kinds.iter().enumerate();
            each.map(|(at, kind)| (kind, row.text(at).map(std::borrow::Cow::into_owned))).collect()
        };
        self.rows.iter().map(of)
    }

    /// Each row as a JSON object.
    pub(crate) fn objects(&self) -> impl Iterator<Item = String> {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|name| {
                let mut out = String::new();
                value::string(name, &mut out);
                out
            })
            .collect();
        self.values().map(move |values| {
            let fields: Vec<String> = names.iter().zip(values).map(|(name, value)| format!("{name}:{value}")).collect();
            format!("{{{}}}", fields.join(","))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_numbers() {
        for (sql, expected, names) in [
            ("SELECT :a, :b, :a", "SELECT $1, $2, $1", &["a", "b"][..]),
            (
                "SELECT ':a', \":b\", E'\\':c', $$ :d $$, $x$ :e $$ $x$, :f",
                "SELECT ':a', \":b\", E'\\':c', $$ :d $$, $x$ :e $$ $x$, $1",
                &["f"],
            ),
            ("SELECT x::int, '{}'::text[], :n::int", "SELECT x::int, '{}'::text[], $1::int", &["n"]),
            ("SELECT 1 -- :a\n, :b /* :c /* :d */ */", "SELECT 1 -- :a\n, $1 /* :c /* :d */ */", &["b"]),
            ("SELECT a[1 : 2], b[1:2], 'it''s :x'", "SELECT a[1 : 2], b[1:2], 'it''s :x'", &[]),
            ("SELECT 'unfinished :a", "SELECT 'unfinished :a", &[]),
            ("SELECT ü:a", "SELECT ü$1", &["a"]),
        ] {
            let numbered = number(sql);
            assert_eq!((numbered.sql.as_str(), numbered.has_numbers), (expected, false), "{sql}");
            assert_eq!(numbered.names, names, "{sql}");
        }
        assert!(number("SELECT $1").has_numbers && !number("SELECT a$1, '$1', $a$ $1 $a$").has_numbers);
    }
}
