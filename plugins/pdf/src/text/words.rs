//! Joins glyphs into words. A gap, a space, or a step to another line ends a word. Text that is drawn twice for bold counts once.

use std::collections::HashMap;

use hayro_font::kurbo::{Point, Vec2};

use crate::text::bidi;
use crate::text::characters::accented;

/// The most characters kept per page.
const MAX_CHARACTERS: usize = 1_000_000;

/// The gap that ends a word, in font heights.
const WORD_GAP: f64 = 0.1;

/// How far a second drawing of the same text may be from the first, along and across the line, in font heights.
const TWICE_ALONG: f64 = 0.1;
const TWICE_ACROSS: f64 = 0.2;

/// The writing direction and the height of glyphs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    along: Vec2,
    turn: i16,
    em: f64,
}

/// The place of a glyph in a [`Frame`]: along the line, and across it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) base: f64,
}

/// A word, or a part of one.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Start and end along the writing direction, in page units.
    pub(crate) start: f64,
    pub(crate) end: f64,
    /// The position across the writing direction. For upright text, the distance from the top of the page.
    pub(crate) base: f64,
    /// The writing direction, in degrees clockwise.
    pub(crate) turn: i16,
    /// The height of the font, in page units.
    pub(crate) em: f64,
    /// True if a space is drawn before the word.
    pub(crate) is_after_space: bool,
    pub(crate) characters: usize,
    last: Placed,
}

/// Collects words in the order of the document.
#[derive(Debug)]
pub(crate) struct WordBuilder {
    frame: Frame,
    words: Vec<Word>,
    is_open: bool,
    is_after_space: bool,
    count: usize,
}

impl Frame {
    /// A frame of glyphs that are written along `direction`.
    pub(crate) fn new(direction: Vec2, em: f64) -> Frame {
        let mut angle = direction.atan2().to_degrees();
        // Nearly all text runs along the edges of the page; rounding makes its lines exact.
        let quarter = (angle / 90.0).round() * 90.0;
        if (angle - quarter).abs() < 4.0 {
            angle = quarter;
        }
        let turn = if angle.is_finite() { angle.round().rem_euclid(360.0) as i16 } else { 0 };
        let along = match turn {
            0 => Vec2::new(1.0, 0.0),
            90 => Vec2::new(0.0, 1.0),
            180 => Vec2::new(-1.0, 0.0),
            270 => Vec2::new(0.0, -1.0),
            _ => Vec2::from_angle(f64::from(turn).to_radians()),
        };
        Frame { along, turn, em }
    }

    pub(crate) fn em(&self) -> f64 {
        self.em
    }

    pub(crate) fn is_parallel(&self, other: &Frame) -> bool {
        self.turn == other.turn
    }

    /// The place of a point, along the line and across it.
    pub(crate) fn project(&self, point: Point) -> (f64, f64) {
        let Vec2 { x, y } = self.along;
        (point.x * x + point.y * y, point.y * x - point.x * y)
    }
}

impl Default for WordBuilder {
    fn default() -> Self {
        let frame = Frame::new(Vec2::new(1.0, 0.0), 1.0);
        WordBuilder { frame, words: Vec::new(), is_open: false, is_after_space: false, count: 0 }
    }
}

impl WordBuilder {
    /// Sets the frame of the glyphs that follow.
    pub(crate) fn set_frame(&mut self, frame: Frame) {
        self.frame = frame;
    }

    /// Ends the present word.
    pub(crate) fn end_word(&mut self) {
        self.is_open = false;
    }

    /// Adds a glyph that stands for `text`.
    pub(crate) fn add(&mut self, text: &str, placed: Placed) {
        self.count += text.len();
        if text.is_empty() || self.count > MAX_CHARACTERS || !(placed.start + placed.end + placed.base).is_finite() {
            return;
        }
        if text.trim_start().is_empty() {
            self.is_open = false;
            self.is_after_space = true;
            return;
        }
        let Frame { turn, em, .. } = self.frame;
        if self.is_open && self.compose(text, placed) {
            return;
        }
        if self.is_open
            && let Some(word) = self.words.last_mut()
            && word.turn == turn
        {
            let size = em.max(word.em);
            let across = (word.base - placed.base).abs();
            let gap = placed.start - word.end;
            let is_twice = (placed.start - word.last.start).abs() < TWICE_ALONG * size
                && across < TWICE_ACROSS * size
                && word.last.end - word.last.start > 2.0 * TWICE_ALONG * size
                && word.text.ends_with(text);
            if is_twice {
                return;
            }
            if across < 0.4 * size && word.accent(text, placed) {
                return;
            }
            // A mark is drawn over its letter, at any height.
            if bidi::is_mark(text) && across < size && gap < 0.3 * size && placed.start > word.start - 0.3 * size {
                word.append_mark(text, placed);
                return;
            }
            let is_same_size = em.min(word.em) > 0.6 * size;
            if across < 0.05 * size.max(1.0) && gap > -0.2 * size && gap < WORD_GAP * size && is_same_size {
                word.append(text, placed, em);
                return;
            }
        }
        self.begin(text, placed);
    }

