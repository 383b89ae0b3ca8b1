//! Extracts the text of a page.
//!
//! `interpret` reads the content, `fields` the values of forms, `fonts` and `characters` map codes to characters, `words` and `lines` join glyphs, `bidi`
//! orders right-to-left lines, and `layout` puts lines in order.

mod bidi;
mod characters;
mod fields;
mod fonts;
mod interpret;
mod layers;
mod layout;
mod lines;
mod words;

use hayro_syntax::page::Page;

use crate::query::Order;

pub(crate) use fonts::Fonts;
use interpret::Interpreter;

/// The text of a page and its counts.
#[derive(Debug, Default)]
pub(crate) struct PageText {
    pub(crate) text: String,
    pub(crate) images: usize,
    /// Glyphs that the fonts do not map to Unicode.
    pub(crate) unknown: usize,
    pub(crate) glyphs: usize,
    /// True if the page is too complex to be read whole.
    pub(crate) is_cut: bool,
}

/// Reads the text of a page. `fonts` are those of its document.
pub(crate) fn of<'a>(page: &Page<'a>, fonts: &Fonts<'a>, order: Order) -> PageText {
    let mut interpreter = Interpreter::new(page, fonts);
    interpreter.page(page);
    let Interpreter { words, images, unknown, glyphs, is_cut, .. } = interpreter;
    let lines = lines::of(words.finish());
    let text = match order {
        Order::Reading => layout::reading(lines),
        Order::Written => layout::written(&lines),
        Order::Position => layout::by_position(lines),
    };
    PageText { text, images, unknown, glyphs, is_cut }
}

/// Reads a line as a glyph's text: its characters, its glyph name, its order. For fuzzing.
pub(crate) fn parse_line(text: &str) -> String {
    drop(characters::numbered_name(text, 65, true));
    characters::plain_text(&characters::letters(&bidi::reading_order(&bidi::visual_order(text))))
}
