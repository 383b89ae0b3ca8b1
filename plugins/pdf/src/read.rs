//! Builds the contents of a read.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use belljar_guest::{Contents, Error, Result, reference};
use belljar_tree::{Tree, name};

use crate::document::{Document, pages};
use crate::images;
use crate::info::{self, Info};
use crate::query::{Format, Part, Place, Query};
use crate::search;
use crate::text::{self, Fonts, PageText};

const PLAIN: &str = "text/plain";
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";

/// The pages in a read of the document without a range.
const FIRST_PAGES: usize = 20;

/// The most pages in a read of a range.
const MAX_PAGES: usize = 200;

/// The most text in one read, in bytes.
const MAX_TEXT_BYTES: usize = 512 * 1024;

/// The places that a search lists, at most, and those of one page.
const MAX_EXCERPTS: usize = 200;
const MAX_EXCERPTS_OF_PAGE: usize = 20;

/// No further page begins after this time. The host allows a call five seconds. On a fast machine, the fuel of a call lasts
/// little more than one second.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 700 });

/// Reads the part of a document that `place` names.
pub(crate) fn read(
    tree: &Tree,
    reference: &str,
    place: &Place,
    passwords: &[String],
    query: Query,
) -> Result<Contents> {
    let document = Document::open(tree, place, passwords)?;
    match &place.part {
        Part::Text | Part::Pages(..) if query.search.is_some() => {
            let (first, last) = match &place.part {
                Part::Pages(first, last) => (*first, *last),
                _ => (1, usize::MAX),
            };
            document.check(first)?;
            let found = search(&document, first, last, &query);
            Ok(Contents::text(reference, found).mime_type(MARKDOWN))
        }
        Part::Text => Ok(Contents::text(reference, texts(&document, 1, FIRST_PAGES, &query)).mime_type(PLAIN)),
        Part::Pages(first, last) => {
            document.check(*first)?;
            Ok(Contents::text(reference, texts(&document, *first, *last, &query)).mime_type(PLAIN))
        }
        Part::Info => {
            let info = Info::of(&document);
            if query.format == Format::Json {
                let json = info.json().ok_or_else(|| Error::failed("the facts could not be written as JSON"))?;
                return Ok(Contents::text(reference, json).mime_type(JSON));
            }
            // Relative to `a/b.pdf/info`, the document is `../b.pdf`.
            let base = format!("../{}", link(name(&place.path)));
            Ok(Contents::text(reference, info.markdown(&base)).mime_type(MARKDOWN))
        }
        Part::Images(page) => {
            let base = if reference.split('?').next().is_some_and(|path| path.ends_with('/')) { "." } else { "images" };
            let found = document.pdf.pages().get(page - 1).map(|found| images::list(found, *page, base));
            document.check(*page)?;
            Ok(Contents::text(reference, found.unwrap_or_default()).mime_type(MARKDOWN))
        }
        Part::Image(page, image) => {
            document.check(*page)?;
            let found = document.pdf.pages().get(page - 1).ok_or(Error::NotFound)?;
            let picture = images::extract(found, *image)?;
            Ok(Contents::blob(reference, picture.bytes).mime_type(picture.mime_type))
        }
        Part::Attachment(name) => {
            let (bytes, kind) = info::attachment(&document, name)?;
            let contents = Contents::from_bytes(reference, bytes);
            let is_text = matches!(contents.body, belljar_guest::Body::Text(_));
            let otherwise = if is_text { PLAIN } else { "application/octet-stream" };
            Ok(contents.mime_type(kind.unwrap_or_else(|| otherwise.to_owned())))
        }
    }
}

/// A name as the target of a Markdown link. Parentheses are encoded, because they would end the target.
fn link(name: &str) -> String {
    reference::encode_segment(name).replace('(', "%28").replace(')', "%29")
}

