//! Recognises UTF-16, with and without a byte order mark, and decodes it. Everything else is read as UTF-8.

/// How many bytes show whether text is UTF-16, which has a zero beside each space and digit.
const PROBE: usize = 1024;

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16 { little: bool },
}

impl Encoding {
    /// The encoding of bytes that begin at an even position of a file.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0xff, 0xfe, ..] => return Encoding::Utf16 { little: true },
            [0xfe, 0xff, ..] => return Encoding::Utf16 { little: false },
            // Fast path: text in other encodings has no zeros.
            _ if memchr::memchr(0, bytes.get(..PROBE).unwrap_or(bytes)).is_none() => return Encoding::Utf8,
            _ => {}
        }
        let (units, _) = bytes.as_chunks::<2>();
        let sample = units.get(..units.len().min(4096)).unwrap_or_default();
        // No text has this character.
        if sample.contains(&[0, 0]) {
            return Encoding::Utf8;
        }
        let little = share(sample, |unit| unit[1] == 0);
        let big = share(sample, |unit| unit[0] == 0);
        let is = |share: usize, other: usize, line_end| {
            other <= share / 20 && (share >= 50 || (share >= 3 && sample.contains(&line_end)))
        };
        // Logs have digits, spaces and line ends in every language.
        if is(little, big, [b'\n', 0]) {
            Encoding::Utf16 { little: true }
        } else if is(big, little, [0, b'\n']) {
            Encoding::Utf16 { little: false }
        } else {
            Encoding::Utf8
        }
    }

    /// The text of bytes in UTF-16; `None` for other bytes. Leaves out a half character at either end.
    pub(crate) fn decoded(self, bytes: &[u8]) -> Option<String> {
        let Encoding::Utf16 { little } = self else { return None };
        let (units, _) = bytes.as_chunks::<2>();
        let unit = |unit: &[u8; 2]| if little { u16::from_le_bytes(*unit) } else { u16::from_be_bytes(*unit) };
        Some(char::decode_utf16(units.iter().map(unit)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }

    /// The length of the second half of a character of four bytes, if bytes in UTF-16 begin with one.
    pub(crate) fn half_character(self, bytes: &[u8]) -> usize {
        let high = match (self, bytes) {
            (Encoding::Utf16 { little: true }, [_, high, ..]) | (Encoding::Utf16 { little: false }, [high, ..]) => {
                *high
            }
            _ => 0,
        };
        if matches!(high, 0xdc..=0xdf) { 2 } else { 0 }
    }
}

/// The percentage of units for which `is` is true.
fn share(units: &[[u8; 2]], is: impl Fn([u8; 2]) -> bool) -> usize {
    100 * units.iter().filter(|unit| is(**unit)).count() / units.len().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, little: bool) -> Vec<u8> {
        text.encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
    }

    #[test]
    fn utf16_is_recognised_in_every_language() {
        for text in [
            "x\n",
            "2026-11-21 10:00:00 grün\r\n",
            "2026-11-21 10:00:00 INFO 日本語の長い文章です\n",
            "日本語の長い文章です\n",
            "\u{feff}日",
        ] {
            for little in [true, false] {
                let bytes = utf16(text, little);
                let encoding = Encoding::of(&bytes);
                assert_eq!(encoding, Encoding::Utf16 { little }, "{text}");
                assert_eq!(encoding.decoded(&bytes).as_deref(), Some(text));
            }
        }
        for bytes in [
            &b""[..],
            b"plain",
            b"gr\xfcn",
            b"one\0zero",
            "grün 日本語".as_bytes(),
            &[0; 100],
            &[1, 2, 0, 0, 7, 0, 0, 9],
        ] {
            assert_eq!(Encoding::of(bytes), Encoding::Utf8, "{bytes:?}");
        }
        assert_eq!(Encoding::Utf8.decoded(b"x"), None);
    }
}
