//! Joins words into lines: words that follow each other on the same base line.

use std::collections::HashMap;

use crate::text::bidi;
use crate::text::characters::letters;
use crate::text::words::Word;

/// How far apart words of a line may be if the document draws one after the other, and if it draws them at different times.
/// In font heights.
const NEXT_GAP: f64 = 1.5;
const FAR_GAP: f64 = 0.5;

/// The gap that separates words which are broken for another reason, in font heights.
const SPACE: f64 = 0.06;

/// A line, or the part of a line in one column.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) words: Vec<Word>,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) base: f64,
    pub(crate) em: f64,
    pub(crate) turn: i16,
}

impl Line {
    fn new(word: Word) -> Line {
        let Word { start, end, base, em, turn, .. } = word;
        Line { words: vec![word], start, end, base, em, turn }
    }

    /// True if a word or a line with these values stands right before or after this line. Parts of a line may overlap by
    /// `overlap`, and have a gap of `gap`, in font heights.
    fn is_next_to(&self, start: f64, end: f64, base: f64, em: f64, overlap: f64, gap: f64) -> bool {
        let (small, large) = (em.min(self.em), em.max(self.em));
        let is_near = |distance: f64| distance > -overlap * large && distance < gap * large;
        let last = self.words.last().map_or(self.start, |last| last.start);
        (self.base - base).abs() < (0.5 * large).min(0.8 * small).max(0.3 * large)
            && ((is_near(start - self.end) && start > last) || is_near(self.start - end))
    }

    fn push(&mut self, word: Word) {
        self.start = self.start.min(word.start);
        self.end = self.end.max(word.end);
        // The base line of the largest font is that of the line.
        if word.em > 1.2 * self.em {
            self.base = word.base;
        }
        self.em = self.em.max(word.em);
        self.words.push(word);
    }

    fn merge(&mut self, other: Line) {
        other.words.into_iter().for_each(|word| self.push(word));
    }

    /// The text of the line in reading order.
    pub(crate) fn text(&self) -> String {
        let mut words: Vec<(usize, &Word)> = self.words.iter().enumerate().collect();
        words.sort_by(|(_, one), (_, other)| one.start.total_cmp(&other.start));
        let wide = spread(&words);
        let mut text = String::new();
        let mut last: Option<(usize, &Word)> = None;
        let mut end = f64::NEG_INFINITY;
        for (at, word) in words {
            if let Some((before, last)) = last {
                let gap = word.start - end;
                let em = last.em.min(word.em);
                let is_drawn =
                    if at == before + 1 { word.is_after_space } else { at + 1 == before && last.is_after_space };
                let space = wide.unwrap_or(SPACE * em);
                if bidi::is_mark(&word.text) && gap < 0.3 * em {
                    push_mark(&mut text, &word.text);
                    continue;
                }
                if gap > space || (is_drawn && wide.is_none()) {
                    // A wide gap is the next column of a table, or a tab stop.
                    text.push_str(if gap > NEXT_GAP * em { "  " } else { " " });
                }
            }
            text.push_str(&word.text);
            end = end.max(word.end);
            last = Some((at, word));
        }
        if bidi::has_right_to_left(&text) { letters(&bidi::reading_order(&text)) } else { text }
    }
}

/// Adds marks that are drawn over the last letter. In right-to-left text, they stand before it.
fn push_mark(text: &mut String, marks: &str) {
    match text.char_indices().next_back() {
        Some((at, letter)) if bidi::is_right_to_left(letter) => text.insert_str(at, marks),
        _ => text.push_str(marks),
    }
}

/// The gap that separates words in a line of single letters which are set wide apart. `None` for other lines.
fn spread(words: &[(usize, &Word)]) -> Option<f64> {
    if words.len() < 2 || words.iter().any(|(_, word)| word.characters > 1 || word.is_after_space) {
        return None;
    }
    let gaps = words.iter().zip(words.iter().skip(1)).map(|((_, one), (_, next))| next.start - one.end);
    let least = gaps.fold(f64::INFINITY, f64::min);
    let em = words.iter().map(|(_, word)| word.em).fold(0.0, f64::max);
    (least > 0.0).then(|| (1.3 * least).min(0.4 * em).max(SPACE * em))
}

/// The lines of a page, in the order in which the document begins them.
pub(crate) fn of(words: Vec<Word>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line)
                if line.turn == word.turn
                    && line.is_next_to(word.start, word.end, word.base, word.em, 1.0, NEXT_GAP) =>
            {
                line.push(word);
            }
            _ => lines.push(Line::new(word)),
        }
    }
    join(rows(lines))
}

/// Joins lines that the document writes one after the other at the same height: the cells of a row of a table.
fn rows(lines: Vec<Line>) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
    for line in lines {
        match rows.last_mut() {
            Some(row)
                if row.turn == line.turn
                    && (row.base - line.base).abs() < 0.1 * row.em.max(line.em)
                    && line.start > row.end =>
            {
                row.merge(line);
            }
            _ => rows.push(line),
        }
    }
    rows
}

/// Joins the parts of a line that the document draws at different times.
fn join(parts: Vec<Line>) -> Vec<Line> {
    /// The height of a row of the index, in page units.
    const ROW: f64 = 8.0;
    let row = |base: f64| (base / ROW).floor().clamp(-1e9, 1e9) as i64;
    let mut lines: Vec<Option<Line>> = Vec::with_capacity(parts.len());
    let mut rows: HashMap<(i16, i64), Vec<usize>> = HashMap::new();
    for mut part in parts {
        // A part can join a line before and another one behind it.
        let mut place = None;
        for _ in 0..2 {
            let here = row(part.base);
            let near =
                (here - 1..=here + 1).flat_map(|row| rows.get(&(part.turn, row)).into_iter().flatten().rev().take(64));
            let found = near.copied().find(|at| {
                lines
                    .get(*at)
                    .and_then(Option::as_ref)
                    .is_some_and(|line| line.is_next_to(part.start, part.end, part.base, part.em, 0.3, FAR_GAP))
            });
            let Some(mut line) = found.and_then(|at| lines.get_mut(at)).and_then(Option::take) else { break };
            place = place.or(found);
            line.merge(part);
            part = line;
        }
        let at = place.unwrap_or(lines.len());
        rows.entry((part.turn, row(part.base))).or_default().push(at);
        match lines.get_mut(at) {
            Some(slot) => *slot = Some(part),
            None => lines.push(Some(part)),
        }
    }
    lines.into_iter().flatten().collect()
}
