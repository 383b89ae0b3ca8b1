//! Masks secrets in output. This module knows neither the source nor the receiver of the bytes.

mod spelling;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use zeroize::Zeroizing;

use self::spelling::{MAX_BYTES_PER_BYTE, SpellingMatcher, encodings, is_gap};
use super::secret::{MIN_LENGTH, Secret};
use crate::model::{Guard, text};

/// Masks secrets in all spellings in which programs usually pass them on:
///
/// * as they are, backwards, with line breaks in between;
/// * percent-encoded, or escaped for JSON or HTML, in any mixture of characters;
/// * in base64 or base32 with any start offset, in hexadecimal, in UTF-16 and UTF-32.
///
/// Upper and lower case match each other, because host names and header names lose their case. A mask has the length of
/// the masked text.
pub struct Redactor {
    plain: Vec<Zeroizing<String>>,
    /// True for each byte with which a spelling of a secret can begin.
    first_bytes: Box<[bool; 256]>,
    /// Encodings of whole secrets, in lower case and without gaps.
    encoded: Vec<Zeroizing<Vec<u8>>>,
    longest: usize,
    has_space: bool,
}

/// The bytes that are searched for encodings in one pass: few enough for the processor cache.
const WINDOW: usize = 32 << 10;

impl Redactor {
    /// Makes a redactor for `secrets`. `None` if there are none.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Arc<Secret>>) -> Option<Self> {
        let (mut plain, mut encoded): (Vec<Zeroizing<String>>, Vec<_>) = (Vec::new(), Vec::new());
        for secret in secrets {
            // Also mask the form for display, which lacks some characters.
            let shown = Zeroizing::new(text::line(&secret.value));
            for value in [&secret.value, &shown] {
                if value.len() >= MIN_LENGTH && !plain.contains(value) {
                    plain.push(value.clone());
                    encoded.extend(encodings(value));
                }
            }
        }
        // The longest first: a shorter secret inside a longer one must not leave the rest of the longer one visible.
        plain.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let longest = plain.first()?.len() * MAX_BYTES_PER_BYTE;
        let has_space = plain.iter().any(|value| value.contains(' '));
        let first_bytes = spelling::first_bytes(&plain);
        Some(Self { plain, first_bytes, encoded, longest, has_space })
    }

    /// The length of the longest spelling of any secret, in bytes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Masks every occurrence. True if there was one.
    pub fn mask_bytes(&self, bytes: &mut [u8]) -> bool {
        let found = self.find(bytes, bytes.len());
        found.iter().for_each(|range| overwrite(bytes, range.clone()));
        !found.is_empty()
    }

    /// The range of every occurrence that begins before `until`.
    fn find(&self, bytes: &[u8], until: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if Guard::Redact.is_on() {
            self.find_plain(bytes, until, &mut found);
            self.find_encoded(bytes, until, &mut found);
        }
        found
    }

    /// Finds spellings character by character. Occurrences may overlap.
    fn find_plain(&self, bytes: &[u8], until: usize, found: &mut Vec<Range<usize>>) {
        let mut ends = SpellingMatcher::default();
        for (at, first) in bytes.iter().enumerate().take(until) {
            if self.first_bytes.get(usize::from(*first)).copied().unwrap_or_default() {
                let spelt = |value: &Zeroizing<String>| ends.longest_match(bytes.get(at..)?, value);
                found.extend(self.plain.iter().find_map(spelt).map(|length| at..at + length));
            }
        }
    }

    /// Finds encodings of whole secrets: in lower case, without gaps.
    fn find_encoded(&self, bytes: &[u8], until: usize, found: &mut Vec<Range<usize>>) {
        let mut window = Zeroizing::new(Vec::new());
        let mut places: Vec<usize> = Vec::new();
        for start in (0..until.min(bytes.len())).step_by(WINDOW) {
            let end = (start + WINDOW + self.longest).min(bytes.len());
            window.clear();
            places.clear();
            for (at, byte) in (start..end).zip(bytes.get(start..end).unwrap_or_default()) {
                if !is_gap(*byte) {
                    window.push(byte.to_ascii_lowercase());
                    places.push(at);
                }
            }
            for pattern in &self.encoded {
                let mut from = 0;
                while let Some(at) = window.get(from..).and_then(|rest| memmem::find(rest, pattern)) {
                    let at = from + at;
                    from = at + 1;
                    let (Some(first), Some(last)) = (places.get(at), places.get(at + pattern.len() - 1)) else { break };
                    // A [`StreamRedactor`] waits for at most `longest` bytes.
                    if *first < until && last - first < self.longest {
                        found.push(*first..last + 1);
                    }
                }
            }
        }
    }

    /// Masks every occurrence in text, including those that appear only after [`text::line`] has removed invisible
    /// characters.
    pub fn mask(&self, text: &mut String) {
        self.mask_text(text);
        let is_plain = |b: u8| matches!(b, b' '..=b'~') || (matches!(b, b'\n' | b'\r' | b'\t') && !self.has_space);
        if text.bytes().all(is_plain) {
            return;
        }
        let before = text::line(text);
        let mut after = before.clone();
        self.mask_text(&mut after);
        if before == after {
            return;
        }
        if before.len() != after.len() {
            *text = after;
            return;
        }
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for (c, shows) in text::visible(text) {
            let place = at..at + shows.map_or(0, char::len_utf8);
            at = place.end;
            match before.as_bytes().get(place.clone()) == after.as_bytes().get(place.clone()) {
                true => out.push(c),
                false => out.extend(place.map(|_| '*')),
            }
        }
        *text = out;
    }

    fn mask_text(&self, text: &mut String) {
        let found = self.find(text.as_bytes(), text.len());
        if found.is_empty() {
            return;
        }
        let mut bytes = std::mem::take(text).into_bytes();
        found.into_iter().for_each(|range| overwrite(&mut bytes, range));
        // Masks cover whole characters, so the rest is valid UTF-8. If it were not, hide the whole text.
        *text = String::from_utf8(bytes).unwrap_or_else(|_| "***".to_owned());
    }

    /// The first `max` characters of `text`, cleaned for display. Masks secrets before it shortens the text.
    pub fn excerpt(&self, text: &str, max: usize) -> String {
        let most = max.saturating_add(self.longest).saturating_add(1);
        let mut shown: String = text::visible(text).filter_map(|(_, shows)| shows).take(most).collect();
        self.mask_text(&mut shown);
        text::excerpt(&shown, max)
    }
}

