//! Rows of a table: a page after a key, one row, one value. A page continues after the last key of the previous page
//! (keyset pagination): the last page of a large table costs as much as the first.

use std::io::{Read as _, Seek as _, SeekFrom};

use belljar_guest::{Error, Result, reference};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use serde_json::Value as Json;

use crate::key::Key;
use crate::schema::{Keys, Table, quote};
use crate::snapshot::error;
use crate::value::{self, IN_PAGE, IN_ROW, Row, SizeLimits};

/// The approximate size of a page as JSON, in bytes. The last row may exceed it.
pub(crate) const PAGE_BYTES: usize = 512 * 1024;

/// The largest value, or part of a value, in one read, in bytes.
pub(crate) const MAX_VALUE_BYTES: u64 = 4 * 1024 * 1024;

/// The longest key in a reference, in bytes. The host accepts references of 2 KiB.
const MAX_KEY_BYTES: usize = 1200;

/// A page of rows.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    /// The rows, each with its key.
    pub(crate) rows: Vec<(Option<String>, Row)>,
    /// The key after which the next page begins.
    pub(crate) next: Option<String>,
    /// True if more rows exist but the table has no key to continue from.
    pub(crate) cut: bool,
}

/// One value, read alone.
#[derive(Debug, PartialEq)]
pub(crate) struct Single {
    pub(crate) value: Value,
    /// The size of the whole value in bytes; `value` may be a part.
    pub(crate) size: u64,
}

/// An SQL condition and the values of its parameters.
type Condition = (String, Vec<Value>);

/// At most `limit` rows, starting after the key `after`.
pub(crate) fn page(
    connection: &Connection,
    table: &Table,
    base: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page> {
    let (condition, values) = match after {
        Some(after) => after_key(table, after)?,
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
        let (key, position, row) = decode_row(table, row, base, IN_PAGE)?;
        full = is_full(&row, &mut bytes, PAGE_BYTES);
        page.rows.push((key, row));
        last = position;
    }
    Ok(page)
}

/// The row with this key, and the key in canonical spelling.
pub(crate) fn row(connection: &Connection, table: &Table, base: &str, key: &str) -> Result<(Option<String>, Row)> {
    let (condition, values) = equals_key(table, key)?;
    let sql = format!("{} WHERE {condition} LIMIT 1", select(table, IN_ROW));
    let mut statement = connection.prepare(&sql).map_err(error)?;
    let mut found = statement.query(params_from_iter(values)).map_err(error)?;
    let found = found.next().map_err(error)?.ok_or(Error::NotFound)?;
    let (key, _, row) = decode_row(table, found, base, IN_ROW)?;
    Ok((key, row))
}

/// One value of a row: all of it, or `length` bytes from `offset`.
pub(crate) fn single(
    connection: &Connection,
    table: &Table,
    key: &str,
    column: &str,
    (offset, length): (Option<u64>, Option<u64>),
) -> Result<Single> {
    let column = table.columns.iter().find(|known| known.name == column).ok_or(Error::NotFound)?;
    let (condition, values) = equals_key(table, key)?;
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
        if size > MAX_VALUE_BYTES {
            return Err(Error::failed(format_args!(
                "the value has {size} bytes, the limit of one read is {MAX_VALUE_BYTES}; ask for parts with ?offset=0&length={MAX_VALUE_BYTES}"
            )));
        }
        let sql = format!("SELECT {name} FROM {from} WHERE {condition} LIMIT 1");
        let value = connection.query_row(&sql, params_from_iter(&values), |row| row.get(0)).map_err(error)?;
        return Ok(Single { value, size });
    }
    let rowid = rowid.filter(|_| table.kind == "table").ok_or_else(|| {
        Error::failed(format_args!("only tables with a rowid give parts of a value: \"{}\" has none", table.name))
    })?;
    let offset = offset.unwrap_or(0);
    let length = length.unwrap_or(MAX_VALUE_BYTES).min(MAX_VALUE_BYTES);
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

/// At most `most` keys of a table that begin with `prefix`. Searches by ranges of the first key column.
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
        // The numbers that begin with "12": 12, 120 to 129, 1200 to 1299, ...
        let mut bounds = Some((start, start + 1));
        while let Some((from, to)) = bounds.filter(|_| ranges.len() < 9) {
            ranges.push((Value::Integer(from), Value::Integer(to)));
            bounds = from.checked_mul(10).zip(to.checked_mul(10));
        }
    }
    if !prefix.is_empty() {
        ranges.push((Value::Text(prefix.to_owned()), Value::Text(format!("{prefix}\u{10ffff}"))));
    }
    let select = select(table, SizeLimits { text: 0, blob: 0 });
    let mut keys = Vec::new();
    let mut take = |condition: String, values: Vec<Value>| -> Result<()> {
        let sql = format!("{select}{condition} ORDER BY {name} LIMIT {most}");
        let mut statement = connection.prepare(&sql).map_err(error)?;
        let mut found = statement.query(params_from_iter(values)).map_err(error)?;
        while let Some(row) = found.next().map_err(error)? {
            let (key, ..) = decode_row(table, row, "", IN_PAGE)?;
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

/// The SELECT for rows: the key's values, then type, size and value of each column. A value over `limits` is NULL. SQLite
/// finds type and size without loading the value.
fn select(table: &Table, limits: SizeLimits) -> String {
    let mut terms: Vec<String> = Vec::new();
    match &table.keys {
        Keys::Rowid { alias, others, .. } => {
            terms.push(quote(alias));
            terms.extend(others.iter().map(|column| value_or_null(&quote(&column.name), MAX_KEY_BYTES, MAX_KEY_BYTES)));
        }
        Keys::Primary(columns) => {
            terms
                .extend(columns.iter().map(|column| value_or_null(&quote(&column.name), MAX_KEY_BYTES, MAX_KEY_BYTES)));
        }
        Keys::None => {}
    }
    for column in &table.columns {
        let name = quote(&column.name);
        terms.extend([
            format!("typeof({name})"),
            format!("octet_length({name})"),
            value_or_null(&name, limits.text, limits.blob),
        ]);
    }
    format!("SELECT {} FROM {}", list(terms), quote(&table.name))
}

/// An SQL expression: the column's value, or NULL if it is larger than `text` or `blob` bytes.
fn value_or_null(name: &str, text: usize, blob: usize) -> String {
    format!(
        "CASE typeof({name}) WHEN 'text' THEN iif(octet_length({name}) <= {text}, {name}, NULL) \
         WHEN 'blob' THEN iif(octet_length({name}) <= {blob}, {name}, NULL) ELSE {name} END"
    )
}

/// Decodes a row of [`select`]: its key, the key from which the next page continues, and its values.
fn decode_row(
    table: &Table,
    row: &rusqlite::Row<'_>,
    base: &str,
    limits: SizeLimits,
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
    let own = if values.is_empty() { None } else { Key::write(&values).filter(|key| key.len() <= MAX_KEY_BYTES) };
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
            value::placeholder(&kind, size.unwrap_or_default(), place.as_deref())
        } else {
            value::json(value, limits)
        };
        fields.push((column.name.clone(), json));
    }
    Ok((key, position, Row(fields)))
}

