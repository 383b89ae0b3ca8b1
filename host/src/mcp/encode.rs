//! Encodes messages. A client waits for an answer to each request, so encoding never fails. An answer that cannot be
//! encoded becomes an error; an error that cannot be encoded becomes a fixed message.

use rmcp::model::{ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage};

use super::fault;

/// The initial capacity for a message, in bytes.
const CAPACITY: usize = 768;

/// The answer if an error cannot be encoded.
const FALLBACK: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}"#;

/// The error message for request `id`, without a line break. `None`: the id of the request is unknown, and is `null`.
pub fn refusal(id: Option<RequestId>, error: ErrorData) -> Vec<u8> {
    serde_json::to_vec(&JsonRpcError::new(id, error)).unwrap_or_else(|why| {
        tracing::error!("an error cannot be written: {why}");
        FALLBACK.as_bytes().to_vec()
    })
}

/// Encodes `answer` to request `id`, without a line break.
pub(super) fn answer(answer: &ServerJsonRpcMessage, id: &RequestId) -> Vec<u8> {
    let mut message = Vec::with_capacity(CAPACITY);
    match serde_json::to_writer(&mut message, answer) {
        Ok(()) => message,
        Err(why) => refusal(Some(id.clone()), fault::internal(format!("an answer cannot be written: {why}"))),
    }
}
