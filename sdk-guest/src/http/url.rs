//! URLs of requests: parsing, and references relative to them (RFC 3986). Knows only `http` and `https`.

use std::fmt;

use crate::{Error, Result};

/// An absolute URL. It displays in quotes and without its query, which may hold values of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) is_secure: bool,
    pub(super) authority: String,
    path: String,
    query: Option<String>,
}

impl Url {
    /// Parses an absolute URL.
    pub(super) fn parse(text: &str) -> Result<Url> {
        let text = text.trim();
        let unfit = |why: &str| Error::failed(format_args!("\"{text}\" cannot be requested: {why}"));
        let (is_secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => return Err(unfit("it does not begin with http:// or https://")),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.is_empty() {
            return Err(unfit("it has no host"));
        }
        if authority.contains('@') {
            return Err(unfit("it has a user name; credentials come from the grant, or from a header"));
        }
        let (path, query) = split_query(target);
        let (path, query) = (encode(&without_dots(path)), query.map(encode));
        Ok(Url { is_secure, authority: authority.to_ascii_lowercase(), path, query })
    }

    /// The URL of a reference, such as that of a redirect.
    pub(super) fn join(&self, reference: &str) -> Result<Url> {
        let reference = reference.trim();
        let reference = reference.split_once('#').map_or(reference, |(reference, _)| reference);
        let scheme = if self.is_secure { "https" } else { "http" };
        let has_scheme = reference.split_once(':').is_some_and(|(before, _)| !before.contains(['/', '?']));
        if has_scheme {
            return Url::parse(reference);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Url::parse(&format!("{scheme}://{rest}"));
        }
        let (path, query) = split_query(reference);
        let directory = self.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let target = match (path, query) {
            ("", None) => self.target(),
            ("", Some(query)) => format!("{}?{query}", self.path),
            (path, _) if path.starts_with('/') => reference.to_owned(),
            _ => format!("{directory}/{reference}"),
        };
        Url::parse(&format!("{scheme}://{}{target}", self.authority))
    }

    /// The path with the query.
    pub(super) fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// The whole URL.
    pub(super) fn to_text(&self) -> String {
        format!("{}://{}{}", if self.is_secure { "https" } else { "http" }, self.authority, self.target())
    }

    /// True if both URLs have one scheme, host and port.
    pub(super) fn has_origin_of(&self, other: &Url) -> bool {
        self.is_secure == other.is_secure && self.host_and_port() == other.host_and_port()
    }

    fn host_and_port(&self) -> &str {
        let default = if self.is_secure { ":443" } else { ":80" };
        self.authority.strip_suffix(default).unwrap_or(&self.authority)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}://{}{}\"", if self.is_secure { "https" } else { "http" }, self.authority, self.path)
    }
}

fn split_query(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

/// The path without its segments `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        if plain == ".." {
            kept.pop();
        }
        if plain != "." && plain != ".." {
            kept.push(segment);
        } else if segments.peek().is_none() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

/// Encodes what a URL cannot hold. Leaves what is encoded already.
fn encode(text: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'()*+,-./:;=?@_~[]".contains(&byte);
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if is_kept(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn urls_are_normalised() {
        assert_eq!(parsed("HTTP://Example.com").to_text(), "http://example.com/");
        assert_eq!(parsed("https://a/b/../c d?q=\u{fc}#x").to_text(), "https://a/c%20d?q=%C3%BC");
        assert_eq!(parsed("http://a:1?x").to_text(), "http://a:1/?x");
        assert_eq!(parsed("http://a/%20?b").to_string(), "\"http://a/%20\"");
    }

    #[test]
    fn malformed_urls_give_the_reason() {
        for (text, why) in
            [("example.com", "http://"), ("ftp://a", "http://"), ("http://", "host"), ("http://u@a", "user")]
        {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn references_are_relative_to_a_url() {
        let base = parsed("http://a/b/c?d");
        for (reference, joined) in [
            ("", "http://a/b/c?d"),
            ("?x", "http://a/b/c?x"),
            ("e", "http://a/b/e"),
            ("../e?f", "http://a/e?f"),
            ("/e", "http://a/e"),
            ("//z/e", "http://z/e"),
            ("https://z", "https://z/"),
            ("e?to=http://y", "http://a/b/e?to=http://y"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_text(), joined, "{reference}");
        }
        assert!(base.join("mailto:x").is_err());
    }

    #[test]
    fn default_ports_belong_to_the_origin() {
        assert!(parsed("http://a:80").has_origin_of(&parsed("http://A/x")));
        assert!(!parsed("http://a:81").has_origin_of(&parsed("http://a")));
        assert!(!parsed("https://a").has_origin_of(&parsed("http://a")));
    }
}
