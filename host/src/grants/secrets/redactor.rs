//! Masks secrets in whatever leaves. It must not know where the bytes come from, nor whom they are for.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;
use zeroize::Zeroizing;

use super::Secret;
use crate::model::Guard;

/// Masks secrets, in the spellings in which programs pass them on: as they are, percent-encoded, escaped for JSON or HTML
/// (character by character, in any mixture), in base64 wherever it begins, and in hexadecimal. A mask has the length of
/// what it hides.
pub struct Redactor {
    plain: Vec<Zeroizing<String>>,
    /// Which bytes a spelling of one of them can begin with.
    starts: Box<[bool; 256]>,
    /// Base64 and hexadecimal.
    encoded: Vec<Zeroizing<Vec<u8>>>,
    longest: usize,
}

/// Bytes that the longest spelling has for one byte of a secret.
const SPELLING: usize = 6;

impl Redactor {
    /// For these secrets; none: there is nothing to mask.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Arc<Secret>>) -> Option<Self> {
        let (mut plain, mut encoded): (Vec<Zeroizing<String>>, Vec<_>) = (Vec::new(), Vec::new());
        for secret in secrets {
            if !plain.contains(&secret.value) {
                plain.push(secret.value.clone());
                encoded.extend(encodings(&secret.value));
            }
        }
        // The longest first, so that no remainder of one is left by a shorter one within.
        plain.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let longest = plain.first()?.len() * SPELLING;
        let mut starts = Box::new([false; 256]);
        let mut mark = |byte: u8| starts.iter_mut().skip(byte.into()).take(1).for_each(|start| *start = true);
        b"%+\\&".iter().copied().for_each(&mut mark);
        plain.iter().filter_map(|value| value.bytes().next()).for_each(mark);
        Some(Self { plain, starts, encoded, longest })
    }

    /// Masks every occurrence. Says whether there was one.
    pub fn mask_bytes(&self, bytes: &mut [u8]) -> bool {
        self.mask_from(bytes, bytes.len()) > 0
    }

    /// Masks every occurrence that begins before `until`. Says where the last one ends.
    fn mask_from(&self, bytes: &mut [u8], until: usize) -> usize {
        if !Guard::Redact.is_on() {
            return 0;
        }
        let mut end = 0;
        let mut hide = |bytes: &mut [u8], from: usize, length: usize| {
            end = end.max(from + length);
            bytes.iter_mut().skip(from).take(length).for_each(|byte| *byte = b'*');
        };
        let mut ends = Ends::default();
        let mut at = 0;
        while let Some(first) = bytes.get(at).filter(|_| at < until) {
            let may_start = self.starts.get(usize::from(*first)).copied().unwrap_or_default();
            let mut spelt = |value: &Zeroizing<String>| ends.of(bytes.get(at..)?, value);
            let here = may_start.then(|| self.plain.iter().find_map(&mut spelt)).flatten();
            match here {
                Some(length) => {
                    hide(bytes, at, length);
                    at += length;
                }
                None => at += 1,
            }
        }
        for pattern in &self.encoded {
            let last = until.saturating_add(pattern.len() - 1).min(bytes.len());
            let mut from = 0;
            while let Some(at) = bytes.get(from..last).and_then(|rest| memmem::find(rest, pattern)) {
                hide(bytes, from + at, pattern.len());
                from += at + pattern.len();
            }
        }
        end
    }

    /// Masks every occurrence in text.
    pub fn mask(&self, text: &mut String) {
        let mut bytes = std::mem::take(text).into_bytes();
        self.mask_bytes(&mut bytes);
        // A secret is whole characters, and so is what is left; were it not, all of it is worth hiding.
        *text = String::from_utf8(bytes).unwrap_or_else(|_| "***".to_owned());
    }
}

/// Masks what comes in pieces, so that a secret is found that lies across them.
pub struct Pieces {
    redactor: Arc<Redactor>,
    /// The end of what came, in which a secret may begin: as it came.
    carry: Vec<u8>,
}

impl Pieces {
    /// With nothing come yet.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, carry: Vec::new() }
    }

    /// What can be passed on now that `piece` has come; may be empty.
    pub fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        self.carry.extend_from_slice(piece);
        // A secret that begins before this is whole, in its longest spelling.
        let until = self.carry.len().saturating_sub(self.redactor.longest - 1);
        let end = self.redactor.mask_from(&mut self.carry, until);
        let rest = self.carry.split_off(until.max(end));
        std::mem::replace(&mut self.carry, rest)
    }

    /// What is left when nothing more comes.
    pub fn rest(&mut self) -> Vec<u8> {
        self.redactor.mask_bytes(&mut self.carry);
        std::mem::take(&mut self.carry)
    }
}

