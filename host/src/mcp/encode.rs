//! Encodes messages. A client waits for an answer to each request, so encoding never fails. An answer that cannot be
//! encoded becomes an error; an error that cannot be encoded becomes a fixed message.

use std::io::{Error, ErrorKind, Result, Write};
use std::sync::Arc;

use rmcp::model::{ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage};

use super::{bodies, fault};
use crate::limits::memory_budget::{MemoryBudget, Reservation};
use crate::model::Body;

/// A message whose contents have more bytes counts in the budget while it is encoded.
const BUDGET_FROM: usize = 256 << 10;

/// Initial capacity for a message without its bodies. Most messages fit.
const ENVELOPE_CAPACITY: usize = 768;

/// The answer if an error cannot be encoded.
const FALLBACK: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}"#;

/// The error message for request `id`, without a line break. `None`: the id of the request is unknown, and is `null`.
pub fn refusal(id: Option<RequestId>, error: ErrorData) -> Vec<u8> {
    serde_json::to_vec(&JsonRpcError::new(id, error)).unwrap_or_else(|why| {
        tracing::error!("an error cannot be written: {why}");
        FALLBACK.as_bytes().to_vec()
    })
}

/// Encodes `answer` to request `id`, without a line break, and writes each of `bodies` in place of its placeholder.
/// `bytes` is the size of the contents without escapes, or 0.
///
/// A large message reserves its memory in `budget`. If the budget is spent, the answer is a busy error: escapes can
/// make a text six times as long.
pub(super) fn answer(
    answer: &ServerJsonRpcMessage,
    id: &RequestId,
    bytes: usize,
    bodies: Vec<Body>,
    budget: &Arc<MemoryBudget>,
) -> Vec<u8> {
    let mut out =
        BudgetedBuffer { out: Vec::new(), reservation: (bytes > BUDGET_FROM).then(|| budget.reserve(bytes as u64)) };
    match write(&mut out, answer, bytes, bodies) {
        Ok(()) => out.out,
        Err(why) => {
            let error = match (why, &out.reservation) {
                (EncodeError::NoMemory, Some(reservation)) => fault::busy(&reservation.explain()),
                (why, _) => fault::internal(format!("an answer cannot be written: {why}")),
            };
            refusal(Some(id.clone()), error)
        }
    }
}

/// The reason why an answer cannot be encoded.
#[derive(Debug, thiserror::Error)]
enum EncodeError {
    #[error("the memory budget is spent")]
    NoMemory,
    #[error("serde_json failed: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a body has no placeholder in it")]
    NoPlaceholder,
}

impl From<Error> for EncodeError {
    fn from(_: Error) -> Self {
        Self::NoMemory
    }
}

fn write(
    out: &mut BudgetedBuffer,
    answer: &ServerJsonRpcMessage,
    bytes: usize,
    bodies: Vec<Body>,
) -> std::result::Result<(), EncodeError> {
    let mut envelope = Vec::with_capacity(ENVELOPE_CAPACITY);
    serde_json::to_writer(&mut envelope, answer)?;
    if bodies.is_empty() {
        out.out = envelope;
        return Ok(());
    }
    out.reservation.iter_mut().for_each(|reservation| reservation.add(envelope.len() as u64));
    out.reserve(envelope.len() + bytes + bytes / 16)?;
    let mut rest = envelope.as_slice();
    // Each body is dropped as soon as it is written.
    for body in bodies {
        let (before, after) = bodies::split_at_placeholder(rest).ok_or(EncodeError::NoPlaceholder)?;
        out.write_all(before)?;
        bodies::write(out, &body)?;
        rest = after;
    }
    Ok(out.write_all(rest)?)
}

/// A buffer that reserves its memory in the budget before it grows, if `reservation` is present.
struct BudgetedBuffer {
    out: Vec<u8>,
    reservation: Option<Reservation>,
}

impl BudgetedBuffer {
    /// Makes room for `bytes` more.
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        if let Some(reservation) = &mut self.reservation
            && !reservation.try_add(bytes as u64)
        {
            return Err(Error::from(ErrorKind::OutOfMemory));
        }
        self.out.reserve_exact(bytes);
        Ok(())
    }
}

