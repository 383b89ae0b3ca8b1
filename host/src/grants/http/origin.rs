//! Whom a request is for: scheme, host and port (RFC 6454), read by one strict parser that the decision and the
//! connection share. What two programs could read in two ways is refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZero;

/// The longest host name (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;

/// The longest label of a host name.
const MAX_LABEL: usize = 63;

/// `http` or `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that is meant when none is written.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A host: a name in lower case without a final dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Letters, digits, `-` and `_` in labels; international names as A-labels (`xn--`).
    Name(String),
    /// A literal address.
    Ip(IpAddr),
}

impl Host {
    /// Whether the name means this machine whatever a name server says (RFC 6761, 6.3).
    pub fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Scheme, host and port, as they are compared and as they are connected to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port, the scheme's own where none was written.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl Origin {
    /// Host and port, as a `Host` header has them.
    pub fn authority(&self) -> String {
        match self.port == self.scheme.default_port() {
            true => self.host.to_string(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Reads an authority (RFC 3986, 3.2) of `scheme`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn of(scheme: Scheme, authority: &str) -> Result<Self, &'static str> {
        let (host, port) = split(authority)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => Host::Ip(IpAddr::V6(ipv6(inner.strip_suffix(']').ok_or("\"]\" is missing")?)?)),
            None => name_or_ipv4(host)?,
        };
        let port = port.map_or(Ok(scheme.default_port()), read_port)?;
        Ok(Self { scheme, host, port })
    }
}

fn split(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if authority.contains('@') {
        return Err("a user or a password in it is not allowed");
    }
    let end = match authority.starts_with('[') {
        true => authority.find(']').ok_or("\"]\" is missing")? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at_checked(end).unwrap_or((authority, ""));
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err("something follows the address"),
    }
}

fn read_port(text: &str) -> Result<u16, &'static str> {
    // As programs write it: no sign, no leading zero, not empty.
    if text.starts_with('0') || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("the port is not a number from 1 to 65535");
    }
    let port: NonZero<u16> = text.parse().map_err(|_| "the port is not a number from 1 to 65535")?;
    Ok(port.get())
}

fn ipv6(text: &str) -> Result<Ipv6Addr, &'static str> {
    // No zone: an address of one network interface is none of another machine.
    text.parse().map_err(|_| "the IPv6 address is not one (RFC 4291), or has a zone")
}

fn name_or_ipv4(text: &str) -> Result<Host, &'static str> {
    // One final dot means the same name (RFC 3986, 3.2.2).
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        return Err("the host is missing");
    }
    if text.len() > MAX_NAME {
        return Err("the host name has more than 253 characters");
    }
    for label in text.split('.') {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if label.is_empty() {
            return Err("a part of the host name is empty");
        }
        if label.len() > MAX_LABEL {
            return Err("a part of the host name has more than 63 characters");
        }
        if !label.bytes().all(fits) {
            return Err(
                "the host name has other characters than letters, digits, \"-\", \"_\" and \".\"; write an international name with \"xn--\"",
            );
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("a part of the host name begins or ends with \"-\"");
        }
    }
    // What ends in a number is an address for every resolver (WHATWG URL, 3.5), and in more spellings than one: only the
    // usual one is read.
    let last = text.rsplit('.').next().unwrap_or(text);
    let is_hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_number =
        last.bytes().all(|b| b.is_ascii_digit()) || is_hex.is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    match (is_number, text.parse::<Ipv4Addr>()) {
        (true, Ok(address)) => Ok(Host::Ip(IpAddr::V4(address))),
        (true, Err(_)) => Err("the IPv4 address is not written as four decimal numbers"),
        (false, _) => Ok(Host::Name(text.to_ascii_lowercase())),
    }
}

/// The origins that a grant is for: one, or the sub-domains of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    origin: Origin,
    /// `https://*.example.com`: `origin` is what follows the star.
    is_wildcard: bool,
}

