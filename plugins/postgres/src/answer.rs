//! Answers: the contents of a resource, whole or in part. The lines of a page are those of its text: the host reads more
//! lines than a caller asks for, and cuts the text, because the mount has a secret.

use std::collections::BTreeMap;

use belljar_guest::{Contents, Error, PartialReading, Range, Result};
use belljar_sql::name;
use belljar_sql::output::{JSON, lines, object, table_of};
use belljar_sql::page::{Position, Wanted};
use serde_json::json;

use crate::address::Address;
use crate::connection::{Connection, Query};
use crate::failure::{Failure, Outcome};
use crate::filter::Conditions;
use crate::page;
use crate::rows::{Read, Reader, add_key};
use crate::table::{Table, TableName};
use crate::value::{self, IN_ROW};
use crate::{Postgres, catalog, cell};

/// How many changes of the schema one read survives.
const MAX_CHANGES: usize = 8;

/// What is asked of a resource.
pub(crate) struct Request<'a> {
    /// The reference.
    pub(crate) asked: &'a str,
    pub(crate) address: &'a Address,
    pub(crate) range: Option<Range>,
    /// The most bytes of the answer.
    pub(crate) most: u64,
}

impl Postgres {
    /// Answers a request. If a program changed the schema between two queries, looks again.
    pub(crate) fn answer(&self, request: &Request<'_>) -> Result<PartialReading> {
        let mut connection = Connection::open()?;
        for _ in 0..MAX_CHANGES {
            match self.read_once(&mut connection, request) {
                Err(failure) if failure.is_stale() && !matches!(request.address, Address::View { .. }) => {}
                answer => return Ok(answer?),
            }
        }
        Ok(self.read_once(&mut connection, request)?)
    }

    fn read_once(&self, connection: &mut Connection, request: &Request<'_>) -> Outcome<PartialReading> {
        let asked = request.asked;
        let contents = match request.address {
            Address::Overview => {
                let tables = catalog::overview(connection)?;
                let views: Vec<&str> = self.views.iter().map(|view| view.name.as_str()).collect();
                lines(asked, &json!({ "database": connection.destination.database, "tables": tables, "views": views }))
            }
            Address::Schema { table: Some(name) } => {
                let described = catalog::describe(connection, Some(name))?;
                lines(asked, described.first().ok_or(Error::NotFound)?)
            }
            Address::Schema { table: None } => lines(asked, &json!({ "tables": catalog::describe(connection, None)? })),
            Address::Page { table, wanted, explain: true } => {
                let table = Table::find(connection, table)?;
                let plan = page::explain(connection, &table, wanted, wanted.limit.unwrap_or(self.rows))?;
                Contents::text(asked, plan).mime_type("text/plain")
            }
            Address::Page { table, wanted, explain: false } => return self.page(connection, request, table, wanted),
            Address::Row { table, key } => {
                let table = Table::find(connection, table)?;
                row(connection, asked, &table, key)?
            }
            Address::Value { table, key, column, offset, length } => {
                let table = Table::find(connection, table)?;
                let range = request.range.or_else(|| {
                    let start = offset.unwrap_or(0);
                    let end = length.map(|length| start.saturating_add(length));
                    (offset.is_some() || length.is_some()).then(|| Range::bytes(start, end))
                });
                return cell::read(connection, asked, &table, (key, column), range, request.most);
            }
            Address::View { name, parameters } => return self.view(connection, request, name, parameters),
        };
        Ok(PartialReading::cut(contents, request.range, request.most)?)
    }

    fn page(
        &self,
        connection: &mut Connection,
        request: &Request<'_>,
        table: &TableName,
        wanted: &Wanted,
    ) -> Outcome<PartialReading> {
        let table = Table::find(connection, table)?;
        let limit = wanted.limit.unwrap_or(self.rows);
        let page = page::read(connection, &table, wanted, limit)?;
        let place = format!("tables/{}", name::segment(&table.written()));
        // Rows without a key are counted, which costs more with each page.
        let is_cut = page.next.as_ref().is_some_and(|next| next.after.is_none());
        let next = page.next.as_ref().map(|next: &Position| format!("{place}{}", wanted.query_at(next, limit)));
        let written = page.rows.iter().map(|Read { key, json }| match key {
            Some(key) => {
                let mut line = "{\"key\":".to_owned();
                value::string(key, &mut line);
                line + ",\"row\":" + json + "}"
            }
            None => json.clone(),
        });
        let mut head = vec![
            ("table", json!(table.written())),
            ("key", json!(table.key_names())),
            ("cut", json!(is_cut)),
            ("next", json!(next)),
        ];
        head.extend(page.notice.as_ref().map(|notice| ("notice", json!(notice))));
        let contents = Contents::text(request.asked, table_of(&head, written)).mime_type(JSON);
        Ok(PartialReading::cut(contents, request.range, request.most)?)
    }

    fn view(
        &self,
        connection: &mut Connection,
        request: &Request<'_>,
        name: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Outcome<PartialReading> {
        let view = self.views.iter().find(|view| view.name == *name).ok_or(Error::NotFound)?;
        if parameters.contains_key("explain") {
            let plan = view.explain(connection, parameters, self.rows)?;
            let contents = Contents::text(request.asked, plan).mime_type("text/plain");
            return Ok(PartialReading::cut(contents, request.range, request.most)?);
        }
        let page = view.run(connection, parameters, self.rows)?;
        let head = [("view", json!(name)), ("cut", json!(page.rows.cut)), ("next", json!(page.next))];
        let contents = Contents::text(request.asked, table_of(&head, page.rows.objects())).mime_type(JSON);
        Ok(PartialReading::cut(contents, request.range, request.most)?)
    }
}

/// One row.
fn row(connection: &mut Connection, asked: &str, table: &Table, key: &str) -> Outcome<Contents> {
    let reader = Reader::new(table, IN_ROW);
    let mut conditions = Conditions::default();
    add_key(table, key, &mut conditions)?;
    let sql = format!("SELECT {} FROM {}{} LIMIT 1", reader.terms(), table.quoted(), conditions.clause());
    let found = connection.all(&[Query::new(sql, conditions.values)]);
    let found = found.map_err(|failure: Failure| failure.of_caller(&format!("the key is \"{key}\"")))?;
    let read = reader.read(found.front().and_then(|rows| rows.first()).ok_or(Error::NotFound)?);
    let place = read.key.map(|key| reader.reference(&key));
    let head = [("table", json!(table.written())), ("reference", json!(place))];
    Ok(Contents::text(asked, object(&head, &format!("\"row\": {}", read.json))).mime_type(JSON))
}
