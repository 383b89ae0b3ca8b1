//! Checks the head of each HTTP request: Host, Origin, path and revision. Derives the principal. Both the fast path and
//! rmcp take a [`CheckedHead`], so no request reaches them [unchecked](HostNames::check). New rules about heads belong
//! here.
//!
//! These checks stop DNS rebinding. A web page can send requests to this machine; through a DNS name that points here,
//! it could also read the answers. So the Host must be a name of this server with its port, and an Origin must be this
//! server's. Both are compared exactly. Headers of proxies (`X-Forwarded-Host`, `Forwarded`) are ignored.

use std::net::SocketAddr;

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Response, StatusCode, header};
use rmcp::model::{ErrorData, ProtocolVersion};

use super::names::{PATH, REVISION, SESSION};
use super::reply::{refuse_with, text as plain_text};
use crate::mcp::identity;
use crate::model::{Guard, text};
use crate::policy::{Evidence, Principal, authenticate};

/// The revision of a request without the revision header.
const DEFAULT_REVISION: &str = "2025-03-26";

/// Most characters of a header that an error shows.
const SHOWN_LENGTH: usize = 100;

/// The values of `Host` that name this server.
pub(super) struct HostNames(Vec<String>);

/// The head of a request that passed all checks. Only [`HostNames::check`] makes one.
pub(super) struct CheckedHead {
    parts: Parts,
    principal: Principal,
}

impl CheckedHead {
    /// The head.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The principal of the request.
    pub(super) fn principal(&self) -> Principal {
        self.principal
    }

    /// The head, by value.
    pub(super) fn into_parts(self) -> Parts {
        self.parts
    }
}

impl HostNames {
    /// The names of a server that listens on `address`.
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut names = vec![address.to_string(), format!("localhost:{}", address.port())];
        if address.port() == 80 {
            // RFC 9110, section 4.2.1: clients may omit port 80.
            names.extend([address.to_string().trim_end_matches(":80").to_owned(), "localhost".to_owned()]);
        }
        Self(names)
    }

    /// Checks a head.
    ///
    /// # Errors
    /// The response that refuses the request.
    #[expect(clippy::result_large_err, reason = "a refusal is a whole response; it is rare")]
    pub(super) fn check(&self, parts: Parts) -> Result<CheckedHead, Response<Body>> {
        if Guard::Origin.is_on() {
            self.check_host(&parts)
                .and_then(|()| self.check_origin(&parts.headers))
                .map_err(|(status, why)| plain_text(status, &why))?;
        }
        if parts.uri.path() != PATH {
            return Err(plain_text(StatusCode::NOT_FOUND, &format!("there is nothing here; MCP is at {PATH}\n")));
        }
        check_revision(&parts.headers)?;
        Ok(CheckedHead { parts, principal: authenticate(Evidence::Loopback) })
    }

    /// Checks that the Host header, and the target if it has a host, name this server.
    fn check_host(&self, parts: &Parts) -> Result<(), (StatusCode, String)> {
        let Some(host) = single_value(&parts.headers, &header::HOST) else {
            let count = parts.headers.get_all(header::HOST).iter().count();
            let why = format!("expected exactly one Host header, {}, but the request has {count}\n", self.expected(""));
            return Err((StatusCode::BAD_REQUEST, why));
        };
        if !self.contains(host) {
            let why = format!(
                "the Host \"{}\" is no name of this server; expected {}\n",
                text::excerpt(&String::from_utf8_lossy(host), SHOWN_LENGTH),
                self.expected("")
            );
            return Err((StatusCode::FORBIDDEN, why));
        }
        // RFC 9112, section 3.2.2: an absolute-form target, which clients send to proxies. Its host must equal the Host
        // header.
        let Some(target) = parts.uri.authority() else { return Ok(()) };
        if parts.uri.scheme_str() != Some("http") || !target.as_str().as_bytes().eq_ignore_ascii_case(host) {
            let why = format!(
                "the target \"{}\" does not match the Host header; expected the target {PATH}\n",
                text::excerpt(&parts.uri.to_string(), SHOWN_LENGTH)
            );
            return Err((StatusCode::BAD_REQUEST, why));
        }
        Ok(())
    }

    /// Checks that the request has no Origin, or the origin of this server.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let own = |origin: &[u8]| {
            origin.strip_prefix(b"http://").is_some_and(|name| self.0.iter().any(|own| own.as_bytes() == name))
        };
        if single_value(headers, &header::ORIGIN).is_some_and(own) {
            return Ok(());
        }
        let all = headers.get_all(header::ORIGIN).iter();
        let all = all
            .map(|origin| format!("\"{}\"", text::excerpt(&String::from_utf8_lossy(origin.as_bytes()), SHOWN_LENGTH)));
        let why = format!(
            "the Origin {} is no page of this server; expected none, or {}\n",
            all.take(4).collect::<Vec<_>>().join(", "),
            self.expected("http://")
        );
        Err((StatusCode::FORBIDDEN, why))
    }

    /// True if `host` names this server. Host names ignore case.
    fn contains(&self, host: &[u8]) -> bool {
        self.0.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host))
    }

    fn expected(&self, scheme: &str) -> String {
        self.0.iter().map(|own| format!("\"{scheme}{own}\"")).collect::<Vec<_>>().join(" or ")
    }
}

