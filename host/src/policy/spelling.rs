//! The spellings of one resource that policy judges. Knows no rules.
//!
//! Nothing rewrites a reference on its way to the guest, so `a%2Fb`, `a/b` and `a//b` are three names. A guest that
//! decodes escapes, or that opens files by name, may give the same resource for all three. Policy therefore judges two
//! spellings: the written one, and the plain one, with escapes decoded once and repeated slashes reduced to one. An
//! allowed resource is allowed in both spellings. A denied one is denied in either of them, with any query, and with or
//! without a slash at its end: the contents of a folder are often an index of it, so a rule that denies everything in a
//! folder denies the folder.
//!
//! Policies in Cedar compare text. They are asked about the canonical spelling in place of the plain one: the same, with
//! escapes only where a URI needs them.

use std::borrow::Cow;

use crate::model::reference::NOT_IN_PATH;

/// The spellings of a reference.
pub(super) struct Spellings<'a> {
    /// As the client wrote it.
    pub(super) written: &'a [u8],
    /// With escapes decoded and repeated slashes reduced to one.
    pub(super) plain: Cow<'a, [u8]>,
    /// The plain spelling without the query and without the slash at the end, if it has one of them.
    pub(super) bare: Option<Cow<'a, [u8]>>,
    /// True if the plain spelling without the query and with a slash at the end is another one.
    has_folder: bool,
}

impl<'a> Spellings<'a> {
    /// The spellings of a reference below a base. `is_after_slash`: the base ends in a slash.
    pub(super) fn new(reference: &'a str, is_after_slash: bool) -> Self {
        let written = reference.as_bytes();
        let plain = plain_reference(written, is_after_slash);
        let query = written.iter().position(|byte| *byte == b'?');
        let path = match query {
            Some(at) => written.get(..at).map(|path| plain_reference(path, is_after_slash)),
            None => Some(plain.clone()).filter(|plain| plain.ends_with(b"/")),
        };
        let bare = path.map(|path| match path {
            Cow::Borrowed(path) => Cow::Borrowed(path.strip_suffix(b"/").unwrap_or(path)),
            Cow::Owned(path) => Cow::Owned(path.strip_suffix(b"/").unwrap_or(&path).to_vec()),
        });
        let stem = bare.as_deref().unwrap_or(&plain);
        let is_base = stem.is_empty() && is_after_slash;
        let has_folder = !is_base && (query.is_some() || !plain.ends_with(b"/"));
        Self { written, plain, bare, has_folder }
    }

    /// The plain spelling without the query and with a slash at the end, if it is another one: given without this slash,
    /// so that nothing is copied for each entry of a list.
    pub(super) fn folder(&self) -> Option<&[u8]> {
        self.has_folder.then(|| self.bare.as_deref().unwrap_or(&self.plain))
    }
}

/// The canonical spelling of a reference that follows a base, and the canonical spelling of its path without a slash at the
/// end. The query stays as it is written.
pub(super) fn canonical_reference(reference: &str, is_after_slash: bool) -> (String, String) {
    let (path, query) = reference.split_once('?').map_or((reference, None), |(path, query)| (path, Some(query)));
    let path = canonical(path.as_bytes(), is_after_slash);
    let bare = path.strip_suffix('/').unwrap_or(&path).to_owned();
    match query {
        Some(query) => (format!("{path}?{query}"), bare),
        None => (path, bare),
    }
}

/// The canonical spelling of a path.
pub(super) fn canonical(path: &[u8], is_after_slash: bool) -> String {
    percent_encoding::percent_encode(&plain_reference(path, is_after_slash), NOT_IN_PATH).to_string()
}

/// The plain spelling of a text that follows a base.
pub(super) fn plain_reference(text: &[u8], is_after_slash: bool) -> Cow<'_, [u8]> {
    let mut last = if is_after_slash { b'/' } else { 0 };
    let is_plain = text.iter().all(|byte| {
        let is_repeated = *byte == b'/' && last == b'/';
        last = *byte;
        *byte != b'%' && !is_repeated
    });
    if is_plain {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut last = if is_after_slash { b'/' } else { 0 };
    for byte in percent_encoding::percent_decode(text) {
        if byte != b'/' || last != b'/' {
            plain.push(byte);
        }
        last = byte;
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_references() {
        for (reference, plain, bare) in [
            ("a/b", "a/b", None),
            ("a%2Fb", "a/b", None),
            ("a//b", "a/b", None),
            ("%2fa", "a", None),
            ("a%2F/%2fb", "a/b", None),
            ("%61%20b", "a b", None),
            ("%2561", "%61", None),
            ("a/", "a/", Some("a")),
            ("a//", "a/", Some("a")),
            ("a?x=1", "a?x=1", Some("a")),
            ("%61/?x=%31", "a/?x=1", Some("a")),
            ("a%3Fx", "a?x", None),
            ("", "", None),
            ("?x", "?x", Some("")),
        ] {
            let spellings = Spellings::new(reference, true);
            assert_eq!(*spellings.plain, *plain.as_bytes(), "{reference}");
            assert_eq!(spellings.bare.as_deref(), bare.map(str::as_bytes), "{reference}");
        }
        for (reference, folder) in [
            ("a", Some("a")),
            ("a/", None),
            ("a?x", Some("a")),
            ("a/?x", Some("a")),
            ("%61//", None),
            ("", None),
            ("?x", None),
        ] {
            assert_eq!(Spellings::new(reference, true).folder(), folder.map(str::as_bytes), "{reference}");
        }
        assert_eq!(Spellings::new("", false).folder(), Some(&b""[..]), "the base has no slash at its end");
        for (reference, whole, bare) in [
            ("my%20files/a", "my%20files/a", "my%20files/a"),
            ("%6Dy%20files%2fa", "my%20files/a", "my%20files/a"),
            ("my%20files//?q=%2F", "my%20files/?q=%2F", "my%20files"),
            ("a%3Fb", "a%3Fb", "a%3Fb"),
            ("100%25", "100%25", "100%25"),
            ("%c3%a9", "%C3%A9", "%C3%A9"),
            ("a%2Bb+c", "a+b+c", "a+b+c"),
        ] {
            assert_eq!(canonical_reference(reference, true), (whole.to_owned(), bare.to_owned()), "{reference}");
        }
        assert_eq!(*plain_reference(b"belljar://a/", false), *b"belljar:/a/");
        assert_eq!(*plain_reference(b"/a", false), *b"/a");
    }
}
