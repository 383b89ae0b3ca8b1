//! The spellings of a secret: character by character with escapes that programs mix, or encoded as a whole.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use data_encoding::BASE32_NOPAD;
use zeroize::Zeroizing;

use crate::grants::secrets::secret::MIN_LENGTH;

/// The most bytes of a spelling for one byte of a secret.
pub(super) const MAX_BYTES_PER_BYTE: usize = 6;

/// True for bytes that may separate the letters of an encoding: programs break lines, and write hexadecimal digits in
/// pairs.
pub(super) fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':')
}

/// The letter in its other case. `None` if there is none, or if it has several letters.
fn other_case(c: char) -> Option<char> {
    let one = |mut all: std::vec::IntoIter<char>| all.next().filter(|other| *other != c && all.len() == 0);
    one(c.to_lowercase().collect::<Vec<_>>().into_iter())
        .or_else(|| one(c.to_uppercase().collect::<Vec<_>>().into_iter()))
}

/// True for each byte with which a spelling of one of `all` can begin.
pub(super) fn first_bytes(all: &[Zeroizing<String>]) -> Box<[bool; 256]> {
    let mut starts = Box::new([false; 256]);
    let mut mark = |byte: u8| starts.iter_mut().skip(byte.into()).take(1).for_each(|start| *start = true);
    b"%=+\\&".iter().copied().for_each(&mut mark);
    for first in all.iter().filter_map(|value| value.chars().next()) {
        for c in std::iter::once(first).chain(other_case(first)) {
            c.encode_utf8(&mut [0; 4]).bytes().take(1).for_each(&mut mark);
        }
    }
    starts
}

/// Matches spellings of a secret. Tracks the ends of all possible readings, because `\\` may stand for one backslash or
/// for two.
#[derive(Default)]
pub(super) struct SpellingMatcher {
    now: Vec<usize>,
    next: Vec<usize>,
}

impl SpellingMatcher {
    /// The number of bytes at the start of `text` that spell `secret`, in the longest reading.
    pub(super) fn longest_match(&mut self, text: &[u8], secret: &str) -> Option<usize> {
        self.now.clear();
        self.now.push(0);
        for c in secret.chars() {
            self.next.clear();
            let other = if c.is_ascii() { None } else { other_case(c) };
            for at in &self.now {
                let rest = text.get(*at..)?;
                for c in std::iter::once(c).chain(other) {
                    for end in spellings(rest, c).into_iter().flatten().map(|length| at + length) {
                        if !self.next.contains(&end) {
                            self.next.push(end);
                        }
                    }
                }
            }
            if self.next.is_empty() {
                return None;
            }
            std::mem::swap(&mut self.now, &mut self.next);
        }
        self.now.iter().max().copied()
    }
}

/// The number of bytes at the start of `rest` that spell `c`, for each way to spell it. The ways are: as it is, by the
/// numbers of its bytes, or escaped for a form, JSON or HTML. ASCII letters match in both cases.
fn spellings(rest: &[u8], c: char) -> [Option<usize>; 6] {
    let Some(first) = rest.first() else { return [None; 6] };
    if !c.is_ascii() {
        let mut buffer = [0; 4];
        // Each byte stands as it is or as a number.
        let raw = c.encode_utf8(&mut buffer).bytes().try_fold(0, |done, byte| {
            let rest = rest.get(done..)?;
            let is_raw = rest.first() == Some(&byte);
            let length =
                if is_raw { Some(1) } else { BYTE_PREFIXES.iter().find_map(|before| numeric_byte(rest, before, byte)) };
            length.map(|length| done + length)
        });
        return [raw, escape_length(rest, c), None, None, None, None];
    }
    let byte = c as u8;
    let raw = first.eq_ignore_ascii_case(&byte).then_some(1);
    if !matches!(first, b'%' | b'=' | b'\\' | b'&' | b'+') {
        return [raw, None, None, None, None, None];
    }
    let [percent, twice, quoted, hex] = BYTE_PREFIXES.map(|before| numeric_byte(rest, before, byte));
    [raw, percent, twice, quoted, hex, escape_length(rest, c)]
}

/// The prefixes before the two hexadecimal digits of a byte: in URLs (encoded once or twice), in mail, in programs.
const BYTE_PREFIXES: [&[u8]; 4] = [b"%", b"%25", b"=", b"\\x"];

fn numeric_byte(rest: &[u8], before: &[u8], byte: u8) -> Option<usize> {
    let value = u8::try_from(hex(rest, before, 2)?).ok()?;
    value.eq_ignore_ascii_case(&byte).then_some(before.len() + 2)
}

/// True if `number` is the code point of `c`. ASCII letters match in both cases.
fn is_char(number: u32, c: char) -> bool {
    char::from_u32(number).is_some_and(|found| found == c || found.eq_ignore_ascii_case(&c))
}