impl Pattern {
    /// Reads `https://api.example.com`, `http://127.0.0.1:8080`, `https://*.example.com`.
    ///
    /// # Errors
    /// Says what is wrong with it, and the cure.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err("its scheme is neither \"https\" nor \"http\"".to_owned()),
            None => return Err("it has no scheme; write \"https://\" before it".to_owned()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if let Some(at) = rest.find(['/', '?', '#']) {
            let (authority, tail) = rest.split_at(at);
            return Err(format!(
                "it has more than scheme, host and port; write origin = \"{}://{authority}\" and paths = [\"{}\"]",
                scheme.as_str(),
                tail.split(['?', '#']).next().filter(|path| !path.is_empty()).unwrap_or("/**")
            ));
        }
        let (is_wildcard, authority) = match rest.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, rest),
        };
        if authority.contains('*') {
            return Err("a star stands for whole labels at its beginning: \"https://*.example.com\"".to_owned());
        }
        let origin = Origin::of(scheme, authority)?;
        match &origin.host {
            Host::Name(name) if is_wildcard && !name.contains('.') => {
                return Err(
                    "it stands for every name below a top-level domain; name a domain: \"https://*.example.com\""
                        .to_owned(),
                );
            }
            Host::Ip(_) if is_wildcard => return Err("an address has no sub-domains".to_owned()),
            _ => {}
        }
        Ok(Self { origin, is_wildcard })
    }

    /// Whether a request to `origin` is meant: the same scheme, host and port, or, with a star, exactly one label more (as
    /// certificates read it, RFC 9525, 6.3).
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

    /// The host that the operator named, where it is exactly one.
    pub fn host(&self) -> Option<&Host> {
        (!self.is_wildcard).then_some(&self.origin.host)
    }

    /// Whether it stands for many hosts.
    pub fn is_wide(&self) -> bool {
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

impl From<Origin> for Pattern {
    fn from(origin: Origin) -> Self {
        Self { origin, is_wildcard: false }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_wildcard { "*." } else { "" };
        write!(f, "{}://{star}{}", self.origin.scheme.as_str(), self.origin.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(authority: &str) -> String {
        Origin::of(Scheme::Https, authority).map_or_else(str::to_owned, |origin| origin.to_string())
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
            assert!(Origin::of(Scheme::Https, bad).is_err(), "{bad:?}");
        }
        assert!(Origin::of(Scheme::Http, &"a".repeat(64)).is_err());
        assert!(Origin::of(Scheme::Http, &["a"; 128].join(".")).is_err());
        assert!(Origin::of(Scheme::Http, &["a"; 126].join(".")).is_ok());
    }

    #[test]
    fn a_star_stands_for_one_label() {
        let star = Pattern::parse("https://*.ex.com").unwrap();
        let is = |text: &str| star.matches(&Origin::of(Scheme::Https, text).unwrap());
        assert!(is("a.ex.com") && is("A.EX.com.") && is("a.ex.com:443"));
        for other in ["ex.com", "evilex.com", "a.b.ex.com", "a.ex.com:444", "a.ex.com.evil.com"] {
            assert!(!is(other), "{other}");
        }
        assert!(!star.matches(&Origin::of(Scheme::Http, "a.ex.com:443").unwrap()));
        assert_eq!(star.to_string(), "https://*.ex.com");
    }

    #[test]
    fn patterns_that_are_none_say_what_to_write() {
        for (bad, says) in [
            ("api.example", "write \"https://\""),
            ("ftp://a", "neither"),
            ("HTTPS://a", "neither"),
            ("https://a/b", "paths = [\"/b\"]"),
            ("https://a/?x", "paths"),
            ("https://*.com", "top-level"),
            ("https://*", "whole labels"),
            ("https://a.*.com", "whole labels"),
            ("https://*.127.0.0.1", "no sub-domains"),
            ("https://u@a", "user"),
        ] {
            let why = Pattern::parse(bad).unwrap_err();
            assert!(why.contains(says), "{bad}: {why}");
        }
        assert_eq!(Pattern::parse("http://LocalHost:80/").unwrap().to_string(), "http://localhost");
    }
}
