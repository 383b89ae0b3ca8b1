//! Parses references. Does not open databases: the modules that query decide whether a table or a key exists.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};
use belljar_sql::page::{Wanted, limit, number, parameters};

/// A parsed reference within one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The list of tables with row counts.
    Overview,
    /// Columns, indexes and keys of one table, or of all tables.
    Schema { table: Option<String> },
    /// The CREATE statements of the database.
    Ddl,
    /// A page of rows.
    Page { table: String, wanted: Wanted },
    /// One row.
    Row { table: String, key: String },
    /// One value of a row, or `length` bytes of it from `offset`.
    Value { table: String, key: String, column: String, offset: Option<u64>, length: Option<u64> },
    /// The rows of a view that the operator named. `parameters` has all parameters, also the page's own.
    View { name: String, parameters: BTreeMap<String, String> },
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
        let (mut query, filters) = parameters(query)?;
        if let (Some(first), false) = (filters.first(), matches!(segments.as_slice(), [kind, _] if kind == "tables")) {
            return Err(Error::invalid(format_args!(
                "\"where\" is \"{first}\": only the rows of a table have filters"
            )));
        }
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let owned = |text: &str| text.to_owned();
        let address = match segments.as_slice() {
            [] => Address::Overview,
            ["schema.sql"] => Address::Ddl,
            ["schema"] => Address::Schema { table: None },
            ["schema", table] => Address::Schema { table: Some(owned(table)) },
            ["tables", table] => {
                let mut text = |name: &str| query.remove(name).filter(|value| !value.is_empty());
                let (matching, sort, after) = (text("match"), text("sort"), text("after"));
                let skip = number(&mut query, "skip", "rows")?.unwrap_or_default();
                let wanted = Wanted { filters, matching, sort, after, skip, limit: limit(&mut query)? };
                Address::Page { table: owned(table), wanted }
            }
            ["tables", table, "rows", key] => Address::Row { table: owned(table), key: owned(key) },
            ["tables", table, "rows", key, column] => {
                let mut bytes = |name| number(&mut query, name, "bytes");
                let (offset, length) = (bytes("offset")?, bytes("length")?);
                Address::Value { table: owned(table), key: owned(key), column: owned(column), offset, length }
            }
            ["views", name] => Address::View { name: owned(name), parameters: std::mem::take(&mut query) },
            _ => return Err(Error::NotFound),
        };
        match query.keys().next() {
            Some(unknown) => {
                let known = match &address {
                    Address::Page { .. } => "where, match, sort, after, skip, limit, lines, bytes",
                    Address::Value { .. } => "bytes, lines, offset, length",
                    _ => "bytes, lines",
                };
                Err(Error::invalid(format_args!(
                    "\"{unknown}\" is not a parameter of this resource: expected one of {known}"
                )))
            }
            None => Ok((database, address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use belljar_sql::page::Position;

    use super::*;

    fn of(reference: &str) -> Result<Address> {
        Address::parse(reference, false).map(|(_, address)| address)
    }

    #[test]
    fn a_page_takes_after_and_limit() {
        let page = |after: Option<&str>, limit| {
            let wanted = Wanted { after: after.map(Into::into), limit, ..Wanted::default() };
            Address::Page { table: "a b/c".into(), wanted }
        };
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
    fn the_query_of_the_next_page_keeps_filters_and_order() {
        let Ok(Address::Page { wanted, .. }) =
            of("tables/t?where=a%26b%3E1&sort=-c&where=d%20is%20empty&match=x&skip=2&where=")
        else {
            panic!("no page")
        };
        assert_eq!(wanted.filters, ["a&b>1", "d is empty"]);
        let position = Position { after: Some("1,'&'".into()), skip: 7 };
        let next = wanted.query_at(&position, 50);
        assert_eq!(next, "?where=a%26b%3E1&where=d%20is%20empty&match=x&sort=-c&after=1,'%26'&skip=7&limit=50");
        let Ok(Address::Page { wanted: again, .. }) = of(&format!("tables/t{next}")) else { panic!("no page") };
        assert_eq!(again, Wanted { after: position.after, skip: 7, limit: Some(50), ..wanted });
        for wrong in ["schema?where=a%3D1", "tables/t?skip=-1", "tables/t?skip=18446744073709551615"] {
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
