//! Decodes bytes to text. The bytes decide before the declared charset, because declared charsets are often wrong.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How many bytes of a document are searched for its own charset declaration: the same as in browsers.
const HEAD: usize = 1024;

/// Decodes a body. Tries in order: byte order mark, the zero bytes of UTF-16 and UTF-32, valid UTF-8, the charset of
/// `content_type`, the document's own declaration, windows-1252.
pub(crate) fn decode<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if let Some(text) = utf32(bytes) {
        return Cow::Owned(text);
    }
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(bytes.get(length..).unwrap_or_default());
        return text;
    }
    let stated = content_type.and_then(label).and_then(encoding);
    let own = own_label(bytes);
    let own = own.as_deref().and_then(encoding);
    // A text in UTF-16 begins with ASCII: `<` or `{`, for example. Bytes with zeros in between are valid UTF-8, too.
    match bytes {
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => {
            return UTF_16BE.decode_without_bom_handling(bytes).0;
        }
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => {
            return UTF_16LE.decode_without_bom_handling(bytes).0;
        }
        _ => {}
    }
    // A readable declaration of UTF-16 is wrong, because reading it presumes ASCII. ISO-2022-JP consists of ASCII bytes, so
    // valid UTF-8 does not exclude it.
    let is_seven_bit =
        |encoding: &'static Encoding| !encoding.is_ascii_compatible() || encoding.name() == "ISO-2022-JP";
    let own = own.filter(|own| *own != UTF_16LE && *own != UTF_16BE);
    if !stated.or(own).is_some_and(is_seven_bit)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    for encoding in [stated, own].into_iter().flatten() {
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return text;
        }
    }
    // Text with a few invalid bytes in UTF-8 would be garbage in every other encoding.
    let mostly = if is_mostly_utf8(bytes) { Some(UTF_8) } else { stated.or(own).filter(|known| *known != UTF_8) };
    mostly.unwrap_or(WINDOWS_1252).decode_without_bom_handling(bytes).0
}

/// The encoding of a label, also under the names of mail programs and of Python.
fn encoding(label: &str) -> Option<&'static Encoding> {
    let label = label.trim();
    Encoding::for_label(label.as_bytes()).or_else(|| {
        let plain: String = label.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let known = match plain.as_str() {
            "utf8mb4" | "utf8mb3" | "xutf8" => "utf-8",
            "cp932" | "ms932" | "windows31j" | "xsjis" => "shift_jis",
            "cp936" | "ms936" | "xgbk" => "gbk",
            "cp949" | "ms949" | "uhc" => "euc-kr",
            "cp950" | "ms950" => "big5",
            "eucjp" | "xeucjp" => "euc-jp",
            "iso885911" | "tis620" => "windows-874",
            "ansi" | "win1252" | "latin1" | "usascii" | "cp1252" => "windows-1252",
            _ => match plain.strip_prefix("cp125").or_else(|| plain.strip_prefix("win125")) {
                Some(last) => return Encoding::for_label(format!("windows-125{last}").as_bytes()),
                None => return None,
            },
        };
        Encoding::for_label(known.as_bytes())
    })
}

/// The text of bytes in UTF-32, with or without a byte order mark. `None` for other bytes.
fn utf32(bytes: &[u8]) -> Option<String> {
    let (is_big, skip) = match bytes {
        [0, 0, 0xfe, 0xff, ..] => (true, 4),
        [0xff, 0xfe, 0, 0, ..] => (false, 4),
        [0, 0, 0, first, 0, 0, 0, ..] if *first != 0 => (true, 0),
        [first, 0, 0, 0, second, 0, 0, 0, ..] if *first != 0 && *second != 0 => (false, 0),
        _ => return None,
    };
    let characters = bytes.get(skip..)?.chunks_exact(4).map(|four| {
        let four: [u8; 4] = four.try_into().unwrap_or_default();
        let code = if is_big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    Some(characters.collect())
}

/// The `charset` of a content type.
fn label(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// The charset in an XML declaration or a `meta` element.
fn own_label(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..HEAD.min(bytes.len())).unwrap_or_default();
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let declaration = head.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split("?>").next());
    if let Some(label) = declaration.and_then(|declaration| after(declaration, "encoding")) {
        return Some(label);
    }
    head.split("<meta").skip(1).find_map(|element| after(element.split('>').next()?, "charset"))
}

/// The value in `name = "value"`, with or without quotes.
fn after(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(name)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let value: String = value.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c)).collect();
    (!value.is_empty()).then_some(value)
}

