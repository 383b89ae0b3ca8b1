//! Sanitising of untrusted text: safe to show in a terminal, a log or a client, limited in length, and quoted.
//!
//! Names, titles, descriptions, errors and log lines pass through here. Contents of resources never do: they are data.

use icu_properties::props::{
    CanonicalCombiningClass, DefaultIgnorableCodePoint, EmojiModifier, ExtendedPictographic, GeneralCategory,
    JoiningType, NoncharacterCodePoint,
};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::guard::Guard;

/// Combining marks that may follow each other. The longest stacks in real text have this many (Tibetan); Hebrew, Arabic
/// and Vietnamese need fewer. Longer stacks paint over neighbouring lines.
pub const MAX_COMBINING_MARKS: usize = 8;

/// Bytes of the two quotation marks.
const QUOTE_BYTES: usize = 2;

/// The effect of a character on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    /// A visible character.
    Plain,
    /// A mark, drawn onto the character before it.
    Mark,
    /// A zero-width joiner or non-joiner. It shapes its neighbours; elsewhere it is invisible.
    Joiner,
    /// A character that controls, is invisible or reorders.
    Hidden,
}

fn class_of(c: char) -> CharClass {
    match c {
        ' '..='~' => return CharClass::Plain,
        // Fast path for Latin, Greek, Cyrillic, Chinese, Japanese and Korean letters: none in these ranges is
        // invisible.
        '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{370}'..='\u{377}' | '\u{391}'..='\u{482}' => {
            return CharClass::Plain;
        }
        '\u{3041}'..='\u{3096}' | '\u{30a0}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => {
            return CharClass::Plain;
        }
        '\u{200c}' | '\u{200d}' => return CharClass::Joiner,
        _ => {}
    }
    if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointSetData::new::<NoncharacterCodePoint>().contains(c)
    {
        return CharClass::Hidden;
    }
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Control
        | GeneralCategory::Format
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator
        | GeneralCategory::Surrogate => CharClass::Hidden,
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => {
            CharClass::Mark
        }
        _ => CharClass::Plain,
    }
}

/// True if `joiner` shapes its neighbours: between emoji, beside a virama (Indic scripts), or between letters that join
/// (Arabic and its relatives). RFC 5892, appendix A, has the same rules for domain names.
fn joins(joiner: char, before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    if class_of(before) == CharClass::Joiner {
        return false;
    }
    let class = CodePointMapData::<CanonicalCombiningClass>::new();
    if [before, after].iter().any(|c| class.get(*c) == CanonicalCombiningClass::Virama) {
        return true;
    }
    let joining = |c| CodePointMapData::<JoiningType>::new().get(c);
    let goes_on =
        matches!(joining(before), JoiningType::DualJoining | JoiningType::LeftJoining | JoiningType::Transparent);
    let begins = matches!(joining(after), JoiningType::DualJoining | JoiningType::RightJoining);
    // A vowel sign between the letters is transparent to joining. A sign of a script that does not join fails one of
    // the two tests.
    if goes_on && begins {
        return true;
    }
    let is_picture = |c| CodePointSetData::new::<ExtendedPictographic>().contains(c);
    let is_tone = |c| CodePointSetData::new::<EmojiModifier>().contains(c);
    joiner == '\u{200d}' && (is_picture(before) || is_tone(before)) && is_picture(after)
}

/// Characters after a joiner that are searched for the one that it joins.
const JOINER_LOOKAHEAD: usize = 16;

/// A space for a line break, a tab, and the blank Braille pattern, which looks like a space.
const fn as_space(c: char) -> Option<char> {
    if matches!(c, '\n' | '\r' | '\t' | '\u{2800}') { Some(' ') } else { None }
}

/// Iterates over the characters of a text. Each item is the character and its replacement: itself, a space, or `None`
/// if it is removed.
#[derive(Clone, Debug)]
pub struct Visible<'t> {
    rest: std::str::Chars<'t>,
    /// The last character that was kept.
    before: Option<char>,
    /// Consecutive marks so far.
    marks: usize,
}

