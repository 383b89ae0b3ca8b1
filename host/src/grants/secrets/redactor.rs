//! Masks secrets in whatever leaves. It must not know where the bytes come from, nor whom they are for.

mod spelling;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use zeroize::Zeroizing;

use self::spelling::{Ends, MOST_BYTES, encodings, is_gap};
use super::{SHORTEST, Secret};
use crate::model::{Guard, text};

/// Masks secrets, in the spellings in which programs pass them on: as they are, percent-encoded, escaped for JSON or HTML
/// (character by character, in any mixture), in base64 or base32 wherever it begins, in hexadecimal, in UTF-16 and UTF-32,
/// backwards, with line breaks in between; all of them in upper and lower case, for a carrier may change that (host names,
/// header names). A mask has the length of what it hides.
pub struct Redactor {
    plain: Vec<Zeroizing<String>>,
    /// Which bytes a spelling of one of them can begin with.
    starts: Box<[bool; 256]>,
    /// Spellings of the whole, in lower case and without gaps.
    encoded: Vec<Zeroizing<Vec<u8>>>,
    longest: usize,
    has_space: bool,
}

/// Bytes in which encoded spellings are looked for together: they stay near.
const WINDOW: usize = 32 << 10;

impl Redactor {
    /// For these secrets; none: there is nothing to mask.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Arc<Secret>>) -> Option<Self> {
        let (mut plain, mut encoded): (Vec<Zeroizing<String>>, Vec<_>) = (Vec::new(), Vec::new());
        for secret in secrets {
            // Also as it is shown, where some of its characters never are.
            let shown = Zeroizing::new(text::line(&secret.value));
            for value in [&secret.value, &shown] {
                if value.len() >= SHORTEST && !plain.contains(value) {
                    plain.push(value.clone());
                    encoded.extend(encodings(value));
                }
            }
        }
        // The longest first, so that no remainder of one is left by a shorter one within.
        plain.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let longest = plain.first()?.len() * MOST_BYTES;
        let has_space = plain.iter().any(|value| value.contains(' '));
        let starts = spelling::starts(&plain);
        Some(Self { plain, starts, encoded, longest, has_space })
    }

    /// Bytes that the longest spelling of a secret has.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Masks every occurrence. Says whether there was one.
    pub fn mask_bytes(&self, bytes: &mut [u8]) -> bool {
        let found = self.find(bytes, bytes.len());
        found.iter().for_each(|range| hide(bytes, range.clone()));
        !found.is_empty()
    }

    /// Every occurrence that begins before `until`.
    fn find(&self, bytes: &[u8], until: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if Guard::Redact.is_on() {
            self.find_plain(bytes, until, &mut found);
            self.find_encoded(bytes, until, &mut found);
        }
        found
    }

    /// Character by character. Where one was found, others may begin within.
    fn find_plain(&self, bytes: &[u8], until: usize, found: &mut Vec<Range<usize>>) {
        let mut ends = Ends::default();
        for (at, first) in bytes.iter().enumerate().take(until) {
            if self.starts.get(usize::from(*first)).copied().unwrap_or_default() {
                let spelt = |value: &Zeroizing<String>| ends.of(bytes.get(at..)?, value);
                found.extend(self.plain.iter().find_map(spelt).map(|length| at..at + length));
            }
        }
    }

    /// As a whole: in lower case, without gaps.
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
                    // What comes in pieces waits for no more than the longest.
                    if *first < until && last - first < self.longest {
                        found.push(*first..last + 1);
                    }
                }
            }
        }
    }

    /// Masks every occurrence in text: also those that come to light when what hides is left out of it, as it is where text
    /// is shown.
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
        for (c, shows) in text::shown(text) {
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
        found.into_iter().for_each(|range| hide(&mut bytes, range));
        // A secret is whole characters, and so is what is left; were it not, all of it is worth hiding.
        *text = String::from_utf8(bytes).unwrap_or_else(|_| "***".to_owned());
    }

    /// The first `max` characters of `text` as they may be shown: masked before they are cut, whatever hides among them.
    pub fn words(&self, text: &str, max: usize) -> String {
        let most = max.saturating_add(self.longest).saturating_add(1);
        let mut shown: String = text::shown(text).filter_map(|(_, shows)| shows).take(most).collect();
        self.mask_text(&mut shown);
        text::excerpt(&shown, max)
    }
}

fn hide(bytes: &mut [u8], range: Range<usize>) {
    bytes.get_mut(range).into_iter().flatten().for_each(|byte| *byte = b'*');
}

/// Masks what comes in pieces, so that a secret is found that lies across them.
pub struct Pieces {
    redactor: Arc<Redactor>,
    /// The end of what came, in which a secret may begin: as it came.
    carry: Vec<u8>,
    /// How much of its beginning belongs to a secret that was found.
    hidden: usize,
}

impl Pieces {
    /// With nothing come yet.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, carry: Vec::new(), hidden: 0 }
    }

    /// What can be passed on now that `piece` has come; may be empty.
    pub fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        self.carry.extend_from_slice(piece);
        // A secret that begins before this is whole, in its longest spelling.
        let until = self.carry.len().saturating_sub(self.redactor.longest - 1);
        self.let_go(until)
    }

    /// What is left when nothing more comes.
    pub fn rest(&mut self) -> Vec<u8> {
        self.let_go(self.carry.len())
    }

    fn let_go(&mut self, until: usize) -> Vec<u8> {
        if until == 0 {
            return Vec::new();
        }
        let found = self.redactor.find(&self.carry, until);
        let rest = self.carry.split_off(until);
        let mut ready = std::mem::replace(&mut self.carry, rest);
        let end = found.iter().map(|range| range.end).max().unwrap_or_default().max(self.hidden);
        hide(&mut ready, 0..self.hidden.min(until));
        found.into_iter().for_each(|range| hide(&mut ready, range.start..range.end.min(until)));
        self.hidden = end.saturating_sub(until);
        ready
    }
}
