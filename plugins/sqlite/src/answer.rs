//! Answers: the contents of a resource, whole or in part. The lines of a page are its rows.

use std::collections::BTreeMap;

use belljar_guest::{Contents, Error, Extent, PartialReading, Positions, Range, Result, Unit};
use serde_json::{Value as Json, json};

use crate::address::Address;
use crate::page;
use crate::rows;
use crate::schema::{self, Kind, Table};
use crate::snapshot::Snapshot;
use crate::{Sqlite, cell, name, value};
use belljar_sql::output::{JSON, json_of, lines, object, table_of};
use belljar_sql::page::{MAX_ROWS, Position, Wanted};

/// The most rows that the overview counts, over all tables. Counting scans the rows, so this bounds the overview's cost.
const MAX_COUNTED_ROWS: usize = 20_000;

/// What is asked of a resource.
pub(crate) struct Request<'a> {
    /// The reference.
    pub(crate) asked: &'a str,
    /// The beginning of the references to the database.
    pub(crate) base: &'a str,
    pub(crate) address: &'a Address,
    pub(crate) range: Option<Range>,
    /// The most bytes of the answer.
    pub(crate) most: u64,
}

/// A row with its key, as a page shows it.
#[derive(serde::Serialize)]
struct KeyedRow<'a> {
    key: &'a str,
    row: &'a value::Row,
}

impl Sqlite {
    pub(crate) fn answer(&self, snapshot: &Snapshot, request: &Request<'_>) -> Result<PartialReading> {
        let (asked, base) = (request.asked, request.base);
        let contents = match request.address {
            Address::Overview => self.overview(snapshot, asked)?,
            Address::Ddl => Contents::text(asked, schema::ddl(&snapshot.connection)?).mime_type("application/sql"),
            Address::Schema { table: Some(name) } => {
                lines(asked, &Table::find(snapshot, name)?.describe(&snapshot.connection)?)
            }
            Address::Schema { table: None } => whole_schema(snapshot, asked)?,
            Address::Page { table, wanted } => return self.page(snapshot, request, table, wanted),
            Address::Row { table, key } => {
                let table = Table::find(snapshot, table)?;
                let (key, row) = rows::row(&snapshot.connection, &table, base, key)?;
                let place = key.map(|key| rows::reference_of_row(base, &table.name, &key));
                let head = [("table", json!(table.name)), ("reference", json!(place))];
                Contents::text(asked, object(&head, &format!("\"row\": {}", json_of(&row)))).mime_type(JSON)
            }
            Address::Value { table, key, column, offset, length } => {
                let table = Table::find(snapshot, table)?;
                let range = request.range.or_else(|| {
                    let start = offset.unwrap_or(0);
                    let end = length.map(|length| start.saturating_add(length));
                    (offset.is_some() || length.is_some()).then(|| Range::bytes(start, end))
                });
                return cell::read(snapshot, asked, &table, (key, column), range, request.most);
            }
            Address::View { name, parameters } => return self.view(snapshot, request, name, parameters),
        };
        PartialReading::cut(contents, request.range, request.most)
    }

    fn page(&self, snapshot: &Snapshot, request: &Request<'_>, table: &str, wanted: &Wanted) -> Result<PartialReading> {
        let table = Table::find(snapshot, table)?;
        let positions = rows_of(request.range)?;
        let mut wanted = wanted.clone();
        if let Some((first, count)) = positions {
            wanted.skip = wanted.skip.saturating_add(first);
            wanted.limit = Some(count);
        }
        let limit = wanted.limit.unwrap_or(self.rows);
        let start = wanted.skip;
        let page = page::read(snapshot, &table, request.base, &wanted, limit)?;
        let place = format!("{}tables/{}", request.base, name::segment(&table.name));
        // Rows without a key are counted, which costs more with each page.
        let is_cut = page.next.as_ref().is_some_and(|next| next.after.is_none());
        let next = page.next.as_ref().map(|next: &Position| format!("{place}{}", wanted.query_at(next, limit)));
        let written = page.rows.iter().map(|(key, row)| match key {
            Some(key) => json_of(&KeyedRow { key, row }),
            None => json_of(row),
        });
        let mut head = vec![
            ("table", json!(table.name)),
            ("key", json!(table.key_columns())),
            ("cut", json!(is_cut)),
            ("next", json!(next)),
        ];
        head.extend(page.notice.as_ref().map(|notice| ("notice", json!(notice))));
        let contents = Contents::text(request.asked, table_of(&head, written)).mime_type(JSON);
        let end = start + page.rows.len() as u64;
        placed(contents, request, positions.map(|_| (start, end, page.next.is_some())))
    }

