//! Rows of a table: a page from a key on, one row, one value. A page goes on where the last one ended by its key, so that
//! the last page of a large table costs what the first one does.

use std::io::{Read as _, Seek as _, SeekFrom};

use belljar_guest::{Error, Result, reference};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use serde_json::Value as Json;

use crate::key::Key;
use crate::schema::{Keys, Table, quote};
use crate::snapshot::error;
use crate::value::{self, IN_PAGE, IN_ROW, Room, Row};

/// How much JSON a page holds; a row that begins below goes on beyond it.
const PAGE_BYTES: usize = 512 * 1024;

/// The largest value that is given whole, and the longest part of one.
pub(crate) const VALUE: u64 = 4 * 1024 * 1024;

/// The longest key that a reference may hold; the host takes references of 2 KiB.
const LONGEST_KEY: usize = 1200;

/// Some rows.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    /// The rows, each with its key.
    pub(crate) rows: Vec<(Option<String>, Row)>,
    /// The key after which the next page begins.
    pub(crate) next: Option<String>,
    /// There is more, and no way to ask for it.
    pub(crate) cut: bool,
}

/// A value on its own.
#[derive(Debug, PartialEq)]
pub(crate) struct Single {
    pub(crate) value: Value,
    /// How large all of it is.
    pub(crate) size: u64,
}

/// A condition, and what is bound to its variables.
type Condition = (String, Vec<Value>);

/// At most `limit` rows, from after a key on.
pub(crate) fn page(
    connection: &Connection,
    table: &Table,
    base: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page> {
    let (condition, values) = match after {
        Some(after) => beyond(table, after)?,
        None => (String::new(), Vec::new()),
    };
    let order = match &table.keys {
        Keys::Rowid { alias, .. } => format!(" ORDER BY {}", quote(alias)),
        Keys::Primary(columns) => {
            format!(" ORDER BY {}", list(columns.iter().map(|column| quote(&column.name))))
        }
        Keys::None => String::new(),
    };
    let sql = format!("{}{condition}{order} LIMIT {}", select(table, IN_PAGE), limit + 1);
    let mut statement = connection.prepare(&sql).map_err(error)?;
    let mut found = statement.query(params_from_iter(values)).map_err(error)?;
    let mut page = Page { rows: Vec::new(), next: None, cut: false };
    let (mut bytes, mut full) = (0, false);
    let mut last = None;
    while let Some(row) = found.next().map_err(error)? {
        if page.rows.len() == limit || full {
            page.cut = last.is_none();
            page.next = last;
            break;
        }
        let (key, position, row) = one(table, row, base, IN_PAGE)?;
        full = is_full(&row, &mut bytes);
        page.rows.push((key, row));
        last = position;
    }
    Ok(page)
}

/// The row with a key, and that key as it is written here.
pub(crate) fn row(connection: &Connection, table: &Table, base: &str, key: &str) -> Result<(Option<String>, Row)> {
    let (condition, values) = equal(table, key)?;
    let sql = format!("{} WHERE {condition} LIMIT 1", select(table, IN_ROW));
    let mut statement = connection.prepare(&sql).map_err(error)?;
    let mut found = statement.query(params_from_iter(values)).map_err(error)?;
    let found = found.next().map_err(error)?.ok_or(Error::NotFound)?;
    let (key, _, row) = one(table, found, base, IN_ROW)?;
    Ok((key, row))
}

/// A value of a row, all of it or a part.
pub(crate) fn single(
    connection: &Connection,
    table: &Table,
    key: &str,
    column: &str,
    (offset, length): (Option<u64>, Option<u64>),
) -> Result<Single> {
    let column = table.columns.iter().find(|known| known.name == column).ok_or(Error::NotFound)?;
    let (condition, values) = equal(table, key)?;
    let (from, name) = (quote(&table.name), quote(&column.name));
    let number = match &table.keys {
        Keys::Rowid { alias, .. } => quote(alias),
        _ => "NULL".to_owned(),
    };
    let sql = format!(
        "SELECT coalesce(octet_length({name}), 0), {number}, typeof({name}) FROM {from} WHERE {condition} LIMIT 1"
    );
    let about = connection.query_row(&sql, params_from_iter(&values), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, String>(2)?))
    });
    let (size, rowid, kind) = about.optional().map_err(error)?.ok_or(Error::NotFound)?;
    let size = u64::try_from(size).unwrap_or_default();
    let is_part = offset.is_some() || length.is_some();
    let is_long = matches!(kind.as_str(), "text" | "blob");
    if !is_part || !is_long {
        if size > VALUE {
            return Err(Error::failed(format_args!(
                "the value has {size} bytes, and {VALUE} are given at once; ask for parts with ?offset=0&length={VALUE}"
            )));
        }
        let sql = format!("SELECT {name} FROM {from} WHERE {condition} LIMIT 1");
        let value = connection.query_row(&sql, params_from_iter(&values), |row| row.get(0)).map_err(error)?;
        return Ok(Single { value, size });
    }
    let rowid = rowid.filter(|_| table.kind == "table").ok_or_else(|| {
        Error::failed(format_args!(
            "parts of a value can be had from tables with row numbers: \"{}\" has none",
            table.name
        ))
    })?;
    let offset = offset.unwrap_or(0);
    let length = length.unwrap_or(VALUE).min(VALUE);
    let mut blob =
        connection.blob_open("main", table.name.as_str(), column.name.as_str(), rowid, true).map_err(error)?;
    let mut bytes = Vec::new();
    blob.seek(SeekFrom::Start(offset.min(size)))?;
    blob.take(length).read_to_end(&mut bytes)?;
    let value = match String::from_utf8(bytes) {
        Ok(text) if kind == "text" => Value::Text(text),
        Ok(text) => Value::Blob(text.into_bytes()),
        Err(error) => Value::Blob(error.into_bytes()),
    };
    Ok(Single { value, size })
}

