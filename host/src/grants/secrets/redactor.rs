//! Masks secrets in output. This module knows neither the source nor the receiver of the bytes.

mod live;
mod patterns;
mod spelling;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

pub use self::live::LiveSecrets;
use self::patterns::SecretPatterns;
use super::secret::Secret;
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
    /// The secrets of the configuration.
    fixed: Option<SecretPatterns>,
    /// Secrets that change while belljar runs.
    live: Vec<Arc<LiveSecrets>>,
}

impl Redactor {
    /// Makes a redactor for `secrets`. `None` if there are none.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Arc<Secret>>) -> Option<Self> {
        Self::with_live(secrets, Vec::new())
    }

    /// Makes a redactor for `secrets`, and for the present values of `live` whenever it masks. `None` if there are neither.
    pub fn with_live<'s>(
        secrets: impl IntoIterator<Item = &'s Arc<Secret>>,
        live: Vec<Arc<LiveSecrets>>,
    ) -> Option<Self> {
        let fixed = SecretPatterns::new(secrets);
        (fixed.is_some() || !live.is_empty()).then_some(Self { fixed, live })
    }

    /// The length of the longest spelling of any present secret, in bytes. At least 1.
    pub fn longest(&self) -> usize {
        let fixed = self.fixed.as_ref().map_or(1, |patterns| patterns.longest);
        self.live.iter().map(|live| live.longest()).fold(fixed, usize::max)
    }

    /// The same, for all secrets that may come while a call runs.
    pub fn margin(&self) -> usize {
        self.longest().max(if self.live.is_empty() { 0 } else { LiveSecrets::LONGEST_SPELLING })
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
            self.fixed.iter().for_each(|patterns| patterns.find(bytes, until, &mut found));
            self.live.iter().for_each(|live| live.find(bytes, until, &mut found));
        }
        found
    }

    /// True if one of the secrets has a space.
    fn has_space(&self) -> bool {
        self.fixed.as_ref().is_some_and(|patterns| patterns.has_space) || self.live.iter().any(|live| live.has_space())
    }

    /// Masks every occurrence in text, including those that appear only after [`text::line`] has removed invisible
    /// characters.
    pub fn mask(&self, text: &mut String) {
        self.mask_text(text);
        let is_plain = |b: u8| matches!(b, b' '..=b'~') || (matches!(b, b'\n' | b'\r' | b'\t') && !self.has_space());
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
        let most = max.saturating_add(self.longest()).saturating_add(1);
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
        let until = self.carry.len().saturating_sub(self.redactor.longest() - 1);
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
