//! Checks the headers Host and Origin of each request.
//!
//! These checks stop DNS rebinding. A web page can send requests to this machine; through a DNS name that points here,
//! it could also read the answers. So the Host must be a name of this server, and an Origin must be this server's or
//! that of a page which the operator names. Both are compared exactly. Headers of proxies (`X-Forwarded-Host`,
//! `Forwarded`) are ignored.

use std::net::SocketAddr;

use http::request::Parts;
use http::{HeaderMap, StatusCode, header};

use super::names::{PATH, single_value};
use crate::config::serve::ServeConfig;
use crate::grants::http::origin::Scheme;
use crate::model::{Guard, text};

/// Most characters of a header that an error shows.
const SHOWN_LENGTH: usize = 100;

/// The status and the reason with which a request is refused.
pub(super) type RefusedHead = (StatusCode, String);

/// The values of `Host` and `Origin` that name this server.
pub(super) struct HostNames {
    /// The scheme of the listener.
    scheme: &'static str,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl HostNames {
    /// The names of a server that listens on `address`.
    pub(super) fn new(address: SocketAddr, serve: &ServeConfig) -> Self {
        let scheme = if serve.tls.is_some() { Scheme::Https } else { Scheme::Http };
        let mut hosts = Vec::new();
        // Elsewhere the address is no name: "0.0.0.0" stands for every address.
        if address.ip().is_loopback() {
            hosts.extend([address.to_string(), format!("localhost:{}", address.port())]);
            if address.port() == scheme.default_port() {
                // RFC 9110, section 4.2: clients may omit the default port.
                let port = format!(":{}", address.port());
                hosts.extend([address.to_string().trim_end_matches(&port).to_owned(), "localhost".to_owned()]);
            }
        }
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("{}://{host}", scheme.as_str())).collect();
        if let Some(url) = &serve.url {
            hosts.extend([url.authority(), format!("{}:{}", url.host(), url.port())]);
            origins.push(url.origin());
        }
        for served in &serve.hosts {
            let host = &served.host;
            match served.port {
                None => {
                    hosts.push(host.to_string());
                    hosts.extend([80, 443, address.port()].map(|port| format!("{host}:{port}")));
                }
                Some(port) => {
                    hosts.push(format!("{host}:{port}"));
                    hosts.extend((port == 80 || port == 443).then(|| host.to_string()));
                }
            }
        }
        let mut known = std::collections::HashSet::new();
        hosts.retain(|host| known.insert(host.clone()));
        Self { scheme: scheme.as_str(), hosts, origins }
    }

    /// Checks the Host, and the Origin unless the request is from one of the operator's pages, or for everyone.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub(super) fn check(&self, head: &Parts, has_any_origin: bool) -> Result<(), RefusedHead> {
        if !Guard::Origin.is_on() {
            return Ok(());
        }
        self.check_host(head)?;
        if has_any_origin { Ok(()) } else { self.check_origin(&head.headers) }
    }

    /// Checks that the Host header, and the target if it has a host, name this server.
    fn check_host(&self, parts: &Parts) -> Result<(), RefusedHead> {
        let Some(host) = single_value(&parts.headers, &header::HOST) else {
            let count = parts.headers.get_all(header::HOST).iter().count();
            let why = format!("expected exactly one Host header, {}, but the request has {count}\n", self.expected());
            return Err((StatusCode::BAD_REQUEST, why));
        };
        if !self.contains(host) {
            let why = format!(
                "the Host \"{}\" is no name of this server; expected {}\n",
                text::excerpt(&String::from_utf8_lossy(host), SHOWN_LENGTH),
                self.expected()
            );
            return Err((StatusCode::FORBIDDEN, why));
        }
        // RFC 9112, section 3.2.2: an absolute-form target, which clients send to proxies. Its host must equal the Host
        // header.
        let Some(target) = parts.uri.authority() else { return Ok(()) };
        let is_same = target.as_str().as_bytes().eq_ignore_ascii_case(host);
        if parts.uri.scheme_str() != Some(self.scheme) || !is_same {
            let why = format!(
                "the target \"{}\" does not match the Host header; expected the target {PATH}\n",
                text::excerpt(&parts.uri.to_string(), SHOWN_LENGTH)
            );
            return Err((StatusCode::BAD_REQUEST, why));
        }
        Ok(())
    }

    /// Checks that the request has no Origin, or the origin of this server.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), RefusedHead> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let own = |origin: &[u8]| self.origins.iter().any(|own| own.as_bytes() == origin);
        if single_value(headers, &header::ORIGIN).is_some_and(own) {
            return Ok(());
        }
        let all = headers.get_all(header::ORIGIN).iter();
        let all = all
            .map(|origin| format!("\"{}\"", text::excerpt(&String::from_utf8_lossy(origin.as_bytes()), SHOWN_LENGTH)));
        let own: Vec<_> = self.origins.iter().map(|own| format!(", or \"{own}\"")).collect();
        let why = format!(
            "the Origin {} is no page of this server; expected none{}\n",
            all.take(4).collect::<Vec<_>>().join(", "),
            own.concat()
        );
        Err((StatusCode::FORBIDDEN, why))
    }

    /// True if `host` names this server. Host names ignore case.
    fn contains(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host))
    }

    fn expected(&self) -> String {
        self.hosts.iter().map(|own| format!("\"{own}\"")).collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests;
