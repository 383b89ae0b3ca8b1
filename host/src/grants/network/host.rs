//! A host and a port: one strict parser for every text that names a destination. It refuses ambiguous spellings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZero;

use super::address;

/// The longest host name (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;

/// The longest label of a host name.
const MAX_LABEL: usize = 63;

/// A host: a name in lower case without a final dot, or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Labels of letters, digits, `-` and `_`. International names are A-labels (`xn--`).
    Name(String),
    /// An IP address.
    Ip(IpAddr),
}

impl Host {
    /// True if the name stands for this machine, whatever DNS says (RFC 6761, 6.3).
    pub fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }

    /// True if the host can only be this machine.
    pub fn is_this_machine(&self) -> bool {
        self.is_localhost() || matches!(self, Self::Ip(ip) if address::canonical(*ip).is_loopback())
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

/// Why an authority (RFC 3986, 3.2) is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The authority contains a user name.
    #[error("a user or a password in it is not allowed")]
    Credentials,
    /// The closing bracket is missing.
    #[error("\"]\" is missing")]
    NoBracket,
    /// Something other than a port follows the bracket.
    #[error("something follows the address")]
    Tail,
    /// The port is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// The text in brackets is not an IPv6 address, or has a zone.
    #[error("the IPv6 address is not one (RFC 4291), or has a zone")]
    Ipv6,
    /// The host is missing.
    #[error("the host is missing")]
    NoHost,
    /// The host name is too long.
    #[error("the host name has more than 253 characters")]
    LongName,
    /// A label of the host name is empty.
    #[error("a part of the host name is empty")]
    EmptyLabel,
    /// A label of the host name is too long.
    #[error("a part of the host name has more than 63 characters")]
    LongLabel,
    /// The host name has a forbidden character.
    #[error(
        "the host name has other characters than letters, digits, \"-\", \"_\" and \".\"; write an international name with \"xn--\""
    )]
    Character,
    /// A label begins or ends with a hyphen.
    #[error("a part of the host name begins or ends with \"-\"")]
    Hyphen,
    /// The host ends in a number, but is not an IPv4 address in its usual spelling.
    #[error("the IPv4 address is not written as four decimal numbers")]
    Ipv4,
}

/// Parses a host, with a port if there is one: `db.internal:5432`, `[::1]:80`.
///
/// # Errors
/// The first problem of the text.
pub fn parse_host_and_port(authority: &str) -> Result<(Host, Option<u16>), HostError> {
    let (host, port) = split(authority)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => Host::Ip(IpAddr::V6(ipv6(inner.strip_suffix(']').ok_or(HostError::NoBracket)?)?)),
        None => name_or_ipv4(host)?,
    };
    Ok((host, port.map(read_port).transpose()?))
}

fn split(authority: &str) -> Result<(&str, Option<&str>), HostError> {
    if authority.contains('@') {
        return Err(HostError::Credentials);
    }
    let end = match authority.starts_with('[') {
        true => authority.find(']').ok_or(HostError::NoBracket)? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at_checked(end).unwrap_or((authority, ""));
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(HostError::Tail),
    }
}

fn read_port(text: &str) -> Result<u16, HostError> {
    // The usual spelling only: no sign, no leading zero, not empty.
    if text.starts_with('0') || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(HostError::Port);
    }
    let port: NonZero<u16> = text.parse().map_err(|_| HostError::Port)?;
    Ok(port.get())
}

fn ipv6(text: &str) -> Result<Ipv6Addr, HostError> {
    // The parser refuses zones: an address with a zone belongs to a local network interface.
    text.parse().map_err(|_| HostError::Ipv6)
}

fn name_or_ipv4(text: &str) -> Result<Host, HostError> {
    // A final dot does not change the name (RFC 3986, 3.2.2).
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        return Err(HostError::NoHost);
    }
    if text.len() > MAX_NAME {
        return Err(HostError::LongName);
    }
    for label in text.split('.') {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if label.is_empty() {
            return Err(HostError::EmptyLabel);
        }
        if label.len() > MAX_LABEL {
            return Err(HostError::LongLabel);
        }
        if !label.bytes().all(fits) {
            return Err(HostError::Character);
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Hyphen);
        }
    }
    // Resolvers treat a host that ends in a number as an address (WHATWG URL, 3.5), in several spellings. Accept only
    // the usual one.
    let last = text.rsplit('.').next().unwrap_or(text);
    let is_hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_number =
        last.bytes().all(|b| b.is_ascii_digit()) || is_hex.is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    match (is_number, text.parse::<Ipv4Addr>()) {
        (true, Ok(address)) => Ok(Host::Ip(IpAddr::V4(address))),
        (true, Err(_)) => Err(HostError::Ipv4),
        (false, _) => Ok(Host::Name(text.to_ascii_lowercase())),
    }
}
