//! Text from strangers: made safe to show in a terminal, a log or a client, and cut to a length.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::Guard;

/// Whether `c` may stand in a shown line: not a control (C0, C1), not a bidirectional override or mark, not a tag
/// character, not a line or paragraph separator, not an unassigned or private code point's invisible relative.
pub fn is_shown(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    match get_general_category(c) {
        GeneralCategory::Control
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator
        | GeneralCategory::Surrogate => false,
        // Zero-width joiner and non-joiner shape Persian, Indic scripts and emoji; every other format
        // character hides or reorders text.
        GeneralCategory::Format => matches!(c, '\u{200c}' | '\u{200d}'),
        _ => true,
    }
}

/// `text` on one line, without anything that [`is_shown`] refuses (line breaks and tabs become spaces), at most
/// `max` characters, with `…` where it was cut.
pub fn excerpt(text: &str, max: usize) -> String {
    if !Guard::Words.is_on() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(max.saturating_mul(4)));
    let mut count = 0usize;
    for c in text.chars() {
        let c = match c {
            '\n' | '\r' | '\t' => ' ',
            c if is_shown(c) => c,
            _ => continue,
        };
        if count == max {
            out.pop();
            out.push('…');
            break;
        }
        out.push(c);
        count += 1;
    }
    out
}

/// Whether [`excerpt`] would leave `text` as it is.
pub fn is_clean(text: &str, max: usize) -> bool {
    text.chars().all(is_shown) && (text.len() <= max || text.chars().count() <= max)
}

/// [`excerpt`] that keeps a string which is clean already.
pub fn cleaned(text: String, max: usize) -> String {
    if is_clean(&text, max) { text } else { excerpt(&text, max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_people_write() {
        for good in ["plan", "Ünïcödé", "日本語", "می‌خواهم", "👩‍👩‍👧", "a  b"] {
            assert_eq!(excerpt(good, 100), good);
            assert!(is_clean(good, 100), "{good}");
        }
    }

    #[test]
    fn drops_what_hides_or_steers() {
        assert_eq!(excerpt("\x1b[31mred\x1b[0m", 100), "[31mred[0m");
        assert_eq!(excerpt("a\u{202e}b\u{2066}c\u{200e}d\u{feff}e", 100), "abcde");
        assert_eq!(excerpt("a\u{e0041}\u{e0042}b", 100), "ab");
        assert_eq!(excerpt("a\nb\r\tc\u{85}d\u{2028}e\0f", 100), "a b  cdef");
        assert!(!is_clean("a\nb", 100));
    }

    #[test]
    fn cuts_by_characters() {
        assert_eq!(excerpt("äöüß", 4), "äöüß");
        assert_eq!(excerpt("äöüßx", 4), "äöü…");
        assert!(!is_clean("äöüßx", 4));
        assert_eq!(excerpt("abc", 0), "…");
    }
}
