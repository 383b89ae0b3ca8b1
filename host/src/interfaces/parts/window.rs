//! The margins of a part. A secret that lies across an end of a range would not be found in the range alone. For a mount
//! with secrets, more is read on both sides, masked, and cut off.

use crate::interfaces::generated::parts as generated;
use crate::interfaces::generated::types::Body as GeneratedBody;
use crate::model::Body;
use crate::model::part::{Part, Positions, Range, Unit};

/// The range with `margin` positions more on both sides.
pub(super) fn widened(Range { unit, positions }: Range, margin: u64) -> Range {
    let positions = match positions {
        Positions::Span { start, end } => {
            Positions::Span { start: start.saturating_sub(margin), end: end.map(|end| end.saturating_add(margin)) }
        }
        Positions::Last(count) => Positions::Last(count.saturating_add(margin)),
    };
    Range { unit, positions }
}

/// True if `reply` is a document in JSON whose lines are not those of its text: rows of a table. It cannot be cut, and each
/// row in it is whole.
pub(super) fn has_rows(reply: &generated::PartialReading) -> bool {
    let (Some(extent), [one]) = (&reply.extent, reply.contents.as_slice()) else { return false };
    let lines = extent.end.saturating_sub(extent.start);
    extent.unit == generated::Unit::Lines
        && one.mime_type.as_deref() == Some("application/json")
        && matches!(&one.body, GeneratedBody::Text(text) if text.split_inclusive('\n').count() as u64 != lines)
}

/// Cuts the margins off `body`, which is at `part`, and changes `part` to what remains. Masks have the length of the
/// masked text, so positions are still those of the provider.
pub(super) fn cut(body: &mut Body, part: &mut Part, margin: u64) {
    let (start, end) = wanted(part, margin);
    let offset = |position: u64, body: &Body| match (part.unit, body) {
        (Unit::Bytes, _) => usize::try_from(position.saturating_sub(part.start)).unwrap_or(usize::MAX).min(body.len()),
        (Unit::Lines, Body::Text(text)) => line_start(text, position.saturating_sub(part.start)),
        (Unit::Lines, Body::Blob(_)) => body.len(),
    };
    let (mut from, mut to) = (offset(start, body), offset(end, body));
    let (mut start, mut end) = (start, end);
    match body {
        Body::Text(text) => {
            let (start_byte, end_byte) = (text.floor_char_boundary(from), text.floor_char_boundary(to));
            // A range inside one character gives this character.
            let end_byte = if end_byte <= start_byte && to > from { text.ceil_char_boundary(to) } else { end_byte };
            if part.unit == Unit::Bytes {
                (start, end) = (part.start + start_byte as u64, part.start + end_byte as u64);
            }
            (from, to) = (start_byte, end_byte.max(start_byte));
            *text = text.get(from..to).unwrap_or_default().to_owned();
        }
        Body::Blob(bytes) => *bytes = bytes.get(from..to).unwrap_or_default().to_vec(),
    }
    part.more |= end < part.end;
    (part.start, part.end) = (start, end.max(start));
}

/// The requested positions among those of `part`. If the part was cut, a secret may begin before its end.
fn wanted(part: &Part, margin: u64) -> (u64, u64) {
    let within = |position: u64| position.clamp(part.start, part.end.max(part.start));
    let start = match part.requested.map(|range| range.positions) {
        None => part.start,
        Some(Positions::Span { start, .. }) => start,
        Some(Positions::Last(count)) => match (part.total, part.more) {
            (Some(total), _) => total.saturating_sub(count),
            (None, false) => part.end.saturating_sub(count),
            (None, true) => part.start.saturating_add(margin),
        },
    };
    let end = match part.requested.map(|range| range.positions) {
        Some(Positions::Span { end: Some(end), .. }) => end.min(part.end),
        _ => part.end,
    };
    let end = if part.more { end.min(part.end.saturating_sub(margin)) } else { end };
    (within(start), within(end).max(within(start)))
}

/// The byte at which the line with this number starts; the length of the text if it has fewer lines.
fn line_start(text: &str, line: u64) -> usize {
    let lines = usize::try_from(line).unwrap_or(usize::MAX);
    text.split_inclusive('\n').take(lines).map(str::len).sum()
}
