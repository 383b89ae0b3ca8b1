//! The texts of feeds: which are HTML, which are plain, and which were spoilt on the way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::FeedText;
use super::names::looks_like_html;

/// The declared type of a text.
#[derive(Debug, Default)]
pub(super) struct Declared {
    kind: String,
    is_base64: bool,
    is_atom: bool,
}

/// True if a type is one of pages, in the words of Atom or as a MIME type.
pub(super) fn is_html_type(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(kind.as_str(), "html" | "xhtml" | "text/html" | "application/xhtml+xml")
}

impl Declared {
    pub(super) fn new(kind: &str, mode: Option<&str>, is_atom: bool) -> Self {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        // Atom encodes contents of binary types.
        let is_binary = kind.contains('/') && !kind.starts_with("text/") && !kind.ends_with("xml");
        let is_base64 = is_binary || mode.is_some_and(|mode| mode.eq_ignore_ascii_case("base64"));
        Declared { kind, is_base64, is_atom }
    }

    /// The text of this type. `has_markup`: it had elements, and is written as XML.
    pub(super) fn text(&self, text: String, has_markup: bool) -> FeedText {
        let mut text = text.trim().to_owned();
        let mut is_decoded = false;
        if self.is_base64
            && let Ok(bytes) = STANDARD.decode(text.split_ascii_whitespace().collect::<String>())
            && let Ok(decoded) = String::from_utf8(bytes)
        {
            decoded.trim().clone_into(&mut text);
            is_decoded = true;
        }
        let is_html = if has_markup {
            true
        } else if is_html_type(&self.kind) {
            text.contains(['<', '&'])
        } else {
            // Only Atom means what it declares.
            let is_meant = self.is_atom && matches!(self.kind.as_str(), "text" | "text/plain");
            (!is_meant || is_decoded) && looks_like_html(&text)
        };
        FeedText { text, is_html, base: None }
    }
}

/// The text, or what it was before it was taken for ISO-8859-1 and encoded in UTF-8 a second time.
pub(super) fn repaired(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    match bytes.map(String::from_utf8) {
        Some(Ok(repaired)) => repaired,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_html(kind: &str, is_atom: bool, text: &str) -> bool {
        Declared::new(kind, None, is_atom).text(text.to_owned(), false).is_html
    }

    #[test]
    fn the_declared_type_counts_where_it_is_reliable() {
        assert!(is_html("html", true, "<b>x</b>") && is_html("text/html", false, "a &amp; b"));
        assert!(!is_html("html", true, "x") && !is_html("text", true, "<b>x</b>"));
        assert!(is_html("text/plain", false, "<b>x</b>") && !is_html("text/plain", false, "Vec<T>"));
        assert!(is_html("nonsense", true, "<b>x</b>") && !is_html("nonsense", true, "x < y"));
    }

    #[test]
    fn base64_is_decoded() {
        let encoded = Declared::new("text/html", Some("base64"), true).text("PGI+\neDwvYj4=".to_owned(), false);
        assert_eq!((encoded.text.as_str(), encoded.is_html), ("<b>x</b>", true));
        let plain = Declared::new("application/x-odd", None, true).text("Not base64!".to_owned(), false);
        assert_eq!(plain.text, "Not base64!");
    }

    #[test]
    fn text_that_was_encoded_twice_is_repaired() {
        assert_eq!(repaired("cafÃ©".to_owned()), "café");
        for same in ["café", "日本Ã©", "Ã"] {
            assert_eq!(repaired(same.to_owned()), same);
        }
    }
}
