//! Text of commits in the character encoding that their header `encoding` names.

use std::borrow::Cow;

use encoding_rs::Encoding;

/// Spellings that Git and iconv know, and the list of the WHATWG does not.
const SPELLINGS: [(&str, &str); 14] = [
    ("latin9", "iso-8859-15"),
    ("cp932", "shift_jis"),
    ("mskanji", "shift_jis"),
    ("eucjp", "euc-jp"),
    ("ujis", "euc-jp"),
    ("euckr", "euc-kr"),
    ("cp949", "euc-kr"),
    ("uhc", "euc-kr"),
    ("euccn", "gbk"),
    ("cp936", "gbk"),
    ("cp950", "big5"),
    ("koi8r", "koi8-r"),
    ("koi8u", "koi8-u"),
    ("iso2022jp", "iso-2022-jp"),
];

/// The encoding of a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Charset {
    /// Also for a commit without the header.
    Utf8,
    /// Each byte is the character with its number.
    Latin1,
    Other(&'static Encoding),
    /// The name is not known: the text is shown as UTF-8.
    Unknown,
}

impl Charset {
    /// The encoding with this name.
    pub(crate) fn named(name: Option<&[u8]>) -> Charset {
        let Some(name) = name else { return Charset::Utf8 };
        let name = String::from_utf8_lossy(name).trim().to_ascii_lowercase();
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.as_str() {
            "utf8" | "" => return Charset::Utf8,
            "iso88591" | "latin1" | "l1" => return Charset::Latin1,
            _ => {}
        }
        let label = SPELLINGS.iter().find(|(spelling, _)| *spelling == plain).map_or(name.as_str(), |(_, label)| label);
        let windows =
            || plain.strip_prefix("cp").and_then(|page| Encoding::for_label(format!("windows-{page}").as_bytes()));
        match Encoding::for_label(label.as_bytes()).or_else(|| Encoding::for_label(plain.as_bytes())).or_else(windows) {
            Some(encoding) if encoding == encoding_rs::UTF_8 => Charset::Utf8,
            // The name is that of a list of encodings that are refused.
            Some(encoding) if encoding == encoding_rs::REPLACEMENT => Charset::Unknown,
            Some(encoding) => Charset::Other(encoding),
            None => Charset::Unknown,
        }
    }

    /// Bytes in this encoding as text. Bytes that do not belong to it become U+FFFD.
    pub(crate) fn text(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            Charset::Utf8 | Charset::Unknown => String::from_utf8_lossy(bytes),
            Charset::Latin1 if bytes.is_ascii() => String::from_utf8_lossy(bytes),
            Charset::Latin1 => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Charset::Other(encoding) => encoding.decode_without_bom_handling(bytes).0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_known_by_the_spellings_of_git() {
        for (name, bytes, text) in [
            ("ISO-8859-1", &b"J\xfcrgen \x96"[..], "Jürgen \u{96}"),
            ("latin-1", b"\xe9", "é"),
            ("ISO8859-15", b"\xa4", "€"),
            ("Shift_JIS", b"\x93\xfa\x96\x7b", "日本"),
            ("SJIS", b"\x93\xfa", "日"),
            ("eucJP", b"\xc6\xfc\xcb\xdc", "日本"),
            ("EUC-KR", b"\xc7\xd1", "한"),
            ("windows-1251", b"\xcf\xf0\xe8", "При"),
            ("CP1251", b"\xcf", "П"),
            ("KOI8-R", b"\xf0", "П"),
            ("GB18030", b"\xd6\xd0", "中"),
            ("ISO-2022-JP", b"\x1b$BF|K\\\x1b(B", "日本"),
            ("utf8", "ü".as_bytes(), "ü"),
        ] {
            assert_eq!(Charset::named(Some(name.as_bytes())).text(bytes), text, "{name}");
        }
        assert!(matches!(Charset::named(Some(b"klingon")), Charset::Unknown));
        assert!(matches!(Charset::named(None), Charset::Utf8));
    }
}
