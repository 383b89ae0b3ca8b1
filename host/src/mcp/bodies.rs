//! Encodes bodies while the message is written, instead of inside rmcp's types. `serde_json` escapes a text byte by
//! byte, and would need a blob as one more string in base64. `cargo xtask bench --only big` and `cargo xtask
//! instructions` measure the gain.

use std::io::{Result, Write};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::Body;

/// Bytes of a blob that are encoded in one step. Few enough for the processor's first cache; a multiple of 3 for base64.
const CHUNK: usize = 3 << 10;

/// A body as rmcp's types contain it: a blob in base64.
pub(super) fn encode(body: Body) -> String {
    match body {
        Body::Text(text) => text,
        Body::Blob(bytes) => STANDARD.encode(bytes),
    }
}

/// Bytes that a body takes in a message, without escapes.
pub(super) fn encoded_len(body: &Body) -> usize {
    match body {
        Body::Text(text) => text.len(),
        Body::Blob(bytes) => bytes.len().div_ceil(3) * 4,
    }
}

/// Writes a body as the inside of a JSON string.
pub(super) fn write(out: &mut impl Write, body: &Body) -> Result<()> {
    match body {
        Body::Text(text) => escape(out, text),
        Body::Blob(bytes) => {
            let mut encoded = String::with_capacity(CHUNK / 3 * 4);
            bytes.chunks(CHUNK).try_for_each(|part| {
                encoded.clear();
                STANDARD.encode_string(part, &mut encoded);
                out.write_all(encoded.as_bytes())
            })
        }
    }
}

/// Bytes of a text that are written in one step, unchanged if none needs an escape.
const SEGMENT: usize = 256;

/// Bytes of a segment that are copied in one step. A line break or a quote costs little more than the block that it is in.
const BLOCK: usize = 16;

/// Room for an escape. The longest has six bytes (`\u001f`); to copy eight is faster.
const ROOM: usize = 8;

/// True if a JSON string cannot contain this byte unescaped (RFC 8259, section 7).
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// True if one of the bytes is special. Has no early exit, so that the compiler can vectorize it.
fn has_special(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |any, byte| any | is_special(*byte))
}

/// A byte as it stands in a JSON string.
#[derive(Clone, Copy, Default)]
struct Escaped {
    bytes: [u8; ROOM],
    len: usize,
}

/// Each byte, as `serde_json` escapes it. The bytes of longer characters are not escaped.
static ESCAPED: LazyLock<[Escaped; 256]> = LazyLock::new(|| {
    let escape = |byte: u8| {
        let mut escaped = Escaped::default();
        let text = serde_json::to_vec(&char::from(byte)).unwrap_or_default();
        let inside = match text.as_slice() {
            [b'"', inside @ .., b'"'] if byte.is_ascii() => inside,
            _ => std::slice::from_ref(&byte),
        };
        escaped.bytes.iter_mut().zip(inside).for_each(|(to, from)| *to = *from);
        Escaped { len: inside.len(), ..escaped }
    };
    let mut all = [Escaped::default(); 256];
    (0..=u8::MAX).zip(&mut all).for_each(|(byte, escaped)| *escaped = escape(byte));
    all
});

/// Writes the same bytes as `serde_json`.
fn escape(out: &mut impl Write, text: &str) -> Result<()> {
    let escaped = &*ESCAPED;
    let mut staged = [0; SEGMENT * ROOM];
    for segment in text.as_bytes().chunks(SEGMENT) {
        if !has_special(segment) {
            out.write_all(segment)?;
            continue;
        }
        let mut end = 0;
        let mut stage = |bytes: &[u8], len: usize| {
            if let Some(to) = staged.get_mut(end..end + bytes.len()) {
                to.copy_from_slice(bytes);
            }
            end += len;
        };
        for block in segment.chunks(BLOCK) {
            if !has_special(block) {
                stage(block, block.len());
                continue;
            }
            for byte in block {
                let Escaped { bytes, len } = escaped.get(usize::from(*byte)).copied().unwrap_or_default();
                stage(&bytes, len);
            }
        }
        out.write_all(staged.get(..end).unwrap_or_default())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let mut own = b"\"".to_vec();
        escape(&mut own, text).unwrap();
        own.push(b'"');
        assert!(own == serde_json::to_vec(text).unwrap(), "{:?}", text.chars().take(200).collect::<String>());
    }

    #[test]
    fn text_is_escaped_as_serde_json_does() {
        let odd = ('\u{0}'..='\u{ff}').chain(['\u{2028}', '\u{7fff}', '\u{feff}', '\u{1f600}', '\u{10ffff}']);
        for character in odd {
            for before in (0..=2 * BLOCK).chain(SEGMENT - BLOCK - 4..=SEGMENT + 4).chain([2 * SEGMENT]) {
                check(&format!("{}{character}{}", "x".repeat(before), "y".repeat(70)));
            }
            check(&character.to_string().repeat(2 * SEGMENT + 5));
        }
        for length in [0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT] {
            check(&"x".repeat(length));
            check(&"\u{1}".repeat(length));
        }
        for line in [1, 7, 15, 16, 17, 79, 300] {
            check(&format!("{}\n", "é\"".repeat(line)).repeat(40));
        }
    }
}
