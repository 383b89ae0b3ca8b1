//! Writes names and texts as segments of references. A text that a reference cannot carry is written as its bytes:
//! `t'610a62'`.

use std::fmt::Write as _;

use belljar_guest::reference;

/// A name as one encoded segment.
pub fn segment(name: &str) -> String {
    reference::encode_segment(&escape(name))
}

/// A name as a segment before encoding.
pub fn escape(name: &str) -> String {
    // An empty segment would end the reference.
    if name.is_empty() || is_refused(name) { hex("t", name.as_bytes()) } else { name.to_owned() }
}

/// True if `known` is the name that a segment means.
pub fn is(known: &str, segment: &str) -> bool {
    known == segment || unescape(segment).is_some_and(|bytes| bytes == known.as_bytes())
}

/// True if the host refuses this text as a segment: it has a control character, or it may lead out of the mount.
pub fn is_refused(text: &str) -> bool {
    text.chars().any(char::is_control) || text.split(['/', '\\']).any(|part| matches!(part, "." | ".."))
}

/// The bytes of `t'610a62'`. `None` for any other text.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    unhex(text.strip_prefix("t'")?.strip_suffix('\'')?)
}

/// `bytes` as `t'610a62'`, for the prefix `t`.
pub fn hex(prefix: &str, bytes: &[u8]) -> String {
    let mut text = format!("{prefix}'");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text + "'"
}

/// The bytes that hexadecimal digits spell.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_reference_cannot_carry_is_written_as_bytes() {
        assert_eq!(escape("a b/c\"%"), "a b/c\"%");
        for (name, expected) in
            [("a\nb", "t'610a62'"), ("", "t''"), ("..", "t'2e2e'"), ("a/../b", "t'612f2e2e2f62'"), ("\0", "t'00'")]
        {
            assert_eq!(escape(name), expected);
            assert!(is(name, expected) && is(name, name), "{name:?}");
        }
        assert!(is("t'61'", "t'61'") && is("a", "t'61'") && !is("b", "t'61'"));
        assert_eq!([unescape("t'6'"), unescape("t'zz'"), unescape("x'61'"), unescape("t'")], [const { None }; 4]);
    }
}
