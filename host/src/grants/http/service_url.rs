//! URLs of services that belljar itself asks: key sets, metadata and introspection of token issuers.

use std::fmt;
use std::str::FromStr;

use super::origin::{Origin, Scheme};
use crate::grants::network::address;
use crate::grants::network::host::{Host, HostError};

/// The longest URL, in bytes.
const MAX_BYTES: usize = 2048;

/// The URL of a service: `https`, or `http` to this machine. Without user name and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUrl {
    /// Scheme, host and port.
    pub origin: Origin,
    /// The path, not normalised. Empty, or it begins with `/`.
    pub path: String,
    /// The query, without `?`.
    pub query: Option<String>,
}

/// Why a text is not the URL of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceUrlError {
    /// The text has no scheme, or another one.
    #[error("expected a URL that begins with \"https://\"")]
    Scheme,
    /// `http` to another machine.
    #[error(
        "it is not encrypted; write \"https://\" (\"http://\" is for this machine only, such as http://127.0.0.1:3000)"
    )]
    Unencrypted,
    /// The URL has a fragment.
    #[error("it has a fragment; remove \"#\" and what follows")]
    Fragment,
    /// A character that URLs do not have.
    #[error("it has a character that no URL has (RFC 3986); percent-encode it")]
    Character,
    /// The URL is too long.
    #[error("it has more than {MAX_BYTES} bytes")]
    Long,
    /// The authority is malformed.
    #[error(transparent)]
    Authority(#[from] HostError),
}

impl FromStr for ServiceUrl {
    type Err = ServiceUrlError;

    fn from_str(text: &str) -> Result<Self, ServiceUrlError> {
        if text.len() > MAX_BYTES {
            return Err(ServiceUrlError::Long);
        }
        let (scheme, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            _ => return Err(ServiceUrlError::Scheme),
        };
        if rest.contains('#') {
            return Err(ServiceUrlError::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let origin = Origin::parse(scheme, authority)?;
        let is_of_url = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&b);
        if !tail.bytes().all(is_of_url) {
            return Err(ServiceUrlError::Character);
        }
        if scheme == Scheme::Http && !origin.host.is_this_machine() {
            return Err(ServiceUrlError::Unencrypted);
        }
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (tail, None),
        };
        Ok(Self { origin, path: path.to_owned(), query })
    }
}

impl ServiceUrl {
    /// Path and query, as in the first line of a request.
    pub(super) fn path_and_query(&self) -> String {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        self.query.as_ref().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }

    /// True if the URL names an address that is not public, or this machine. Only the operator may write such a URL.
    pub fn names_private_host(&self) -> bool {
        match &self.origin.host {
            Host::Ip(ip) => !address::is_public(*ip),
            host => host.is_localhost(),
        }
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)?;
        self.query.iter().try_for_each(|query| write!(f, "?{query}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_encrypted_or_stay_on_this_machine() {
        for fine in [
            "https://login.example",
            "https://login.example/",
            "https://login.example:8443/a/b?x=%20y",
            "http://127.0.0.1:3000/jwks",
            "http://localhost/jwks",
            "http://[::1]:3000",
            "https://10.0.0.1/jwks",
        ] {
            assert_eq!(fine.parse::<ServiceUrl>().unwrap().to_string(), fine);
        }
        for (wrong, error) in [
            ("login.example", ServiceUrlError::Scheme),
            ("ftp://login.example", ServiceUrlError::Scheme),
            ("HTTPS://login.example", ServiceUrlError::Scheme),
            ("http://login.example", ServiceUrlError::Unencrypted),
            ("http://10.0.0.1", ServiceUrlError::Unencrypted),
            ("https://a.example/#b", ServiceUrlError::Fragment),
            ("https://a.example/\r\nx", ServiceUrlError::Character),
            ("https://a.example/ b", ServiceUrlError::Character),
            ("https://a.example/ü", ServiceUrlError::Character),
            ("https://a:b@c.example/", ServiceUrlError::Authority(HostError::Credentials)),
            ("https://", ServiceUrlError::Authority(HostError::NoHost)),
        ] {
            assert_eq!(wrong.parse::<ServiceUrl>(), Err(error), "{wrong}");
        }
        assert_eq!(format!("https://a/{}", "x".repeat(2048)).parse::<ServiceUrl>(), Err(ServiceUrlError::Long));
    }

    #[test]
    fn private_hosts_are_recognised() {
        for (url, is_private) in [
            ("https://login.example", false),
            ("https://93.184.216.34", false),
            ("https://10.0.0.1", true),
            ("https://[::ffff:10.0.0.1]", true),
            ("https://169.254.169.254", true),
            ("https://localhost", true),
            ("https://a.localhost:8443", true),
        ] {
            assert_eq!(url.parse::<ServiceUrl>().unwrap().names_private_host(), is_private, "{url}");
        }
    }
}
