//! Reads the body of a request, with a cap on its size and its time.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::model::ErrorCode;

use super::reply::{refuse, text};
use crate::model::bounds::MAX_MESSAGE;

/// Reads a body within `time`.
///
/// # Errors
/// The response to a body that is too long, too slow or incomplete.
pub(super) async fn read(body: Incoming, time: Duration) -> Result<Bytes, Response<Body>> {
    match tokio::time::timeout(time, Limited::new(body, MAX_MESSAGE.get()).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let why = format!("the message is too long; at most {} bytes are allowed", MAX_MESSAGE.get());
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::INVALID_REQUEST, why, None))
        }
        Ok(Err(_)) => Err(text(StatusCode::BAD_REQUEST, "the body ended early\n")),
        Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the body took too long\n")),
    }
}
