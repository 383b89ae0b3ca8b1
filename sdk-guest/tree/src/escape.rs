//! Names with control characters. References cannot hold these characters, so a name shows each of their bytes as `␛` and
//! two hexadecimal digits: a line feed is `␛0A`. A `␛` of the name itself is written twice. All other names are unchanged.
//!
//! Every name has exactly one such form, and only that form is accepted.

use std::borrow::Cow;
use std::fmt::Write as _;

use belljar_guest::{Error, Result};

/// The character that begins an escape: U+241B, the symbol for escape.
const MARK: char = '\u{241B}';

/// The form of a name that a reference can hold.
pub(crate) fn shown(name: String) -> String {
    // Fast path: most names are plain ASCII, and a directory may have very many.
    if name.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || !name.contains(|c: char| c.is_control() || c == MARK) {
        return name;
    }
    let mut shown = String::with_capacity(name.len() + 16);
    let mut bytes = [0; 4];
    for c in name.chars() {
        match c {
            MARK => shown.extend([MARK, MARK]),
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(shown, "{MARK}{byte:02X}");
                }
            }
            c => shown.push(c),
        }
    }
    shown
}

/// The path on disk of a path in the form of [`shown`].
pub(crate) fn on_disk(path: &str) -> Result<Cow<'_, str>> {
    if !path.contains(MARK) {
        return Ok(Cow::Borrowed(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once(MARK) {
        bytes.extend_from_slice(before.as_bytes());
        if let Some(after) = after.strip_prefix(MARK) {
            bytes.extend_from_slice(MARK.to_string().as_bytes());
            rest = after;
            continue;
        }
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.filter(|byte| *byte != 0).ok_or(Error::NotFound)?);
        rest = after.get(2..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    let name = String::from_utf8(bytes).map_err(|_| Error::NotFound)?;
    // Refuses a second spelling, such as an escaped letter or slash.
    if shown(name.clone()) == path { Ok(Cow::Owned(name)) } else { Err(Error::NotFound) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_form() {
        for (name, form) in [
            ("plain.md", "plain.md"),
            ("grün", "grün"),
            ("back\\slash", "back\\slash"),
            ("two\nlines", "two␛0Alines"),
            ("\u{1b}[31mred", "␛1B[31mred"),
            ("\u{7f}", "␛7F"),
            ("next\u{85}line", "next␛C2␛85line"),
            ("␛0A", "␛␛0A"),
            ("␛", "␛␛"),
        ] {
            assert_eq!(shown(name.to_owned()), form);
            assert_eq!(on_disk(form).as_deref(), Ok(name));
        }
    }

    #[test]
    fn other_spellings_are_not_found() {
        for form in ["␛", "␛0", "␛0a", "a␛41", "a␛2Fb", "␛00", "␛FF", "␛␛␛", "␛C2", "␛é"] {
            assert_eq!(on_disk(form), Err(Error::NotFound), "{form}");
        }
    }
}