/// Refuses a revision that rmcp supports and belljar does not. rmcp refuses unknown revisions, with the id of the
/// request.
///
/// In a session, the value 2025-03-26 is accepted. The session has a negotiated revision, and some clients send the
/// value that an absent header means (2025-11-25, "Protocol Version Header").
#[expect(clippy::result_large_err, reason = "a refusal is a whole response; it is rare")]
fn check_revision(headers: &HeaderMap) -> Result<(), Response<Body>> {
    let Some(given) =
        headers.get(&REVISION).filter(|given| *given != DEFAULT_REVISION || !headers.contains_key(&SESSION))
    else {
        return Ok(());
    };
    let own = identity::revisions();
    let is = |revision: &&ProtocolVersion| revision.as_str().as_bytes() == given.as_bytes();
    match ProtocolVersion::KNOWN_VERSIONS.iter().find(is) {
        Some(known) if !own.contains(known) => Err(refuse_with(
            StatusCode::BAD_REQUEST,
            ErrorData::unsupported_protocol_version(known.clone(), &own),
            None,
        )),
        _ => Ok(()),
    }
}

/// The value of a header that occurs exactly once.
pub(super) fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut all = headers.get_all(name).into_iter();
    all.next().filter(|_| all.next().is_none()).map(|value| value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status that refuses a request with these headers, or 200 if it passes.
    fn judged(port: u16, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut head = http::Request::post(target);
        for (name, value) in headers {
            head = head.header(*name, *value);
        }
        let (parts, ()) = head.body(()).unwrap().into_parts();
        let own = HostNames::new(SocketAddr::from(([127, 0, 0, 1], port)));
        own.check(parts).map_or_else(|refused| refused.status().as_u16(), |_| 200)
    }

    #[test]
    fn a_host_is_a_name_of_this_server_with_its_port() {
        for own in ["127.0.0.1:8877", "localhost:8877", "LocalHost:8877"] {
            assert_eq!(judged(8877, PATH, &[("Host", own)]), 200, "{own}");
            assert_eq!(judged(8877, &format!("http://{own}{PATH}"), &[("Host", own)]), 200, "{own}");
            assert_eq!(judged(8877, PATH, &[("Host", own), ("X-Forwarded-Host", "evil.example")]), 200);
        }
        for foreign in [
            "",
            "localhost",
            "127.0.0.1",
            "localhost:",
            "localhost:1",
            "localhost:80",
            "127.0.0.1:9999",
            "127.0.0.1:8877.evil.com",
            "127.0.0.1:88770",
            "127.0.0.1:08877",
            "127.0.0.1:+8877",
            "127.0.0.1.:8877",
            "localhost.:8877",
            "evil@127.0.0.1:8877",
            "127.0.0.1:8877@evil",
            "127.0.0.1:8877, evil.example",
            "127.0.0.1:8877/",
            "127.0.0.1:8877#",
            "127.0.0.1:8877 ",
            "127.1:8877",
            "2130706433:8877",
            "0x7f.0.0.1:8877",
            "0.0.0.0:8877",
            "127.0.0.2:8877",
            "[::1]:8877",
            "[::ffff:127.0.0.1]:8877",
            "a.localhost:8877",
            "localhost.evil.example:8877",
            "evil.example:8877",
        ] {
            assert_eq!(judged(8877, PATH, &[("Host", foreign)]), 403, "{foreign}");
            let forwarded = [("Host", foreign), ("X-Forwarded-Host", "127.0.0.1:8877")];
            assert_eq!(judged(8877, PATH, &forwarded), 403, "{foreign}");
        }
        let own = ("Host", "127.0.0.1:8877");
        assert_eq!(judged(8877, PATH, &[]), 400);
        assert_eq!(judged(8877, PATH, &[own, own]), 400);
        assert_eq!(judged(8877, PATH, &[own, ("Host", "evil.example")]), 400);
        for target in [
            "http://evil.example/mcp",
            "http://localhost:8877/mcp",
            "https://127.0.0.1:8877/mcp",
            "http://evil@127.0.0.1:8877/mcp",
            "http://127.0.0.1/mcp",
        ] {
            assert_eq!(judged(8877, target, &[own]), 400, "{target}");
        }
        assert_eq!(judged(8877, "http://evil.example/mcp", &[("Host", "evil.example")]), 403);
        assert_eq!(judged(8877, "/other", &[own]), 404);
        assert_eq!(judged(8877, "/mcp?x=1", &[own]), 200);
    }

    #[test]
    fn port_80_may_be_omitted() {
        for own in ["localhost", "127.0.0.1", "localhost:80", "127.0.0.1:80"] {
            assert_eq!(judged(80, PATH, &[("Host", own)]), 200, "{own}");
            assert_eq!(judged(80, PATH, &[("Host", own), ("Origin", &format!("http://{own}"))]), 200, "{own}");
        }
        let names = HostNames::new("[::1]:80".parse().unwrap()).0;
        assert_eq!(names, ["[::1]:80", "localhost:80", "[::1]", "localhost"]);
    }

    #[test]
    fn an_origin_is_that_of_this_server() {
        let host = ("Host", "127.0.0.1:8877");
        for own in ["http://127.0.0.1:8877", "http://localhost:8877"] {
            assert_eq!(judged(8877, PATH, &[host, ("Origin", own)]), 200, "{own}");
            for second in ["http://evil.example", "null", own] {
                assert_eq!(judged(8877, PATH, &[host, ("Origin", own), ("Origin", second)]), 403, "{second}");
                assert_eq!(judged(8877, PATH, &[host, ("Origin", second), ("Origin", own)]), 403, "{second}");
            }
        }
        for foreign in [
            "",
            "null",
            "NULL",
            "http://127.0.0.1",
            "http://127.0.0.1:1",
            "http://127.0.0.1:8877/",
            "http://127.0.0.1:8877.evil.com",
            "http://evil@127.0.0.1:8877",
            "https://127.0.0.1:8877",
            "HTTP://127.0.0.1:8877",
            "http://LOCALHOST:8877",
            "http://localhost.:8877",
            "http://localhost:8877 http://evil.example",
            "http://localhost:8877, http://evil.example",
            "127.0.0.1:8877",
            "file://",
            "http://evil.example",
        ] {
            assert_eq!(judged(8877, PATH, &[host, ("Origin", foreign)]), 403, "{foreign}");
        }
    }

    #[test]
    fn the_revision_with_batches_is_refused() {
        let host = ("Host", "127.0.0.1:8877");
        let older = ("MCP-Protocol-Version", "2025-03-26");
        assert_eq!(judged(8877, PATH, &[host, older]), 400);
        assert_eq!(judged(8877, PATH, &[host, older, ("Mcp-Session-Id", "x")]), 200, "the session has its revision");
        for spoken in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", "nonsense"] {
            assert_eq!(judged(8877, PATH, &[host, ("MCP-Protocol-Version", spoken)]), 200, "{spoken}");
        }
    }
}