/// The text of pages, each below a line with its number.
fn texts(document: &Document, first: usize, last: usize, query: &Query) -> String {
    let began = Instant::now();
    let fonts = Fonts::new();
    let count = document.len();
    let last = last.min(count).min(first.saturating_add(MAX_PAGES - 1));
    let mut out = String::new();
    if count == 0 {
        let _ = writeln!(out, "[{}: no pages]", name(&document.path));
    }
    let mut next = first;
    for (at, page) in document.pdf.pages().iter().enumerate().take(last).skip(first - 1) {
        if at + 1 > first && (out.len() > MAX_TEXT_BYTES || began.elapsed() > TIME) {
            break;
        }
        next = at + 2;
        let found = text::of(page, &fonts, query.order);
        let _ = write!(out, "[page {} of {count}{}]\n\n", at + 1, remark(&found));
        let cut = cut(&found.text);
        out.push_str(cut);
        if cut.len() < found.text.len() {
            let _ = write!(out, "\n[{} more bytes of this page are left out]\n", found.text.len() - cut.len());
        }
        if !cut.is_empty() {
            out.push('\n');
        }
    }
    if next <= count && count > 0 {
        let to = next.saturating_add(last.saturating_sub(first)).min(count);
        let range = if to > next { format!("{next}-{to}") } else { next.to_string() };
        let _ = writeln!(out, "[{} more; next: {}/pages/{range}]", pages(count + 1 - next), link(name(&document.path)));
    }
    out
}

/// The places of words on pages, with excerpts. Names the pages that are left to search.
fn search(document: &Document, first: usize, last: usize, query: &Query) -> String {
    let began = Instant::now();
    let Some(words) = &query.search else { return String::new() };
    let fonts = Fonts::new();
    let last = last.min(document.len());
    let name = name(&document.path);
    let (mut out, mut listed, mut places, mut unknown) = (String::new(), 0, 0, 0);
    let mut next = first;
    for (at, page) in document.pdf.pages().iter().enumerate().take(last).skip(first - 1) {
        if at + 1 > first && (listed >= MAX_EXCERPTS || began.elapsed() > TIME) {
            break;
        }
        next = at + 2;
        let found = text::of(page, &fonts, query.order);
        unknown += usize::from(found.unknown * 20 > found.glyphs || (found.text.trim().is_empty() && found.images > 0));
        let (excerpts, count) = search::excerpts(&found.text, words, MAX_EXCERPTS_OF_PAGE);
        listed += excerpts.len();
        places += count;
        for excerpt in &excerpts {
            let _ = writeln!(out, "- [page {0}]({1}/pages/{0}): {2}", at + 1, link(name), info::inline(excerpt));
        }
        if count > excerpts.len() {
            let _ = writeln!(out, "- page {}: {} more places", at + 1, count - excerpts.len());
        }
    }
    let many = if places == 1 { "place" } else { "places" };
    let _ = write!(out, "\n[{places} {many} on pages {first}-{} of {}]\n", next - 1, document.len());
    if unknown > 0 {
        let _ = writeln!(out, "[{} of them cannot be searched: scanned, or fonts without Unicode]", pages(unknown));
    }
    if next <= last {
        let query = reference::encode_segment(words.as_str());
        let _ = writeln!(
            out,
            "[{} not searched; next: {}/pages/{next}-{last}?search={query}]",
            pages(last + 1 - next),
            link(name)
        );
    }
    out.trim_start().to_owned()
}

/// The first [`MAX_TEXT_BYTES`] bytes of a page's text, cut at a character boundary.
fn cut(text: &str) -> &str {
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// A remark for the heading of a page without text, or with many characters that its fonts do not map.
fn remark(found: &PageText) -> String {
    let images = match found.images {
        0 => "",
        1 => ", 1 image",
        _ => ", images",
    };
    if found.text.trim().is_empty() && found.images > 0 {
        return format!(": no text{images}, perhaps scanned");
    }
    if found.text.trim().is_empty() {
        return ": no text".to_owned();
    }
    if found.is_cut {
        return ": too complex, only its first part was read".to_owned();
    }
    // A few signs without a name, such as the corners of a drawing, are not worth a remark: each is a U+FFFD in the text.
    if found.unknown * 20 > found.glyphs {
        return format!(
            ": {} of {} characters are unknown, the fonts do not map them to Unicode",
            found.unknown, found.glyphs
        );
    }
    String::new()
}
