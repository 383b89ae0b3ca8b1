//! One value, read alone: all of it, or a part. A part of a large value is read without the rest of it.

use std::io::{Read as _, Seek as _, SeekFrom};

use belljar_guest::{Contents, Error, Extent, PartialReading, Positions, Range, Result, Unit};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use crate::filter::Condition;
use crate::rows::equals_key;
use crate::schema::{Column, Keys, Kind, Table, quote};
use crate::snapshot::{Snapshot, error};
use crate::value;
use belljar_sql::output::lines;

/// The largest text that is searched for lines, in bytes.
const MAX_LINES_BYTES: u64 = 12 * 1024 * 1024;

/// The first bytes of a value, which tell its media type.
const HEAD: u64 = 512;

/// A value in its row.
struct Cell<'a> {
    connection: &'a Connection,
    table: &'a Table,
    column: &'a Column,
    condition: Condition,
    /// The size in the database, in bytes.
    size: u64,
    /// Where SQLite can open the value, if it can.
    rowid: Option<i64>,
}

/// The value of a column in the row with this key: the part `range`, or at most `most` bytes from the start.
pub(crate) fn read(
    snapshot: &Snapshot,
    asked: &str,
    table: &Table,
    (key, column): (&str, &str),
    range: Option<Range>,
    most: u64,
) -> Result<PartialReading> {
    let connection = &snapshot.connection;
    let column = table.column(column).ok_or(Error::NotFound)?;
    let condition = equals_key(table, key)?;
    let (from, name) = (quote(&table.name), quote(&column.name));
    let number = match &table.keys {
        Keys::Rowid { alias, .. } => quote(alias),
        Keys::Primary(_) | Keys::None => "NULL".to_owned(),
    };
    let sql =
        format!("SELECT octet_length({name}), {number}, typeof({name}) FROM {from}{} LIMIT 1", condition.clause());
    let about = connection.query_row(&sql, params_from_iter(&condition.values), |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, String>(2)?))
    });
    let (size, rowid, kind) = about.optional().map_err(error)?.ok_or(Error::NotFound)?;
    let size = u64::try_from(size.unwrap_or_default()).unwrap_or_default();
    let can_open = table.kind == Kind::Table && !column.generated;
    let cell = Cell { connection, table, column, condition, size, rowid: rowid.filter(|_| can_open) };
    let mut reading = match kind.as_str() {
        "text" => cell.text(asked, range, most)?,
        "blob" => cell.blob(asked, range, most)?,
        _ => lines(asked, &value::json((&cell.whole()?).into(), value::IN_ROW)).into(),
    };
    let size = serde_json::json!({ "size": size }).to_string();
    reading.contents =
        reading.contents.into_iter().map(|contents| contents.meta("sqlite/value", size.clone())).collect();
    Ok(reading)
}

