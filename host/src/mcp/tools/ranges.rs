//! Selects the part of a text that a model is shown: a range of lines or of characters. Lengths are in Unicode scalar
//! values, and no cut splits one.

use crate::model::part::{Positions, Range, Unit};
use crate::model::text;

/// A range of lines, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRange {
    /// From the first to the last line, both included. `None`: to the end of the text.
    Span(usize, Option<usize>),
    /// The last lines; how many.
    Last(usize),
}

impl LineRange {
    /// Parses `20-40`, `20-` or `-20`.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.trim().split_once('-')?;
        let number = |text: &str| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<usize>().ok().filter(|number| *number > 0 && is_plain)
        };
        match (first.trim(), last.trim()) {
            ("", last) => number(last).map(Self::Last),
            (first, "") => Some(Self::Span(number(first)?, None)),
            (first, last) => Some(Self::Span(number(first)?, Some(number(last)?))).filter(|lines| lines.is_forward()),
        }
    }

    /// The same lines as the range of a read.
    pub fn range(self) -> Range {
        let positions = match self {
            Self::Span(first, last) => {
                Positions::Span { start: first.saturating_sub(1) as u64, end: last.map(|last| last as u64) }
            }
            Self::Last(count) => Positions::Last(count as u64),
        };
        Range { unit: Unit::Lines, positions }
    }

    fn is_forward(self) -> bool {
        !matches!(self, Self::Span(first, Some(last)) if last < first)
    }

    /// The lines of `text` in this range, with their line ends.
    pub fn of(self, text: &str) -> &str {
        let (skip, take) = match self {
            Self::Span(first, last) => (first - 1, last.map_or(usize::MAX, |last| last - first + 1)),
            Self::Last(count) => (text.split_inclusive('\n').count().saturating_sub(count), count),
        };
        let mut starts = text.split_inclusive('\n').scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some(start)
        });
        let start = starts.nth(skip).unwrap_or(text.len());
        let end = match take.checked_sub(1) {
            Some(more) if more < usize::MAX - 1 => starts.nth(more).unwrap_or(text.len()),
            _ => text.len(),
        };
        text.get(start..end).unwrap_or_default()
    }
}

/// `text` without control, hidden and bidirectional characters, and how many were removed.
pub fn without_hidden(text: &str) -> (String, usize) {
    let mut kept = String::with_capacity(text.len());
    let mut dropped = 0;
    let mut all = text.chars().peekable();
    while let Some(c) = all.next() {
        match c {
            // "\r\n" counts as a plain line end. The "\n" may be cut off at the end of a part.
            '\r' if all.peek().is_none_or(|next| *next == '\n') => {}
            '\r' => dropped += 1,
            _ => kept.push(c),
        }
    }
    let mut out = String::with_capacity(kept.len());
    for (c, shows) in text::visible(&kept) {
        match (c, shows) {
            ('\n' | '\t', _) => out.push(c),
            (_, Some(shows)) => out.push(shows),
            (_, None) => dropped += 1,
        }
    }
    (out, dropped)
}

/// A range of characters of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharacterRange<'t> {
    /// The characters.
    pub text: &'t str,
    /// Their number.
    pub length: usize,
    /// Number of characters of the whole text.
    pub total: usize,
}

/// At most `limit` characters of `text` from the character at `offset` on.
pub fn characters(text: &str, offset: usize, limit: usize) -> CharacterRange<'_> {
    // In ASCII text, each character is one byte.
    let total = if text.is_ascii() { text.len() } else { text.chars().count() };
    let at = |place: usize| match total == text.len() {
        true => place.min(total),
        false => text.char_indices().nth(place).map_or(text.len(), |(at, _)| at),
    };
    let end = offset.saturating_add(limit);
    let piece = text.get(at(offset)..at(end)).unwrap_or_default();
    CharacterRange { text: piece, length: end.min(total).saturating_sub(offset), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_lines_is_parsed() {
        for (text, lines) in [
            ("20-40", Some(LineRange::Span(20, Some(40)))),
            ("7-7", Some(LineRange::Span(7, Some(7)))),
            ("20-", Some(LineRange::Span(20, None))),
            ("-20", Some(LineRange::Last(20))),
            (" 1 - 2 ", Some(LineRange::Span(1, Some(2)))),
            ("", None),
            ("-", None),
            ("5", None),
            ("0-4", None),
            ("4-2", None),
            ("-0", None),
            ("+1-2", None),
            ("a-b", None),
            ("1-99999999999999999999999", None),
        ] {
            assert_eq!(LineRange::parse(text), lines, "{text}");
        }
    }

    #[test]
    fn lines_keep_their_line_ends() {
        let text = "one\ntwo\n\nfour";
        for (lines, expected) in [
            ("1-1", "one\n"),
            ("2-3", "two\n\n"),
            ("2-", "two\n\nfour"),
            ("4-9", "four"),
            ("5-9", ""),
            ("-1", "four"),
            ("-2", "\nfour"),
            ("-99", text),
            ("1-18446744073709551615", text),
        ] {
            assert_eq!(LineRange::parse(lines).unwrap().of(text), expected, "{lines}");
        }
        assert_eq!(LineRange::Last(1).of("a\nb\n"), "b\n");
        assert_eq!(LineRange::Last(3).of(""), "");
    }

    #[test]
    fn hidden_characters_are_removed_and_counted() {
        assert_eq!(without_hidden("a\r\n\tb\x1b[1m\u{202e}c\u{e0041}\rd"), ("a\n\tb[1mcd".to_owned(), 4));
        assert_eq!(without_hidden("a\r"), ("a".to_owned(), 0));
        assert_eq!(without_hidden("\u{65e5}\u{672c} \u{1f469}\u{200d}\u{1f467}").1, 0);
    }

    #[test]
    fn no_character_is_split() {
        let text = "a\u{e9}\u{65e5}\u{1f600}b";
        assert_eq!(characters(text, 1, 3), CharacterRange { text: "\u{e9}\u{65e5}\u{1f600}", length: 3, total: 5 });
        assert_eq!(characters(text, 4, 100), CharacterRange { text: "b", length: 1, total: 5 });
        assert_eq!(characters(text, 9, 1), CharacterRange { text: "", length: 0, total: 5 });
        assert_eq!(characters("abc", 1, usize::MAX), CharacterRange { text: "bc", length: 2, total: 3 });
    }
}