impl Write for BudgetedBuffer {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        if self.out.capacity() - self.out.len() < bytes.len() {
            // The capacity doubles, so that a growing message is copied only a few times.
            self.reserve(self.out.capacity().max(bytes.len()))?;
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ReadResourceResult, ResourceContents, ServerResult};
    use serde_json::Value;

    use super::super::bodies::defer;
    use super::*;

    /// Encodes a message with this text, and checks that rmcp would encode it in the same way.
    fn encoded(text: &str, budget: &Arc<MemoryBudget>) -> Value {
        let message = |text: String| {
            let result = ReadResourceResult::new(vec![ResourceContents::text(text, "belljar://m/x")]);
            ServerJsonRpcMessage::response(ServerResult::ReadResourceResult(result), RequestId::Number(1))
        };
        let mut deferred = Vec::new();
        let with_placeholders = message(defer(Body::Text(text.to_owned()), &mut deferred));
        let encoded = answer(&with_placeholders, &RequestId::Number(1), text.len(), deferred, budget);
        let encoded: Value = serde_json::from_slice(&encoded).unwrap();
        let whole = serde_json::to_value(message(text.to_owned())).unwrap();
        assert!(encoded == whole || encoded["error"]["data"]["kind"] == "busy");
        encoded
    }

    #[test]
    fn a_large_answer_grows_only_within_the_budget() {
        let budget = MemoryBudget::new(5 << 20);
        let is_given = |text: &str| encoded(text, &budget).get("result").is_some();
        assert!(is_given(&"x".repeat(1 << 20)));
        assert!(!is_given(&"\u{1}".repeat(1 << 20)), "escapes make it six times as long");
        assert!(!is_given(&"x".repeat(4 << 20)), "memory has it twice for a moment");
        let all = budget.reserve(5 << 20);
        assert!(is_given(&"\u{1}".repeat(1 << 10)), "a small answer needs no budget");
        let busy = encoded(&"x".repeat(1 << 20), &budget);
        assert!(busy["error"]["message"].as_str().unwrap().contains("of 5MiB"), "{busy}");
        drop(all);
        assert!(is_given(&"é".repeat(1 << 20)), "the budget has all its bytes again");
    }

    #[test]
    fn deferred_bodies_are_encoded_where_rmcp_would_put_them() {
        let budget = MemoryBudget::new(1 << 30);
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let text: String = ('\u{0}'..='\u{17f}').cycle().take(5000).collect();
        for lengths in [&[0, 1, 2, 3][..], &[100_000], &[99_999, 7, 99_998, 255, 256], &[3072, 3073, 6144]] {
            let result = |stand: &mut dyn FnMut(Body) -> String| {
                let mut contents = Vec::new();
                for length in lengths {
                    contents
                        .push(ResourceContents::blob(stand(Body::Blob(bytes[..*length].to_vec())), "belljar://m/\"x"));
                    let text: String = text.chars().take(*length).collect();
                    contents.push(ResourceContents::text(stand(Body::Text(text)), "belljar://m/\"text\":\"\""));
                }
                let result = ServerResult::ReadResourceResult(ReadResourceResult::new(contents));
                ServerJsonRpcMessage::response(result, RequestId::Number(1))
            };
            let whole = serde_json::to_vec(&result(&mut bodies::encode)).unwrap();
            let mut deferred = Vec::new();
            let with_placeholders = result(&mut |body| defer(body, &mut deferred));
            assert_eq!(deferred.is_empty(), lengths.iter().all(|length| *length < 256));
            assert!(
                answer(&with_placeholders, &RequestId::Number(1), whole.len(), deferred, &budget) == whole,
                "{lengths:?}"
            );
        }
    }

    #[test]
    fn a_body_without_a_placeholder_is_an_error() {
        let mut deferred = Vec::new();
        defer(Body::Blob(vec![0; 1 << 20]), &mut deferred);
        let message = ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(1));
        let encoded = answer(&message, &RequestId::Number(1), 1 << 20, deferred, &MemoryBudget::new(1 << 30));
        let encoded: Value = serde_json::from_slice(&encoded).unwrap();
        assert_eq!((&encoded["id"], &encoded["error"]["data"]["kind"]), (&1.into(), &"internal".into()));
    }
}
