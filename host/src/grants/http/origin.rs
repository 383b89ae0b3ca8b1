//! Origins: scheme, host and port (RFC 6454). The decision and the connection share one strict parser, which refuses
//! ambiguous spellings.

use std::fmt;

use crate::grants::network::host::{Host, HostError, parse_host_and_port};

/// `http` or `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// The name of the scheme, as in a URI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of the scheme when a URI has none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why an origin in the configuration or in a declaration is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginPatternError {
    /// The scheme is neither `http` nor `https`.
    #[error("its scheme is neither \"https\" nor \"http\"")]
    Scheme,
    /// The scheme is missing.
    #[error("it has no scheme; write \"https://\" before it")]
    NoScheme,
    /// A path, a query or a fragment follows the origin.
    #[error("it has more than scheme, host and port; write origin = \"{}://{authority}\" and paths = [\"{path}\"]", scheme.as_str())]
    More {
        /// The scheme.
        scheme: Scheme,
        /// The authority, not parsed.
        authority: String,
        /// The path after the origin, or a glob for every path.
        path: String,
    },
    /// The star is not the first label.
    #[error("\"*\" may only stand for the whole first label: \"https://*.example.com\"")]
    Star,
    /// The star precedes a top-level domain.
    #[error("it covers every name below a top-level domain; name a domain: \"https://*.example.com\"")]
    TopLevel,
    /// The star precedes an IP address.
    #[error("an address has no sub-domains")]
    Address,
    /// The authority is malformed.
    #[error(transparent)]
    Authority(#[from] HostError),
}

/// An origin in canonical form, used for decisions and for connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port. The default port of the scheme if the text has none.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl Origin {
    /// Host and port, as in a `Host` header.
    pub fn authority(&self) -> String {
        match self.port == self.scheme.default_port() {
            true => self.host.to_string(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Parses an authority (RFC 3986, 3.2) for `scheme`.
    ///
    /// # Errors
    /// The first problem of the authority.
    pub fn parse(scheme: Scheme, authority: &str) -> Result<Self, HostError> {
        let (host, port) = parse_host_and_port(authority)?;
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.default_port()) })
    }
}

/// The origins of a grant: one origin, or all direct sub-domains of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginPattern {
    origin: Origin,
    /// True for `https://*.example.com`; then `origin` is the part after the star.
    is_wildcard: bool,
}

impl OriginPattern {
    /// Parses `https://api.example.com`, `http://127.0.0.1:8080` or `https://*.example.com`.
    ///
    /// # Errors
    /// The first problem of the text, and its cure.
    pub fn parse(text: &str) -> Result<Self, OriginPatternError> {
        let (scheme, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err(OriginPatternError::Scheme),
            None => return Err(OriginPatternError::NoScheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if let Some(at) = rest.find(['/', '?', '#']) {
            let (authority, tail) = rest.split_at(at);
            let path = tail.split(['?', '#']).next().filter(|path| !path.is_empty()).unwrap_or("/**").to_owned();
            return Err(OriginPatternError::More { scheme, authority: authority.to_owned(), path });
        }
        let (is_wildcard, authority) = match rest.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, rest),
        };
        if authority.contains('*') {
            return Err(OriginPatternError::Star);
        }
        let origin = Origin::parse(scheme, authority)?;
        match &origin.host {
            Host::Name(name) if is_wildcard && !name.contains('.') => {
                return Err(OriginPatternError::TopLevel);
            }
            Host::Ip(_) if is_wildcard => return Err(OriginPatternError::Address),
            _ => {}
        }
        Ok(Self { origin, is_wildcard })
    }

    /// True if the pattern covers `origin`: scheme, host and port are equal. A star stands for exactly one label, as in
    /// certificates (RFC 9525, 6.3).
    pub fn matches(&self, origin: &Origin) -> bool {
        if self.origin.scheme != origin.scheme || self.origin.port != origin.port {
            return false;
        }
        match (&self.origin.host, &origin.host) {
            (Host::Name(domain), Host::Name(name)) if self.is_wildcard => name
                .strip_suffix(domain.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty() && !label.contains('.')),
            (own, other) => !self.is_wildcard && own == other,
        }
    }

