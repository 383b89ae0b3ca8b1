//! Makes seeds for the fuzz target `profile`: real components without the parts that this target does not read.

use belljar_tests::places;

/// Components that `cargo xtask build` made, by file stem.
const BUILT: [&str; 4] = ["clock", "files", "guest_fixture", "guest_hostile"];

/// The most bytes of a custom section or a nested component in a skeleton. Longer ones are left out.
const LONG: usize = 2 << 10;

/// The header of an empty core module.
const EMPTY_MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// The components of this repository without code and debug information. Each has a few KiB.
pub fn skeletons() -> Vec<(String, Vec<u8>)> {
    let read = |stem: &&str| {
        let path = places::component(stem);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        ((*stem).to_owned(), skeleton(&bytes))
    };
    BUILT.iter().map(read).collect()
}

/// `component` with empty core modules, and without long custom sections and nested components.
pub fn skeleton(component: &[u8]) -> Vec<u8> {
    let (header, mut rest) = component.split_at(8);
    let mut out = header.to_vec();
    while let [id, tail @ ..] = rest {
        let (length, digits) = leb128(tail);
        let (content, next) = tail[digits..].split_at(length);
        rest = next;
        let content = match id {
            1 => &EMPTY_MODULE[..],
            0 | 4 if content.len() > LONG => continue,
            _ => content,
        };
        out.push(*id);
        let mut length = content.len();
        loop {
            let more = length >> 7;
            out.push(u8::try_from(length & 0x7f).unwrap_or_default() | if more > 0 { 0x80 } else { 0 });
            length = more;
            if more == 0 {
                break;
            }
        }
        out.extend_from_slice(content);
    }
    out
}

/// A LEB128 number, and its length in bytes.
fn leb128(bytes: &[u8]) -> (usize, usize) {
    let digits = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a number has an end") + 1;
    let value = bytes[..digits].iter().rev().fold(0, |value, byte| (value << 7) | usize::from(byte & 0x7f));
    (value, digits)
}