/// The keys of a table that begin with `prefix`, as far as its order gives them: at most `most`.
pub(crate) fn keys(connection: &Connection, table: &Table, prefix: &str, most: usize) -> Result<Vec<String>> {
    let first = match &table.keys {
        Keys::Rowid { column: Some(column), .. } => column,
        Keys::Rowid { others, .. } | Keys::Primary(others) => match others.as_slice() {
            [first, ..] => &first.name,
            [] => return Ok(Vec::new()),
        },
        Keys::None => return Ok(Vec::new()),
    };
    let name = quote(first);
    let mut ranges: Vec<(Value, Value)> = Vec::new();
    if let Some(start) = prefix.parse::<i64>().ok().filter(|number| *number > 0) {
        // 12, 120 to 129, 1200 to 1299, ...
        let mut bounds = Some((start, start + 1));
        while let Some((from, to)) = bounds.filter(|_| ranges.len() < 9) {
            ranges.push((Value::Integer(from), Value::Integer(to)));
            bounds = from.checked_mul(10).zip(to.checked_mul(10));
        }
    }
    if !prefix.is_empty() {
        ranges.push((Value::Text(prefix.to_owned()), Value::Text(format!("{prefix}\u{10ffff}"))));
    }
    let select = select(table, Room { text: 0, blob: 0 });
    let mut keys = Vec::new();
    let mut take = |condition: String, values: Vec<Value>| -> Result<()> {
        let sql = format!("{select}{condition} ORDER BY {name} LIMIT {most}");
        let mut statement = connection.prepare(&sql).map_err(error)?;
        let mut found = statement.query(params_from_iter(values)).map_err(error)?;
        while let Some(row) = found.next().map_err(error)? {
            let (key, ..) = one(table, row, "", IN_PAGE)?;
            keys.extend(key.filter(|key| key.starts_with(prefix)));
        }
        Ok(())
    };
    if prefix.is_empty() {
        take(String::new(), Vec::new())?;
    }
    for (from, to) in ranges {
        take(format!(" WHERE {name} >= ? AND {name} < ?"), vec![from, to])?;
    }
    let mut seen = std::collections::HashSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    keys.truncate(most);
    Ok(keys)
}

/// The statement that all rows come from: the key's values, and for each column its type, its size, and itself if it is not
/// too large. SQLite finds type and size without loading the value.
fn select(table: &Table, room: Room) -> String {
    let mut terms: Vec<String> = Vec::new();
    match &table.keys {
        Keys::Rowid { alias, others, .. } => {
            terms.push(quote(alias));
            terms.extend(others.iter().map(|column| short(&quote(&column.name), LONGEST_KEY, LONGEST_KEY)));
        }
        Keys::Primary(columns) => {
            terms.extend(columns.iter().map(|column| short(&quote(&column.name), LONGEST_KEY, LONGEST_KEY)));
        }
        Keys::None => {}
    }
    for column in &table.columns {
        let name = quote(&column.name);
        terms.extend([format!("typeof({name})"), format!("octet_length({name})"), short(&name, room.text, room.blob)]);
    }
    format!("SELECT {} FROM {}", list(terms), quote(&table.name))
}

/// A value if it has room, and NULL otherwise.
fn short(name: &str, text: usize, blob: usize) -> String {
    format!(
        "CASE typeof({name}) WHEN 'text' THEN iif(octet_length({name}) <= {text}, {name}, NULL) \
         WHEN 'blob' THEN iif(octet_length({name}) <= {blob}, {name}, NULL) ELSE {name} END"
    )
}

