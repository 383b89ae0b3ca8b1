//! Text from strangers: made safe to show in a terminal, a log or a client, cut to a length, and quoted in sentences of ours.
//!
//! Contents of resources are data and never come here; names, titles, descriptions, errors and log lines do.

use icu_properties::props::{
    CanonicalCombiningClass, DefaultIgnorableCodePoint, EmojiModifier, ExtendedPictographic, GeneralCategory,
    JoiningType, NoncharacterCodePoint,
};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::Guard;

/// Combining marks that may follow each other. The longest stacks that people write have this many (Tibetan); Hebrew,
/// Arabic and Vietnamese need fewer. More of them paint over the lines around.
pub const MARKS: usize = 8;

/// Bytes that a quotation may have beyond its characters.
const QUOTES: usize = 2;

/// What a character does to the line that it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It can be seen.
    Plain,
    /// It is drawn onto the one before it.
    Mark,
    /// A zero-width joiner or non-joiner: it shapes its neighbours, or hides.
    Joiner,
    /// It steers, hides or reorders.
    Hidden,
}

fn kind(c: char) -> Kind {
    match c {
        ' '..='~' => return Kind::Plain,
        // Latin, Greek and Cyrillic letters; Chinese, Japanese and Korean ones: nothing among them hides.
        '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{370}'..='\u{377}' | '\u{391}'..='\u{482}' => {
            return Kind::Plain;
        }
        '\u{3041}'..='\u{3096}' | '\u{30a0}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => {
            return Kind::Plain;
        }
        '\u{200c}' | '\u{200d}' => return Kind::Joiner,
        _ => {}
    }
    if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointSetData::new::<NoncharacterCodePoint>().contains(c)
    {
        return Kind::Hidden;
    }
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Control
        | GeneralCategory::Format
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator
        | GeneralCategory::Surrogate => Kind::Hidden,
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => Kind::Mark,
        _ => Kind::Plain,
    }
}

/// Whether `joiner` shapes what stands around it: between emoji, beside a virama (Indic scripts), between letters that join
/// (Arabic and its relatives; RFC 5892, appendix A, says the same of names).
fn joins(joiner: char, before: Option<char>, after: Option<char>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    if kind(before) == Kind::Joiner {
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
    // A vowel sign between the letters is transparent to joining; that of a script that does not join is not meant.
    if goes_on && begins {
        return true;
    }
    let is_picture = |c| CodePointSetData::new::<ExtendedPictographic>().contains(c);
    let is_tone = |c| CodePointSetData::new::<EmojiModifier>().contains(c);
    joiner == '\u{200d}' && (is_picture(before) || is_tone(before)) && is_picture(after)
}

/// Characters behind a joiner that are looked through for the one that it joins.
const NEAR: usize = 16;

/// The space that is shown for a line break, a tab, or the blank of Braille, which looks like one.
const fn blank(c: char) -> Option<char> {
    if matches!(c, '\n' | '\r' | '\t' | '\u{2800}') { Some(' ') } else { None }
}

/// Each character of a text, and what is shown of it: itself, a space for a line break or a tab, or nothing.
#[derive(Clone, Debug)]
pub struct Shown<'t> {
    rest: std::str::Chars<'t>,
    /// The last one that was shown.
    before: Option<char>,
    /// Marks in a row.
    marks: usize,
}

/// What is shown of `text`, on one line.
pub fn shown(text: &str) -> Shown<'_> {
    Shown { rest: text.chars(), before: None, marks: 0 }
}

impl Shown<'_> {
    /// The next character that is shown and no joiner, if it is near.
    fn after(&self) -> Option<char> {
        self.rest.clone().take(NEAR).map(|c| blank(c).unwrap_or(c)).find(|c| match kind(*c) {
            Kind::Plain => true,
            Kind::Mark => self.marks < MARKS,
            Kind::Joiner | Kind::Hidden => false,
        })
    }
}

impl Iterator for Shown<'_> {
    type Item = (char, Option<char>);

    fn next(&mut self) -> Option<Self::Item> {
        let c = self.rest.next()?;
        let shows = blank(c).or_else(|| match kind(c) {
            Kind::Plain => Some(c),
            Kind::Mark if self.marks < MARKS => Some(c),
            // What is shown next decides; where nothing is, neither is this.
            Kind::Joiner if joins(c, self.before, self.after()) => Some(c),
            Kind::Mark | Kind::Joiner | Kind::Hidden => None,
        });
        if let Some(c) = shows {
            self.marks = match kind(c) {
                Kind::Mark => self.marks + 1,
                Kind::Joiner => self.marks,
                _ => 0,
            };
            self.before = Some(c);
        }
        Some((c, shows))
    }
}