/// True if at least nine of ten characters beyond ASCII are valid UTF-8.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good >= 9 * bad
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATIN: &[u8] = b"na\xefve caf\xe9";

    #[test]
    fn the_declared_charset_counts_unless_the_bytes_exclude_it() {
        assert_eq!(decode(LATIN, Some("text/html; charset=ISO-8859-1")), "naïve café");
        assert_eq!(decode(LATIN, Some("text/html; x=y; Charset=\"windows-1252\"")), "naïve café");
        assert_eq!(decode(b"\xc6\xfc\xcb\xdc", Some("text/plain; charset=euc-jp")), "日本");
        assert_eq!(decode(b"\x1b$BF|K\\\x1b(B", Some("text/plain; charset=iso-2022-jp")), "日本");
        assert_eq!(decode(b"\xe5\x65\x2c\x67", Some("text/plain; charset=utf-16le")), "日本");
    }

    #[test]
    fn valid_utf8_takes_precedence_over_the_declared_charset() {
        assert_eq!(decode("naïve".as_bytes(), Some("text/html; charset=iso-8859-1")), "naïve");
        assert_eq!(decode("naïve".as_bytes(), None), "naïve");
    }

    #[test]
    fn invalid_utf8_is_not_decoded_as_the_declared_utf8() {
        let xml = [b"<?xml version='1.0' encoding='iso-8859-15'?><a>\xa4 ", LATIN, b"</a>"].concat();
        assert!(decode(&xml, Some("text/xml; charset=utf-8")).contains("€ naïve café"));
        let html = [b"<html><META http-equiv=Content-Type content=\"text/html; charset=koi8-r\">\xf0\xd2".as_slice()];
        assert!(decode(&html.concat(), None).ends_with("Пр"));
        assert_eq!(decode(LATIN, None), "naïve café");
        assert_eq!(decode(LATIN, Some("text/plain; charset=made-up")), "naïve café");
    }

    #[test]
    fn a_byte_order_mark_decides() {
        assert_eq!(decode(b"\xef\xbb\xbfa", Some("text/plain; charset=koi8-r")), "a");
        assert_eq!(decode(b"\xff\xfea\0", None), "a");
        assert_eq!(decode(b"\xfe\xff\0a", Some("text/plain; charset=utf-8")), "a");
    }

    #[test]
    fn utf_16_and_utf_32_are_known_by_their_zeros() {
        for bom in ["", "\u{feff}"] {
            let text = format!("{bom}<a>日本</a>");
            let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big32: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
            let little32: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            for bytes in [big, little, big32, little32] {
                assert_eq!(decode(&bytes, Some("text/xml; charset=utf-8")), "<a>日本</a>", "{bytes:?}");
            }
        }
    }

    #[test]
    fn other_names_of_encodings_are_known() {
        for label in ["cp1251", "win-1251", "CP_1251", "windows-1251"] {
            assert_eq!(decode(b"\xcf\xf0", Some(&format!("text/plain; charset={label}"))), "Пр", "{label}");
        }
        assert_eq!(decode(b"\x93\xfa\x96{", Some("text/plain; charset=cp932")), "日本");
    }

    #[test]
    fn a_few_broken_bytes_do_not_change_the_encoding() {
        let mut bytes = "für größere Änderungen äöü äöü".as_bytes().to_vec();
        bytes.push(0xff);
        assert_eq!(decode(&bytes, None), "für größere Änderungen äöü äöü\u{fffd}");
    }
}
