//! What a redactor searches for: some secrets in all their spellings.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use zeroize::Zeroizing;

use super::spelling::{self, MAX_BYTES_PER_BYTE, SpellingMatcher, encodings, is_gap};
use crate::grants::secrets::secret::{MIN_LENGTH, Secret};
use crate::model::text;

/// The bytes that are searched for encodings in one pass: few enough for the processor cache.
const WINDOW: usize = 32 << 10;

/// The spellings of some secrets.
pub(super) struct SecretPatterns {
    plain: Vec<Zeroizing<String>>,
    /// True for each byte with which a spelling of a secret can begin.
    first_bytes: Box<[bool; 256]>,
    /// Encodings of whole secrets, in lower case and without gaps.
    encoded: Vec<Zeroizing<Vec<u8>>>,
    /// The length of the longest spelling, in bytes.
    pub(super) longest: usize,
    /// True if one of the secrets has a space.
    pub(super) has_space: bool,
}

impl SecretPatterns {
    /// The spellings of `secrets`. `None` if there are none.
    pub(super) fn new<'s>(secrets: impl IntoIterator<Item = &'s Arc<Secret>>) -> Option<Self> {
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

    /// Adds the range of every occurrence that begins before `until`.
    pub(super) fn find(&self, bytes: &[u8], until: usize, found: &mut Vec<Range<usize>>) {
        self.find_plain(bytes, until, found);
        self.find_encoded(bytes, until, found);
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
}