impl Cell<'_> {
    fn text(&self, asked: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let plain = |text: String| Contents::text(asked, text).mime_type("text/plain");
        let unit = range.map(|range| range.unit);
        if unit == Some(Unit::Lines) && self.size > MAX_LINES_BYTES {
            return Err(Error::invalid(format_args!(
                "the text has {} bytes: lines are found in texts of at most {MAX_LINES_BYTES}; read it with \
                 \"?bytes=0-65535\"",
                self.size
            )));
        }
        let encoding: String = self.connection.query_row("PRAGMA encoding", [], |row| row.get(0)).map_err(error)?;
        // The parts of a text are positions in UTF-8. SQLite converts only whole texts.
        if unit == Some(Unit::Lines) || encoding != "UTF-8" {
            let sql = format!("SELECT {}", quote(&self.column.name));
            let bytes =
                self.query(&sql, |row| Ok(row.get_ref(0)?.as_bytes().map(<[u8]>::to_vec).unwrap_or_default()))?;
            return match String::from_utf8(bytes) {
                Ok(text) => PartialReading::cut(plain(text), range, most),
                Err(odd) => PartialReading::cut(Contents::blob(asked, odd.into_bytes()), range, most),
            };
        }
        let (start, end) = self.span(range, most);
        // A part may begin or end inside a character, of at most four bytes.
        let (from, to) = (start.saturating_sub(3), self.size.min(end + 3));
        let mut bytes = self.bytes(from, to)?;
        let (mut first, mut last) = (as_index(start - from), as_index(end - from));
        let is_inside = |at: usize, bytes: &[u8]| bytes.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
        while first > 0 && is_inside(first, &bytes) {
            first -= 1;
        }
        while last > first && is_inside(last, &bytes) {
            last -= 1;
        }
        // A part inside one character is this character.
        if last == first && end > start {
            last = as_index(end - from);
            while last < bytes.len() && is_inside(last, &bytes) {
                last += 1;
            }
        }
        let part = bytes.get(first..last).unwrap_or_default();
        Ok(match std::str::from_utf8(part) {
            Ok(text) => self.placed(plain(text.to_owned()), range, from + first as u64, from + last as u64),
            // SQLite does not check that text is UTF-8.
            Err(_) => {
                bytes.truncate(as_index(end - from));
                bytes.drain(..as_index(start - from).min(bytes.len()));
                let contents = Contents::blob(asked, bytes).mime_type("application/octet-stream");
                self.placed(contents, range, start, end)
            }
        })
    }

    fn blob(&self, asked: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        if range.is_some_and(|range| range.unit == Unit::Lines) {
            return Err(Error::invalid("the value is bytes and has no lines; read it with \"?bytes=0-65535\""));
        }
        let (start, end) = self.span(range, most);
        let bytes = self.bytes(start, end)?;
        let media_type = |bytes: &[u8]| infer::get(bytes).map_or("application/octet-stream", |kind| kind.mime_type());
        let kind = if start == 0 { media_type(&bytes) } else { media_type(&self.bytes(0, HEAD.min(self.size))?) };
        Ok(self.placed(Contents::blob(asked, bytes).mime_type(kind), range, start, end))
    }

    /// The requested bytes, of which there are at most `most`.
    fn span(&self, range: Option<Range>, most: u64) -> (u64, u64) {
        let positions = range.map_or(Positions::Span { start: 0, end: None }, |range| range.positions);
        let (start, end) = positions.within(self.size);
        (start, end.min(start.saturating_add(most)))
    }

    fn placed(&self, contents: Contents, range: Option<Range>, start: u64, end: u64) -> PartialReading {
        if range.is_none() && start == 0 && end == self.size {
            return PartialReading::whole(contents);
        }
        PartialReading::part(contents, Extent::new(Unit::Bytes, start, end, self.size))
    }

    /// The bytes from `start` to `end`, which is excluded.
    fn bytes(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let length = end.saturating_sub(start);
        let Some(rowid) = self.rowid else {
            // SQLite loads the whole value here.
            let name = quote(&self.column.name);
            let sql = format!("SELECT substr(CAST({name} AS BLOB), {}, {length})", start + 1);
            return self.query(&sql, |row| row.get::<_, Option<Vec<u8>>>(0).map(Option::unwrap_or_default));
        };
        let (table, column) = (self.table.name.as_str(), self.column.name.as_str());
        let mut blob = self.connection.blob_open("main", table, column, rowid, true).map_err(error)?;
        let mut bytes = Vec::with_capacity(as_index(length));
        blob.seek(SeekFrom::Start(start))?;
        blob.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn whole(&self) -> Result<Value> {
        self.query(&format!("SELECT {}", quote(&self.column.name)), |row| row.get(0))
    }

    fn query<T>(&self, select: &str, of: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let sql = format!("{select} FROM {}{} LIMIT 1", quote(&self.table.name), self.condition.clause());
        self.connection.query_row(&sql, params_from_iter(&self.condition.values), of).map_err(error)
    }
}

/// A position in memory. Parts fit in memory.
fn as_index(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
