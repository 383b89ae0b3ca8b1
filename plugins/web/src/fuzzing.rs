//! Entry points for fuzzing: each runs a parser of this provider on any bytes, and must neither panic nor hang.

use url::Url;

use crate::http::Headers;
use crate::{charset, date, feed, fresh, http, json, page};

fn url() -> Option<Url> {
    Url::parse("https://fuzz.example/a/b?c").ok()
}

/// Decodes bytes: the first line is the content type.
pub fn charset(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (media, _) = text.split_once('\n').unwrap_or_default();
    let _ = charset::decode(bytes, Some(media));
    let _ = charset::decode(bytes, None);
}

/// Parses a feed, and converts all of it.
pub fn feed(bytes: &[u8]) {
    let (text, Some(url)) = (charset::decode(bytes, None), url()) else { return };
    let _ = feed::is_feed(&text);
    if let Ok(feed) = feed::parse(&text, &url) {
        let _ = feed.overview("feed/", "");
        for item in &feed.items {
            let _ = item.text(&url);
        }
    }
}

/// Parses a date.
pub fn date(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = date::parse(&text).and_then(date::rfc3339);
}

/// Converts a page.
pub fn page(bytes: &[u8]) {
    let Some(url) = url() else { return };
    let text = charset::decode(bytes, None);
    let _ = page::read(&text, &url);
    let _ = page::plain(&text);
    let _ = page::feed_of(&text, &url);
}

/// Prints a JSON text, and selects a value: the first line is the pointer.
pub fn json(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = json::read(&text, None);
    if let Some((pointer, json)) = text.split_once('\n') {
        let _ = json::read(json, Some(pointer));
    }
}

/// Computes a lifetime: each line is a header.
pub fn fresh(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let _ = fresh::stated_lifetime(&Headers::new(fields.collect()), std::time::SystemTime::UNIX_EPOCH);
}

/// Decodes a compressed body.
pub fn coding(bytes: &[u8]) {
    let _ = http::gunzip(bytes);
}

#[cfg(test)]
mod tests {
    /// Each parser takes the beginnings of real documents, and documents with a byte exchanged.
    #[test]
    fn cut_and_damaged_documents_neither_panic_nor_hang() {
        let documents = [
            (include_bytes!("../fixtures/rss2.xml").as_slice(), super::feed as fn(&[u8])),
            (include_bytes!("../fixtures/atom.xml"), super::feed),
            (include_bytes!("../fixtures/feed.json"), super::feed),
            (include_bytes!("../fixtures/page.html"), super::page),
            (include_bytes!("../fixtures/api.json"), super::json),
            (b"Tue, 28 Jul 2026 12:30:00 +0200", super::date),
            (b"2026-07-28T12:30:00.5+02:00", super::date),
            (b"cache-control: max-age=5, no-cache\nage: 3", super::fresh),
            (b"text/html; charset=utf-16\n\xff\xfe\0<", super::charset),
            (b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x05\0", super::coding),
        ];
        for (document, parse) in documents {
            let step = document.len() / 40 + 1;
            for at in (0..document.len()).step_by(step) {
                parse(&document[..at]);
                for byte in [0, b'<', b'&', b'"', 0xff] {
                    let mut damaged = document.to_vec();
                    damaged[at] = byte;
                    parse(&damaged);
                }
            }
        }
    }
}
