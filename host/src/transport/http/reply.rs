//! Responses that belljar makes itself: JSON-RPC messages, and plain text if there is no message to answer.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId};

use crate::mcp::encode;
use crate::transport::message;

/// The response that refuses request `id` with a JSON-RPC code and a reason.
pub(super) fn refuse(status: StatusCode, code: ErrorCode, why: String, id: Option<RequestId>) -> Response<Body> {
    refuse_with(status, ErrorData::new(code, why, None), id)
}

/// The response that refuses request `id` with an error.
pub(super) fn refuse_with(status: StatusCode, error: ErrorData, id: Option<RequestId>) -> Response<Body> {
    let mut response = json(status, Body::from(encode::refusal(id, error.clone())));
    response.extensions_mut().insert(Refusal(error));
    response
}

/// The error of a response that refuses a request, in the extensions of the response, for the record.
#[derive(Clone)]
struct Refusal(ErrorData);

/// Takes the error of a response that refuses a request. `None` for any other response.
pub(super) fn take_refusal(response: &mut Response<Body>) -> Option<ErrorData> {
    let status = response.status();
    let refusal = response.extensions_mut().remove::<Refusal>().map(|Refusal(error)| error);
    let is_refusal = status.is_client_error() || status.is_server_error();
    // rmcp makes such a response too.
    refusal.or_else(|| {
        is_refusal.then(|| ErrorData::new(ErrorCode::INVALID_REQUEST, format!("HTTP status {status}"), None))
    })
}

/// The response to a body that rmcp cannot parse.
pub(super) fn refuse_unparsable(body: &[u8]) -> Response<Body> {
    let Err(error) = serde_json::from_slice::<ClientJsonRpcMessage>(body) else {
        let why = "the message cannot be read".to_owned();
        return refuse(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, why, None);
    };
    match message::explain(body, &error) {
        None => with_status(StatusCode::ACCEPTED, Body::empty()),
        Some((code, why, id)) => refuse(StatusCode::BAD_REQUEST, code, why, id),
    }
}

/// A response with a JSON-RPC message.
pub(super) fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = with_status(status, body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Adds `Retry-After` to the response of a request that can succeed after `pause`.
pub(super) fn add_retry_after(response: &mut Response<Body>, pause: Option<Duration>) {
    if let Some(pause) = pause {
        // Whole seconds (RFC 9110, section 10.2.3), rounded up: the client must not come too early.
        let seconds = pause.as_millis().div_ceil(1000).max(1);
        if let Ok(value) = HeaderValue::try_from(seconds.to_string()) {
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
    }
}

/// Gives the answer to a request that a shutdown refused the status 503: another belljar may answer it (RFC 9110, section
/// 15.6.4). Nothing of the request was done.
pub(super) fn turn_away(response: &mut Response<Body>) {
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
}

/// The response to a request that its client cancelled: a stream of events that has ended.
pub(super) fn ended_stream() -> Response<Body> {
    let mut response = with_status(StatusCode::OK, Body::empty());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// A response with a line of plain text.
pub(super) fn text(status: StatusCode, line: &str) -> Response<Body> {
    let mut response = with_status(status, Body::from(line.to_owned()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if status.is_client_error() || status.is_server_error() {
        let why = line.trim_end().to_owned();
        response.extensions_mut().insert(Refusal(ErrorData::new(ErrorCode::INVALID_REQUEST, why, None)));
    }
    response
}

fn with_status(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_rounded_up_to_seconds() {
        for (ms, seconds) in [(1, "1"), (1000, "1"), (1001, "2"), (86_400_000, "86400")] {
            let mut response = text(StatusCode::OK, "");
            add_retry_after(&mut response, Some(Duration::from_millis(ms)));
            assert_eq!(response.headers()[header::RETRY_AFTER], seconds);
        }
        let mut response = text(StatusCode::OK, "");
        add_retry_after(&mut response, None);
        assert!(response.headers().get(header::RETRY_AFTER).is_none());
    }
}
