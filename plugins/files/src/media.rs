//! Chooses MIME types: by the extension of a file, or by its contents if the extension is unknown.

/// The type of Markdown.
pub(crate) const MARKDOWN: &str = "text/markdown";

const PLAIN: &str = "text/plain";
const BINARY: &str = "application/octet-stream";

/// Types for extensions that have an outdated type in `mime_guess`.
const OVERRIDES: [(&str, &str); 6] = [
    ("ts", "text/typescript"),
    ("mts", "text/typescript"),
    ("cts", "text/typescript"),
    ("tsx", "text/typescript"),
    ("org", "text/org"),
    ("mdx", MARKDOWN),
];

/// The type of a name's extension.
pub(crate) fn by_name(name: &str) -> Option<&'static str> {
    // A name that begins with its only dot, such as `.profile`, has no extension.
    let (_, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
    let own = OVERRIDES.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension)).map(|(_, media)| *media);
    own.or_else(|| mime_guess::from_ext(extension).first_raw())
}

/// The type of a file whose contents are text.
pub(crate) fn of_text(name: &str, text: &str) -> &'static str {
    match by_name(name) {
        Some(media) if !is_binary(media) => media,
        Some(_) => PLAIN,
        None => by_contents(text.as_bytes()).filter(|media| media.starts_with("text/")).unwrap_or(PLAIN),
    }
}

/// The type of a file whose contents are not text.
pub(crate) fn of_bytes(name: &str, bytes: &[u8]) -> &'static str {
    by_name(name).or_else(|| by_contents(bytes)).unwrap_or(BINARY)
}

fn by_contents(bytes: &[u8]) -> Option<&'static str> {
    infer::get(bytes).map(|found| found.mime_type())
}

/// True for types of binary formats. Text gets such a type by an ambiguous extension, such as `.mod`.
fn is_binary(media: &str) -> bool {
    let is_svg = media.ends_with("+xml");
    media == BINARY || (!is_svg && ["image/", "audio/", "video/", "font/"].iter().any(|kind| media.starts_with(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_the_type() {
        for (name, media) in [
            ("a.md", MARKDOWN),
            ("A.MD", MARKDOWN),
            ("a.json", "application/json"),
            ("a.png", "image/png"),
            ("a.tar.gz", "application/gzip"),
            ("a.ts", "text/typescript"),
            ("a.html", "text/html"),
            ("a.svg", "image/svg+xml"),
        ] {
            assert_eq!(by_name(name), Some(media), "{name}");
        }
        for name in ["README", ".profile", "a.unheard-of", "a."] {
            assert_eq!(by_name(name), None, "{name}");
        }
    }

    #[test]
    fn without_a_known_extension_the_contents_decide() {
        assert_eq!(of_text("README", "hello"), PLAIN);
        assert_eq!(of_bytes("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image/png");
        assert_eq!(of_bytes("thing", &[0xff, 0, 0xff]), BINARY);
    }

    #[test]
    fn text_never_gets_a_binary_type() {
        assert_eq!(of_text("go.mod", "module example"), PLAIN);
        assert_eq!(of_text("a.png", "not a picture"), PLAIN);
        assert_eq!(of_text("a.svg", "<svg/>"), "image/svg+xml");
        assert_eq!(of_text("a.json", "{}"), "application/json");
    }
}
