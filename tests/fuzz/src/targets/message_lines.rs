//! Lines of JSON-RPC from a client: `transport::stdio` checks them before rmcp gets them.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use belljar::transport::stdio::LineTransport;
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::oracle;

/// The messages that the transport passed to rmcp, and its own answers, each in order.
#[derive(Debug, Default, PartialEq)]
struct TransportOutput {
    passed: Vec<Value>,
    answered: Vec<Value>,
}

/// The first byte is the size of the pieces in which the rest arrives. The transport must pass each line on unchanged,
/// answer it once, or drop it if it needs no answer. The outcome of a line must not depend on other lines or on the pieces.
pub(super) fn message(bytes: &[u8]) {
    let Some((pieces, stream)) = bytes.split_first() else { return };
    let together = judge(stream, usize::from(*pieces).max(1));
    let mut apart = TransportOutput::default();
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        let mut alone = judge(line, line.len());
        // A last line without a line break is ignored.
        let (passed, answered) = (alone.passed.len(), alone.answered.len());
        assert!(passed + answered <= usize::from(line.ends_with(b"\n")), "{alone:?}");
        check(line, &alone);
        apart.passed.append(&mut alone.passed);
        apart.answered.append(&mut alone.answered);
    }
    // One exception: nothing answers the requests here, so a second request with the same id is refused.
    let ids: Vec<String> = apart.passed.iter().filter_map(|passed| Some(passed.get("id")?.to_string())).collect();
    if ids.iter().collect::<HashSet<_>>().len() == ids.len() {
        assert_eq!(together, apart);
    }
}

/// Checks the outcome of one line.
fn check(line: &[u8], judged: &TransportOutput) {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let given = serde_json::from_slice::<Value>(line).ok();
    let field = |key: &str| given.as_ref().and_then(|given| given.get(key));
    if let [passed] = judged.passed.as_slice() {
        assert_eq!(passed.get("id"), field("id"), "another id was passed on");
        assert_eq!(passed.get("method"), field("method"), "another method was passed on");
        assert_eq!(field("jsonrpc"), Some(&"2.0".into()));
    }
    if let [answer] = judged.answered.as_slice() {
        let code = answer["error"]["code"].as_i64().unwrap_or_default();
        assert!([-32700, -32600, -32602].contains(&code), "{answer}");
        assert_eq!(code == -32700, given.is_none(), "{answer}");
        oracle::assert_plain(answer["error"]["message"].as_str().unwrap_or("\0"), "an answer");
        // An answer repeats a valid id (a string or an integer). For any other id it has `null`.
        match field("id") {
            Some(id @ Value::String(_)) => assert_eq!(&answer["id"], id),
            Some(id @ Value::Number(number)) if number.is_i64() => assert_eq!(&answer["id"], id),
            _ => assert!(answer["id"].is_null() || Some(&answer["id"]) == field("id"), "{answer}"),
        }
    }
    if judged.passed.is_empty() && judged.answered.is_empty() && line.ends_with(b"\n") {
        let blank = line.iter().all(u8::is_ascii_whitespace);
        assert!(blank || (field("method").is_some() && field("id").is_none()), "a request is not answered");
    }
}

fn judge(stream: &[u8], piece: usize) -> TransportOutput {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().build().expect("a runtime without I/O");
    }
    let output = Output::default();
    let passed = RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let mut lines = LineTransport::new(
                Pieces { rest: stream.to_vec(), piece },
                output.clone(),
                Arc::default(),
                Arc::new(|_| ()),
            );
            let mut passed = Vec::new();
            while let Some(message) = lines.receive().await {
                passed.push(serde_json::to_value(&message).expect("what was read can be written"));
            }
            passed
        })
    });
    let written = output.0.lock().unwrap().clone();
    assert!(written.is_empty() || written.ends_with(b"\n"), "half a line");
    let answered = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answered = answered.map(|line| serde_json::from_slice(line).unwrap_or_else(|why| panic!("no JSON: {why}")));
    TransportOutput { passed, answered: answered.collect() }
}

/// A stream that comes in pieces.
struct Pieces {
    rest: Vec<u8>,
    piece: usize,
}

impl AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let size = self.piece.min(self.rest.len()).min(into.remaining());
        let piece: Vec<u8> = self.rest.drain(..size).collect();
        into.put_slice(&piece);
        Poll::Ready(Ok(()))
    }
}

/// A stream that keeps the written bytes for the test.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
