//! Texts from strangers, made fit to be shown: one line, bounded, without characters that change how a terminal shows others.

/// The most characters of a name, a title or an identity.
pub(crate) const NAME: usize = 200;

/// The most characters of a description or an error.
pub(crate) const SENTENCE: usize = 600;

/// The text without control and formatting characters, on one line, with `max` characters at most.
pub(crate) fn clean(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for letter in text.chars().take(max.saturating_mul(4)) {
        let letter = if letter.is_whitespace() || letter.is_control() { ' ' } else { letter };
        if is_invisible(letter) || (letter == ' ' && (out.is_empty() || out.ends_with(' '))) {
            continue;
        }
        if count == max {
            out.push('…');
            return out;
        }
        out.push(letter);
        count += 1;
    }
    out.truncate(out.trim_end().len());
    out
}

/// [`clean`], or `None` if nothing is left.
pub(crate) fn clean_some(text: &str, max: usize) -> Option<String> {
    Some(clean(text, max)).filter(|text| !text.is_empty())
}

/// True for characters that have no picture of their own and change the order or the look of others.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_harmless_line() {
        for (text, shown) in [
            ("tides", "tides"),
            ("  a\n\tb\r\n ", "a b"),
            ("\u{1b}[2Ja\u{202e}b\u{200b}c", "[2Jabc"),
            ("a\u{0}b\u{9b}31mc", "a b 31mc"),
            ("\u{feff}", ""),
            ("Gezeiten für Föhr", "Gezeiten für Föhr"),
        ] {
            assert_eq!(clean(text, 50), shown, "{text:?}");
        }
        assert_eq!(clean("abcdef", 3), "abc…");
        assert_eq!(clean("abc", 3), "abc");
        assert_eq!(clean_some("\n", 3), None);
    }
}
