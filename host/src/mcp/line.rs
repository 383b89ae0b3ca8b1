//! The answer to a read as the bytes that are sent, written once: bodies go from where the sandbox put them into their
//! place in the message, text escaped and blobs in base64 on the way. Everything around them is rmcp's own types, written
//! by the JSON library, with a hole where a body belongs.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{RequestId, ResourceContents, ServerJsonRpcMessage, ServerResult};
use serde::Serialize;

use super::escape::{escape, escaped_len};
use super::wire;
use crate::admission::budget::Budget;
use crate::catalog::Mount;
use crate::model::{Body, Reading};

/// Where the contents of a result belong.
const CONTENTS: &[u8] = b"\"contents\":[]";

/// Where text belongs.
const TEXT: &[u8] = b"\"text\":\"\"";

/// Where a blob belongs.
const BLOB: &[u8] = b"\"blob\":\"\"";

/// Bytes of a blob that are encoded together, and what they become: they stay near.
const PART: usize = 3 << 10;

/// Bytes of contents from which on an answer is counted in the budget, and measured before it is written.
const LARGE: usize = 256 << 10;

/// Why an answer was not written.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// There is no memory for it now, in words for the caller.
    NoMemory(String),
    /// It cannot be written at all; for the log.
    Internal(String),
}

impl From<String> for Unwritten {
    fn from(why: String) -> Self {
        Self::Internal(why)
    }
}

/// The whole message that answers request `id` with `reading`, without a line break. `is_modern`: as [`wire::reading`].
/// What is large is counted in `budget` before it is written: up to six times what the provider gave, where every letter is
/// escaped.
///
/// # Errors
/// Says why it is not written.
pub(super) fn reading(
    id: RequestId,
    reading: Reading,
    mount: &Mount,
    is_modern: bool,
    budget: &Arc<Budget>,
) -> Result<Vec<u8>, Unwritten> {
    let given = bytes(&reading);
    let (mut result, contents) = wire::apart(reading, mount, is_modern);
    if !is_modern {
        // As rmcp does: older peers do not know it.
        result.result_type = None;
    }
    let around = json(&ServerJsonRpcMessage::response(ServerResult::ReadResourceResult(result), id))?;
    let (head, tail) = apart(&around, CONTENTS)?;
    let is_large = given > LARGE;
    let size = around.len() + contents.iter().map(|(_, body)| room(body, is_large)).sum::<usize>();
    // Until it is dropped: the contents and the answer are there at once.
    let mut held = is_large.then(|| budget.hold(given as u64));
    if let Some(held) = &mut held
        && !held.try_add(size as u64)
    {
        return Err(Unwritten::NoMemory(held.explain()));
    }
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(head);
    for (at, (given, body)) in contents.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        one(&mut out, &given, body)?;
    }
    out.extend_from_slice(tail);
    Ok(out)
}

/// Bytes of all bodies of a reading.
pub(super) fn bytes(reading: &Reading) -> usize {
    reading.contents.iter().map(|contents| contents.body.len()).sum()
}

/// Appends one piece of contents.
fn one(out: &mut Vec<u8>, given: &ResourceContents, body: Body) -> Result<(), String> {
    let around = json(given)?;
    let hole = if matches!(body, Body::Text(_)) { TEXT } else { BLOB };
    let (head, tail) = apart(&around, hole)?;
    out.extend_from_slice(head);
    match &body {
        Body::Text(text) => escape(out, text),
        Body::Blob(bytes) => encode(out, bytes)?,
    }
    out.extend_from_slice(tail);
    Ok(())
}

/// Appends `bytes` in base64.
fn encode(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), String> {
    let mut encoded = [0; PART / 3 * 4];
    for part in bytes.chunks(PART) {
        let len =
            STANDARD.encode_slice(part, &mut encoded).map_err(|why| format!("a blob cannot be encoded: {why}"))?;
        out.extend_from_slice(encoded.get(..len).ok_or("a part of a blob has more letters than there is room for")?);
    }
    Ok(())
}

/// Bytes that a piece of contents takes. `exactly`: the escapes of text are counted, not guessed.
fn room(body: &Body, exactly: bool) -> usize {
    const AROUND: usize = 512;
    AROUND
        + match body {
            Body::Text(text) if exactly => escaped_len(text),
            Body::Text(text) => text.len() + text.len() / 16,
            Body::Blob(bytes) => bytes.len().div_ceil(3) * 4,
        }
}

