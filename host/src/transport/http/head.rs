//! What is decided of an HTTP request by its head, once, before the ways part: whose name it comes to, from which page, to
//! which path, in which revision. Neither the fast path nor rmcp gets a request that was not [judged](Own::judge), because
//! both take a [`Judged`]; a rule about heads belongs here.
//!
//! A page that a browser shows can send requests to this machine, and by a name of its own that points here it could read
//! the answers. So the Host must be a name of this server, with the port that it listens on, and an Origin must be a page of
//! this server: letter by letter, with nothing before, between or behind. What proxies add (`X-Forwarded-Host`, `Forwarded`)
//! says nothing here.

use std::net::SocketAddr;

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode, header};
use rmcp::model::{ErrorData, ProtocolVersion};

use super::{PATH, plain, refuse_with, session};
use crate::mcp::identity;
use crate::model::{Guard, text};

/// The header that names a revision.
pub(super) const REVISION: &str = "mcp-protocol-version";

/// The revision that is meant where none is named.
const UNSAID: &str = "2025-03-26";

/// Characters of a header that an error shows.
const SHOWN: usize = 100;

/// The names of this server, as `Host` says them.
pub(super) struct Own(Vec<String>);

/// The head of a request that passed. Only [`Own::judge`] makes one.
pub(super) struct Judged(Parts);

impl Judged {
    /// The head.
    pub(super) fn parts(&self) -> &Parts {
        &self.0
    }

    /// The head, for whoever takes it over.
    pub(super) fn into_parts(self) -> Parts {
        self.0
    }
}

impl Own {
    /// The names of a server that listens on `address`.
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut names = vec![address.to_string(), format!("localhost:{}", address.port())];
        if address.port() == 80 {
            // RFC 9110 4.2.1: the port that is left out.
            names.extend([address.to_string().trim_end_matches(":80").to_owned(), "localhost".to_owned()]);
        }
        Self(names)
    }

    /// Decides about a head.
    ///
    /// # Errors
    /// The answer to a request that is not served.
    #[expect(clippy::result_large_err, reason = "a refusal is a whole response; it is rare")]
    pub(super) fn judge(&self, parts: Parts) -> Result<Judged, Response<Body>> {
        if Guard::Origin.is_on() {
            self.host(&parts)
                .and_then(|()| self.origin(&parts.headers))
                .map_err(|(status, why)| plain(status, &why))?;
        }
        if parts.uri.path() != PATH {
            return Err(plain(StatusCode::NOT_FOUND, &format!("there is nothing here; MCP is at {PATH}\n")));
        }
        check_revision(&parts.headers)?;
        Ok(Judged(parts))
    }

    /// Checks that a request comes to a name of this server.
    fn host(&self, parts: &Parts) -> Result<(), (StatusCode, String)> {
        let Some(host) = only(&parts.headers, header::HOST.as_str()) else {
            let count = parts.headers.get_all(header::HOST).iter().count();
            let why = format!("expected one Host header, {}, and there are {count}\n", self.expected(""));
            return Err((StatusCode::BAD_REQUEST, why));
        };
        if !self.is(host) {
            let why = format!(
                "the Host \"{}\" is no name of this server; expected {}\n",
                text::excerpt(&String::from_utf8_lossy(host), SHOWN),
                self.expected("")
            );
            return Err((StatusCode::FORBIDDEN, why));
        }
        // RFC 9112 3.2.2: a target with a name of its own, which proxies are sent. Both names must be the same.
        let Some(target) = parts.uri.authority() else { return Ok(()) };
        if parts.uri.scheme_str() != Some("http") || !target.as_str().as_bytes().eq_ignore_ascii_case(host) {
            let why = format!(
                "the target \"{}\" is not what the Host header says; expected {PATH} alone\n",
                text::excerpt(&parts.uri.to_string(), SHOWN)
            );
            return Err((StatusCode::BAD_REQUEST, why));
        }
        Ok(())
    }

    /// Checks that a request comes from no page, or from one of this server.
    fn origin(&self, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let own = |origin: &[u8]| {
            origin.strip_prefix(b"http://").is_some_and(|name| self.0.iter().any(|own| own.as_bytes() == name))
        };
        if only(headers, header::ORIGIN.as_str()).is_some_and(own) {
            return Ok(());
        }
        let all = headers.get_all(header::ORIGIN).iter();
        let all =
            all.map(|origin| format!("\"{}\"", text::excerpt(&String::from_utf8_lossy(origin.as_bytes()), SHOWN)));
        let why = format!(
            "the Origin {} is no page of this server; expected none, or {}\n",
            all.take(4).collect::<Vec<_>>().join(", "),
            self.expected("http://")
        );
        Err((StatusCode::FORBIDDEN, why))
    }

    /// Names of hosts are the same in either case.
    fn is(&self, host: &[u8]) -> bool {
        self.0.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host))
    }

    fn expected(&self, scheme: &str) -> String {
        self.0.iter().map(|own| format!("\"{scheme}{own}\"")).collect::<Vec<_>>().join(" or ")
    }
}

/// Refuses a revision that rmcp speaks and belljar does not. What nobody speaks is refused by rmcp, with the id of the
/// request. In a session, whose revision was agreed on, 2025-03-26 says what no header says (2025-11-25, "Protocol Version
/// Header"), and clients send it so.
#[expect(clippy::result_large_err, reason = "a refusal is a whole response; it is rare")]
fn check_revision(headers: &HeaderMap) -> Result<(), Response<Body>> {
    let Some(given) = headers.get(REVISION).filter(|given| *given != UNSAID || !headers.contains_key(session::HEADER))
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

/// The value of a header that is there once.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let mut all = headers.get_all(name).into_iter();
    all.next().filter(|_| all.next().is_none()).map(|value| value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is answered to a request with these headers, or 200 if it passes.
    fn judged(port: u16, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut head = http::Request::post(target);
        for (name, value) in headers {
            head = head.header(*name, *value);
        }
        let (parts, ()) = head.body(()).unwrap().into_parts();
        let own = Own::new(SocketAddr::from(([127, 0, 0, 1], port)));
        own.judge(parts).map_or_else(|refused| refused.status().as_u16(), |_| 200)
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
    fn the_port_of_http_may_be_left_out_where_it_is_listened_on() {
        for own in ["localhost", "127.0.0.1", "localhost:80", "127.0.0.1:80"] {
            assert_eq!(judged(80, PATH, &[("Host", own)]), 200, "{own}");
            assert_eq!(judged(80, PATH, &[("Host", own), ("Origin", &format!("http://{own}"))]), 200, "{own}");
        }
        let names = Own::new("[::1]:80".parse().unwrap()).0;
        assert_eq!(names, ["[::1]:80", "localhost:80", "[::1]", "localhost"]);
    }

    #[test]
    fn an_origin_is_a_page_of_this_server() {
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
    fn a_revision_whose_servers_take_batches_is_not_spoken() {
        let host = ("Host", "127.0.0.1:8877");
        let older = ("MCP-Protocol-Version", "2025-03-26");
        assert_eq!(judged(8877, PATH, &[host, older]), 400);
        assert_eq!(judged(8877, PATH, &[host, older, ("Mcp-Session-Id", "x")]), 200, "its revision was agreed on");
        for spoken in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", "nonsense"] {
            assert_eq!(judged(8877, PATH, &[host, ("MCP-Protocol-Version", spoken)]), 200, "{spoken}");
        }
    }
}
