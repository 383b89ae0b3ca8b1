//! The names in feeds: the namespaces of RSS, Atom and their extensions, and the elements of HTML.

use markup5ever::data::NAMED_ENTITIES;

/// Namespaces whose elements are those of RSS or Atom. All versions share one vocabulary here.
const CORE: [&str; 11] = [
    "http://blogs.law.harvard.edu/tech/rss",
    "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://example.com/newformat#",
    "http://example.com/necho",
    "http://purl.org/echo/",
    "uri/of/echo/namespace#",
    "http://purl.org/pie/",
    "http://purl.org/atom/ns#",
    "http://www.w3.org/2005/atom",
    "http://purl.org/rss/1.0/modules/rss091#",
];

/// Namespaces of extensions, with the prefixes under which this provider knows them.
const EXTENSIONS: [(&str, &str); 14] = [
    ("http://purl.org/rss/1.0/modules/content/", "content"),
    ("http://purl.org/dc/elements/1.1/", "dc"),
    ("http://purl.org/dc/elements/1.0/", "dc"),
    ("http://purl.org/dc/terms/", "dcterms"),
    ("http://www.itunes.com/dtds/podcast-1.0.dtd", "itunes"),
    ("http://example.com/dtds/podcast-1.0.dtd", "itunes"),
    ("http://search.yahoo.com/mrss", "media"),
    ("http://search.yahoo.com/mrss/", "media"),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf"),
    ("http://www.w3.org/1999/xhtml", "xhtml"),
    ("http://www.w3.org/xml/1998/namespace", "xml"),
    ("http://purl.org/rss/1.0/modules/link/", "l"),
    ("http://rssnamespace.org/feedburner/ext/1.0", "feedburner"),
    ("http://purl.org/syndication/thread/1.0", "thr"),
];

/// Elements of HTML that occur in feeds.
const HTML: [&str; 75] = [
    "a",
    "abbr",
    "acronym",
    "address",
    "article",
    "aside",
    "audio",
    "b",
    "big",
    "blockquote",
    "br",
    "button",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "fieldset",
    "figcaption",
    "figure",
    "font",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "input",
    "ins",
    "kbd",
    "label",
    "legend",
    "li",
    "map",
    "nav",
    "noscript",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
];

/// The prefix under which elements of the namespace `uri` are known; empty for RSS and Atom. `None` for other namespaces.
pub(super) fn known_prefix(uri: &str) -> Option<&'static str> {
    let uri = uri.trim().to_ascii_lowercase();
    // RSS 2.0 was published with several namespaces below this one.
    if uri.is_empty() || CORE.contains(&uri.as_str()) || uri.contains("backend.userland.com/rss") {
        return Some("");
    }
    EXTENSIONS.iter().find(|(known, _)| *known == uri).map(|(_, prefix)| *prefix)
}

/// True if a text that is declared as plain is HTML: it has an end tag or a reference, and only tags of HTML.
pub(super) fn looks_like_html(text: &str) -> bool {
    let name_at = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default().to_ascii_lowercase()
    };
    let mut is_html = text.split('&').skip(1).any(|rest| {
        let end = rest.bytes().take(12).position(|byte| byte == b';').unwrap_or(0);
        let name = rest.get(..end).unwrap_or_default();
        let is_known = |name: &str| NAMED_ENTITIES.get(name).is_some_and(|(first, _)| *first != 0);
        (!name.is_empty() && rest.get(..=end).is_some_and(is_known))
            || name.strip_prefix('#').is_some_and(|number| !number.is_empty())
    });
    for rest in text.split('<').skip(1) {
        let (rest, is_end) = rest.strip_prefix('/').map_or((rest, false), |rest| (rest, true));
        let name = name_at(rest);
        if !name.is_empty() && !HTML.contains(&name.as_str()) {
            return false;
        }
        is_html |= is_end && !name.is_empty();
    }
    is_html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_known_in_every_case_and_version() {
        for uri in ["http://backend.userland.com/RSS2", "http://www.w3.org/2005/Atom", " http://purl.org/atom/ns# "] {
            assert_eq!(known_prefix(uri), Some(""), "{uri}");
        }
        assert_eq!(known_prefix("http://www.itunes.com/DTDs/PodCast-1.0.dtd"), Some("itunes"));
        assert_eq!(known_prefix("urn:other"), None);
    }

    #[test]
    fn html_is_told_from_plain_text() {
        for html in ["<b>x</b>", "AT&amp;T", "&#8217;", "<br/>a</p>"] {
            assert!(looks_like_html(html), "{html}");
        }
        for plain in ["5 < wind < 9", "Vec<T> and </T>", "AT&T; no", "a & b", "<b>", "x &; y"] {
            assert!(!looks_like_html(plain), "{plain}");
        }
    }
}
