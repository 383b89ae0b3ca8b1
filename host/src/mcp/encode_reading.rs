//! Encodes the answer to a read from the host's model. It has the same bytes as rmcp's types give:
//! without a copy of each body, and without a tree of JSON values for what each answer repeats. `cargo xtask bench --only
//! big` and `cargo xtask instructions` measure the gain.

use std::io::{Error, ErrorKind, Result, Write};
use std::sync::Arc;

use rmcp::model::{CacheScope, RequestId};
use serde::Serialize;

use super::{bodies, convert, encode, fault, identity};
use crate::catalog::Mount;
use crate::limits::memory_budget::{MemoryBudget, Reservation};
use crate::model::meta::{DIGEST, MOUNT};
use crate::model::part::Part;
use crate::model::{Body, Contents, Reading};

/// A message whose contents have more bytes counts in the budget while it is encoded.
const BUDGET_FROM: usize = 256 << 10;

/// Room for what an answer has besides its bodies, in bytes. Most answers fit.
const ENVELOPE_CAPACITY: usize = 768;

/// Encodes the answer to request `id`, without a line break. `scope`: who may cache it; `None` for a client of a session,
/// whose revision has no caching hints. `bytes`: the size of the bodies in the message, without escapes.
///
/// A large message reserves its memory in `budget`. If the budget is spent, the answer is a busy error: escapes can
/// make a text six times as long.
pub(super) fn answer(
    reading: Reading,
    (mount, scope): (&Mount, Option<CacheScope>),
    id: &RequestId,
    bytes: usize,
    budget: &Arc<MemoryBudget>,
) -> Vec<u8> {
    let reservation = (bytes > BUDGET_FROM).then(|| budget.reserve(bytes as u64));
    let mut out = BudgetedBuffer { out: Vec::new(), reservation };
    let room = out.reserve(ENVELOPE_CAPACITY + bytes + bytes / 16);
    match room.and_then(|()| write(&mut out, reading, (mount, scope), id)) {
        Ok(()) => out.out,
        Err(why) => {
            let error = match &out.reservation {
                Some(reservation) if why.kind() == ErrorKind::OutOfMemory => fault::busy(&reservation.explain()),
                _ => fault::internal(format!("an answer cannot be written: {why}")),
            };
            encode::refusal(Some(id.clone()), error)
        }
    }
}