    fn begin(&mut self, text: &str, placed: Placed) {
        let Frame { turn, em, .. } = self.frame;
        let is_after_space = std::mem::take(&mut self.is_after_space);
        let mut word = Word {
            text: String::new(),
            start: placed.start,
            end: placed.start,
            base: placed.base,
            turn,
            em,
            is_after_space,
            characters: 0,
            last: placed,
        };
        word.append(text, placed, em);
        self.words.push(word);
        self.is_open = true;
    }

    /// Draws a letter under an accent that stands alone as the last word: both become one letter of the word before.
    fn compose(&mut self, text: &str, placed: Placed) -> bool {
        let Some(word) = self.words.pop_if(|word| word.characters == 1 && word.is_accent_of(text, placed)) else {
            return false;
        };
        self.is_after_space = word.is_after_space;
        self.is_open = !self.words.is_empty() && !word.is_after_space;
        let (accent, letter) = (word.text.chars().next_back(), text.chars().next());
        let letter = accent.zip(letter).and_then(|(accent, letter)| accented(letter, accent));
        match letter {
            Some(letter) => self.add(letter.encode_utf8(&mut [0; 4]), placed),
            None => self.words.push(word),
        }
        letter.is_some()
    }

    /// The words in the order of the document. A word that is drawn twice at the same place is there once.
    pub(crate) fn finish(self) -> Vec<Word> {
        let mut places: HashMap<(i16, &str), Vec<&Word>> = HashMap::new();
        let mut is_twice = vec![false; self.words.len()];
        for (word, is_twice) in self.words.iter().zip(&mut is_twice) {
            let same = places.entry((word.turn, &word.text)).or_default();
            *is_twice = same.iter().rev().take(64).any(|other| {
                (other.start - word.start).abs() < TWICE_ALONG * word.em
                    && (other.base - word.base).abs() < TWICE_ACROSS * word.em
            });
            if !*is_twice {
                same.push(word);
            }
        }
        if is_twice.iter().all(|is_twice| !is_twice) {
            return self.words;
        }
        let words = self.words.into_iter().zip(is_twice);
        words.filter(|(_, is_twice)| !is_twice).map(|(word, _)| word).collect()
    }
}

impl Word {
    fn append(&mut self, text: &str, placed: Placed, em: f64) {
        let count = text.chars().count();
        // Right-to-left text is in visual order until its line is complete, also the letters of one glyph.
        if count > 1 && bidi::has_right_to_left(text) {
            self.text.push_str(&bidi::visual_order(text));
        } else {
            self.text.push_str(text);
        }
        self.characters += count;
        self.end = self.end.max(placed.end);
        self.em = self.em.max(em);
        self.last = placed;
    }

    /// Appends a mark. In right-to-left text, which is in visual order here, it stands before its letter.
    fn append_mark(&mut self, text: &str, placed: Placed) {
        let letter = self.text.char_indices().next_back().filter(|(_, letter)| bidi::is_right_to_left(*letter));
        match letter {
            Some((at, _)) if placed.start < self.last.end => self.text.insert_str(at, text),
            _ => self.text.push_str(text),
        }
        self.characters += text.chars().count();
    }

    /// True if this word is one accent over the letter `text`.
    fn is_accent_of(&self, text: &str, placed: Placed) -> bool {
        let (mut texts, Some(accent)) = (text.chars(), self.text.chars().next()) else { return false };
        let (Some(letter), None) = (texts.next(), texts.next()) else { return false };
        let middle = f64::midpoint(placed.start, placed.end);
        letter.is_alphabetic()
            && (self.base - placed.base).abs() < 0.5 * self.em
            && middle > self.start
            && middle < self.end.max(self.start + 0.1)
            && accented(letter, accent).is_some()
    }

    /// Puts an accent on a letter, if one of them is the last glyph and the other one is `text`, drawn over it.
    fn accent(&mut self, text: &str, placed: Placed) -> bool {
        let (mut texts, Some(last)) = (text.chars(), self.text.chars().next_back()) else { return false };
        let (Some(next), None) = (texts.next(), texts.next()) else { return false };
        if next.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
            return false;
        }
        let shared = placed.end.min(self.last.end) - placed.start.max(self.last.start);
        let width = (placed.end - placed.start).min(self.last.end - self.last.start);
        let is_over = shared >= 0.5 * width && (shared > 0.0 || placed.start < self.last.end);
        let letter = if is_over { accented(next, last).or_else(|| accented(last, next)) } else { None };
        if let Some(letter) = letter {
            self.text.pop();
            self.text.push(letter);
            self.end = self.end.max(placed.end);
            self.last = Placed { start: placed.start.min(self.last.start), end: self.end, base: self.last.base };
        }
        letter.is_some()
    }
}
