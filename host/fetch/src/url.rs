//! The few URLs that this program follows: a scheme, a host, a port, and a path with a query. Everything unusual is refused.

use std::fmt;
use std::net::IpAddr;

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// True for HTTPS.
    pub(crate) secure: bool,
    /// A name in small letters, or an IP address without brackets.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

/// An absolute URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Where it leads.
    pub(crate) origin: Origin,
    /// The path and the query, from the first `/`.
    pub(crate) path: String,
}

/// The longest URL. Registries sign the URLs of blobs with more than a thousand letters.
const LONGEST: usize = 8192;

impl Origin {
    /// An origin from `host` or `host:port`. `None` if it is malformed. Without a port, the port is the scheme's.
    pub(crate) fn parse(secure: bool, authority: &str) -> Option<Self> {
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                let IpAddr::V6(address) = host.parse().ok()? else { return None };
                (address.to_string(), if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
            }
            None => {
                let (host, port) = match authority.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (authority, None),
                };
                (host_name(host)?, port)
            }
        };
        let port = match port {
            None => {
                if secure {
                    443
                } else {
                    80
                }
            }
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port != 0)?
            }
            Some(_) => return None,
        };
        Some(Self { secure, host, port })
    }

    /// The address, if the host is one.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// True if the host is this machine by its name or a loopback address.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.ip().is_some_and(|ip| ip.to_canonical().is_loopback())
    }

    /// The host, with its port if that is not the scheme's.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.secure { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}

impl Url {
    /// Parses an absolute URL without a fragment.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let path = match path.strip_prefix('?') {
            Some(query) => format!("/?{query}"),
            None if path.is_empty() => "/".to_owned(),
            None => path.to_owned(),
        };
        (text.len() <= LONGEST && is_path(&path))
            .then(|| Some(Self { origin: Origin::parse(secure, authority)?, path }))?
    }

    /// The URL that a `Location` of this URL's answer names: absolute, or a path on the same origin.
    pub(crate) fn join(&self, location: &str) -> Option<Self> {
        if location.starts_with('/') && !location.starts_with("//") {
            let fits = location.len() <= LONGEST && is_path(location);
            return fits.then(|| Self { origin: self.origin.clone(), path: location.to_owned() });
        }
        Self::parse(location)
    }

    /// The URL of what lies beside this one: with `ending` behind its path.
    pub(crate) fn beside(&self, ending: &str) -> Self {
        let (path, query) =
            self.path.split_once('?').map_or((self.path.as_str(), None), |(path, query)| (path, Some(query)));
        let path = query.map_or_else(|| format!("{path}{ending}"), |query| format!("{path}{ending}?{query}"));
        Self { path, ..self.clone() }
    }

    /// The URL without its query, which may hold a signature that gives access.
    pub(crate) fn shown(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{}{path}", self.origin)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

/// A DNS name or an IPv4 address, in small letters.
fn host_name(host: &str) -> Option<String> {
    let host = host.to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return None;
    }
    // Spellings of addresses that only some programs read, such as "127.1" and "0x7f.1", are no names either.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|first: char| first.is_ascii_digit())
        && (last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x"));
    (!is_number || host.parse::<IpAddr>().is_ok()).then_some(host)
}

/// True if these are characters of a path and a query (RFC 3986), without a fragment.
fn is_path(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_urls_are_read() {
        for (text, shown) in [
            ("https://ghcr.io", "https://ghcr.io/"),
            ("https://GHCR.io:443/v2/?a=b", "https://ghcr.io/v2/?a=b"),
            ("https://a.example:8443/x%20y", "https://a.example:8443/x%20y"),
            ("https://a.example?x=1", "https://a.example/?x=1"),
            ("http://127.0.0.1:5000/", "http://127.0.0.1:5000/"),
            ("https://[2001:db8::1]:5000/v2/", "https://[2001:db8::1]:5000/v2/"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), shown, "{text}");
        }
        let url = Url::parse("https://a.example/x?secret=1").unwrap();
        assert_eq!(url.shown(), "https://a.example/x");
        assert_eq!(url.beside(".z").to_string(), "https://a.example/x.z?secret=1");
        assert_eq!(url.join("/y?z").unwrap().to_string(), "https://a.example/y?z");
        assert_eq!(url.join("https://b.example/").unwrap().origin.host, "b.example");
    }

    #[test]
    fn unusual_urls_are_refused() {
        for text in [
            "",
            "ghcr.io",
            "ftp://a.example/",
            "file:///etc/passwd",
            "https://",
            "https:///x",
            "https://a.example/#x",
            "https://user@a.example/",
            "https://user:pass@a.example/",
            "https://a.example:0/",
            "https://a.example:99999/",
            "https://a.example:+1/",
            "https://a..example/",
            "https://a.example/ x",
            "https://a.example\\x",
            "https://é.example/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://127.0.0.1.:1/",
            "https://[::1/",
            "https://[127.0.0.1]/",
            "https://a.example/\u{7f}",
            "https://a.example/\r\nx: y",
        ] {
            assert!(Url::parse(text).is_none(), "{text:?}");
        }
        assert!(Url::parse("https://a.example/").unwrap().join("//b.example/").is_none());
        assert!(Url::parse("https://a.example/").unwrap().join("other").is_none());
    }
}