fn overwrite(bytes: &mut [u8], range: Range<usize>) {
    bytes.get_mut(range).into_iter().flatten().for_each(|byte| *byte = b'*');
}

/// Masks secrets in a stream of pieces, including secrets that lie across pieces.
pub struct StreamRedactor {
    redactor: Arc<Redactor>,
    /// The end of the received bytes, in which a secret may begin. Not masked yet.
    carry: Vec<u8>,
    /// The number of bytes at the start of `carry` that belong to a secret already found.
    hidden: usize,
}

impl StreamRedactor {
    /// Makes a redactor for a new stream.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, carry: Vec::new(), hidden: 0 }
    }

    /// Takes the next piece. Returns the bytes that can be sent on; may be empty.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.carry.extend_from_slice(piece);
        // Any secret that begins before `until` is in the buffer as a whole, even in its longest spelling.
        let until = self.carry.len().saturating_sub(self.redactor.longest - 1);
        self.release(until)
    }

    /// Ends the stream. Returns the remaining bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        self.release(self.carry.len())
    }

    fn release(&mut self, until: usize) -> Vec<u8> {
        if until == 0 {
            return Vec::new();
        }
        let found = self.redactor.find(&self.carry, until);
        let rest = self.carry.split_off(until);
        let mut ready = std::mem::replace(&mut self.carry, rest);
        let end = found.iter().map(|range| range.end).max().unwrap_or_default().max(self.hidden);
        overwrite(&mut ready, 0..self.hidden.min(until));
        found.into_iter().for_each(|range| overwrite(&mut ready, range.start..range.end.min(until)));
        self.hidden = end.saturating_sub(until);
        ready
    }
}
