//! Characters in the form that people search for, and the characters of glyph names that no list has.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::compose;

/// A character in searchable form: Latin ligatures become their letters, control characters vanish.
pub(crate) fn plain(c: char, buffer: &mut [u8; 4]) -> &str {
    match c {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        '\u{a0}' | '\t' | '\n' | '\r' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => "",
        c if c.is_control() => "",
        c => c.encode_utf8(buffer),
    }
}

/// A text in searchable form.
pub(crate) fn plain_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push_str(plain(c, &mut [0; 4]));
    }
    out
}

/// True for the shapes of Arabic and Hebrew letters that have a character of their own.
fn is_presentation_form(c: char) -> bool {
    matches!(c, '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Replaces Arabic and Hebrew presentation forms by their letters. The text must be in reading order.
pub(crate) fn letters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_presentation_form(c) { out.extend(c.nfkc()) } else { out.push(c) }
    }
    out
}

/// A letter with an accent that is drawn apart from it.
pub(crate) fn accented(letter: char, accent: char) -> Option<char> {
    let mark = match accent {
        '\u{60}' => '\u{300}',
        '\u{b4}' => '\u{301}',
        '\u{2c6}' | '^' => '\u{302}',
        '\u{2dc}' | '~' => '\u{303}',
        '\u{af}' => '\u{304}',
        '\u{2d8}' => '\u{306}',
        '\u{2d9}' => '\u{307}',
        '\u{a8}' => '\u{308}',
        '\u{2da}' => '\u{30a}',
        '\u{2dd}' => '\u{30b}',
        '\u{2c7}' => '\u{30c}',
        '\u{b8}' => '\u{327}',
        '\u{2db}' => '\u{328}',
        mark @ '\u{300}'..='\u{36f}' => mark,
        _ => return None,
    };
    let letter = match letter {
        // TeX draws an accent over a letter without its dot.
        '\u{131}' => 'i',
        '\u{237}' => 'j',
        letter => letter,
    };
    compose(letter, mark)
}

/// The character of a code in an encoding that is Unicode itself, such as `UniJIS-UTF16-V`.
pub(crate) fn unicode_encoding(name: &str, code: u32) -> Option<String> {
    let encoding = name.strip_prefix("Uni")?;
    if encoding.contains("UTF16") || encoding.contains("UCS2") {
        let units = [(code >> 16) as u16, (code & 0xffff) as u16];
        let units = if code > 0xffff { &units[..] } else { units.get(1..)? };
        return String::from_utf16(units).ok();
    }
    encoding.contains("UTF32").then(|| char::from_u32(code).map(String::from))?
}

/// The text of a glyph name that holds its code, such as `a65` in the bitmap fonts of TeX. A name that counts glyphs (`g34`)
/// says nothing, except if it agrees with the code. `is_cork` tells TeX's encoding T1 from OT1.
pub(crate) fn numbered_name(name: &str, code: u32, is_cork: bool) -> Option<String> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let prefix = name.get(..name.len() - digits.len())?;
    let number: u32 = digits.parse().ok()?;
    if number != code && !matches!(prefix, "a" | "c" | "C" | "char" | "code") {
        return None;
    }
    text_code(number, is_cork).map(str::to_owned).or_else(|| {
        // The upper half of Latin-1 is nearly the same in T1.
        (192..=255).contains(&number).then(|| char::from_u32(number).map(String::from))?
    })
}

/// The text of a code in the encodings of TeX text fonts, OT1 and T1 (Cork), where it agrees with ASCII or is a ligature.
pub(crate) fn text_code(code: u32, is_cork: bool) -> Option<&'static str> {
    const ASCII: &str =
        "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    match code {
        16 | 17 | 18 | 21 | 22 if is_cork => {
            Some(["\u{201c}", "\u{201d}", "\u{201e}", "", "", "\u{2013}", "\u{2014}"].get(code as usize - 16)?)
        }
        27 if is_cork => Some("ff"),
        28 if is_cork => Some("fi"),
        29 if is_cork => Some("fl"),
        30 if is_cork => Some("ffi"),
        31 if is_cork => Some("ffl"),
        25 if is_cork => Some("\u{131}"),
        0..=31 if is_cork => None,
        11 => Some("ff"),
        12 => Some("fi"),
        13 => Some("fl"),
        14 => Some("ffi"),
        15 => Some("ffl"),
        16 => Some("\u{131}"),
        25 => Some("\u{df}"),
        32 => Some(" "),
        33..=126 => {
            let at = usize::try_from(code - 33).ok()?;
            ASCII.get(at..=at)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ligatures_and_presentation_forms_become_letters() {
        assert_eq!([plain('\u{fb03}', &mut [0; 4]), plain('\0', &mut [0; 4])], ["ffi", ""]);
        assert_eq!(letters("\u{fedf}\u{fe8e}\u{fefb}"), "\u{644}\u{627}\u{644}\u{627}");
        assert_eq!(accented('o', '\u{a8}'), Some('ö'));
        assert_eq!(accented('\u{131}', '\u{b4}'), Some('í'));
        assert_eq!(accented('o', 'x'), None);
    }

    #[test]
    fn names_with_numbers_are_read_as_codes() {
        assert_eq!(numbered_name("a65", 65, false).as_deref(), Some("A"));
        assert_eq!(numbered_name("a12", 12, false).as_deref(), Some("fi"));
        assert_eq!(numbered_name("a28", 28, true).as_deref(), Some("fi"));
        assert_eq!(numbered_name("g34", 65, false), None);
        assert_eq!(numbered_name("G65", 65, false).as_deref(), Some("A"));
        assert_eq!(numbered_name("alpha", 65, false), None);
        assert_eq!(numbered_name("a200", 200, false).as_deref(), Some("È"));
        assert_eq!(numbered_name("a130", 130, false), None);
        assert_eq!(unicode_encoding("UniJIS-UTF16-V", 0x3042).as_deref(), Some("あ"));
        assert_eq!(unicode_encoding("UniJIS-UTF16-H", 0xd83d_de00).as_deref(), Some("😀"));
        assert_eq!(unicode_encoding("UniGB-UTF32-H", 0x4e2d).as_deref(), Some("中"));
        assert_eq!(unicode_encoding("90ms-RKSJ-H", 0x3042), None);
    }
}
