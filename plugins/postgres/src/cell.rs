//! One value, read alone: all of it, or a part. The server cuts a part out, and sends no more.

use belljar_guest::{Contents, Error, Extent, PartialReading, Positions, Range, Unit};

use crate::connection::{Connection, Query};
use crate::failure::Outcome;
use crate::filter::Conditions;
use crate::rows::add_key;
use crate::table::{Column, Table};
use crate::types::Kind;

/// The largest text that is searched for lines, in bytes.
const MAX_LINES_BYTES: u64 = 12 * 1024 * 1024;

/// The largest value of PostgreSQL, in bytes.
const MAX_VALUE: u64 = 1 << 30;

/// The first bytes of a value, which tell its media type.
const HEAD: u64 = 512;

/// The value of a column in the row with this key: the part `range`, or at most `most` bytes from the start.
pub(crate) fn read(
    connection: &mut Connection,
    asked: &str,
    table: &Table,
    (key, column): (&str, &str),
    range: Option<Range>,
    most: u64,
) -> Outcome<PartialReading> {
    if table.denied.iter().any(|name| name == column) {
        let (user, table) = (&connection.destination.user, table.written());
        return Err(Error::denied(format_args!(
            "the user \"{user}\" may not read the column \"{column}\" of \"{table}\""
        ))
        .into());
    }
    let column = table.column(column).ok_or(Error::NotFound)?;
    let mut conditions = Conditions::default();
    add_key(table, key, &mut conditions)?;
    let of_lines = range.filter(|range| range.unit == Unit::Lines);
    if of_lines.is_some() && column.kind == Kind::Bytes {
        return Err(Error::invalid("the value is bytes and has no lines; read it with \"?bytes=0-65535\"").into());
    }
    let name = column.quoted();
    // All values but bytes are read as their text.
    let bytes = match column.kind {
        Kind::Bytes => name.clone(),
        _ => format!("pg_catalog.convert_to({name}::text, 'UTF8')"),
    };
    // The server counts from the end, too, so that one query is enough.
    let size = format!("pg_catalog.octet_length({bytes})");
    let positions =
        range.filter(|_| of_lines.is_none()).map_or(Positions::Span { start: 0, end: None }, |range| range.positions);
    let (start, length) = match positions {
        Positions::Span { start, end } => {
            let length = end.map_or(most, |end| end.saturating_sub(start)).min(most);
            // A part may begin or end inside a character, of at most four bytes.
            let from = start.saturating_sub(3).min(MAX_VALUE);
            (from.to_string(), length + 6)
        }
        Positions::Last(count) => (format!("greatest({size} - {count} - 3, 0)"), count.min(most) + 6),
    };
    let length = if of_lines.is_some() { MAX_LINES_BYTES } else { length };
    let part = format!("pg_catalog.substr({bytes}, ({start})::int + 1, {length})");
    let head = match column.kind {
        Kind::Bytes => format!("pg_catalog.substr({bytes}, 1, {HEAD})"),
        _ => "NULL::bytea".to_owned(),
    };
    let sql = format!(
        "SELECT ({name} IS NULL), ({size})::int8, ({start})::int8, {part}, {head} FROM {}{} LIMIT 1",
        table.quoted(),
        conditions.clause()
    );
    let query = Query { is_binary: true, ..Query::new(sql, conditions.values) };
    let rows = connection
        .all(&[query])
        .map_err(|failure| failure.of_caller(&format!("the key is \"{key}\"")))?
        .pop_front()
        .unwrap_or_default();
    let row = rows.first().ok_or(Error::NotFound)?;
    let number = |at: usize| {
        let bytes = row.bytes(at).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        bytes.map(u64::from_be_bytes).unwrap_or_default()
    };
    if row.bytes(0) == Some(&[1]) {
        return Ok(belljar_sql::output::lines(asked, &serde_json::Value::Null).into());
    }
    let cell = Cell { asked, column, size: number(1), from: number(2), bytes: row.bytes(3).unwrap_or_default() };
    let mut reading = match (&column.kind, of_lines) {
        (Kind::Bytes, _) => cell.blob(range, most, row.bytes(4).unwrap_or_default()),
        (_, Some(_)) => cell.lines(range, most)?,
        (_, None) => cell.text(range, most),
    };
    let size = serde_json::json!({ "size": cell.size, "type": column.type_name }).to_string();
    reading.contents =
        reading.contents.into_iter().map(|contents| contents.meta("postgres/value", size.clone())).collect();
    Ok(reading)
}

/// A part of a value.
struct Cell<'a> {
    asked: &'a str,
    column: &'a Column,
    /// The size of the whole value, in bytes.
    size: u64,
    /// The position of the first byte that the server sent.
    from: u64,
    bytes: &'a [u8],
}

impl Cell<'_> {
    fn plain(&self, text: String) -> Contents {
        let media_type = match (&self.column.kind, self.column.type_name.as_str()) {
            (Kind::Json, _) => "application/json",
            (_, "xml") => "application/xml",
            _ => "text/plain",
        };
        Contents::text(self.asked, text).mime_type(media_type)
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

    fn lines(&self, range: Option<Range>, most: u64) -> Result<PartialReading, Error> {
        if self.size > MAX_LINES_BYTES {
            return Err(Error::invalid(format_args!(
                "the text has {} bytes: lines are found in texts of at most {MAX_LINES_BYTES}; read it with \
                 \"?bytes=0-65535\"",
                self.size
            )));
        }
        PartialReading::cut(self.plain(String::from_utf8_lossy(self.bytes).into_owned()), range, most)
    }

    fn text(&self, range: Option<Range>, most: u64) -> PartialReading {
        let (start, end) = self.span(range, most);
        let index = |position: u64| {
            usize::try_from(position.saturating_sub(self.from)).unwrap_or(usize::MAX).min(self.bytes.len())
        };
        let (mut first, mut last) = (index(start), index(end));
        let is_inside = |at: usize| self.bytes.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
        while first > 0 && is_inside(first) {
            first -= 1;
        }
        while last > first && is_inside(last) {
            last -= 1;
        }
        // A part inside one character is this character.
        if last == first && end > start {
            last = index(end);
            while last < self.bytes.len() && is_inside(last) {
                last += 1;
            }
        }
        let text = String::from_utf8_lossy(self.bytes.get(first..last).unwrap_or_default()).into_owned();
        self.placed(self.plain(text), range, self.from + first as u64, self.from + last as u64)
    }

    fn blob(&self, range: Option<Range>, most: u64, head: &[u8]) -> PartialReading {
        let (start, end) = self.span(range, most);
        let index = |position: u64| {
            usize::try_from(position.saturating_sub(self.from)).unwrap_or(usize::MAX).min(self.bytes.len())
        };
        let bytes = self.bytes.get(index(start)..index(end)).unwrap_or_default().to_vec();
        let media_type = infer::get(head).map_or("application/octet-stream", |kind| kind.mime_type());
        self.placed(Contents::blob(self.asked, bytes).mime_type(media_type), range, start, end)
    }
}
