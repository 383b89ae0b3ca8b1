//! Responses that belljar makes itself: JSON-RPC messages, and plain text if there is no message to answer.

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
    json(status, Body::from(encode::refusal(id, error)))
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

/// A response with a line of plain text.
pub(super) fn text(status: StatusCode, line: &str) -> Response<Body> {
    let mut response = with_status(status, Body::from(line.to_owned()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn with_status(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