/// Where readings of a spelling end: there may be more than one, for `\\` is one backslash or two.
#[derive(Default)]
struct Ends {
    now: Vec<usize>,
    next: Vec<usize>,
}

impl Ends {
    /// How many bytes at the beginning of `text` spell `secret`, in the longest reading.
    fn of(&mut self, text: &[u8], secret: &str) -> Option<usize> {
        self.now.clear();
        self.now.push(0);
        for c in secret.chars() {
            self.next.clear();
            for at in &self.now {
                let ends = spellings(text.get(*at..)?, c).into_iter().flatten().map(|length| at + length);
                ends.for_each(|end| {
                    if !self.next.contains(&end) {
                        self.next.push(end);
                    }
                });
            }
            if self.next.is_empty() {
                return None;
            }
            std::mem::swap(&mut self.now, &mut self.next);
        }
        self.now.iter().max().copied()
    }
}

/// How many bytes at the beginning of `rest` are `c`: as it is, percent-encoded, or escaped for a form, JSON or HTML.
fn spellings(rest: &[u8], c: char) -> [Option<usize>; 3] {
    let mut buffer = [0; 4];
    let is_raw = |rest: &[u8], byte: u8| rest.first() == Some(&byte);
    // Byte by byte, each as it is or as %XX.
    let raw = c.encode_utf8(&mut buffer).bytes().try_fold(0, |done, byte| {
        let rest = rest.get(done..)?;
        if is_raw(rest, byte) {
            return Some(done + 1);
        }
        hex(rest, b"%", 2).filter(|value| *value == u32::from(byte)).map(|_| done + 3)
    });
    // A percent sign is the beginning of its own escape.
    let percent = (c == '%' && rest.starts_with(b"%25")).then_some(3);
    [raw, percent, escaped(rest, c)]
}

/// How many bytes at the beginning of `rest` are an escape of `c` for a form, JSON or HTML.
fn escaped(rest: &[u8], c: char) -> Option<usize> {
    const NAMED: [(char, &[u8]); 5] =
        [('&', b"&amp;"), ('<', b"&lt;"), ('>', b"&gt;"), ('"', b"&quot;"), ('\'', b"&apos;")];
    match rest.first()? {
        b'+' if c == ' ' => Some(1),
        b'\\' if c.is_ascii_punctuation() && rest.get(1) == Some(&(c as u8)) => Some(2),
        b'\\' => {
            let mut units = [0; 2];
            let units = c.encode_utf16(&mut units);
            let unit = |done, unit: &mut u16| {
                hex(rest.get(done..)?, b"\\u", 4).filter(|value| *value == u32::from(*unit)).map(|_| done + 6)
            };
            units.iter_mut().try_fold(0, unit)
        }
        b'&' => {
            let named = NAMED.iter().find(|(of, name)| *of == c && rest.starts_with(name)).map(|(_, name)| name.len());
            named.or_else(|| numbered(rest, c))
        }
        _ => None,
    }
}

/// How many bytes at the beginning of `rest` are `c` by its number, as HTML has it: `&#39;`, `&#x27;`.
fn numbered(rest: &[u8], c: char) -> Option<usize> {
    let digits = rest.strip_prefix(b"&#")?;
    let (digits, radix) = match digits.first()? {
        b'x' | b'X' => (digits.get(1..)?, 16),
        _ => (digits, 10),
    };
    let end = digits.iter().take(7).position(|b| *b == b';')?;
    let number = std::str::from_utf8(digits.get(..end)?).ok().filter(|digits| !digits.starts_with('+'))?;
    let length = rest.len() - digits.len() + end + 1;
    // No longer than it can be without zeros before it: what comes in pieces waits for no more.
    let is_it = u32::from_str_radix(number, radix) == Ok(c.into()) && length <= SPELLING * c.len_utf8();
    is_it.then_some(length)
}

