//! Decodes text strings outside of pages: titles, names, authors.

use encoding_rs::{UTF_16BE, UTF_16LE};

/// PDFDocEncoding where it differs from Latin-1: the first byte of a run, and its characters (ISO 32000-1, annex D.2).
const PDF_DOC_ENCODING: [(u8, &str); 5] = [
    (0x18, "\u{2d8}\u{2c7}\u{2c6}\u{2d9}\u{2dd}\u{2db}\u{2da}\u{2dc}"),
    (
        0x80,
        "\u{2022}\u{2020}\u{2021}\u{2026}\u{2014}\u{2013}\u{192}\u{2044}\u{2039}\u{203a}\u{2212}\u{2030}\u{201e}\u{201c}\u{201d}\u{2018}",
    ),
    (
        0x90,
        "\u{2019}\u{201a}\u{2122}\u{fb01}\u{fb02}\u{141}\u{152}\u{160}\u{178}\u{17d}\u{131}\u{142}\u{153}\u{161}\u{17e}",
    ),
    (0xa0, "\u{20ac}"),
    (0xff, "\u{ff}"),
];

/// Decodes a text string: UTF-16 or UTF-8 by its byte order mark, otherwise PDFDocEncoding. Control characters become
/// spaces.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let text = decode_raw(bytes);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Decodes a text string with its control characters.
pub(crate) fn decode_raw(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => UTF_16BE.decode_without_bom_handling(rest).0.into_owned(),
        [0xff, 0xfe, rest @ ..] => UTF_16LE.decode_without_bom_handling(rest).0.into_owned(),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        // UTF-8 without a mark: not allowed, but common.
        bytes if !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok() => String::from_utf8_lossy(bytes).into_owned(),
        bytes => bytes.iter().map(|byte| pdf_doc_char(*byte)).collect(),
    }
}

fn pdf_doc_char(byte: u8) -> char {
    for (first, characters) in PDF_DOC_ENCODING {
        if let Some(found) = byte.checked_sub(first).and_then(|at| characters.chars().nth(at.into())) {
            return found;
        }
    }
    char::from(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded_by_their_byte_order_marks() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            (b"\xfe\xff\x00G\x00r\x00\xfc\x00n", "Grün"),
            (b"\xef\xbb\xbfGr\xc3\xbcn", "Grün"),
            (b"Gr\xfcn \x84 \x8d\x8e\xa0", "Grün \u{2014} \u{201c}\u{201d}\u{20ac}"),
            (b"Gr\xc3\xbcn", "Grün"),
            (b" a\0b\n", "a b"),
        ] {
            assert_eq!(decode(bytes), text, "{bytes:?}");
        }
    }
}
