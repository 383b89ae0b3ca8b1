//! Parts of resources: the ranges that a URI asks for, and the position of a part that was read.
//!
//! Outside, a range is a query of the URI: `?bytes=0-65535` (counted from 0) or `?lines=1-200` (counted from 1), with the
//! last position included; `?lines=200-` to the end, `?lines=-200` for the last ones. Inside, positions count from 0, and
//! the end is excluded.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::text;

/// The unit of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Bytes of the contents.
    Bytes,
    /// Lines of text; for a table, rows.
    Lines,
}

/// Positions in a resource, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The part of a resource that a URI asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The unit of the positions.
    pub unit: Unit,
    /// The positions.
    pub positions: Positions,
}

/// Why the query of a URI is not a range. The text completes "the URI ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The value is malformed.
    #[error("has {given}; expected {}", .unit.expected())]
    Malformed {
        /// The parameter, quoted.
        given: String,
        /// The unit.
        unit: Unit,
    },
    /// There is more than one range.
    #[error("has several ranges; expected one of \"bytes\" and \"lines\"")]
    Several,
}

/// The position of a part that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The unit of the positions.
    pub unit: Unit,
    /// The first position.
    pub start: u64,
    /// The position after the last one.
    pub end: u64,
    /// The number of positions in the resource, if it is known.
    pub total: Option<u64>,
    /// Whether positions follow after `end`.
    pub more: bool,
    /// The range that the URI asked for. `None`: it asked for the whole resource.
    pub requested: Option<Range>,
}

impl Unit {
    /// The name, in URIs and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Lines => "lines",
        }
    }

    /// The number of the first position outside.
    fn first(self) -> u64 {
        match self {
            Self::Bytes => 0,
            Self::Lines => 1,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Bytes => "\"bytes=0-65535\", \"bytes=65536-\" or \"bytes=-65536\", counted from 0",
            Self::Lines => "\"lines=1-200\", \"lines=201-\" or \"lines=-200\", counted from 1",
        }
    }
}

impl Range {
    /// Takes the range out of the query of a reference. Returns the reference without it.
    ///
    /// A value without a dash (`lines=200`) is no range, and stays in the reference.
    ///
    /// # Errors
    /// A value with a dash that is malformed, and several ranges.
    pub fn split(reference: &str) -> Result<(Cow<'_, str>, Option<Self>), RangeError> {
        let Some((path, query)) = reference.split_once('?') else { return Ok((reference.into(), None)) };
        let (mut rest, mut range): (Vec<&str>, _) = (Vec::new(), None);
        for parameter in query.split('&') {
            match Self::parse(parameter)? {
                Some(_) if range.is_some() => return Err(RangeError::Several),
                Some(found) => range = Some(found),
                None => rest.push(parameter),
            }
        }
        Ok(match (range, rest.is_empty()) {
            (None, _) => (reference.into(), None),
            (Some(range), true) => (path.into(), Some(range)),
            (Some(range), false) => (format!("{path}?{}", rest.join("&")).into(), Some(range)),
        })
    }

    fn parse(parameter: &str) -> Result<Option<Self>, RangeError> {
        let Some((name, value)) = parameter.split_once('=') else { return Ok(None) };
        let Some(unit) = [Unit::Bytes, Unit::Lines].into_iter().find(|unit| unit.name() == name) else {
            return Ok(None);
        };
        let Some((from, to)) = value.split_once('-') else { return Ok(None) };
        let malformed = || RangeError::Malformed { given: text::quoted(parameter, 60), unit };
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse::<u64>().map_err(|_| malformed()),
            false => Err(malformed()),
        };
        let positions = match (from, to) {
            ("", count) => Positions::Last(number(count)?),
            (from, to) => {
                let start = number(from)?.checked_sub(unit.first()).ok_or_else(malformed)?;
                let end = match to {
                    "" => None,
                    to => Some(number(to)?.checked_sub(unit.first()).ok_or_else(malformed)?.saturating_add(1)),
                };
                if end.is_some_and(|end| end <= start) {
                    return Err(malformed());
                }
                Positions::Span { start, end }
            }
        };
        Ok(Some(Self { unit, positions }))
    }

    /// `reference` with this range in its query.
    pub fn of(self, reference: &str) -> String {
        let separator = if reference.contains('?') { '&' } else { '?' };
        format!("{reference}{separator}{self}")
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.unit.first();
        write!(f, "{}=", self.unit.name())?;
        match self.positions {
            Positions::Last(count) => write!(f, "-{count}"),
            Positions::Span { start, end: None } => write!(f, "{}-", start.saturating_add(first)),
            Positions::Span { start, end: Some(end) } => {
                write!(f, "{}-{}", start.saturating_add(first), end.saturating_sub(1).saturating_add(first))
            }
        }
    }
}

impl Part {
    /// The range of the next part: as long as this one if a span was requested, otherwise to the end. `None` for the last
    /// part.
    pub fn next(&self) -> Option<Range> {
        if !self.more {
            return None;
        }
        let end = match self.requested.map(|range| range.positions) {
            // The part may be shorter than the span: the rest of the span comes first.
            Some(Positions::Span { start, end: Some(end) }) if self.end >= end => {
                Some(self.end.saturating_add(end - start))
            }
            Some(Positions::Span { end: Some(end), .. }) => Some(end),
            _ => None,
        };
        Some(Range { unit: self.unit, positions: Positions::Span { start: self.end, end } })
    }

    /// The reference or URI of the next part of the resource that `reference` names. `None` after the last part.
    pub fn next_of(&self, reference: &str) -> Option<String> {
        let (whole, _) = Range::split(reference).ok()?;
        Some(self.next()?.of(&whole))
    }

    /// The first and the last position as a URI counts them. `None` for an empty part.
    pub fn shown(&self) -> Option<(u64, u64)> {
        let first = self.unit.first();
        (self.end > self.start).then(|| (self.start.saturating_add(first), (self.end - 1).saturating_add(first)))
    }
}

/// The part in words: "bytes 0 to 65535 of 4294967296".
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Some((first, last)) => write!(f, "{} {first} to {last}", self.unit.name())?,
            None => write!(f, "no {}", self.unit.name())?,
        }
        match self.total {
            Some(total) => write!(f, " of {total}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