/// The length of an escape of `c` at the start of `rest`: for a form, JSON, HTML or a program.
fn escape_length(rest: &[u8], c: char) -> Option<usize> {
    const NAMED: [(char, &[u8]); 5] =
        [('&', b"&amp;"), ('<', b"&lt;"), ('>', b"&gt;"), ('"', b"&quot;"), ('\'', b"&apos;")];
    match rest.first()? {
        b'+' if c == ' ' => Some(1),
        b'\\' if c.is_ascii_punctuation() && rest.get(1) == Some(&(c as u8)) => Some(2),
        b'\\' => {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units);
            let unit = |done, unit: &mut u16| {
                let found = hex(rest.get(done..)?, b"\\u", 4)?;
                (found == u32::from(*unit) || (c.is_ascii() && is_char(found, c))).then_some(done + 6)
            };
            units.iter_mut().try_fold(0, unit).or_else(|| numeric_escape(rest, b"\\u{", b'}', 16, c))
        }
        b'&' => {
            let named = NAMED.iter().find(|(of, name)| *of == c && rest.starts_with(name)).map(|(_, name)| name.len());
            let decimal = || numeric_escape(rest, b"&#", b';', 10, c);
            let hex = |before: &[u8]| numeric_escape(rest, before, b';', 16, c);
            named.or_else(decimal).or_else(|| hex(b"&#x")).or_else(|| hex(b"&#X"))
        }
        _ => None,
    }
}

/// The length of a numeric escape of `c` at the start of `rest`, between `before` and `behind`: `&#39;`, `&#x27;`,
/// `\u{27}`.
fn numeric_escape(rest: &[u8], before: &[u8], behind: u8, radix: u32, c: char) -> Option<usize> {
    let digits = rest.strip_prefix(before)?;
    let end = digits.iter().take(7).position(|b| *b == behind)?;
    let number = std::str::from_utf8(digits.get(..end)?).ok().filter(|digits| !digits.starts_with('+'))?;
    let length = before.len() + end + 1;
    // Refuse leading zeros: a stream redactor waits for at most [`MAX_BYTES_PER_BYTE`] per byte.
    let is_same = u32::from_str_radix(number, radix).is_ok_and(|number| is_char(number, c));
    (is_same && length <= MAX_BYTES_PER_BYTE * c.len_utf8()).then_some(length)
}

/// The value of `digits` hexadecimal digits after `before`.
fn hex(text: &[u8], before: &[u8], digits: usize) -> Option<u32> {
    let text = text.strip_prefix(before)?.get(..digits)?;
    text.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

/// The encodings of a whole secret, in lower case and without gaps. They are: as it is, backwards, hexadecimal, UTF-16,
/// UTF-32, and base64 and base32 at each start offset.
pub(super) fn encodings(secret: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let digits: Zeroizing<String> = Zeroizing::new(secret.bytes().map(|b| format!("{b:02x}")).collect());
    let mut all = vec![
        Zeroizing::new(secret.as_bytes().to_vec()),
        Zeroizing::new(secret.chars().rev().collect::<String>().into_bytes()),
        Zeroizing::new(digits.as_bytes().to_vec()),
        Zeroizing::new(secret.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        Zeroizing::new(secret.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        Zeroizing::new(secret.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
        Zeroizing::new(secret.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
    ];
    // Leave out the letters at both ends that encode bits of neighbouring bytes.
    let mut add_encodings = |group: usize, bits: usize, encode: &dyn Fn(&[u8]) -> String| {
        for before in 0..group {
            let padded: Zeroizing<Vec<u8>> = Zeroizing::new([vec![0; before], secret.as_bytes().to_vec()].concat());
            let encoded = Zeroizing::new(encode(&padded));
            let inner = encoded.get((before * 8).div_ceil(bits)..padded.len() * 8 / bits);
            all.extend(inner.map(|inner| Zeroizing::new(inner.as_bytes().to_vec())));
        }
    };
    add_encodings(3, 6, &|bytes| STANDARD_NO_PAD.encode(bytes));
    add_encodings(3, 6, &|bytes| URL_SAFE_NO_PAD.encode(bytes));
    add_encodings(5, 5, &|bytes| BASE32_NOPAD.encode(bytes));
    for pattern in &mut all {
        pattern.make_ascii_lowercase();
        pattern.retain(|byte| !is_gap(*byte));
    }
    // A pattern that consisted of gaps cannot be told from ordinary text.
    all.retain(|pattern| pattern.len() >= MIN_LENGTH);
    all.sort_by(|one, other| one.as_slice().cmp(other.as_slice()));
    all.dedup();
    all
}
