//! A row as the server sends it: one text for each column.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::DataRowBody;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The type.
    pub(crate) oid: u32,
}

/// A row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    bytes: Bytes,
    ranges: Vec<Option<Range<usize>>>,
}

impl Row {
    pub(crate) fn of(body: &DataRowBody) -> std::io::Result<Row> {
        Ok(Row { bytes: body.buffer_bytes().clone(), ranges: body.ranges().collect()? })
    }

    /// The value of a column. `None`: NULL.
    pub(crate) fn bytes(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(self.ranges.get(at)?.clone()?)
    }

    /// The text of a column. A database whose encoding is SQL_ASCII may hold other bytes than UTF-8.
    pub(crate) fn text(&self, at: usize) -> Option<Cow<'_, str>> {
        self.bytes(at).map(String::from_utf8_lossy)
    }

    /// The text of a column; empty for NULL.
    pub(crate) fn string(&self, at: usize) -> String {
        self.text(at).map(Cow::into_owned).unwrap_or_default()
    }

    /// The number in a column.
    pub(crate) fn number<T: std::str::FromStr>(&self, at: usize) -> Option<T> {
        self.text(at)?.parse().ok()
    }

    /// True if the column is true.
    pub(crate) fn is(&self, at: usize) -> bool {
        self.bytes(at) == Some(b"t")
    }

    /// The approximate size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}
