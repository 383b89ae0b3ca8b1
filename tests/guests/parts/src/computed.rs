//! Contents of any size, of which only the requested part is computed.

use belljar_guest::{Contents, Error, Extent, PartialReading, Positions, Range, Result, Unit};

use crate::text;

/// The bytes of a line, with its end.
const LINE: u64 = 64;

/// The bytes of a row.
const ROW: u64 = 32;

/// `count` lines of 64 bytes. The total is given if it is `known`.
pub(crate) fn lines(
    reference: &str,
    count: u64,
    range: Option<Range>,
    most: u64,
    known: bool,
) -> Result<PartialReading> {
    let size = count.checked_mul(LINE).ok_or_else(|| Error::invalid("expected fewer lines"))?;
    let (unit, start, end, total) = match range {
        None if size <= most => return Ok(text(reference, between(0, size)).into()),
        // Whole lines, so that the first part is as good for people as the whole.
        None => (Unit::Bytes, 0, (most - most % LINE).min(size), size),
        Some(Range { unit: Unit::Lines, positions, .. }) => {
            let (start, end) = positions.within(count);
            (Unit::Lines, start, end.min(start + most / LINE), count)
        }
        Some(Range { positions, .. }) => {
            let (start, end) = positions.within(size);
            (Unit::Bytes, start, end.min(start.saturating_add(most)), size)
        }
    };
    let scale = if unit == Unit::Lines { LINE } else { 1 };
    let extent = if known { Extent::new(unit, start, end, total) } else { Extent::open(unit, start, end, end < total) };
    Ok(PartialReading::part(text(reference, between(start * scale, end * scale)), extent))
}

/// The text of the lines from one byte to another.
fn between(start: u64, end: u64) -> String {
    let mut part = String::new();
    let mut at = start;
    while at < end {
        let line = format!("line {:09} {}\n", at / LINE, ".".repeat(48));
        let skip = at % LINE;
        let wanted = (end - at).min(LINE - skip);
        // Positions within a line are small, and its characters are ASCII.
        part.push_str(line.get(skip as usize..(skip + wanted) as usize).unwrap_or_default());
        at += wanted;
    }
    part
}

/// `size` bytes that are not text.
pub(crate) fn blob(reference: &str, size: u64, range: Option<Range>, most: u64) -> Result<PartialReading> {
    let bytes = |start: u64, end: u64| Contents::blob(reference, (start..end).map(byte).collect::<Vec<u8>>());
    let positions = match range {
        None if size <= most => return Ok(bytes(0, size).into()),
        None => Positions::Span { start: 0, end: None },
        Some(Range { unit: Unit::Bytes, positions, .. }) => positions,
        Some(_) => return Err(Error::invalid("a blob has no lines; read it with \"?bytes=0-65535\"")),
    };
    let (start, end) = positions.within(size);
    let end = end.min(start.saturating_add(most));
    Ok(PartialReading::part(bytes(start, end), Extent::new(Unit::Bytes, start, end, size)))
}

/// The byte at a position.
fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// `count` rows, which are the lines of a table.
pub(crate) fn rows(reference: &str, count: u64, range: Option<Range>, most: u64) -> Result<PartialReading> {
    let json = |start: u64, end: u64| {
        let rows: Vec<String> = (start..end).map(|n| format!("{{\"row\": {n:022}}}")).collect();
        Contents::text(reference, format!("[{}]", rows.join(", "))).mime_type("application/json")
    };
    let fit = most.saturating_sub(2) / ROW;
    let positions = match range {
        None if count <= fit => return Ok(json(0, count).into()),
        None => Positions::Span { start: 0, end: None },
        Some(Range { unit: Unit::Lines, positions, .. }) => positions,
        Some(_) => return Err(Error::invalid("a table is read in rows, not in bytes: \"?lines=1-200\"")),
    };
    let (start, end) = positions.within(count);
    let end = end.min(start.saturating_add(fit));
    Ok(PartialReading::part(json(start, end), Extent::new(Unit::Lines, start, end, count)))
}