fn json(of: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(of).map_err(|why| format!("an answer cannot be written: {why}"))
}

/// What comes before and after that which belongs into the first `hole`. Nothing that comes before it in `json` can look
/// like one: a quote within a string has a backslash before it.
///
/// # Errors
/// When there is none.
fn apart<'a>(json: &'a [u8], hole: &[u8]) -> Result<(&'a [u8], &'a [u8]), String> {
    // Into the brackets, or between the quotes.
    let at = memchr::memmem::find(json, hole).ok_or("an answer has no place for its contents")? + hole.len() - 1;
    Ok(json.split_at(at))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use crate::model::{Contents, Limits, MountName};

    /// What rmcp makes of the same.
    fn by_rmcp(id: RequestId, given: Reading, mount: &Mount, is_modern: bool) -> Value {
        let mut result = ServerResult::ReadResourceResult(wire::reading(given, mount, is_modern));
        if !is_modern {
            result.strip_result_type_for_legacy_peer();
        }
        serde_json::to_value(ServerJsonRpcMessage::response(result, id)).unwrap()
    }

    #[test]
    fn an_answer_is_what_rmcp_would_have_said() {
        let holes = String::from_utf8([CONTENTS, TEXT, BLOB].concat()).unwrap();
        let all: Vec<char> = ('\u{0}'..='\u{17f}').chain(['\u{2028}', '\u{1f600}']).collect();
        let texts = [String::new(), "x".to_owned(), holes.clone(), all.iter().cycle().take(5000).collect()];
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * PART + 1).collect();
        let blobs = [0, 1, 2, 3, PART - 1, PART, PART + 1, bytes.len()].map(|len| bytes[..len].to_vec());
        let bodies: Vec<Body> = texts.into_iter().map(Body::Text).chain(blobs.into_iter().map(Body::Blob)).collect();
        let contents = |body: &Body| {
            let meta = vec![
                ("a".to_owned(), format!("[{{{holes}}}]")),
                (holes.clone(), "null".to_owned()),
                ("\"text\":\"".to_owned(), "1".to_owned()),
            ];
            let reference = format!("belljar://m/{holes}\\\"text\":\"");
            Contents { reference, mime_type: Some("text/plain".to_owned()), body: body.clone(), meta }
        };
        let mount = Mount::plain(MountName::new("m").unwrap(), "belljar://m/", Limits::default());
        let budget = Budget::new(1 << 30);
        for id in [RequestId::Number(-7), RequestId::String(holes.as_str().into()), RequestId::String("\\\"".into())] {
            for is_modern in [true, false] {
                for fresh_for in [None, Some(Duration::from_millis(1500))] {
                    let each = bodies.iter().map(|body| vec![contents(body)]);
                    for contents in each.chain([bodies.iter().map(contents).collect()]) {
                        let given = Reading { contents, fresh_for };
                        let own = reading(id.clone(), given.clone(), &mount, is_modern, &budget).unwrap();
                        let own: Value = serde_json::from_slice(&own).unwrap();
                        assert_eq!(own, by_rmcp(id.clone(), given, &mount, is_modern));
                    }
                }
            }
        }
    }

    #[test]
    fn an_answer_grows_only_into_memory_that_is_there() {
        let mount = Mount::plain(MountName::new("m").unwrap(), "belljar://m/", Limits::default());
        let given = |body: &str| {
            let reference = "belljar://m/x".to_owned();
            let body = Body::Text(body.to_owned());
            Reading { contents: vec![Contents { reference, mime_type: None, body, meta: Vec::new() }], fresh_for: None }
        };
        let budget = Budget::new(5 << 20);
        let say = |body: &str| reading(RequestId::Number(1), given(body), &mount, true, &budget);
        assert!(say(&"x".repeat(1 << 20)).is_ok());
        let why = say(&"\u{1}".repeat(1 << 20)).unwrap_err();
        assert!(matches!(&why, Unwritten::NoMemory(why) if why.contains("of 5MiB")), "{why:?}");
        assert!(say(&"x".repeat(4 << 20)).is_err(), "it is there twice for a moment");
        let all = budget.hold(5 << 20);
        assert!(say(&"\u{1}".repeat(1 << 10)).is_ok(), "a small answer is always there");
        drop(all);
        assert!(say(&"é".repeat(1 << 20)).is_ok(), "everything was given back");
    }
}
