//! Names of files as text. A name with control characters, or with bytes that are not UTF-8, is written in quotes with escapes,
//! as Git writes it: `"caf\351"`.

use std::borrow::Cow;

/// A path as text, in quotes if it needs them.
pub(crate) fn shown(path: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(path) {
        Ok(text) if !text.chars().any(|letter| letter.is_control() || letter == '"' || letter == '\\') => {
            Cow::Borrowed(text)
        }
        _ => Cow::Owned(format!("\"{}\"", escaped(path))),
    }
}

/// A path with a prefix, as in the headers of a diff: `a/src/main.rs`, or `"a/caf\351"`.
pub(crate) fn prefixed(prefix: &str, path: &[u8]) -> String {
    match shown(path) {
        Cow::Borrowed(text) => format!("{prefix}{text}"),
        Cow::Owned(_) => format!("\"{prefix}{}\"", escaped(path)),
    }
}

/// A path for a reference: as it is if it is text without control characters, else in quotes with escapes. A path that itself
/// begins with a quote is in quotes too.
pub(crate) fn referable(path: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(path) {
        Ok(text) if !text.starts_with('"') && !text.chars().any(char::is_control) => Cow::Borrowed(text),
        _ => Cow::Owned(format!("\"{}\"", escaped(path))),
    }
}

/// The bytes of a path in a reference: those of [`referable`].
pub(crate) fn referred(path: &str) -> Cow<'_, [u8]> {
    match unquote(path) {
        Some(bytes) => Cow::Owned(bytes),
        None => Cow::Borrowed(path.as_bytes()),
    }
}

fn escaped(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '\x07' => text.push_str("\\a"),
                '\x08' => text.push_str("\\b"),
                '\x0b' => text.push_str("\\v"),
                '\x0c' => text.push_str("\\f"),
                letter if letter.is_control() => {
                    let mut bytes = [0; 4];
                    letter.encode_utf8(&mut bytes).bytes().for_each(|byte| text.push_str(&format!("\\{byte:03o}")));
                }
                letter => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\{byte:03o}")));
    }
    text
}

/// The bytes of a name in quotes. `None` if it is not in quotes, or has an unknown escape.
pub(crate) fn unquote(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut plain = Vec::new();
    let mut bytes = inner.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        plain.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'v' => 11,
            b'f' => 12,
            quoted @ (b'"' | b'\\') => quoted,
            first @ b'0'..=b'3' => {
                let mut digit = || bytes.next().filter(|byte| (b'0'..=b'7').contains(byte)).map(|byte| byte - b'0');
                (first - b'0') << 6 | digit()? << 3 | digit()?
            }
            _ => return None,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_written_and_read_again() {
        for name in
            [&b"a b"[..], b"caf\xe9", b"tab\there", "ü".as_bytes(), b"\"q\"", b"back\\slash", b"\x01\x7f\n", b"\""]
        {
            let text = referable(name);
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert_eq!(referred(&text).as_ref(), name);
        }
        assert_eq!(shown(b"caf\xe9\t"), "\"caf\\351\\t\"");
        assert_eq!(prefixed("a/", b"say \"hi\""), "\"a/say \\\"hi\\\"\"");
        assert_eq!(shown("ü b".as_bytes()), "ü b");
        assert_eq!(unquote("\"a\\9\""), None);
    }
}
