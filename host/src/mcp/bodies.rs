//! Encodes bodies while the message is written, instead of inside rmcp's types. `serde_json` escapes a text byte by
//! byte, and would need a blob as one more string in base64. `cargo xtask bench --only big` and `cargo xtask
//! instructions` measure the gain.

use std::io::{Error, Result, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::Body;

/// Bytes of a body that are encoded in one step. Few enough for the processor's first cache; a multiple of 3 for
/// base64.
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

/// True if a JSON string cannot contain this byte unescaped (RFC 8259, section 7).
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Writes the same bytes as `serde_json`. A piece without special bytes is copied; `serde_json` escapes the others.
fn escape(out: &mut impl Write, text: &str) -> Result<()> {
    let (mut rest, mut quoted) = (text, Vec::new());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
        rest = after;
        // `fold` has no early exit, so that the compiler can vectorize it.
        if !piece.bytes().fold(false, |any, byte| any | is_special(byte)) {
            out.write_all(piece.as_bytes())?;
            continue;
        }
        quoted.clear();
        serde_json::to_writer(&mut quoted, piece)?;
        let [b'"', inside @ .., b'"'] = quoted.as_slice() else { return Err(Error::other("a text is no string")) };
        out.write_all(inside)?;
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
            for before in [0, 1, CHUNK - 4, CHUNK - 3, CHUNK - 2, CHUNK - 1, CHUNK, 2 * CHUNK] {
                check(&format!("{}{character}{}", "x".repeat(before), "y".repeat(70)));
            }
            check(&character.to_string().repeat(2 * CHUNK + 5));
        }
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            check(&"x".repeat(length));
        }
    }
}
