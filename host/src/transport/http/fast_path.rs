//! Selects the HTTP requests of the fast path: those with the head of an ordinary client.
//!
//! [`head`](super::head) has checked the request before. Of the other headers that rmcp reads, each must have one exact
//! value:
//!
//! * JSON as content type, and both kinds of answers accepted;
//! * without a session: the revision 2026-07-28, and the method and the name (URI) that the body has, too;
//! * in a session: the revision of the session, or none.
//!
//! Of a session, rmcp also gets each request that may need a stream: one that wants reports of progress, or may ask the client.
//!
//! Any other request goes to rmcp, which serves or refuses it. So this module refuses no request, and accepts none
//! that rmcp would refuse. A test sends each kind of head both ways and compares the answers.

use http::{HeaderMap, StatusCode, header};
use rmcp::model::{ErrorCode, ProtocolVersion};

use super::head::CheckedHead;
use super::names::{self, single_value};
use crate::mcp::direct::{DirectRequest, MessageSource};
use crate::mcp::request_meta::MetaCache;
use crate::mcp::{Handler, SessionClient};

/// The values of `Accept` that the fast path takes.
const ACCEPTED: [&[u8]; 2] = [b"application/json, text/event-stream", b"text/event-stream, application/json"];

/// The request without a session that has this head and body, if the fast path takes it. `cache` is that of its connection.
pub(super) fn stateless_request(head: &CheckedHead, body: &[u8], cache: &MetaCache) -> Option<DirectRequest> {
    let headers = &head.parts().headers;
    let is_ordinary = has_ordinary_types(headers)
        && single_value(headers, &names::REVISION) == Some(ProtocolVersion::V_2026_07_28.as_str().as_bytes())
        && !headers.contains_key(&names::SESSION);
    let source = MessageSource { cache, session: None, is_stream: false };
    let request = DirectRequest::parse(is_ordinary.then_some(body)?, source)?;
    let has_method = single_value(headers, &names::METHOD) == Some(request.request().method().as_bytes());
    let has_name = request.name().is_none_or(|name| is_named(headers, name));
    (has_method && has_name).then_some(request)
}

/// The request of the session of `client` that has this head and body, if the fast path takes it.
pub(super) fn session_request(
    head: &CheckedHead,
    body: &[u8],
    client: &SessionClient,
    handler: &Handler,
) -> Option<DirectRequest> {
    let headers = &head.parts().headers;
    let is_revision = |version: &ProtocolVersion| match headers.contains_key(&names::REVISION) {
        true => single_value(headers, &names::REVISION) == Some(version.as_str().as_bytes()),
        false => true,
    };
    let peer = client.peer();
    let is_ordinary = has_ordinary_types(headers)
        && single_value(headers, &names::SESSION).is_some()
        && peer.peer_info().is_some_and(|opened| is_revision(&opened.protocol_version));
    let source = MessageSource { cache: client.meta_cache(), session: Some(peer), is_stream: false };
    let request = DirectRequest::parse(is_ordinary.then_some(body)?, source)?;
    (request.is_of_session() && !request.may_ask(handler, peer)).then_some(request)
}

/// True if both headers of content types are those of an ordinary client.
fn has_ordinary_types(headers: &HeaderMap) -> bool {
    single_value(headers, &header::CONTENT_TYPE) == Some(b"application/json")
        && single_value(headers, &header::ACCEPT).is_some_and(|accepted| ACCEPTED.contains(&accepted))
}

/// True if the header `Mcp-Name` repeats `name`, and no character of it needs an encoding in a header.
fn is_named(headers: &HeaderMap, name: &str) -> bool {
    let is_literal = name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.starts_with("=?");
    is_literal && single_value(headers, &names::NAME) == Some(name.as_bytes())
}

/// The HTTP status of an answer without a session; `error` is its code if it is an error. The same as rmcp's. rmcp's other
/// statuses answer requests that belljar has refused earlier.
pub(super) fn status(error: Option<ErrorCode>) -> StatusCode {
    match error {
        Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY) => StatusCode::BAD_REQUEST,
        Some(ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests;