/// Sanitises `text` for one line.
pub fn visible(text: &str) -> Visible<'_> {
    Visible { rest: text.chars(), before: None, marks: 0 }
}

impl Visible<'_> {
    /// The next kept character that is not a joiner, if it is near.
    fn after(&self) -> Option<char> {
        self.rest.clone().take(JOINER_LOOKAHEAD).map(|c| as_space(c).unwrap_or(c)).find(|c| match class_of(*c) {
            CharClass::Plain => true,
            CharClass::Mark => self.marks < MAX_COMBINING_MARKS,
            CharClass::Joiner | CharClass::Hidden => false,
        })
    }
}

impl Iterator for Visible<'_> {
    type Item = (char, Option<char>);

    fn next(&mut self) -> Option<Self::Item> {
        let c = self.rest.next()?;
        let kept = as_space(c).or_else(|| match class_of(c) {
            CharClass::Plain => Some(c),
            CharClass::Mark if self.marks < MAX_COMBINING_MARKS => Some(c),
            // A joiner depends on the next kept character. Without one it is removed.
            CharClass::Joiner if joins(c, self.before, self.after()) => Some(c),
            CharClass::Mark | CharClass::Joiner | CharClass::Hidden => None,
        });
        if let Some(c) = kept {
            self.marks = match class_of(c) {
                CharClass::Mark => self.marks + 1,
                CharClass::Joiner => self.marks,
                _ => 0,
            };
            self.before = Some(c);
        }
        Some((c, kept))
    }
}

/// True if `c` may stand in a line, whatever its neighbours are. False for controls (C0, C1), reordering and invisible
/// characters (`Default_Ignorable_Code_Point`) and line separators. Joiners and marks also need [`visible`], which sees
/// their neighbours.
pub fn is_visible(c: char) -> bool {
    class_of(c) != CharClass::Hidden
}

/// `text` as a line for a terminal: tabs become spaces; invisible and controlling characters are removed. Not cut.
pub fn line(text: &str) -> String {
    visible(text).filter_map(|(_, kept)| kept).collect()
}

