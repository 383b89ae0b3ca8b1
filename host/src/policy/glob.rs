//! Patterns over texts, as pieces, and sets of them. Knows neither URIs nor rules.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// One piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// This byte.
    Byte(u8),
    /// `*`: any number of bytes other than `/`.
    Segment,
    /// `**`: any number of bytes.
    Any,
}

/// Adds a position to a set of positions in `pieces`, and those that it reaches without a byte: a wildcard may be empty.
fn add(pieces: &[Piece], mut at: usize, into: &mut BTreeSet<usize>) {
    while into.insert(at) && matches!(pieces.get(at), Some(Piece::Segment | Piece::Any)) {
        at += 1;
    }
}

/// The rests of `pieces` after `prefix`: a text that begins with `prefix` matches if its remainder matches a rest. No
/// rest: no such text matches.
pub(super) fn rests<'a>(pieces: &'a [Piece], prefix: &[u8]) -> Vec<&'a [Piece]> {
    let mut positions = BTreeSet::new();
    add(pieces, 0, &mut positions);
    for byte in prefix {
        let mut next = BTreeSet::new();
        for at in positions {
            match pieces.get(at) {
                Some(Piece::Byte(expected)) if expected == byte => add(pieces, at + 1, &mut next),
                Some(Piece::Segment) if *byte != b'/' => add(pieces, at, &mut next),
                Some(Piece::Any) => add(pieces, at, &mut next),
                _ => {}
            }
        }
        positions = next;
        if positions.is_empty() {
            return Vec::new();
        }
    }
    // The rest that begins with a wildcard includes the rest behind the wildcard.
    let is_included = |at: usize| {
        at.checked_sub(1).is_some_and(|before| {
            positions.contains(&before) && !matches!(pieces.get(before), Some(Piece::Byte(_)) | None)
        })
    };
    positions.iter().filter(|at| !is_included(**at)).filter_map(|at| pieces.get(*at..)).collect()
}

/// Several patterns. A text matches the set if it matches one of them.
///
/// A list may have a million entries. Therefore prefixes and whole texts are sorted, and all other patterns together
/// are one regular expression.
#[derive(Debug, Default)]
pub(super) struct PatternSet {
    patterns: Vec<Box<[Piece]>>,
    /// True if one pattern matches every text.
    is_all: bool,
    /// The patterns that end in their only wildcard `**`, without it. Sorted; none is a prefix of another.
    prefixes: Vec<Box<[u8]>>,
    /// The patterns without wildcards, sorted.
    texts: Vec<Box<[u8]>>,
    /// All other patterns, by their index.
    globs: Vec<usize>,
    /// The expression of `globs`, made for the first text that needs it. `None` inside: it is too large.
    expression: OnceLock<Option<Regex>>,
}

impl PartialEq for PatternSet {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl PatternSet {
    /// The set of `patterns`.
    pub(super) fn new<'a>(patterns: impl IntoIterator<Item = &'a [Piece]>) -> Self {
        let mut set = Self::default();
        for pattern in patterns {
            let literal = literal(pattern);
            match pattern.get(literal.len()..).unwrap_or_default() {
                [] => set.texts.push(literal.into()),
                [Piece::Any] => {
                    set.is_all |= literal.is_empty();
                    set.prefixes.push(literal.into());
                }
                _ => set.globs.push(set.patterns.len()),
            }
            set.patterns.push(pattern.into());
        }
        set.texts.sort_unstable();
        set.prefixes.sort_unstable();
        let mut shortest: Option<Box<[u8]>> = None;
        set.prefixes.retain(|prefix| {
            let is_needed = shortest.as_ref().is_none_or(|shortest| !prefix.starts_with(shortest));
            if is_needed {
                shortest = Some(prefix.clone());
            }
            is_needed
        });
        set
    }

    /// True if no text matches.
    pub(super) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// True if every text matches.
    pub(super) fn is_all(&self) -> bool {
        self.is_all
    }

    /// The patterns.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &[Piece]> {
        self.patterns.iter().map(|pattern| &**pattern)
    }

    /// True if `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.is_all || self.has_prefix_of(text) || self.has_text(text) || self.has_glob_for(text)
    }

    /// True if `text`, which does not match itself, matches with a slash at its end.
    pub(super) fn matches_folder(&self, text: &[u8]) -> bool {
        let is_there =
            |sorted: &[Box<[u8]>]| sorted.binary_search_by(|own| own.iter().cmp(text.iter().chain(b"/"))).is_ok();
        // A shorter prefix would begin `text` too.
        is_there(&self.prefixes)
            || is_there(&self.texts)
            || (!self.globs.is_empty() && self.has_glob_for(&[text, b"/"].concat()))
    }

    /// True if one of the prefixes begins `text`. All texts between a prefix and `text`, in their order, begin with
    /// that prefix. None of them is a prefix of the set, so the last prefix that is not after `text` decides.
    fn has_prefix_of(&self, text: &[u8]) -> bool {
        let after = self.prefixes.partition_point(|prefix| **prefix <= *text);
        after.checked_sub(1).and_then(|at| self.prefixes.get(at)).is_some_and(|prefix| text.starts_with(prefix))
    }

    fn has_text(&self, text: &[u8]) -> bool {
        self.texts.binary_search_by(|own| (**own).cmp(text)).is_ok()
    }

    fn has_glob_for(&self, text: &[u8]) -> bool {
        if self.globs.is_empty() {
            return false;
        }
        let globs = || self.globs.iter().filter_map(|at| self.patterns.get(*at));
        match self.expression.get_or_init(|| expression(globs().map(|glob| &**glob))) {
            Some(expression) => expression.is_match(text),
            None => globs().any(|glob| rests(glob, text).into_iter().any(may_be_empty)),
        }
    }

    /// True if every text that begins with `prefix` matches.
    pub(super) fn covers(&self, prefix: &[u8]) -> bool {
        self.is_all
            || self.has_prefix_of(prefix)
            || self.globs().any(|glob| {
                rests(glob, prefix).iter().any(|rest| matches!(rest, [Piece::Any, rest @ ..] if may_be_empty(rest)))
            })
    }

    fn globs(&self) -> impl Iterator<Item = &[Piece]> {
        self.globs.iter().filter_map(|at| self.patterns.get(*at)).map(|glob| &**glob)
    }
}