/// The number of `digits` hexadecimal digits after `before`.
fn hex(text: &[u8], before: &[u8], digits: usize) -> Option<u32> {
    let text = text.strip_prefix(before)?.get(..digits)?;
    text.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

/// A secret in base64, at each of the places where it can begin in what was encoded, and in hexadecimal.
fn encodings(secret: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let digits = |upper: bool| secret.bytes().map(move |b| if upper { format!("{b:02X}") } else { format!("{b:02x}") });
    let mut all: Vec<_> =
        [true, false].map(|upper| Zeroizing::new(digits(upper).collect::<String>().into_bytes())).into();
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3usize {
            let padded: Zeroizing<Vec<u8>> = Zeroizing::new([vec![0; before], secret.as_bytes().to_vec()].concat());
            let encoded = Zeroizing::new(engine.encode(&padded[..]));
            // Characters that other bytes have a part in are left out at both ends.
            let inner = encoded.get((before * 8).div_ceil(6)..padded.len() * 8 / 6);
            all.extend(inner.map(|inner| Zeroizing::new(inner.as_bytes().to_vec())));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn secret(value: &str) -> Arc<Secret> {
        Arc::new(Secret::new("s", Zeroizing::new(value.to_owned())).unwrap_or_else(|why| panic!("{why}")))
    }

    #[test]
    fn every_usual_spelling_is_masked() {
        let value = "p@ss/w0rd+\"x\" \u{e9}&=";
        let redactor = Redactor::new([&secret(value)]).unwrap();
        let all = |bytes: &[u8]| bytes.iter().map(|b| format!("%{b:02x}")).collect::<String>();
        let mut spelt = vec![
            value.to_owned(),
            format!("Bearer {value}, and {value}"),
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string(),
            all(value.as_bytes()),
            all(value.as_bytes()).to_uppercase(),
            value.bytes().map(|b| format!("{b:02x}")).collect(),
            serde_json::to_string(value).unwrap(),
            "p%40ss\\/w0rd%2b\\\"x&quot;+\\u00E9&amp;=".to_owned(),
        ];
        for before in ["", "u", "us", "use", "user:"] {
            for after in ["", "!", "!!", "!!!"] {
                spelt.push(STANDARD.encode(format!("{before}{value}{after}")));
                spelt.push(URL_SAFE_NO_PAD.encode(format!("{before}{value}{after}")));
            }
        }
        for mut text in spelt {
            let (before, length) = (text.clone(), text.len());
            redactor.mask(&mut text);
            assert!(text.contains("****"), "{before}");
            assert_eq!(text.len(), length);
            // At most a character that it shares with its neighbours is left at either end.
            let stars = text.matches('*').count();
            assert!(
                before.contains("Bearer") || stars * 3 >= length * 2 || stars + 2 >= value.len(),
                "{before} -> {text}"
            );
        }
        let mut other = "an ordinary sentence".to_owned();
        redactor.mask(&mut other);
        assert_eq!(other, "an ordinary sentence");
        assert!(Redactor::new([]).is_none());
    }

    #[test]
    fn secrets_that_look_like_escapes_are_masked_in_each_reading() {
        for (value, spelt) in [
            ("back\\\\slash", vec!["back\\\\slash", "back\\\\\\\\slash", "back%5c\\u005cslash"]),
            ("a%25b%2Fc", vec!["a%25b%2Fc", "a%2525b%252Fc"]),
            ("x&amp;y&lt;z", vec!["x&amp;y&lt;z", "x&amp;amp;y&#38;lt;z"]),
            ("it's 'q' here", vec!["it&#39;s &#x27;q&#x27; here", "it&apos;s+%27q%27+here"]),
            ("key-\u{1f511}-\u{e9}", vec!["key-\\ud83d\\udd11-&#233;", "key-&#x1F511;-\\u00e9"]),
        ] {
            let redactor = Redactor::new([&secret(value)]).unwrap();
            for text in spelt {
                let mut masked = text.to_owned();
                redactor.mask(&mut masked);
                assert_eq!(masked, "*".repeat(text.len()), "{value}: {text}");
            }
        }
    }

    #[test]
    fn a_longer_secret_in_pieces_is_not_left_over_by_a_shorter_one_within() {
        let redactor = Arc::new(Redactor::new([&secret("12345678"), &secret("left-12345678-over")]).unwrap());
        let text = b"see left-12345678-over, 12345678 and MTIzNDU2Nzg".repeat(9);
        let mut whole = text.clone();
        assert!(redactor.mask_bytes(&mut whole));
        for size in 1..text.len() {
            let mut pieces = Pieces::new(Arc::clone(&redactor));
            let mut passed: Vec<u8> = text.chunks(size).flat_map(|piece| pieces.pass(piece)).collect();
            passed.extend(pieces.rest());
            assert_eq!(passed, whole, "{size}");
        }
    }
}