/// True if all bytes are printable ASCII. A fast path: nearly every name is.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// `text` on one line, without invisible or controlling characters. Line breaks and tabs become spaces. At most `max`
/// characters; `…` marks a cut.
pub fn excerpt(text: &str, max: usize) -> String {
    if !Guard::Sanitising.is_on() {
        return text.to_owned();
    }
    if text.len() <= max && is_printable(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(max.saturating_mul(4)));
    for (count, c) in visible(text).filter_map(|(_, kept)| kept).enumerate() {
        if count == max {
            out.pop();
            // A joiner must not end the text: the character that it joined was cut.
            while out.ends_with(['\u{200c}', '\u{200d}']) {
                out.pop();
            }
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// True if [`excerpt`] would not change `text`.
pub fn is_clean(text: &str, max: usize) -> bool {
    let is_unchanged = is_printable(text) || visible(text).all(|(c, kept)| kept == Some(c));
    is_unchanged && (text.len() <= max || text.chars().count() <= max)
}

/// Like [`excerpt`], but returns a clean string without a copy.
pub fn cleaned(text: String, max: usize) -> String {
    if is_clean(&text, max) { text } else { excerpt(&text, max) }
}

/// [`excerpt`] in quotation marks, for use in belljar's own sentences. A backslash escapes quotation marks and
/// backslashes, so the text cannot leave its quotation marks.
pub fn quoted(text: &str, max: usize) -> String {
    let text = excerpt(text, max);
    let mut out = String::with_capacity(text.len() + QUOTE_BYTES);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_real_text() {
        for good in [
            "plan",
            "Ünïcödé",
            "日本語 ひらがな 한국어",
            "می\u{200c}خواهم",
            "आप क्\u{200d}ष क्\u{200c}ष",
            "ශ්\u{200d}රී ලංකා",
            "র\u{200d}\u{9cd}য",
            "👩\u{200d}👩\u{200d}👧",
            "👩🏽\u{200d}🚀",
            "🏴\u{200d}☠",
            "a  b",
            "e\u{301}\u{323}",
            "שָׁ֖לוֹם",
            "ཧྐྵྨླྺྼྻ",
            "ไม่มี",
            "naïve – “quoted” …",
        ] {
            assert_eq!(excerpt(good, 100), good);
            assert!(is_clean(good, 100), "{good}");
        }
    }

    #[test]
    fn removes_invisible_and_controlling_characters() {
        assert_eq!(excerpt("\x1b[31mred\x1b[0m", 100), "[31mred[0m");
        assert_eq!(excerpt("a\u{202e}b\u{2066}c\u{200e}d\u{feff}e", 100), "abcde");
        assert_eq!(excerpt("a\u{e0041}\u{e0042}b", 100), "ab");
        assert_eq!(excerpt("a\nb\r\tc\u{85}d\u{2028}e\0f", 100), "a b  cdef");
        assert!(!is_clean("a\nb", 100));
        for hidden in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{17b5}',
            '\u{180b}',
            '\u{180e}',
            '\u{180f}',
            '\u{2064}',
            '\u{2065}',
            '\u{206a}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{ffff}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0100}',
            '\u{e01ef}',
            '\u{e0fff}',
        ] {
            assert_eq!(excerpt(&format!("a{hidden}b😀{hidden}c"), 100), "ab😀c", "{:x}", u32::from(hidden));
            assert!(!is_visible(hidden));
        }
    }

    #[test]
    fn joiners_are_kept_only_where_they_join() {
        for (given, kept) in [
            ("pay\u{200d}pal", "paypal"),
            ("a\u{200c}\u{200d}\u{200c}b", "ab"),
            ("\u{200d}a", "a"),
            ("a\u{200d}", "a"),
            ("日\u{200d}本", "日本"),
            ("e\u{301}\u{200d}f", "e\u{301}f"),
            // Of a run of joiners one is kept.
            ("می\u{200c}\u{200c}\u{200c}خ", "می\u{200c}خ"),
            ("👩\u{200d}\u{200d}👧", "👩\u{200d}👧"),
            ("👩\u{200c}👧", "👩👧"),
            // A joiner does not join a removed character.
            ("क्\u{200d}\u{ad}", "क्"),
            ("क्\u{200d}\u{200d}", "क्"),
            ("क्\u{200d}\u{ad}ष", "क्\u{200d}ष"),
        ] {
            assert_eq!(excerpt(given, 100), kept, "{given:?}");
            assert_eq!(excerpt(kept, 100), kept);
        }
    }

    #[test]
    fn stacks_of_marks_are_capped() {
        let pile = format!("a{}b{}", "\u{301}".repeat(4094), "\u{489}".repeat(100));
        let shown = excerpt(&pile, 10_000);
        assert_eq!(shown.chars().count(), 2 + 2 * MAX_COMBINING_MARKS);
        // Removed characters between marks do not restart the count.
        let mixed = format!("a{}", "\u{301}\u{200b}".repeat(100));
        assert_eq!(excerpt(&mixed, 10_000).chars().count(), 1 + MAX_COMBINING_MARKS);
    }

    #[test]
    fn cuts_by_characters() {
        assert_eq!(excerpt("äöüß", 4), "äöüß");
        assert_eq!(excerpt("äöüßx", 4), "äöü…");
        assert!(!is_clean("äöüßx", 4));
        assert_eq!(excerpt("abc", 0), "…");
    }

    #[test]
    fn quoted_text_cannot_leave_its_quotation_marks() {
        assert_eq!(quoted("plain", 10), "\"plain\"");
        assert_eq!(quoted("x\"; run: y", 100), "\"x\\\"; run: y\"");
        assert_eq!(quoted("x\\\"", 100), "\"x\\\\\\\"\"");
        assert_eq!(quoted("a\nb", 100), "\"a b\"");
    }
}