    /// The host. `None` if the pattern has a star.
    pub fn host(&self) -> Option<&Host> {
        (!self.is_wildcard).then_some(&self.origin.host)
    }

    /// True if the pattern has a star.
    pub fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.origin.scheme
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.origin.port
    }
}

impl From<Origin> for OriginPattern {
    fn from(origin: Origin) -> Self {
        Self { origin, is_wildcard: false }
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_wildcard { "*." } else { "" };
        write!(f, "{}://{star}{}", self.origin.scheme.as_str(), self.origin.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(authority: &str) -> String {
        Origin::parse(Scheme::Https, authority).map_or_else(|error| error.to_string(), |origin| origin.to_string())
    }

    #[test]
    fn equal_spellings_are_equal_and_ambiguous_ones_are_refused() {
        for (same, as_written) in [
            ("api.example", "https://api.example"),
            ("API.example.", "https://api.example"),
            ("api.example:443", "https://api.example"),
            ("api.example:8443", "https://api.example:8443"),
            ("127.0.0.1", "https://127.0.0.1"),
            ("127.0.0.1.", "https://127.0.0.1"),
            ("[::1]:80", "https://[::1]:80"),
            ("[0:0::0001]", "https://[::1]"),
            ("xn--bcher-kva.example", "https://xn--bcher-kva.example"),
            ("_dmarc.example", "https://_dmarc.example"),
        ] {
            assert_eq!(host(same), as_written);
        }
        for bad in [
            "",
            ".",
            "a..b",
            "a@b",
            "user:pw@b",
            "a b",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "0",
            "127.0.0.01",
            "1.2.3.4.5",
            "a.1",
            "[::1",
            "::1",
            "[::1%eth0]",
            "[::1]x",
            "a:",
            "a:0",
            "a:080",
            "a:65536",
            "a:+1",
            "a%2eb",
            "bücher.example",
            "１２７.0.0.1",
            "a:1:2",
            "-a.example",
            "a-.example",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "*",
        ] {
            assert!(Origin::parse(Scheme::Https, bad).is_err(), "{bad:?}");
        }
        assert!(Origin::parse(Scheme::Http, &"a".repeat(64)).is_err());
        assert!(Origin::parse(Scheme::Http, &["a"; 128].join(".")).is_err());
        assert!(Origin::parse(Scheme::Http, &["a"; 126].join(".")).is_ok());
    }

    #[test]
    fn a_star_stands_for_one_label() {
        let star = OriginPattern::parse("https://*.ex.com").unwrap();
        let is = |text: &str| star.matches(&Origin::parse(Scheme::Https, text).unwrap());
        assert!(is("a.ex.com") && is("A.EX.com.") && is("a.ex.com:443"));
        for other in ["ex.com", "evilex.com", "a.b.ex.com", "a.ex.com:444", "a.ex.com.evil.com"] {
            assert!(!is(other), "{other}");
        }
        assert!(!star.matches(&Origin::parse(Scheme::Http, "a.ex.com:443").unwrap()));
        assert_eq!(star.to_string(), "https://*.ex.com");
    }

    #[test]
    fn errors_of_patterns_contain_the_cure() {
        for (bad, says) in [
            ("api.example", "write \"https://\""),
            ("ftp://a", "neither"),
            ("HTTPS://a", "neither"),
            ("https://a/b", "paths = [\"/b\"]"),
            ("https://a/?x", "paths"),
            ("https://*.com", "top-level"),
            ("https://*", "whole first label"),
            ("https://a.*.com", "whole first label"),
            ("https://*.127.0.0.1", "no sub-domains"),
            ("https://u@a", "user"),
        ] {
            let why = OriginPattern::parse(bad).unwrap_err().to_string();
            assert!(why.contains(says), "{bad}: {why}");
        }
        assert_eq!(OriginPattern::parse("http://LocalHost:80/").unwrap().to_string(), "http://localhost");
    }
}
