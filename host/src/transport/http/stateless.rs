//! Selects the HTTP requests of the fast path: those with the head of an ordinary client of 2026-07-28.
//!
//! [`head`](super::head) has checked the request before. Of the other headers that rmcp reads, each must have one exact
//! value:
//!
//! * JSON as content type, and both kinds of answers accepted;
//! * the revision 2026-07-28;
//! * the method and the name (URI) that the body has, too;
//! * no session.
//!
//! Any other request goes to rmcp, which serves or refuses it. So this module refuses no request, and accepts none
//! that rmcp would refuse. A test sends each kind of head both ways and compares the answers.

use http::{HeaderMap, StatusCode, header};
use rmcp::model::{ErrorCode, ProtocolVersion};

use super::head::CheckedHead;
use super::names::{self, single_value};
use crate::mcp::direct::DirectRequest;
use crate::mcp::request_meta::MetaCache;

/// The values of `Accept` that the fast path takes.
const ACCEPTED: [&[u8]; 2] = [b"application/json, text/event-stream", b"text/event-stream, application/json"];

/// The request with this head and body, if the fast path takes it. `cache` is that of its connection.
pub(super) fn request(head: &CheckedHead, body: &[u8], cache: &MetaCache) -> Option<DirectRequest> {
    let headers = &head.parts().headers;
    let is_ordinary = single_value(headers, &header::CONTENT_TYPE) == Some(b"application/json")
        && single_value(headers, &header::ACCEPT).is_some_and(|accepted| ACCEPTED.contains(&accepted))
        && single_value(headers, &names::REVISION) == Some(ProtocolVersion::V_2026_07_28.as_str().as_bytes())
        && !headers.contains_key(&names::SESSION);
    let request = DirectRequest::parse(is_ordinary.then_some(body)?, cache, None)?;
    let has_method = single_value(headers, &names::METHOD) == Some(request.request().method().as_bytes());
    let has_name = request.name().is_none_or(|name| is_named(headers, name));
    (has_method && has_name).then_some(request)
}

/// True if the header `Mcp-Name` repeats `name`, and no character of it needs an encoding in a header.
fn is_named(headers: &HeaderMap, name: &str) -> bool {
    let is_literal = name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.starts_with("=?");
    is_literal && single_value(headers, &names::NAME) == Some(name.as_bytes())
}

/// The HTTP status of an answer; `error` is its code if it is an error. The same as rmcp's for this revision. rmcp's
/// other statuses answer requests that belljar has refused earlier.
pub(super) fn status(error: Option<ErrorCode>) -> StatusCode {
    match error {
        Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY) => StatusCode::BAD_REQUEST,
        Some(ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests;
