//! Parses references. Does not open databases: the modules that query decide whether a table or a key exists.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};

/// The most rows on one page.
pub(crate) const MAX_ROWS: usize = 1000;

/// A parsed reference within one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The list of tables with row counts.
    Overview,
    /// Columns, indexes and keys of one table, or of all tables.
    Schema { table: Option<String> },
    /// The CREATE statements of the database.
    Ddl,
    /// A page of at most `limit` rows after the key `after`.
    Page { table: String, after: Option<String>, limit: Option<usize> },
    /// One row.
    Row { table: String, key: String },
    /// One value of a row, or `length` bytes of it from `offset`.
    Value { table: String, key: String, column: String, offset: Option<u64>, length: Option<u64> },
    /// The rows of a view that the operator named.
    View { name: String, parameters: BTreeMap<String, String>, limit: Option<usize> },
}

impl Address {
    /// Splits a reference into database and address. If `named` is true, references begin with a database. Otherwise the
    /// database is `None`.
    pub(crate) fn parse(whole: &str, named: bool) -> Result<(Option<String>, Address)> {
        let (path, query) = reference::split(whole);
        let mut segments = Vec::new();
        for segment in path.split('/') {
            segments.push(reference::decode(segment)?);
        }
        if segments.last().is_some_and(String::is_empty) {
            segments.pop();
        }
        let database = if named { Some(segments.drain(..1.min(segments.len())).collect::<String>()) } else { None };
        let mut query = reference::parameters(query)?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let owned = |text: &str| text.to_owned();
        let address = match segments.as_slice() {
            [] => Address::Overview,
            ["schema.sql"] => Address::Ddl,
            ["schema"] => Address::Schema { table: None },
            ["schema", table] => Address::Schema { table: Some(owned(table)) },
            ["tables", table] => {
                let after = query.remove("after").filter(|after| !after.is_empty());
                Address::Page { table: owned(table), after, limit: limit(&mut query)? }
            }
            ["tables", table, "rows", key] => Address::Row { table: owned(table), key: owned(key) },
            ["tables", table, "rows", key, column] => {
                let (offset, length) = (number(&mut query, "offset")?, number(&mut query, "length")?);
                Address::Value { table: owned(table), key: owned(key), column: owned(column), offset, length }
            }
            ["views", name] => {
                let limit = limit(&mut query)?;
                Address::View { name: owned(name), parameters: std::mem::take(&mut query), limit }
            }
            _ => return Err(Error::NotFound),
        };
        match query.keys().next() {
            Some(unknown) => Err(Error::invalid(format_args!("\"{unknown}\" is not a parameter of this resource"))),
            None => Ok((database, address)),
        }
    }
}

fn limit(query: &mut BTreeMap<String, String>) -> Result<Option<usize>> {
    match query.remove("limit").filter(|limit| !limit.is_empty()) {
        None => Ok(None),
        Some(text) => rows(&text).map(Some).ok_or_else(|| {
            Error::invalid(format_args!("\"limit\" is \"{text}\": expected a number from 1 to {MAX_ROWS}"))
        }),
    }
}

/// Parses a row count; `None` unless it is from 1 to [`MAX_ROWS`].
pub(crate) fn rows(text: &str) -> Option<usize> {
    text.parse().ok().filter(|rows| (1..=MAX_ROWS).contains(rows))
}

fn number(query: &mut BTreeMap<String, String>, name: &str) -> Result<Option<u64>> {
    let Some(text) = query.remove(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let wrong = |_| Error::invalid(format_args!("\"{name}\" is \"{text}\": expected a number of bytes"));
    text.parse().map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reference: &str) -> Result<Address> {
        Address::parse(reference, false).map(|(_, address)| address)
    }

    #[test]
    fn a_page_takes_after_and_limit() {
        let page =
            |after: Option<&str>, limit| Address::Page { table: "a b/c".into(), after: after.map(Into::into), limit };
        assert_eq!(of("tables/a%20b%2Fc"), Ok(page(None, None)));
        assert_eq!(of("tables/a%20b%2Fc?after=1%2C2&limit=7"), Ok(page(Some("1,2"), Some(7))));
        assert_eq!(of("tables/a%20b%2Fc?after=&limit="), Ok(page(None, None)));
        for wrong in [
            "tables/t?limit=0",
            "tables/t?limit=1001",
            "tables/t?limit=x",
            "tables/t?offset=3",
            "tables/t?limit=1&limit=2",
        ] {
            assert!(matches!(of(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn with_several_databases_the_first_segment_is_the_database() {
        let (database, address) = Address::parse("a%2Fb.db/tables/t/rows/1", true).unwrap();
        assert_eq!(database.as_deref(), Some("a/b.db"));
        assert_eq!(address, Address::Row { table: "t".into(), key: "1".into() });
        assert_eq!(Address::parse("a.db/", true), Ok((Some("a.db".into()), Address::Overview)));
        assert_eq!(Address::parse("", true), Ok((Some(String::new()), Address::Overview)));
        assert_eq!(Address::parse("nothing/such", false), Err(Error::NotFound));
    }
}