fn write(
    out: &mut BudgetedBuffer,
    mut reading: Reading,
    (mount, scope): (&Mount, Option<CacheScope>),
    id: &RequestId,
) -> Result<()> {
    convert::add_rest_notice(&mut reading);
    out.write_all(br#"{"jsonrpc":"2.0","id":"#)?;
    write_value(out, id)?;
    out.write_all(br#","result":{"#)?;
    if let Some(scope) = scope {
        out.write_all(br#""resultType":"complete","ttlMs":"#)?;
        write_value(out, &convert::fresh_ms(&reading))?;
        out.write_all(br#","cacheScope":"#)?;
        write_value(out, &scope)?;
        out.write_all(b",")?;
    }
    out.write_all(br#""contents":["#)?;
    // Each body is dropped as soon as it is written.
    for (place, contents) in reading.contents.into_iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        write_contents(out, contents, mount, reading.part)?;
    }
    out.write_all(b"]")?;
    if scope.is_some() {
        out.write_all(br#","_meta":"#)?;
        out.write_all(identity::server_meta().as_bytes())?;
    }
    out.write_all(b"}}")
}

fn write_contents(out: &mut BudgetedBuffer, contents: Contents, mount: &Mount, part: Option<Part>) -> Result<()> {
    let Contents { reference, mime_type, body, meta } = contents;
    out.write_all(br#"{"uri":"#)?;
    write_value(out, &reference)?;
    if let Some(mime_type) = mime_type {
        out.write_all(br#","mimeType":"#)?;
        write_value(out, &mime_type)?;
    }
    out.write_all(if matches!(body, Body::Text(_)) { br#","text":""# } else { br#","blob":""# })?;
    bodies::write(out, &body)?;
    drop(body);
    out.write_all(br#"","_meta":"#)?;
    if meta.is_empty() && part.is_none() {
        let name = mount.name.as_str();
        // The characters of a name and of a digest need no escapes.
        write!(out, r#"{{"{MOUNT}":"{name}","{DIGEST}":"{}"}}}}"#, mount.digest)
    } else {
        write_value(out, &convert::contents_meta(meta, mount, part, &reference))?;
        out.write_all(b"}")
    }
}

/// Writes a value as JSON.
fn write_value(out: &mut BudgetedBuffer, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(out, value).map_err(|error| match error.io_error_kind() {
        Some(kind) => Error::from(kind),
        None => Error::other(error),
    })
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
    use std::time::Duration;

    use rmcp::model::{ServerJsonRpcMessage, ServerResult};
    use serde_json::Value;

    use super::super::era::Era;
    use super::*;
    use crate::model::part::{Positions, Range, Unit};
    use crate::model::{Limits, MountName};

    const ID: RequestId = RequestId::Number(1);

    fn mount() -> Mount {
        Mount::plain(MountName::new("m").unwrap(), "belljar://m/", Limits::default())
    }

    fn contents(reference: &str, body: Body) -> Contents {
        Contents { reference: reference.to_owned(), mime_type: Some("text/plain".to_owned()), body, meta: Vec::new() }
    }

    fn reading(contents: Vec<Contents>) -> Reading {
        Reading { contents, ..Reading::default() }
    }

    /// The message that rmcp's types give.
    fn by_rmcp(reading: Reading, (era, scope): (Era, CacheScope), id: &RequestId) -> Vec<u8> {
        let result = convert::reading(reading, &mount(), (era, scope));
        let mut result = ServerResult::ReadResourceResult(result);
        if era == Era::Session {
            result.strip_result_type_for_legacy_peer();
        }
        serde_json::to_vec(&ServerJsonRpcMessage::response(result, id.clone())).unwrap()
    }

    fn check(reading: &Reading, scope: CacheScope, id: &RequestId) {
        let bytes = convert::encoded_len(reading);
        for (era, hints) in [(Era::Stateless, Some(scope)), (Era::Session, None)] {
            let own = answer(reading.clone(), (&mount(), hints), id, bytes, &MemoryBudget::new(1 << 30));
            let expected = by_rmcp(reading.clone(), (era, scope), id);
            assert!(
                own == expected,
                "{}\n{}",
                String::from_utf8_lossy(&own[..own.len().min(900)]),
                String::from_utf8_lossy(&expected[..expected.len().min(900)])
            );
        }
    }

    #[test]
    fn an_answer_has_the_bytes_that_rmcp_gives() {
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let text: String = ('\u{0}'..='\u{17f}').cycle().take(5000).collect();
        for lengths in [&[0, 1, 2, 3][..], &[100_000], &[99_999, 7, 99_998, 255, 256], &[3072, 3073, 6144]] {
            let all = lengths.iter().flat_map(|length| {
                let text: String = text.chars().take(*length).collect();
                let text = contents("belljar://m/\"text\":\"\"", Body::Text(text));
                [contents("belljar://m/\"x", Body::Blob(bytes[..*length].to_vec())), text]
            });
            check(&reading(all.collect()), CacheScope::Private, &ID);
        }
        let one = || contents("belljar://m/x", Body::Text("a \"b\"\n".to_owned()));
        check(&reading(Vec::new()), CacheScope::Public, &RequestId::String("a \"b\"\n".into()));
        let fresh = Reading { fresh_for: Some(Duration::from_millis(1234)), ..reading(vec![one()]) };
        check(&fresh, CacheScope::Public, &RequestId::Number(-7));
        check(&reading(vec![Contents { mime_type: None, ..one() }]), CacheScope::Private, &ID);
        let own = [("a/b", "{ \"x\": [1, 2.50] }"), (DIGEST, "7"), ("a/b", "\"é\""), (MOUNT, "null"), ("c", "no JSON")];
        let meta = own.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        check(&reading(vec![Contents { meta, ..one() }, one()]), CacheScope::Private, &ID);
        let range = Range { unit: Unit::Lines, positions: Positions::Last(4) };
        for (requested, total) in [(None, Some(90)), (None, None), (Some(range), Some(90))] {
            let part = Part { unit: Unit::Lines, start: 5, end: 9, total, more: true, requested };
            check(&Reading { part: Some(part), ..reading(vec![one(), one()]) }, CacheScope::Private, &ID);
        }
    }

    #[test]
    fn a_large_answer_grows_only_within_the_budget() {
        let budget = MemoryBudget::new(5 << 20);
        let encoded = |text: &str| -> Value {
            let reading = reading(vec![contents("belljar://m/x", Body::Text(text.to_owned()))]);
            let bytes = convert::encoded_len(&reading);
            serde_json::from_slice(&answer(reading, (&mount(), Some(CacheScope::Private)), &ID, bytes, &budget))
                .unwrap()
        };
        let is_given = |text: &str| {
            let encoded = encoded(text);
            assert!(encoded["result"]["contents"][0]["text"] == *text || encoded["error"]["data"]["kind"] == "busy");
            encoded.get("result").is_some()
        };
        assert!(is_given(&"x".repeat(1 << 20)));
        assert!(!is_given(&"\u{1}".repeat(1 << 20)), "escapes make it six times as long");
        assert!(!is_given(&"x".repeat(4 << 20)), "memory has it twice for a moment");
        let all = budget.reserve(5 << 20);
        assert!(is_given(&"\u{1}".repeat(1 << 10)), "a small answer needs no budget");
        let busy = encoded(&"x".repeat(1 << 20));
        assert!(busy["error"]["message"].as_str().unwrap().contains("of 5MiB"), "{busy}");
        drop(all);
        assert!(is_given(&"é".repeat(1 << 20)), "the budget has all its bytes again");
    }
}
