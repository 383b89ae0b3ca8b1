//! Parses references. Does not ask the server: the modules that query decide whether a table or a key exists.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result, reference};
use belljar_sql::page::{Wanted, limit, number, parameters};

use crate::table::TableName;

/// A parsed reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The list of tables with row counts.
    Overview,
    /// Columns, indexes and keys of one table, or of all tables.
    Schema { table: Option<TableName> },
    /// A page of rows, or the server's plan of its query.
    Page { table: TableName, wanted: Wanted, explain: bool },
    /// One row.
    Row { table: TableName, key: String },
    /// One value of a row, or `length` bytes of it from `offset`.
    Value { table: TableName, key: String, column: String, offset: Option<u64>, length: Option<u64> },
    /// The rows of a view that the operator named. `parameters` has all parameters, also the page's own.
    View { name: String, parameters: BTreeMap<String, String> },
}

impl Address {
    /// Parses a reference.
    pub(crate) fn parse(whole: &str) -> Result<Address> {
        let (path, query) = reference::split(whole);
        let mut segments = Vec::new();
        for segment in path.split('/') {
            segments.push(reference::decode(segment)?);
        }
        if segments.last().is_some_and(String::is_empty) {
            segments.pop();
        }
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
            ["schema"] => Address::Schema { table: None },
            ["schema", table] => Address::Schema { table: Some(TableName::parse(table)?) },
            ["tables", table] => {
                let explain = flag(&mut query, "explain")?;
                let mut text = |name: &str| query.remove(name).filter(|value| !value.is_empty());
                let (matching, sort, after) = (text("match"), text("sort"), text("after"));
                let skip = number(&mut query, "skip", "rows")?.unwrap_or_default();
                let wanted = Wanted { filters, matching, sort, after, skip, limit: limit(&mut query)? };
                Address::Page { table: TableName::parse(table)?, wanted, explain }
            }
            ["tables", table, "rows", key] => Address::Row { table: TableName::parse(table)?, key: owned(key) },
            ["tables", table, "rows", key, column] => {
                let mut bytes = |name| number(&mut query, name, "bytes");
                let (offset, length) = (bytes("offset")?, bytes("length")?);
                let table = TableName::parse(table)?;
                Address::Value { table, key: owned(key), column: owned(column), offset, length }
            }
            ["views", name] => Address::View { name: owned(name), parameters: std::mem::take(&mut query) },
            _ => return Err(Error::NotFound),
        };
        match query.keys().next() {
            Some(unknown) => {
                let known = match &address {
                    Address::Page { .. } => "where, match, sort, after, skip, limit, explain, lines, bytes",
                    Address::Value { .. } => "bytes, lines, offset, length",
                    _ => "bytes, lines",
                };
                Err(Error::invalid(format_args!(
                    "\"{unknown}\" is not a parameter of this resource: expected one of {known}"
                )))
            }
            None => Ok(address),
        }
    }
}

/// Takes a parameter out that has no value, as in `?explain`.
fn flag(query: &mut BTreeMap<String, String>, name: &str) -> Result<bool> {
    match query.remove(name).as_deref() {
        None | Some("no" | "false" | "0") => Ok(false),
        Some("" | "yes" | "true" | "1") => Ok(true),
        Some(other) => Err(Error::invalid(format_args!("\"{name}\" is \"{other}\": expected no value, as in ?{name}"))),
    }
}

#[cfg(test)]
mod tests {
    use belljar_sql::page::Position;

    use super::*;

    fn page(reference: &str) -> (TableName, Wanted, bool) {
        match Address::parse(reference) {
            Ok(Address::Page { table, wanted, explain }) => (table, wanted, explain),
            other => panic!("{reference}: {other:?}"),
        }
    }

    #[test]
    fn a_page_takes_after_and_limit() {
        let (table, wanted, explain) = page("tables/public.a%20b%2Fc?after=1%2C2&limit=7");
        assert_eq!(
            (table.table.as_str(), wanted.after.as_deref(), wanted.limit, explain),
            ("a b/c", Some("1,2"), Some(7), false)
        );
        assert_eq!(page("tables/t?after=&limit=").1, Wanted::default());
        assert!(page("tables/t?explain").2 && page("tables/t?explain=yes&limit=1").2 && !page("tables/t?explain=no").2);
        for wrong in [
            "limit=0",
            "limit=1001",
            "limit=x",
            "offset=3",
            "limit=1&limit=2",
            "skip=-1",
            "skip=18446744073709551615",
            "explain=x",
        ] {
            assert!(matches!(Address::parse(&format!("tables/t?{wrong}")), Err(Error::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn the_query_of_the_next_page_keeps_filters_and_order() {
        let (_, wanted, _) = page("tables/t?where=a%26b%3E1&sort=-c&where=d%20is%20empty&match=x&skip=2&where=");
        assert_eq!(wanted.filters, ["a&b>1", "d is empty"]);
        let position = Position { after: Some("1,'&'".into()), skip: 7 };
        let next = wanted.query_at(&position, 50);
        assert_eq!(next, "?where=a%26b%3E1&where=d%20is%20empty&match=x&sort=-c&after=1,'%26'&skip=7&limit=50");
        let again = page(&format!("tables/t{next}")).1;
        assert_eq!(again, Wanted { after: position.after, skip: 7, limit: Some(50), ..wanted });
    }

    #[test]
    fn other_references_have_their_own_form() {
        assert_eq!(Address::parse(""), Ok(Address::Overview));
        assert!(matches!(Address::parse("schema/a.b"), Ok(Address::Schema { table: Some(name) }) if name.table == "b"));
        assert!(
            matches!(Address::parse("tables/t/rows/1,2/a%2Fb"), Ok(Address::Value { key, column, .. }) if key == "1,2" && column == "a/b")
        );
        assert!(matches!(Address::parse("views/v?a=1"), Ok(Address::View { parameters, .. }) if parameters.len() == 1));
        assert_eq!(Address::parse("nothing/such"), Err(Error::NotFound));
        assert!(matches!(Address::parse("schema?where=a%3D1"), Err(Error::Invalid(_))));
    }
}
