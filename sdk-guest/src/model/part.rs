//! Parts of resources: ranges, their positions, and cutting a part out of contents in memory.

use std::time::Duration;

use crate::{Body, Contents, Error, Reading, Result};

/// The unit of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of the contents.
    Bytes,
    /// Lines of text; for a table, rows.
    Lines,
}

/// The positions that the caller asks for, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positions {
    /// From `start` to `end`, which is excluded; without `end`, to the end of the resource.
    Span {
        /// The first position.
        start: u64,
        /// The position after the last one.
        end: Option<u64>,
    },
    /// The last positions: so many, counted back from the end.
    Last(u64),
}

/// A part in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Range {
    /// The unit of the positions.
    pub unit: Unit,
    /// The positions.
    pub positions: Positions,
}

/// The position of a part that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// The unit of the positions.
    pub unit: Unit,
    /// The first position of the part.
    pub start: u64,
    /// The position after the last one, where the next part starts.
    pub end: u64,
    /// The number of positions in the resource, if it is known without reading all of it.
    pub total: Option<u64>,
    /// True if positions follow after `end`.
    pub more: bool,
}

/// The result of reading a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartialReading {
    /// The contents. A part is one content, with the requested reference.
    pub contents: Vec<Contents>,
    /// How long the host may serve this reading from its cache.
    pub fresh_for: Option<Duration>,
    /// The position of the part. `None`: the contents are the whole resource.
    pub extent: Option<Extent>,
}

impl Range {
    /// The bytes from `start` to `end`, which is excluded.
    pub fn bytes(start: u64, end: impl Into<Option<u64>>) -> Self {
        Range { unit: Unit::Bytes, positions: Positions::Span { start, end: end.into() } }
    }

    /// The lines from `start` to `end`, which is excluded. The first line is 0.
    pub fn lines(start: u64, end: impl Into<Option<u64>>) -> Self {
        Range { unit: Unit::Lines, positions: Positions::Span { start, end: end.into() } }
    }

    /// The last bytes.
    pub fn last_bytes(count: u64) -> Self {
        Range { unit: Unit::Bytes, positions: Positions::Last(count) }
    }

    /// The last lines.
    pub fn last_lines(count: u64) -> Self {
        Range { unit: Unit::Lines, positions: Positions::Last(count) }
    }
}

impl Positions {
    /// The requested positions in a resource of `total`, as start and end. Both are at most `total`.
    pub fn within(self, total: u64) -> (u64, u64) {
        match self {
            Positions::Span { start, end } => {
                let start = start.min(total);
                (start, end.unwrap_or(total).clamp(start, total))
            }
            Positions::Last(count) => (total.saturating_sub(count), total),
        }
    }
}

impl Extent {
    /// The positions from `start` to `end` of a resource of `total`.
    pub fn new(unit: Unit, start: u64, end: u64, total: u64) -> Self {
        Extent { unit, start, end, total: Some(total), more: end < total }
    }

    /// The same for a resource whose number of positions is not known. `more` says whether positions follow after `end`.
    pub fn open(unit: Unit, start: u64, end: u64, more: bool) -> Self {
        Extent { unit, start, end, total: None, more }
    }
}

impl PartialReading {
    /// A whole resource.
    pub fn whole(reading: impl Into<Reading>) -> Self {
        let Reading { contents, fresh_for } = reading.into();
        PartialReading { contents, fresh_for, extent: None }
    }

    /// One part.
    pub fn part(contents: Contents, extent: Extent) -> Self {
        PartialReading { contents: vec![contents], fresh_for: None, extent: Some(extent) }
    }

    /// The requested part of contents that are in memory, of at most `most` bytes. For a provider that cannot read a part
    /// cheaper than the whole.
    ///
    /// Fails with [`Error::Invalid`] for lines of bytes that are not text, and for a line that is longer than `most`.
    pub fn cut(contents: Contents, range: Option<Range>, most: u64) -> Result<Self> {
        let length = contents.body.len() as u64;
        let Some(range) = range else {
            if length <= most {
                return Ok(PartialReading::whole(contents));
            }
            return Ok(cut_bytes(contents, Positions::Span { start: 0, end: None }, most, true));
        };
        match range.unit {
            Unit::Bytes => Ok(cut_bytes(contents, range.positions, most, false)),
            Unit::Lines => cut_lines(contents, range.positions, most),
        }
    }

    /// Lets the host serve this reading from its cache for this time.
    pub fn fresh_for(mut self, time: Duration) -> Self {
        self.fresh_for = Some(time);
        self
    }
}

impl From<Reading> for PartialReading {
    fn from(reading: Reading) -> Self {
        PartialReading::whole(reading)
    }
}

impl From<Contents> for PartialReading {
    fn from(contents: Contents) -> Self {
        PartialReading::whole(contents)
    }
}

/// Cuts bytes out. Text is cut between characters, and with `at_line` after the last whole line, if there is one.
fn cut_bytes(mut contents: Contents, positions: Positions, most: u64, at_line: bool) -> PartialReading {
    let total = contents.body.len() as u64;
    let (start, end) = positions.within(total);
    let end = end.min(start.saturating_add(most));
    // A body is in memory, so its length is a `usize`.
    let (mut start, mut end) = (start as usize, end as usize);
    match &mut contents.body {
        Body::Text(text) => {
            let wanted = end;
            start = text.floor_char_boundary(start);
            end = text.floor_char_boundary(end);
            // A range inside one character gives this character.
            if end <= start && wanted > start {
                end = text.ceil_char_boundary(wanted);
            }
            if at_line && end < text.len() {
                let line = text.get(start..end).and_then(|part| part.rfind('\n')).map(|at| start + at + 1);
                end = line.unwrap_or(end);
            }
            *text = text.get(start..end).unwrap_or_default().to_owned();
        }
        Body::Blob(bytes) => *bytes = bytes.get(start..end).unwrap_or_default().to_vec(),
    }
    PartialReading::part(contents, Extent::new(Unit::Bytes, start as u64, end as u64, total))
}

/// Cuts whole lines out, as many as fit.
fn cut_lines(mut contents: Contents, positions: Positions, most: u64) -> Result<PartialReading> {
    let Body::Text(text) = &mut contents.body else {
        return Err(Error::invalid("the resource is not text and has no lines; read it with \"?bytes=0-65535\""));
    };
    let total = text.split_inclusive('\n').count() as u64;
    let (start, end) = positions.within(total);
    let (mut part, mut line) = (String::new(), start);
    let wanted = usize::try_from(end - start).unwrap_or(usize::MAX);
    for one in text.split_inclusive('\n').skip(usize::try_from(start).unwrap_or(usize::MAX)).take(wanted) {
        if (part.len() + one.len()) as u64 > most {
            if part.is_empty() {
                return Err(Error::invalid(format_args!(
                    "line {} has {} bytes; the limit of a read is {most}; read it with \"?bytes=0-65535\"",
                    line + 1,
                    one.len()
                )));
            }
            break;
        }
        part.push_str(one);
        line += 1;
    }
    *text = part;
    Ok(PartialReading::part(contents, Extent::new(Unit::Lines, start, line, total)))
}

#[cfg(test)]
mod tests;