fn reference_of_value(base: &str, table: &str, key: &str, column: &str) -> String {
    format!("{}/{}", reference_of_row(base, table, key), reference::encode_segment(column))
}

/// The reference of a row.
pub(crate) fn reference_of_row(base: &str, table: &str, key: &str) -> String {
    format!("{base}tables/{}/rows/{}", reference::encode_segment(table), reference::encode_segment(key))
}

/// The condition that selects the row with this key.
fn equals_key(table: &Table, key: &str) -> Result<Condition> {
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

/// The condition that selects the rows after this key.
fn after_key(table: &Table, key: &str) -> Result<Condition> {
    let parsed = parse(table, key)?;
    Ok(match (&table.keys, parsed) {
        (Keys::Rowid { alias, .. }, Key::Rowid(number)) => {
            (format!(" WHERE {} > ?", quote(alias)), vec![Value::Integer(number)])
        }
        (Keys::Rowid { alias, column: Some(_), .. }, Key::Values(values)) => {
            (format!(" WHERE {} > ?", quote(alias)), values)
        }
        (Keys::Rowid { alias, .. }, Key::Values(_)) => {
            let (condition, values) = equals_key(table, key)?;
            let alias = quote(alias);
            (format!(" WHERE {alias} > (SELECT {alias} FROM {} WHERE {condition})", quote(&table.name)), values)
        }
        (Keys::Primary(columns), Key::Values(values)) => {
            let names = list(columns.iter().map(|column| quote(&column.name)));
            (format!(" WHERE ({names}) > ({})", list(columns.iter().map(|_| "?".to_owned()))), values)
        }
        (Keys::Primary(_) | Keys::None, _) => {
            return Err(Error::invalid(format_args!(
                "\"after\" is \"{key}\": \"{}\" has no keys of that kind",
                table.name
            )));
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

/// The approximate length of a value as JSON, in bytes.
fn size(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 8,
        Json::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value) + 8).sum(),
        _ => 16,
    }
}

/// Adds the size of `row` to `bytes`. True if this is more than `max`.
pub(crate) fn is_full(row: &Row, bytes: &mut usize, max: usize) -> bool {
    *bytes += row.0.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>();
    *bytes > max
}
