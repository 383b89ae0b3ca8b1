//! Which part of a text a model is shown: some of its lines, some of its characters.
//!
//! Everything is counted in characters, and nothing is cut within one.

use crate::model::{Guard, text};

/// Some lines of a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// From one to another, both of them too; or to the end.
    Span(usize, Option<usize>),
    /// The last ones.
    Last(usize),
}

impl Lines {
    /// Reads `20-40`, `20-` or `-20`.
    pub fn read(text: &str) -> Option<Self> {
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

    fn is_forward(self) -> bool {
        !matches!(self, Self::Span(first, Some(last)) if last < first)
    }

    /// These lines of `text`, with the ends that they have there.
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

/// A text without what hides, steers or reorders text, and how many characters were left out.
pub fn displayed(text: &str) -> (String, usize) {
    if !Guard::Words.is_on() {
        return (text.to_owned(), 0);
    }
    let mut kept = String::with_capacity(text.len());
    let mut dropped = 0;
    let mut all = text.chars().peekable();
    while let Some(c) = all.next() {
        match c {
            // One end of a line is as good as the other, also where a part ends within it.
            '\r' if all.peek().is_none_or(|next| *next == '\n') => {}
            '\r' => dropped += 1,
            _ => kept.push(c),
        }
    }
    let mut out = String::with_capacity(kept.len());
    for (c, shows) in text::shown(&kept) {
        match (c, shows) {
            ('\n' | '\t', _) => out.push(c),
            (_, Some(shows)) => out.push(shows),
            (_, None) => dropped += 1,
        }
    }
    (out, dropped)
}

/// Some characters of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'t> {
    /// They.
    pub text: &'t str,
    /// How many characters they are.
    pub length: usize,
    /// How many the whole text has.
    pub total: usize,
}

/// `limit` characters of `text` from the one at `offset` on, or as many as there are.
pub fn characters(text: &str, offset: usize, limit: usize) -> Piece<'_> {
    // Where each character is a byte, there is nothing to count.
    let total = if text.is_ascii() { text.len() } else { text.chars().count() };
    let at = |place: usize| match total == text.len() {
        true => place.min(total),
        false => text.char_indices().nth(place).map_or(text.len(), |(at, _)| at),
    };
    let end = offset.saturating_add(limit);
    let piece = text.get(at(offset)..at(end)).unwrap_or_default();
    Piece { text: piece, length: end.min(total).saturating_sub(offset), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_people_write_them() {
        for (text, lines) in [
            ("20-40", Some(Lines::Span(20, Some(40)))),
            ("7-7", Some(Lines::Span(7, Some(7)))),
            ("20-", Some(Lines::Span(20, None))),
            ("-20", Some(Lines::Last(20))),
            (" 1 - 2 ", Some(Lines::Span(1, Some(2)))),
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
            assert_eq!(Lines::read(text), lines, "{text}");
        }
    }

    #[test]
    fn lines_keep_their_ends() {
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
            assert_eq!(Lines::read(lines).unwrap().of(text), expected, "{lines}");
        }
        assert_eq!(Lines::Last(1).of("a\nb\n"), "b\n");
        assert_eq!(Lines::Last(3).of(""), "");
    }

    #[test]
    fn what_hides_is_left_out_and_counted() {
        assert_eq!(displayed("a\r\n\tb\x1b[1m\u{202e}c\u{e0041}\rd"), ("a\n\tb[1mcd".to_owned(), 4));
        assert_eq!(displayed("a\r"), ("a".to_owned(), 0));
        assert_eq!(displayed("\u{65e5}\u{672c} \u{1f469}\u{200d}\u{1f467}").1, 0);
    }

    #[test]
    fn characters_are_never_cut() {
        let text = "a\u{e9}\u{65e5}\u{1f600}b";
        assert_eq!(characters(text, 1, 3), Piece { text: "\u{e9}\u{65e5}\u{1f600}", length: 3, total: 5 });
        assert_eq!(characters(text, 4, 100), Piece { text: "b", length: 1, total: 5 });
        assert_eq!(characters(text, 9, 1), Piece { text: "", length: 0, total: 5 });
        assert_eq!(characters("abc", 1, usize::MAX), Piece { text: "bc", length: 2, total: 3 });
    }
}
