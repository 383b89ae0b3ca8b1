//! What a reference reads as.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use belljar_guest::{Contents, Error, Result, reference};
use belljar_tree::{Tree, name};

use crate::document::{Document, pages};
use crate::images;
use crate::info::{self, Info};
use crate::query::{Format, Part, Place, Query};
use crate::text::{self, PageText};

const PLAIN: &str = "text/plain";
const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";

/// How many pages the document by itself reads as, how many a range, and how much text is given at once.
const FIRST_PAGES: usize = 20;
const MOST_PAGES: usize = 200;
const MOST_TEXT: usize = 512 * 1024;

/// After how much time no further page is begun: the host gives five seconds, on whatever machine, and as much fuel as a quick
/// one uses up in little more than one.
const TIME: Duration = Duration::from_millis(700);

/// Reads what is at a place.
pub(crate) fn read(
    tree: &Tree,
    reference: &str,
    place: &Place,
    passwords: &[String],
    query: Query,
) -> Result<Contents> {
    let document = Document::open(tree, place, passwords)?;
    match &place.part {
        Part::Text => Ok(Contents::text(reference, texts(&document, 1, FIRST_PAGES, query)).mime_type(PLAIN)),
        Part::Pages(first, last) => {
            document.check(*first)?;
            Ok(Contents::text(reference, texts(&document, *first, *last, query)).mime_type(PLAIN))
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
            let picture = images::one(found, *image)?;
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

/// A name as the target of a link: round brackets would end it.
fn link(name: &str) -> String {
    reference::encode_segment(name).replace('(', "%28").replace(')', "%29")
}

/// The text of pages, each under a line that says which it is.
fn texts(document: &Document, first: usize, last: usize, query: Query) -> String {
    let began = Instant::now();
    let count = document.len();
    let last = last.min(count).min(first.saturating_add(MOST_PAGES - 1));
    let mut out = String::new();
    if count == 0 {
        let _ = writeln!(out, "[{}: no pages]", name(&document.path));
    }
    let mut next = first;
    for (at, page) in document.pdf.pages().iter().enumerate().take(last).skip(first - 1) {
        if at + 1 > first && (out.len() > MOST_TEXT || began.elapsed() > TIME) {
            break;
        }
        next = at + 2;
        let found = text::of(page, query.order);
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

/// The most text that a page gives.
fn cut(text: &str) -> &str {
    let end = (0..=MOST_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// What is to be said of a page whose text is not all there is.
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
    if found.unknown * 5 > found.glyphs {
        return format!(
            ": {} of {} characters are unknown, the fonts do not say what they are",
            found.unknown, found.glyphs
        );
    }
    String::new()
}
