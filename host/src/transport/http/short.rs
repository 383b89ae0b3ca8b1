//! Which HTTP requests go the short way: those with the head of an ordinary client of 2026-07-28, and with nothing in it
//! that would have to be weighed.
//!
//! Everything that rmcp looks at in a head has one value here that is let through: this server's own name as Host and no
//! Origin, JSON in and both kinds of answers out, one revision, the method and the name that the body has, no session. What
//! differs in anything goes to rmcp, which refuses it or knows why not. So nothing is refused here, and nothing is let
//! through that rmcp would refuse; a test sends every kind of head both ways and compares the answers.

use std::net::SocketAddr;

use http::request::Parts;
use http::{HeaderMap, header};

use super::session;
use crate::mcp::plain::{Plain, REVISION};

/// What an ordinary client says that it takes.
const ACCEPTED: [&[u8]; 2] = [b"application/json, text/event-stream", b"text/event-stream, application/json"];

/// The names of this server.
pub(super) struct Own([String; 2]);

impl Own {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self([address.to_string(), format!("localhost:{}", address.port())])
    }

    /// The request with this head and body, if it goes the short way.
    pub(super) fn plain(&self, head: &Parts, body: &[u8]) -> Option<Plain> {
        let headers = &head.headers;
        let is_ordinary = only(headers, header::HOST.as_str()).is_some_and(|host| self.is(host))
            && !headers.contains_key(header::ORIGIN)
            && only(headers, header::CONTENT_TYPE.as_str()) == Some(b"application/json")
            && only(headers, header::ACCEPT.as_str()).is_some_and(|accepted| ACCEPTED.contains(&accepted))
            && only(headers, "mcp-protocol-version") == Some(REVISION.as_str().as_bytes())
            && !headers.contains_key(session::HEADER);
        let plain = Plain::read(is_ordinary.then_some(body)?).filter(Plain::is_whole)?;
        let (method, name) = plain.title();
        let is_named = name.is_none_or(|name| is_literal(name) && only(headers, "mcp-name") == Some(name.as_bytes()));
        (is_named && only(headers, "mcp-method") == Some(method.as_bytes())).then_some(plain)
    }

    fn is(&self, host: &[u8]) -> bool {
        self.0.iter().any(|own| own.as_bytes() == host)
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let mut all = headers.get_all(name).into_iter();
    all.next().filter(|_| all.next().is_none()).map(|value| value.as_bytes())
}

/// Whether a name stands in a header as it is.
fn is_literal(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.starts_with("=?")
}

#[cfg(test)]
mod tests;
