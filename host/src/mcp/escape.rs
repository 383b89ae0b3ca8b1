//! Text as the inside of a JSON string. What the JSON library does byte by byte is done by blocks here: most of what is
//! read needs no escape at all, and a large text costs more in this place than in any other.
//!
//! Writes what `serde_json` writes, letter by letter; a test compares them. Libraries that are quicker still
//! (`json-escape-simd`, out of `sonic-rs`) read beyond the end of a text and reserve six times its length: not with what a
//! stranger wrote.

/// Bytes that are looked at together: as many as the compiler makes a few wide instructions of.
const BLOCK: usize = 64;

/// Bytes of clean text that are looked at before they are copied: they are still near by then.
const NEAR: usize = 16 << 10;

/// The longest escape: `\u001f`.
const LONGEST: usize = 6;

/// A block of which every byte is escaped, and what one store writes beyond it.
type Room = [u8; BLOCK * LONGEST + 8];

/// Appends `text`, without the quotes around it.
pub(super) fn escape(out: &mut Vec<u8>, text: &str) {
    let mut room: Room = [0; BLOCK * LONGEST + 8];
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let near = rest.get(..NEAR).unwrap_or(rest);
        let (clean, after) = rest.split_at(clean(near));
        out.extend_from_slice(clean);
        rest = after;
        if clean.len() < near.len() {
            let (block, after) = rest.split_at(rest.len().min(BLOCK));
            let len = escape_block(block, &mut room);
            out.extend_from_slice(room.get(..len).unwrap_or_default());
            rest = after;
        }
    }
}

/// The length of `text` as [`escape`] writes it.
pub(super) fn escaped_len(text: &str) -> usize {
    // What a byte takes beyond itself; a block's sum stays within a byte.
    const PIECE: usize = 32;
    let more = |byte: &u8| {
        let is_short = matches!(byte, 0x08 | b'\t' | b'\n' | 0x0c | b'\r' | b'"' | b'\\');
        u8::from(is_special(*byte)) + u8::from(*byte < 0x20 && !is_short) * 4
    };
    let (pieces, rest) = text.as_bytes().as_chunks::<PIECE>();
    let in_pieces = pieces.iter().map(|piece| usize::from(piece.iter().map(more).sum::<u8>())).sum::<usize>();
    text.len() + in_pieces + rest.iter().map(|byte| usize::from(more(byte))).sum::<usize>()
}

/// Whether a byte cannot stand in a string as it is (RFC 8259 7).
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// How many bytes at the start, in whole blocks, can stay as they are.
fn clean(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    // Without a way out in between, so that it is done for many bytes at once.
    let is_clean = |block: &&[u8; BLOCK]| !block.iter().fold(false, |any, byte| any | is_special(*byte));
    blocks.iter().take_while(is_clean).count() * BLOCK
}

/// Writes a block into `room`; returns the length.
fn escape_block(block: &[u8], room: &mut Room) -> usize {
    let mut len = 0;
    let mut put = |bytes: [u8; 8], count: usize| {
        // Always eight bytes, which is one instruction: what was too much is written over.
        if let Some(place) = room.get_mut(len..len + 8) {
            place.copy_from_slice(&bytes);
        }
        len += count;
    };
    let mut rest = block;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some((&word, after)) = rest.split_first_chunk::<8>() {
            let run = run(word);
            put(word, run);
            if run == 8 {
                rest = after;
                continue;
            }
            rest = rest.get(run..).unwrap_or_default();
            if run > 0 {
                continue;
            }
        } else if !is_special(byte) {
            put([byte, 0, 0, 0, 0, 0, 0, 0], 1);
            rest = after;
            continue;
        }
        let (escaped, count) = escaped(byte);
        put(escaped, count);
        rest = after;
    }
    len
}

/// How many bytes of a word come before its first special one.
fn run(word: [u8; 8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let all = |byte: u8| ONES * u64::from(byte);
    let word = u64::from_le_bytes(word);
    // A byte below n borrows when n is taken from it, and shows it in its highest bit; a zero does so for 1. Borrows spoil
    // only what comes after the first hit.
    let below = word.wrapping_sub(all(0x20));
    let quote = (word ^ all(b'"')).wrapping_sub(ONES);
    let backslash = (word ^ all(b'\\')).wrapping_sub(ONES);
    let hits = (below | quote | backslash) & !word & HIGH;
    (hits.trailing_zeros() / 8) as usize
}

/// A special byte as it is written, and how many bytes that are.
fn escaped(byte: u8) -> ([u8; 8], usize) {
    let short = match byte {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let digit = |four: u8| if four < 10 { b'0' + four } else { b'a' + four - 10 };
            return ([b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 0xf), 0, 0], LONGEST);
        }
    };
    ([b'\\', short, 0, 0, 0, 0, 0, 0], 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let mut own = b"\"".to_vec();
        escape(&mut own, text);
        own.push(b'"');
        assert_eq!(own.len(), escaped_len(text) + 2);
        assert!(own == serde_json::to_vec(text).unwrap(), "{:?}", text.chars().take(200).collect::<String>());
    }

    #[test]
    fn every_character_at_every_place_of_a_block_is_written_as_the_library_does() {
        let odd = ('\u{0}'..='\u{ff}').chain(['\u{2028}', '\u{7fff}', '\u{feff}', '\u{1f600}', '\u{10ffff}']);
        for character in odd {
            for before in 0..2 * BLOCK + 9 {
                check(&format!("{}{character}{}", "x".repeat(before), "y".repeat(70)));
            }
            check(&character.to_string().repeat(3 * BLOCK + 5));
        }
        for length in 0..3 * BLOCK {
            check(&"x".repeat(length));
        }
    }

    #[test]
    fn mixtures_too() {
        // A fixed sequence of numbers, so that a failure comes back.
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let letters =
            ['a', 'b', '"', '\\', '\n', '\u{1}', '\u{1f}', ' ', '!', '#', '[', ']', '\u{7f}', 'é', '€', '\u{1f600}'];
        for round in 0..2000 {
            // Some rounds have few special letters, some many, and some are longer than is looked at together.
            let rare = [1, 3, 40, 500][round % 4];
            let length = if round % 100 == 0 { 3 * NEAR } else { 700 };
            let text: String = (0..next() as usize % length)
                .map(|_| if next() % rare == 0 { letters[next() as usize % letters.len()] } else { 'x' })
                .collect();
            check(&text);
        }
    }
}
