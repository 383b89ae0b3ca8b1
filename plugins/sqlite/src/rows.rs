//! Rows of a table: one row, the keys that begin with a text, and the SQL and the decoding that pages share.

use belljar_guest::{Error, Result};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::Value as Json;

use crate::filter::Condition;
use crate::key::Key;
use crate::name;
use crate::schema::{Affinity, Column, Keys, Table, quote};
use crate::snapshot::error;
use crate::value::{self, IN_PAGE, IN_ROW, Parameter, Row, SizeLimits};

/// The approximate size of a page as JSON, in bytes. The last row may exceed it.
pub(crate) const PAGE_BYTES: usize = 512 * 1024;

/// The longest key in a reference, in bytes. The host accepts references of 2 KiB.
const MAX_KEY_BYTES: usize = 1200;

/// The approximate size of a row as JSON, in bytes. Longer texts and blobs after it are replaced by their references.
const MAX_ROW_BYTES: usize = 2 * 1024 * 1024;

/// The longest value that a row with more than [`MAX_ROW_BYTES`] still includes, in bytes.
const MAX_SHORT_BYTES: usize = 256;

/// The row with this key, and the key in canonical spelling.
pub(crate) fn row(connection: &Connection, table: &Table, base: &str, key: &str) -> Result<(Option<String>, Row)> {
    let condition = equals_key(table, key)?;
    let sql = format!("{}{} LIMIT 1", select(table, IN_ROW), condition.clause());
    let mut statement = connection.prepare(&sql).map_err(error)?;
    let mut found = statement.query(params_from_iter(&condition.values)).map_err(error)?;
    let found = found.next().map_err(error)?.ok_or(Error::NotFound)?;
    let (key, _, row) = decode_row(table, found, base, IN_ROW)?;
    Ok((key, row))
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

/// The SELECT for rows: the key's values, then two terms for each column: the value, which is NULL if it is larger than
/// `limits`, and then the type and the size. SQLite finds type and size without loading the value.
pub(crate) fn select(table: &Table, limits: SizeLimits) -> String {
    let keys = match &table.keys {
        Keys::Rowid { others, .. } => others.as_slice(),
        Keys::Primary(columns) => columns.as_slice(),
        Keys::None => &[],
    };
    let mut terms: Vec<String> = Vec::new();
    if let Keys::Rowid { alias, .. } = &table.keys {
        terms.push(quote(alias));
    }
    terms.extend(keys.iter().map(|column| {
        let name = quote(&column.name);
        format!("iif({}, NULL, {name})", is_larger(column, &name, MAX_KEY_BYTES))
    }));
    for column in &table.columns {
        let name = quote(&column.name);
        let is_larger = is_larger(column, &name, limits.text);
        terms.push(format!("iif({is_larger}, NULL, {name})"));
        terms.push(format!("iif({is_larger}, typeof({name}) || octet_length({name}), NULL)"));
    }
    format!("SELECT {} FROM {}", list(terms), quote(&table.name))
}

/// The SQL condition that a text or a blob has more than `most` bytes.
fn is_larger(column: &Column, name: &str, most: usize) -> String {
    match column.affinity {
        Affinity::Text | Affinity::Blob => format!("octet_length({name}) > {most}"),
        // These columns seldom have text, and SQLite would write each number as text to find its size.
        Affinity::Integer | Affinity::Real | Affinity::Numeric => {
            format!("typeof({name}) IN ('text', 'blob') AND octet_length({name}) > {most}")
        }
    }
}

/// Decodes a row of [`select`]: its key, the key from which the next page continues, and its values.
pub(crate) fn decode_row(
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
    let mut bytes = 0;
    for column in &table.columns {
        let value = row.get_ref(at).map_err(error)?;
        // The type and the size of a value that SQLite left out, such as `blob6000`.
        let about = row.get_ref(at + 1).map_err(error)?.as_str_or_null().unwrap_or_default();
        at += 2;
        let is_full = bytes > MAX_ROW_BYTES;
        let left_out = match value {
            ValueRef::Null => about.map(parse_size),
            ValueRef::Text(text) if text.len() > if is_full { MAX_SHORT_BYTES } else { limits.text } => {
                Some(("text", text.len() as i64))
            }
            ValueRef::Blob(blob) if blob.len() > limits.blob => Some(("blob", blob.len() as i64)),
            _ => None,
        };
        let json = if let Some((kind, size)) = left_out {
            let place = key.as_ref().map(|key| reference_of_value(base, &table.name, key, &column.name));
            value::placeholder(kind, size, place.as_deref())
        } else {
            value::json(value, limits)
        };
        bytes += size_of(&json);
        fields.push((column.name.clone(), json));
    }
    Ok((key, position, Row(fields)))
}

/// The type and the size in a text such as `blob6000`.
fn parse_size(text: &str) -> (&str, i64) {
    let (kind, size) = text.split_at_checked(4).unwrap_or((text, ""));
    (kind, size.parse().unwrap_or_default())
}

fn reference_of_value(base: &str, table: &str, key: &str, column: &str) -> String {
    format!("{}/{}", reference_of_row(base, table, key), name::segment(column))
}

/// The reference of a row.
pub(crate) fn reference_of_row(base: &str, table: &str, key: &str) -> String {
    format!("{base}tables/{}/rows/{}", name::segment(table), name::segment(key))
}

/// The condition that selects the row with this key.
pub(crate) fn equals_key(table: &Table, key: &str) -> Result<Condition> {
    let parsed = parse(table, key)?;
    let rowid = |alias: &str, value: Parameter| Condition::new(format!("{} = ?", quote(alias)), vec![value]);
    Ok(match (&table.keys, parsed) {
        (Keys::Rowid { alias, .. }, Key::Rowid(number)) => rowid(alias, Value::Integer(number).into()),
        (Keys::Rowid { others: columns, column: None, .. } | Keys::Primary(columns), Key::Values(values))
            if !columns.is_empty() =>
        {
            let terms: Vec<String> = columns.iter().map(|column| format!("{} = ?", quote(&column.name))).collect();
            Condition::new(terms.join(" AND "), values)
        }
        (Keys::Rowid { alias, .. }, Key::Values(values)) => Condition::new(format!("{} = ?", quote(alias)), values),
        (Keys::Primary(_) | Keys::None, _) => return Err(Error::NotFound),
    })
}

/// The condition that selects the rows after this key.
pub(crate) fn after_key(table: &Table, key: &str) -> Result<Condition> {
    let parsed = parse(table, key)?;
    Ok(match (&table.keys, parsed) {
        (Keys::Rowid { alias, .. }, Key::Rowid(number)) => {
            Condition::new(format!("{} > ?", quote(alias)), vec![Value::Integer(number).into()])
        }
        (Keys::Rowid { alias, others, .. }, Key::Values(values)) if others.is_empty() => {
            Condition::new(format!("{} > ?", quote(alias)), values)
        }
        (Keys::Rowid { alias, .. }, Key::Values(_)) => {
            let equal = equals_key(table, key)?;
            let alias = quote(alias);
            let sql = format!("{alias} > (SELECT {alias} FROM {}{})", quote(&table.name), equal.clause());
            Condition::new(sql, equal.values)
        }
        (Keys::Primary(columns), Key::Values(values)) => {
            let names = list(columns.iter().map(|column| quote(&column.name)));
            let marks = list(columns.iter().map(|_| "?".to_owned()));
            Condition::new(format!("({names}) > ({marks})"), values)
        }
        (Keys::Primary(_) | Keys::None, _) => {
            return Err(Error::invalid(format_args!(
                "\"after\" is \"{key}\": \"{}\" has no keys of that kind",
                table.name
            )));
        }
    })
}

pub(crate) fn parse(table: &Table, key: &str) -> Result<Key> {
    let affinities: Vec<_> = match &table.keys {
        Keys::Rowid { column: Some(name), .. } => {
            table.columns.iter().filter(|column| column.name == *name).map(|column| column.affinity).collect()
        }
        Keys::Rowid { others, .. } if others.is_empty() => vec![Affinity::Integer],
        Keys::Rowid { others: columns, .. } | Keys::Primary(columns) => {
            columns.iter().map(|column| column.affinity).collect()
        }
        Keys::None => {
            return Err(Error::invalid(format_args!(
                "the rows of \"{}\" have no keys: read pages of them, with \"skip\" and \"limit\"",
                table.name
            )));
        }
    };
    Key::parse(key, &affinities)
}

pub(crate) fn list(terms: impl IntoIterator<Item = String>) -> String {
    terms.into_iter().collect::<Vec<_>>().join(", ")
}

/// The approximate length of a value as JSON, in bytes.
fn size_of(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 8,
        Json::Object(fields) => fields.iter().map(|(name, value)| name.len() + size_of(value) + 8).sum(),
        _ => 16,
    }
}

/// Adds the size of `row` to `bytes`. True if this is more than `max`.
pub(crate) fn is_full(row: &Row, bytes: &mut usize, max: usize) -> bool {
    *bytes += row.0.iter().map(|(name, value)| name.len() + size_of(value)).sum::<usize>();
    *bytes > max
}
