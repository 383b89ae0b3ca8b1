//! Recognizes a component or a bundle by its first bytes, and names what is none.

use belljar_fetch_protocol::{ArtifactKind, Failure, FailureKind};

use crate::failure::failure;

/// The bytes that must be seen.
pub(crate) const HEAD: usize = 8;

/// The first bytes of a component: the magic number of WebAssembly, the version 13, and the layer 1 (Component Model, Binary.md).
const COMPONENT: [u8; HEAD] = [0, b'a', b's', b'm', 13, 0, 1, 0];

/// Other files, by their first bytes.
const OTHERS: [(&[u8], &str); 13] = [
    (&[0, b'a', b's', b'm', 1, 0, 0, 0], "a core module of WebAssembly"),
    (&[0, b'a', b's', b'm'], "WebAssembly of an unknown version"),
    (&[0x7f, b'E', b'L', b'F'], "a native program or library for Linux"),
    (b"MZ", "a native program or library for Windows"),
    (&[0xcf, 0xfa, 0xed, 0xfe], "a native program or library for macOS"),
    (&[0xca, 0xfe, 0xba, 0xbe], "a native program or library for macOS"),
    (b"!<arch>", "a native static library"),
    (b"PK", "a ZIP archive"),
    (&[0x1f, 0x8b], "a gzip archive"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "a Zstandard archive"),
    (b"#!", "a script"),
    (b"<", "a web page"),
    (b"{", "a JSON document"),
];

/// Checks the first bytes of a file. The file is refused if it is shorter.
pub(crate) fn check(kind: ArtifactKind, head: &[u8], name: &str) -> Result<(), Box<Failure>> {
    let is_right = match kind {
        ArtifactKind::Component => head.starts_with(&COMPONENT),
        ArtifactKind::Bundle => head.starts_with(b"{"),
    };
    if is_right {
        return Ok(());
    }
    let what = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)).map_or("no WebAssembly", |(_, what)| what);
    let (expected, cure) = match kind {
        ArtifactKind::Component => {
            ("a WebAssembly component", "ask its publisher for a component, built for wasm32-wasip2")
        }
        ArtifactKind::Bundle => ("a bundle of belljar export", "ask its publisher to export it again"),
    };
    Err(failure(FailureKind::Content, format!("\"{name}\" is {what}, expected {expected}"), cure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_components_pass() {
        check(ArtifactKind::Component, b"\0asm\x0d\0\x01\0more", "x").unwrap();
        check(ArtifactKind::Bundle, b"{\"belljar\":1}", "x").unwrap();
        assert!(check(ArtifactKind::Bundle, b"\0asm\x0d\0\x01\0more", "x").is_err());
        for (head, what) in [
            (b"\0asm\x01\0\0\0".as_slice(), "a core module"),
            (b"\0asm\x0c\0\x01\0", "an unknown version"),
            (b"\0asm\x0d\0\x01", "an unknown version"),
            (b"\x7fELF\x02\x01\x01\0", "for Linux"),
            (b"MZ\x90\0\x03\0\0\0", "for Windows"),
            (b"!<arch>\n", "static library"),
            (b"PK\x03\x04", "ZIP"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"<!DOCTYPE html>", "web page"),
            (b"", "no WebAssembly"),
        ] {
            let failure = check(ArtifactKind::Component, head, "x").unwrap_err();
            assert!(failure.problem.contains(what), "{what}: {}", failure.problem);
        }
    }
}