/// Whether `c` can stand in a shown line, whatever stands beside it there: no control (C0, C1), nothing that reorders or
/// cannot be seen (`Default_Ignorable_Code_Point`), no separator of lines. Joiners and marks need [`shown`], which sees their
/// neighbours.
pub fn is_shown(c: char) -> bool {
    kind(c) != Kind::Hidden
}

/// A line as a terminal may have it: tabs become spaces, and what hides or steers is left out. Not cut.
pub fn line(text: &str) -> String {
    shown(text).filter_map(|(_, shows)| shows).collect()
}

/// Whether every byte is a printable one of ASCII: nearly every name is, and needs no closer look.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// `text` on one line, without anything that hides or steers (line breaks and tabs become spaces), at most `max` characters,
/// with `…` where it was cut.
pub fn excerpt(text: &str, max: usize) -> String {
    if !Guard::Words.is_on() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(max.saturating_mul(4)));
    for (count, c) in shown(text).filter_map(|(_, shows)| shows).enumerate() {
        if count == max {
            out.pop();
            // Nothing that shapes what is no longer there.
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

/// Whether [`excerpt`] would leave `text` as it is.
pub fn is_clean(text: &str, max: usize) -> bool {
    let is_as_shown = is_printable(text) || shown(text).all(|(c, shows)| shows == Some(c));
    is_as_shown && (text.len() <= max || text.chars().count() <= max)
}

/// [`excerpt`] that keeps a string which is clean already.
pub fn cleaned(text: String, max: usize) -> String {
    if is_clean(&text, max) { text } else { excerpt(&text, max) }
}

/// [`excerpt`] in quotation marks, to stand in a sentence of ours: a quotation mark or a backslash within has a backslash
/// before it, so that no stranger's words get out of them and go on in our voice.
pub fn quoted(text: &str, max: usize) -> String {
    let text = excerpt(text, max);
    let mut out = String::with_capacity(text.len() + QUOTES);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') && Guard::Words.is_on() {
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
    fn keeps_what_people_write() {
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
    fn drops_what_hides_or_steers() {
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
            assert!(!is_shown(hidden));
        }
    }

    #[test]
    fn joiners_stand_where_they_shape_something() {
        for (given, kept) in [
            ("pay\u{200d}pal", "paypal"),
            ("a\u{200c}\u{200d}\u{200c}b", "ab"),
            ("\u{200d}a", "a"),
            ("a\u{200d}", "a"),
            ("日\u{200d}本", "日本"),
            ("e\u{301}\u{200d}f", "e\u{301}f"),
            // One of a run does its work, the rest hide.
            ("می\u{200c}\u{200c}\u{200c}خ", "می\u{200c}خ"),
            ("👩\u{200d}\u{200d}👧", "👩\u{200d}👧"),
            ("👩\u{200c}👧", "👩👧"),
            // What comes behind it and is not shown, it does not join.
            ("क्\u{200d}\u{ad}", "क्"),
            ("क्\u{200d}\u{200d}", "क्"),
            ("क्\u{200d}\u{ad}ष", "क्\u{200d}ष"),
        ] {
            assert_eq!(excerpt(given, 100), kept, "{given:?}");
            assert_eq!(excerpt(kept, 100), kept);
        }
    }

    #[test]
    fn marks_pile_up_to_a_height() {
        let pile = format!("a{}b{}", "\u{301}".repeat(4094), "\u{489}".repeat(100));
        let shown = excerpt(&pile, 10_000);
        assert_eq!(shown.chars().count(), 2 + 2 * MARKS);
        // Whatever is left out between them does not begin a new pile.
        let mixed = format!("a{}", "\u{301}\u{200b}".repeat(100));
        assert_eq!(excerpt(&mixed, 10_000).chars().count(), 1 + MARKS);
    }

    #[test]
    fn cuts_by_characters() {
        assert_eq!(excerpt("äöüß", 4), "äöüß");
        assert_eq!(excerpt("äöüßx", 4), "äöü…");
        assert!(!is_clean("äöüßx", 4));
        assert_eq!(excerpt("abc", 0), "…");
    }

    #[test]
    fn nobody_gets_out_of_quotation_marks() {
        assert_eq!(quoted("plain", 10), "\"plain\"");
        assert_eq!(quoted("x\"; run: y", 100), "\"x\\\"; run: y\"");
        assert_eq!(quoted("x\\\"", 100), "\"x\\\\\\\"\"");
        assert_eq!(quoted("a\nb", 100), "\"a b\"");
    }
}
