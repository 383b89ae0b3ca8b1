//! Extracts the text of a page from the positions of its glyphs. A gap between glyphs separates words, and a step down
//! separates lines.

use hayro_interpret::font::GlyphRun;
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, interpret_page,
};
use hayro_syntax::page::Page;

use crate::query::Order;

/// The most glyphs kept per page.
const MAX_GLYPHS: usize = 500_000;

/// The text of a page and its counts.
#[derive(Debug, Default)]
pub(crate) struct PageText {
    pub(crate) text: String,
    pub(crate) images: usize,
    /// Glyphs that the fonts do not map to Unicode.
    pub(crate) unknown: usize,
    pub(crate) glyphs: usize,
}

/// A piece of text on one line.
#[derive(Debug, Clone)]
struct Piece {
    text: String,
    /// Start and end along the writing direction, in page units.
    start: f64,
    end: f64,
    /// Position across the writing direction; for upright text, the distance from the top of the page.
    base: f64,
    /// The writing direction, in clockwise quarter turns.
    turn: i8,
    /// The height of the font, in page units.
    em: f64,
}

/// Collects pieces of text while a page is drawn.
#[derive(Debug, Default)]
struct TextCollector {
    pieces: Vec<Piece>,
    found: PageText,
}

/// Reads the text of a page.
pub(crate) fn of(page: &Page<'_>, order: Order) -> PageText {
    let cache = InterpreterCache::new();
    let (width, height) = page.render_dimensions();
    let transform = page.initial_transform(true);
    let initial = Affine::new(transform.as_coeffs());
    let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let mut context = Context::new(initial, bounds, &cache, page.xref(), InterpreterSettings::default());
    let mut collector = TextCollector::default();
    interpret_page(page, &mut context, &mut collector);
    let TextCollector { pieces, mut found } = collector;
    found.text = match order {
        Order::Written => written(&pieces),
        Order::Position => by_position(pieces),
    };
    found
}

impl TextCollector {
    fn add(&mut self, text: &str, at: Affine, advance: f64) {
        let origin = at * Point::ZERO;
        let (along, up) = (at * Point::new(1000.0, 0.0) - origin, at * Point::new(0.0, 1000.0) - origin);
        let em = up.hypot();
        if !em.is_finite() || em <= 0.0 || !origin.x.is_finite() || !origin.y.is_finite() {
            return;
        }
        // Nearly all text runs along one of four directions; others are rounded to the nearest.
        let turn: i8 = if along.x.abs() >= along.y.abs() {
            if along.x >= 0.0 { 0 } else { 2 }
        } else if along.y >= 0.0 {
            1
        } else {
            3
        };
        let (start, base) = match turn {
            0 => (origin.x, origin.y),
            1 => (origin.y, -origin.x),
            2 => (-origin.x, -origin.y),
            _ => (-origin.y, origin.x),
        };
        let end = start + advance / 1000.0 * along.hypot();
        if let Some(last) = self.pieces.last_mut()
            && last.turn == turn
            && (last.base - base).abs() < 0.3 * em.max(last.em)
            && start > last.end - em
            && start < last.end + 1.5 * em
            && start >= last.start
        {
            if start > last.end + 0.18 * em && !last.text.ends_with(' ') && !text.starts_with(' ') {
                last.text.push(' ');
            }
            last.text.push_str(text);
            last.end = end.max(last.end);
            last.em = last.em.max(em);
            return;
        }
        self.pieces.push(Piece { text: text.to_owned(), start, end, base, turn, em });
    }
}

