//! The address of the client. Behind a proxy it is in `X-Forwarded-For`; `Forwarded` (RFC 7239) is ignored.
//!
//! The address slows down failed authentications and stands in the record. Nothing else depends on it.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

/// The header to which each proxy appends the address of its client.
static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Most proxies between the client and belljar.
const MAX_HOPS: usize = 32;

/// The networks of the proxy. `None`: belljar is not behind a proxy.
pub(super) struct ProxyNetworks(Option<Vec<IpNet>>);

/// A connection that does not come from the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this server answers its proxy only, and {0} is no address of the proxy; use the public URL")]
pub(super) struct NotTheProxy(pub(super) IpAddr);

impl ProxyNetworks {
    pub(super) fn new(networks: Option<Vec<IpNet>>) -> Self {
        Self(networks)
    }

    /// True if belljar is behind a proxy.
    pub(super) fn has_proxy(&self) -> bool {
        self.0.is_some()
    }

    /// The address of the client that sent a request over a connection from `peer`.
    ///
    /// Only proxies of the operator are believed. From the last entry of the header on, each entry was appended by the
    /// hop after it. So the first entry that is no trusted proxy is the client, and all entries before it are claims of
    /// the client.
    ///
    /// # Errors
    /// The connection does not come from the proxy.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Result<IpAddr, NotTheProxy> {
        let peer = peer.to_canonical();
        let Some(networks) = &self.0 else { return Ok(peer) };
        let is_trusted = |address: IpAddr| networks.iter().any(|network| network.contains(&address));
        if !is_trusted(peer) {
            return Err(NotTheProxy(peer));
        }
        let all: Vec<&str> = headers.get_all(&FORWARDED_FOR).iter().map(|value| value.to_str().unwrap_or("")).collect();
        let mut client = peer;
        for entry in all.iter().flat_map(|value| value.split(',')).rev().take(MAX_HOPS) {
            // An entry that is no address, such as "unknown": the hop after it is the last one known.
            let Some(address) = address(entry.trim()) else { break };
            client = address;
            if !is_trusted(address) {
                break;
            }
        }
        Ok(client)
    }
}

/// The address in an entry, which may have a port.
fn address(entry: &str) -> Option<IpAddr> {
    let with_port = || entry.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    entry.parse().ok().or_else(with_port).or_else(in_brackets).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client of a request with these headers, over a connection from `peer`.
    fn client(peer: &str, forwarded: &[&str]) -> Result<String, NotTheProxy> {
        let networks = ["10.0.0.0/8", "127.0.0.1/32", "fd00::/8"].map(|network| network.parse().unwrap());
        let headers = forwarded.iter().map(|value| (FORWARDED_FOR.clone(), value.parse().unwrap())).collect();
        let client = ProxyNetworks::new(Some(networks.to_vec())).client(peer.parse().unwrap(), &headers);
        client.map(|address| address.to_string())
    }

    #[test]
    fn the_client_is_the_last_address_that_no_trusted_proxy_has() {
        for (forwarded, expected) in [
            (&[][..], "10.0.0.1"),
            (&["203.0.113.7"], "203.0.113.7"),
            (&["203.0.113.7, 10.0.0.9"], "203.0.113.7"),
            (&["203.0.113.7", "10.0.0.9"], "203.0.113.7"),
            (&["1.1.1.1, 203.0.113.7"], "203.0.113.7"),
            (&["1.1.1.1", "203.0.113.7, 10.0.0.9"], "203.0.113.7"),
            (&["10.9.9.9"], "10.9.9.9"),
            (&["203.0.113.7:4711"], "203.0.113.7"),
            (&["[2001:db8::7]:4711"], "2001:db8::7"),
            (&["[2001:db8::7]"], "2001:db8::7"),
            (&["2001:db8::7"], "2001:db8::7"),
            (&["::ffff:203.0.113.7"], "203.0.113.7"),
            (&["unknown"], "10.0.0.1"),
            (&["203.0.113.7, unknown, 10.0.0.9"], "10.0.0.9"),
            (&[""], "10.0.0.1"),
            (&["127.0.0.1"], "127.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", forwarded).as_deref(), Ok(expected), "{forwarded:?}");
        }
        assert_eq!(client("::ffff:10.0.0.1", &["203.0.113.7"]).as_deref(), Ok("203.0.113.7"), "a dual-stack socket");
    }

    #[test]
    fn only_the_proxy_may_connect() {
        for stranger in ["203.0.113.7", "127.0.0.2", "::1", "fe80::1"] {
            let refused = client(stranger, &["10.0.0.1"]);
            assert_eq!(refused, Err(NotTheProxy(stranger.parse().unwrap())), "{stranger}");
        }
        let headers = HeaderMap::from_iter([(FORWARDED_FOR.clone(), "10.0.0.1".parse().unwrap())]);
        let direct = ProxyNetworks::new(None).client("203.0.113.7".parse().unwrap(), &headers);
        assert_eq!(direct, Ok("203.0.113.7".parse().unwrap()), "without a proxy the header counts for nothing");
    }

    #[test]
    fn a_long_header_costs_little() {
        let long = vec!["10.0.0.9"; 10_000].join(",");
        assert_eq!(client("10.0.0.1", &[&long]).as_deref(), Ok("10.0.0.9"));
    }
}