/// A row that `select` gave: its key, the key by which a page goes on after it, and its values.
fn one(
    table: &Table,
    row: &rusqlite::Row<'_>,
    base: &str,
    room: Room,
) -> Result<(Option<String>, Option<String>, Row)> {
    let columns = match &table.keys {
        Keys::Rowid { others, .. } => others.as_slice(),
        Keys::Primary(columns) => columns.as_slice(),
        Keys::None => &[],
    };
    let mut at = 0;
    let mut rowid = None;
    if let Keys::Rowid { .. } = table.keys {
        rowid = row.get::<_, Option<i64>>(0).map_err(error)?;
        at = 1;
    }
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        values.push((row.get_ref(at).map_err(error)?, column.affinity));
        at += 1;
    }
    let own = if values.is_empty() { None } else { Key::write(&values).filter(|key| key.len() <= LONGEST_KEY) };
    let (key, position) = match &table.keys {
        Keys::Rowid { column: Some(_), .. } => {
            (rowid.map(|rowid| rowid.to_string()), rowid.map(|rowid| rowid.to_string()))
        }
        Keys::Rowid { .. } => (own.or(rowid.map(Key::write_rowid)), rowid.map(Key::write_rowid)),
        Keys::Primary(_) => (own.clone(), own),
        Keys::None => (None, None),
    };
    let mut fields = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        let kind: String = row.get(at).map_err(error)?;
        let size: Option<i64> = row.get(at + 1).map_err(error)?;
        let value = row.get_ref(at + 2).map_err(error)?;
        at += 3;
        let json = if matches!(value, ValueRef::Null) && kind != "null" {
            let place = key.as_ref().map(|key| reference_of_value(base, &table.name, key, &column.name));
            value::elsewhere(&kind, size.unwrap_or_default(), place.as_deref())
        } else {
            value::json(value, room)
        };
        fields.push((column.name.clone(), json));
    }
    Ok((key, position, Row(fields)))
}

fn reference_of_value(base: &str, table: &str, key: &str, column: &str) -> String {
    format!("{}/{}", reference_of_row(base, table, key), reference::encode_segment(column))
}

/// Where a row is.
pub(crate) fn reference_of_row(base: &str, table: &str, key: &str) -> String {
    format!("{base}tables/{}/rows/{}", reference::encode_segment(table), reference::encode_segment(key))
}

/// The condition for the row with a key.
fn equal(table: &Table, key: &str) -> Result<Condition> {
    let parsed = parse(table, key)?;
    Ok(match (&table.keys, parsed) {
        (Keys::Rowid { alias, .. }, Key::Rowid(number)) => {
            (format!("{} = ?", quote(alias)), vec![Value::Integer(number)])
        }
        (Keys::Rowid { others: columns, column: None, .. } | Keys::Primary(columns), Key::Values(values)) => {
            let terms: Vec<String> = columns.iter().map(|column| format!("{} = ?", quote(&column.name))).collect();
            (terms.join(" AND "), values)
        }
        (Keys::Rowid { alias, .. }, Key::Values(values)) => (format!("{} = ?", quote(alias)), values),
        (Keys::Primary(_) | Keys::None, _) => return Err(Error::NotFound),
    })
}

/// The condition for the rows after a key.
fn beyond(table: &Table, key: &str) -> Result<Condition> {
    let parsed = parse(table, key)?;
    Ok(match (&table.keys, parsed) {
        (Keys::Rowid { alias, .. }, Key::Rowid(number)) => {
            (format!(" WHERE {} > ?", quote(alias)), vec![Value::Integer(number)])
        }
        (Keys::Rowid { alias, column: Some(_), .. }, Key::Values(values)) => {
            (format!(" WHERE {} > ?", quote(alias)), values)
        }
        (Keys::Rowid { alias, .. }, Key::Values(_)) => {
            let (condition, values) = equal(table, key)?;
            let alias = quote(alias);
            (format!(" WHERE {alias} > (SELECT {alias} FROM {} WHERE {condition})", quote(&table.name)), values)
        }
        (Keys::Primary(columns), Key::Values(values)) => {
            let names = list(columns.iter().map(|column| quote(&column.name)));
            (format!(" WHERE ({names}) > ({})", list(columns.iter().map(|_| "?".to_owned()))), values)
        }
        (Keys::Primary(_) | Keys::None, _) => {
            return Err(Error::invalid(format_args!("\"{}\" has no rows after \"{key}\"", table.name)));
        }
    })
}

fn parse(table: &Table, key: &str) -> Result<Key> {
    let affinities: Vec<_> = match &table.keys {
        Keys::Rowid { column: Some(name), .. } => {
            table.columns.iter().filter(|column| column.name == *name).map(|column| column.affinity).collect()
        }
        Keys::Rowid { others, .. } if others.is_empty() => vec![crate::schema::Affinity::Integer],
        Keys::Rowid { others: columns, .. } | Keys::Primary(columns) => {
            columns.iter().map(|column| column.affinity).collect()
        }
        Keys::None => {
            return Err(Error::invalid(format_args!("\"{}\" is a view: its rows have no keys", table.name)));
        }
    };
    Key::parse(key, &affinities)
}

fn list(terms: impl IntoIterator<Item = String>) -> String {
    terms.into_iter().collect::<Vec<_>>().join(", ")
}

/// About how long a value is as JSON.
fn size(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 8,
        Json::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value) + 8).sum(),
        _ => 16,
    }
}

/// Whether a page is full.
pub(crate) fn is_full(row: &Row, bytes: &mut usize) -> bool {
    *bytes += row.0.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>();
    *bytes > PAGE_BYTES
}