/// The bytes before the first wildcard.
pub(super) fn literal(pieces: &[Piece]) -> Vec<u8> {
    pieces
        .iter()
        .map_while(|piece| match piece {
            Piece::Byte(byte) => Some(*byte),
            Piece::Segment | Piece::Any => None,
        })
        .collect()
}

/// True if the empty text matches.
fn may_be_empty(pieces: &[Piece]) -> bool {
    !pieces.iter().any(|piece| matches!(piece, Piece::Byte(_)))
}

/// One expression that matches the same texts as `globs`. `None` if it would be too large.
fn expression<'a>(globs: impl Iterator<Item = &'a [Piece]>) -> Option<Regex> {
    let alternatives: Vec<String> = globs
        .map(|glob| {
            let mut text = String::new();
            for piece in glob {
                match piece {
                    Piece::Byte(byte) => {
                        let _ = write!(text, "\\x{byte:02x}");
                    }
                    Piece::Segment => text.push_str("[^/]*"),
                    Piece::Any => text.push_str(".*"),
                }
            }
            text
        })
        .collect();
    let expression = format!("\\A(?:{})\\z", alternatives.join("|"));
    RegexBuilder::new(&expression).unicode(false).dot_matches_new_line(true).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pattern: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some(first) = rest.bytes().next() {
            let (piece, length) = match rest.starts_with("**") {
                true => (Piece::Any, 2),
                false if first == b'*' => (Piece::Segment, 1),
                false => (Piece::Byte(first), 1),
            };
            pieces.push(piece);
            rest = &rest[length..];
        }
        pieces
    }

    fn set(patterns: &[&str]) -> PatternSet {
        let patterns: Vec<Vec<Piece>> = patterns.iter().map(|pattern| pieces(pattern)).collect();
        PatternSet::new(patterns.iter().map(Vec::as_slice))
    }

    #[test]
    fn texts_match() {
        for (pattern, matching, others) in [
            ("a/b", &["a/b"][..], &["a", "a/bc", "a/b/", ""][..]),
            ("a/**", &["a/", "a/b", "a/b/c"], &["a", "b/a/"]),
            ("a/*", &["a/", "a/b"], &["a", "a/b/c", "a/b/"]),
            ("*/c", &["/c", "x/c"], &["c", "x/y/c"]),
            ("**/c", &["/c", "x/c", "x/y/c"], &["c", "x/c/d"]),
            ("a*b*c", &["abc", "axxbxxc", "abbcc"], &["ab", "ab/c", "abcd"]),
            ("**a*b", &["ab", "x/ab", "a/axb", "aab"], &["a/b", "ab/"]),
            ("**", &["", "a", "a/b"], &[]),
            ("*", &["", "a"], &["/", "a/"]),
            ("a.c", &["a.c"], &["abc"]),
        ] {
            for (text, expected) in
                matching.iter().map(|text| (text, true)).chain(others.iter().map(|text| (text, false)))
            {
                assert_eq!(set(&[pattern]).matches(text.as_bytes()), expected, "{pattern} {text}");
                let rest = rests(&pieces(pattern), text.as_bytes()).into_iter().any(may_be_empty);
                assert_eq!(rest, expected, "the rests of {pattern} after {text}");
                let many = set(&["zz", "zy**", "z*z/*", pattern]);
                assert_eq!(many.matches(text.as_bytes()), expected, "{pattern} {text} among others");
            }
        }
    }

    #[test]
    fn prefixes_that_include_others_are_found() {
        let set = set(&["ab**", "a**", "abc**", "b/**", "b**", "c/x**"]);
        for (text, expected) in [("a", true), ("abx", true), ("b", true), ("b/z", true), ("c/", false), ("c/xy", true)]
        {
            assert_eq!(set.matches(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(set.prefixes.len(), 3);
    }

    #[test]
    fn covered_prefixes() {
        for (pattern, covered, others) in [
            ("a/**", &["a/", "a/b"][..], &["a", "b", ""][..]),
            ("**", &["", "a"], &[]),
            ("*/**", &["a/", "x/y"], &["a", ""]),
            ("a*", &[], &["a", "ab"]),
            ("a/b", &[], &["a/b", "a"]),
        ] {
            for (prefix, expected) in
                covered.iter().map(|text| (text, true)).chain(others.iter().map(|text| (text, false)))
            {
                assert_eq!(set(&[pattern]).covers(prefix.as_bytes()), expected, "{pattern} {prefix}");
            }
        }
    }

    #[test]
    fn a_long_text_is_matched_in_linear_time() {
        let (set, text) = (set(&["**a*b*c**d*e"]), "a".repeat(2048));
        let begin = std::time::Instant::now();
        (0..100).for_each(|_| assert!(!set.matches(text.as_bytes())));
        assert!(begin.elapsed() < std::time::Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}