impl Device<'_> for TextCollector {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, _: &DrawMode) {
        for glyph in run.glyphs() {
            self.found.glyphs += 1;
            if self.found.glyphs > MAX_GLYPHS {
                return;
            }
            let advance = match &**glyph {
                hayro_interpret::font::Glyph::Outline(glyph) => glyph.advance_width(),
                hayro_interpret::font::Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let at = props.transform * glyph.transform();
            let advance = f64::from(advance.unwrap_or(500.0));
            match glyph.as_unicode() {
                Some(BfString::Char(c)) => self.add(plain(c, &mut [0; 4]), at, advance),
                Some(BfString::String(text)) => self.add(&text, at, advance),
                None => {
                    self.found.unknown += 1;
                    self.add("\u{fffd}", at, advance);
                }
            }
        }
    }

    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {
        self.found.images += 1;
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// A character in searchable form: ligatures become their letters, control characters vanish.
fn plain(c: char, buffer: &mut [u8; 4]) -> &str {
    match c {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        '\u{a0}' => " ",
        c if c.is_control() => "",
        c => c.encode_utf8(buffer),
    }
}

/// Joins pieces in document order. A step to another line starts a line; a longer step also leaves an empty line.
fn written(pieces: &[Piece]) -> String {
    let mut text = String::new();
    let mut last: Option<&Piece> = None;
    for piece in pieces {
        if let Some(last) = last {
            let em = last.em.max(piece.em);
            let down = piece.base - last.base;
            // Some programs draw the same text twice for a shadow or for bold.
            if piece.text == last.text && down.abs() < 0.2 * em && (piece.start - last.start).abs() < 0.2 * em {
                continue;
            }
            if last.turn != piece.turn || down < -0.5 * em || down > 2.2 * em {
                end_line(&mut text, 2);
            } else if down.abs() > 0.5 * em || piece.start < last.start {
                end_line(&mut text, 1);
            } else if !text.ends_with(char::is_whitespace) {
                // A wide gap is the next table column, or a tab stop.
                text.push_str(if piece.start > last.end + 1.5 * em { "  " } else { " " });
            }
        }
        text.push_str(&piece.text);
        last = Some(piece);
    }
    end_line(&mut text, 1);
    text
}

fn end_line(text: &mut String, ends: usize) {
    text.truncate(text.trim_end().len());
    if !text.is_empty() {
        text.push_str(if ends == 1 { "\n" } else { "\n\n" });
    }
}

/// Joins pieces from the top to the bottom of the page, in any document order.
fn by_position(mut pieces: Vec<Piece>) -> String {
    pieces.sort_by(|one, other| one.turn.cmp(&other.turn).then(one.base.total_cmp(&other.base)));
    // Pieces at about the same height form a line.
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        match lines.last_mut().and_then(|line| line.last().map(|last| (last.turn, last.base, last.em))) {
            Some((turn, base, em)) if turn == piece.turn && piece.base - base < 0.4 * em.max(piece.em) => {
                if let Some(line) = lines.last_mut() {
                    line.push(piece);
                }
            }
            _ => lines.push(vec![piece]),
        }
    }
    for line in &mut lines {
        line.sort_by(|one, other| one.start.total_cmp(&other.start));
        let base = line.first().map_or(0.0, |first| first.base);
        line.iter_mut().for_each(|piece| piece.base = base);
    }
    written(&lines.into_iter().flatten().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, start: f64, base: f64) -> Piece {
        Piece { text: text.to_owned(), start, end: start + 5.0 * text.len() as f64, base, turn: 0, em: 10.0 }
    }

    #[test]
    fn steps_down_make_lines_and_paragraphs() {
        let pieces = [
            piece("one", 0.0, 100.0),
            piece("two", 40.0, 100.0),
            piece("three", 0.0, 112.0),
            piece("four", 0.0, 160.0),
        ];
        assert_eq!(written(&pieces), "one  two\nthree\n\nfour\n");
        let shuffled = [2, 0, 3, 1].map(|at| pieces[at].clone()).to_vec();
        assert_eq!(by_position(shuffled), "one  two\nthree\n\nfour\n");
        assert_eq!(written(&[piece("bold", 0.0, 9.0), piece("bold", 0.5, 9.0)]), "bold\n");
        assert_eq!(written(&[]), "");
    }

    #[test]
    fn gaps_between_glyphs_separate_words() {
        let mut collector = TextCollector::default();
        let at = |x: f64| Affine::new([0.01, 0.0, 0.0, 0.01, x, 50.0]);
        for (text, x) in [("a", 0.0), ("b", 5.0), ("b", 10.0), ("c", 18.0)] {
            collector.add(text, at(x), 500.0);
        }
        assert_eq!(collector.pieces.len(), 1);
        assert_eq!(collector.pieces[0].text, "abb c");
        assert_eq!([plain('\u{fb03}', &mut [0; 4]), plain('\0', &mut [0; 4])], ["ffi", ""]);
    }
}
