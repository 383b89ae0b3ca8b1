//! Rows of a table: the columns that are selected, and how a row becomes a key and JSON. Does not decide which rows.

use belljar_guest::{Error, Result};
use belljar_sql::name;

use crate::filter::Conditions;
use crate::key::{self, Key};
use crate::row::Row;
use crate::table::{Column, Size, Table};
use crate::types::Kind;
use crate::value::{self, SizeLimits};

/// The longest key in a reference, in bytes. The host accepts references of 2 KiB.
const MAX_KEY_BYTES: usize = 1200;

/// The longest value of a key that is selected. An index entry has at most a third of a page.
const MAX_KEY_VALUE: usize = 4096;

/// The approximate size of a row as JSON, in bytes. Longer values after it are replaced by their references.
const MAX_ROW_BYTES: usize = 2 * 1024 * 1024;

/// The longest value that a row with more than [`MAX_ROW_BYTES`] still includes, in bytes.
const MAX_SHORT_BYTES: usize = 256;

/// Reads rows of a table.
pub(crate) struct Reader<'a> {
    table: &'a Table,
    /// The beginning of the references to values.
    base: String,
    limits: SizeLimits,
    /// The names of the columns as JSON, each with its colon.
    names: Vec<String>,
    /// Where each column stands in the result.
    places: Vec<usize>,
    has_ctid: bool,
}

/// A row that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) key: Option<String>,
    pub(crate) json: String,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(table: &'a Table, limits: SizeLimits) -> Reader<'a> {
        let has_ctid = table.has_places();
        let mut at = usize::from(has_ctid);
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for column in &table.columns {
            let mut name = String::new();
            value::string(&column.name, &mut name);
            names.push(name + ":");
            places.push(at);
            at += if column.size == Size::Small { 1 } else { 2 };
        }
        let base = format!("tables/{}/rows/", name::segment(&table.written()));
        Reader { table, base, limits, names, places, has_ctid }
    }

    /// The terms of the SELECT. For a column of large values: the value, which is NULL over the limit, and then its size.
    pub(crate) fn terms(&self) -> String {
        let mut terms: Vec<String> = Vec::new();
        if self.has_ctid {
            terms.push("ctid".to_owned());
        }
        for (at, column) in self.table.columns.iter().enumerate() {
            let name = column.quoted();
            let most = match (self.table.key.contains(&at), &column.kind) {
                (true, _) => MAX_KEY_VALUE,
                (false, Kind::Bytes) => self.limits.blob,
                (false, _) => self.limits.text,
            };
            let size = match column.size {
                Size::Small => {
                    terms.push(name);
                    continue;
                }
                Size::Octets => format!("pg_catalog.octet_length({name})"),
                Size::Stored => format!("pg_catalog.pg_column_size({name})"),
            };
            terms.push(format!("CASE WHEN {size} > {most} THEN NULL ELSE {name} END"));
            terms.push(format!("CASE WHEN {size} > {most} THEN {size} END"));
        }
        terms.join(", ")
    }

    /// The key of a row, and its values.
    pub(crate) fn read(&self, row: &Row) -> Read {
        let key = self.key(row);
        let mut json = String::with_capacity(row.len() * 2);
        json.push('{');
        for (at, (column, name)) in self.table.columns.iter().zip(&self.names).enumerate() {
            if at > 0 {
                json.push(',');
            }
            json.push_str(name);
            let place = self.places.get(at).copied().unwrap_or_default();
            let text = row.text(place);
            let is_full = json.len() > MAX_ROW_BYTES;
            let size = match &text {
                None if column.size != Size::Small => row.number::<u64>(place + 1),
                Some(text) => self.left_out(column, text.len(), is_full),
                None => None,
            };
            match size {
                Some(size) => {
                    let reference = key
                        .as_ref()
                        .map(|key| format!("{}{}/{}", self.base, name::segment(key), name::segment(&column.name)));
                    value::placeholder(&column.kind, size, reference.as_deref(), &mut json);
                }
                None => value::write(&column.kind, text.as_deref(), self.limits, &mut json),
            }
        }
        json.push('}');
        Read { key, json }
    }

    /// The size of a value that is too large for the row.
    fn left_out(&self, column: &Column, length: usize, is_full: bool) -> Option<u64> {
        let (most, size) = match &column.kind {
            Kind::Bytes => (self.limits.blob, length.saturating_sub(2) / 2),
            Kind::Text => (self.limits.text, length),
            _ => (4 * self.limits.text, length),
        };
        (size > if is_full { MAX_SHORT_BYTES } else { most }).then_some(size as u64)
    }

    fn key(&self, row: &Row) -> Option<String> {
        if self.has_ctid {
            return row.text(0).map(|place| Key::write_place(&place));
        }
        let values: Vec<_> = self
            .table
            .key
            .iter()
            .filter_map(|at| Some((&self.table.columns.get(*at)?.kind, row.text(*self.places.get(*at)?))))
            .collect();
        let values: Vec<_> = values.iter().map(|(kind, text)| (*kind, text.as_deref())).collect();
        let key = if values.is_empty() { None } else { Key::write(&values) };
        key.filter(|key| key.len() <= MAX_KEY_BYTES)
    }

    /// The reference of the row with this key.
    pub(crate) fn reference(&self, key: &str) -> String {
        format!("{}{}", self.base, name::segment(key))
    }
}

/// Adds the condition that selects the row with this key.
pub(crate) fn add_key(table: &Table, key: &str, conditions: &mut Conditions) -> Result<()> {
    match parse(table, key)? {
        Key::Place(block, row) => {
            let place = conditions.bind(key::place(block, row));
            conditions.add(format!("ctid = {place}"));
        }
        Key::Values(values) => {
            for (column, value) in table.key_columns().zip(values) {
                let value = conditions.bind(value);
                conditions.add(format!("{} = {value}", column.quoted()));
            }
        }
    }
    Ok(())
}

/// Parses a key of this table.
pub(crate) fn parse(table: &Table, key: &str) -> Result<Key> {
    let has_places = table.blocks.is_some();
    match Key::parse(key, table.key.len()) {
        Ok(Key::Place(..)) if !has_places => Err(without_keys(table)),
        Ok(key) => Ok(key),
        Err(_) if table.key.is_empty() && has_places => Err(Error::invalid(format_args!(
            "the key \"{key}\" is no place in \"{}\", which has no primary key: expected ctid=0,1, as its pages say",
            table.written()
        ))),
        Err(_) if table.key.is_empty() => Err(without_keys(table)),
        Err(error) => Err(error),
    }
}

fn without_keys(table: &Table) -> Error {
    Error::invalid(format_args!(
        "the rows of \"{}\" have no keys of that kind: read pages of them, with \"skip\" and \"limit\"",
        table.written()
    ))
}
