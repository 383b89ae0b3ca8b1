//! Which HTTP requests go the short way: those with the head of an ordinary client of 2026-07-28, and with nothing in it
//! that would have to be weighed.
//!
//! Whether a request is served at all was decided before ([`head`](super::head)). Of the rest that rmcp looks at in a head,
//! everything has one value here that is let through: JSON in and both kinds of answers out, one revision, the method and the
//! name that the body has, no session. What differs in anything goes to rmcp, which refuses it or knows why not. So nothing
//! is refused here, and nothing is let through that rmcp would refuse; a test sends every kind of head both ways and compares
//! the answers.

use http::header;

use super::head::{self, Judged, only};
use super::session;
use crate::mcp::plain::{Plain, REVISION};

/// What an ordinary client says that it takes.
const ACCEPTED: [&[u8]; 2] = [b"application/json, text/event-stream", b"text/event-stream, application/json"];

/// The request with this head and body, if it goes the short way.
pub(super) fn plain(head: &Judged, body: &[u8]) -> Option<Plain> {
    let headers = &head.parts().headers;
    let is_ordinary = only(headers, header::CONTENT_TYPE.as_str()) == Some(b"application/json")
        && only(headers, header::ACCEPT.as_str()).is_some_and(|accepted| ACCEPTED.contains(&accepted))
        && only(headers, head::REVISION) == Some(REVISION.as_str().as_bytes())
        && !headers.contains_key(session::HEADER);
    let plain = Plain::read(is_ordinary.then_some(body)?).filter(Plain::is_whole)?;
    let (method, name) = plain.title();
    let is_named = name.is_none_or(|name| is_literal(name) && only(headers, "mcp-name") == Some(name.as_bytes()));
    (is_named && only(headers, "mcp-method") == Some(method.as_bytes())).then_some(plain)
}

/// Whether a name stands in a header as it is.
fn is_literal(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.starts_with("=?")
}

#[cfg(test)]
mod tests;