    fn view(
        &self,
        snapshot: &Snapshot,
        request: &Request<'_>,
        name: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<PartialReading> {
        let view = self.views.iter().find(|view| view.name == *name).ok_or(Error::NotFound)?;
        let positions = rows_of(request.range)?;
        let page = view.run(snapshot, parameters, self.rows, positions)?;
        let next = page.next.map(|next| format!("{}{next}", request.base));
        let head = [("view", json!(name)), ("cut", json!(page.rows.cut)), ("next", json!(next))];
        let text = table_of(&head, page.rows.rows.iter().map(json_of));
        let contents = Contents::text(request.asked, text).mime_type(JSON);
        placed(contents, request, positions.map(|_| (page.start, page.end, page.rows.cut)))
    }

    /// The tables with their columns and row counts. Counting stops at [`MAX_COUNTED_ROWS`] rows over all tables.
    fn overview(&self, snapshot: &Snapshot, asked: &str) -> Result<Contents> {
        let entries = snapshot.catalog.listed();
        // Each table gets an equal share of the rows that may be counted, at least 100.
        let share = (MAX_COUNTED_ROWS / entries.len().max(1)).max(100);
        let mut tables = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let mut about = json!({ "name": entry.name, "type": entry.kind.word() });
            let Some(fields) = about.as_object_mut() else { continue };
            match Table::find(snapshot, &name::escape(&entry.name)) {
                Ok(table) => {
                    let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
                    fields.insert("columns".to_owned(), json!(columns));
                    fields.insert("key".to_owned(), json!(table.key_columns()));
                    if entry.kind == Kind::Table && index * share < MAX_COUNTED_ROWS {
                        match schema::count(&snapshot.connection, &entry.name, share) {
                            Ok(count) => drop(fields.insert("rows".to_owned(), count)),
                            Err(error) => drop(fields.insert("error".to_owned(), json!(error.to_string()))),
                        }
                    }
                }
                // A view of a dropped table, or a virtual table of an unknown module.
                Err(error) => drop(fields.insert("error".to_owned(), json!(error.to_string()))),
            }
            tables.push(about);
        }
        let views: Vec<&str> = self.views.iter().map(|view| view.name.as_str()).collect();
        let mut whole = json!({ "tables": tables, "views": views });
        if let (Some(notice), Some(whole)) = (notice_of(snapshot), whole.as_object_mut()) {
            whole.insert("notice".to_owned(), json!(notice));
        }
        Ok(lines(asked, &whole))
    }
}

fn whole_schema(snapshot: &Snapshot, asked: &str) -> Result<Contents> {
    let described = |entry: &schema::Entry| {
        let table = Table::find(snapshot, &name::escape(&entry.name));
        table.and_then(|table| table.describe(&snapshot.connection)).unwrap_or_else(|error| {
            // A view of a dropped table, or a virtual table of an unknown module.
            json!({ "name": entry.name, "type": entry.kind.word(), "error": error.to_string() })
        })
    };
    let tables: Vec<Json> = snapshot.catalog.listed().into_iter().map(described).collect();
    let mut whole = json!({ "tables": tables });
    if let (Some(notice), Some(whole)) = (notice_of(snapshot), whole.as_object_mut()) {
        whole.insert("notice".to_owned(), json!(notice));
    }
    Ok(lines(asked, &whole))
}

/// What of the schema cannot be read.
fn notice_of(snapshot: &Snapshot) -> Option<String> {
    let odd = (!snapshot.catalog.not_utf8.is_empty()).then(|| {
        let names: Vec<String> = snapshot.catalog.not_utf8.iter().map(|name| format!("\"{name}\"")).collect();
        format!("the CREATE statements of {} are not UTF-8 and cannot be read", names.join(", "))
    });
    let damaged = snapshot.damaged.as_ref().map(|why| format!("a part of the schema cannot be read: {why}"));
    match (odd, damaged) {
        (Some(odd), Some(damaged)) => Some(format!("{odd}; {damaged}")),
        (odd, damaged) => odd.or(damaged),
    }
}

/// The rows that the lines of a range name: the first one, and how many.
fn rows_of(range: Option<Range>) -> Result<Option<(u64, usize)>> {
    let Some(Range { unit: Unit::Lines, positions, .. }) = range else { return Ok(None) };
    match positions {
        Positions::Span { start, end } if i64::try_from(start).is_ok() => {
            let count = end.map_or(MAX_ROWS as u64, |end| end.saturating_sub(start)).min(MAX_ROWS as u64);
            Ok(Some((start, usize::try_from(count).unwrap_or(MAX_ROWS))))
        }
        _ => Err(Error::invalid(
            "the lines of a page are its rows, counted from the first one: expected lines=1-100; for the last rows, sort by a \
             column downwards, as in sort=-id",
        )),
    }
}

/// The page as a part of all rows, if rows were asked for, or as a part of its text, if bytes were.
fn placed(contents: Contents, request: &Request<'_>, rows: Option<(u64, u64, bool)>) -> Result<PartialReading> {
    match rows {
        Some((start, end, more)) => Ok(PartialReading::part(contents, Extent::open(Unit::Lines, start, end, more))),
        None => PartialReading::cut(contents, request.range, request.most),
    }
}
