//! Tests which requests of sessions the fast path takes, and that rmcp gives the same answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::super::Bounds;
use super::super::super::tests::{Served, session};

/// The revision of the sessions.
const REVISION: &str = "2025-11-25";

/// The headers of an ordinary request of a session, without that of the session.
const ORDINARY: [(&str, &str); 3] = [
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
    ("MCP-Protocol-Version", REVISION),
];

/// A session with a server.
struct Opened {
    served: Served,
    session: String,
}

/// An answer: its status, whether it is a stream of events, and its message.
#[derive(Debug, PartialEq)]
struct Answer {
    status: String,
    is_stream: bool,
    body: String,
}

impl Opened {
    /// Opens a session as a client with these capabilities.
    fn new(fast_path: bool, capabilities: &Value) -> Self {
        Self::with(Bounds { fast_path, ..Bounds::default() }, capabilities)
    }

    fn with(bounds: Bounds, capabilities: &Value) -> Self {
        let served = Served::start(bounds);
        let session = open(&served, capabilities);
        Self { served, session }
    }

    /// Sends a body with these headers. A header `Mcp-Session-Id` is added; `SESSION` in a value stands for the session.
    fn send(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let own: Vec<_> =
            headers.iter().map(|(name, value)| (*name, value.replace("SESSION", &self.session))).collect();
        let mut headers: Vec<_> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("Mcp-Session-Id", &self.session));
        let answer = post(&self.served, &headers, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let is_stream = head.contains("content-type: text/event-stream");
        // The events of a request that ends at once: one is empty, and one has the answer.
        let message = |line: &str| Some(line.strip_prefix("data: ")?.trim().to_owned()).filter(|data| !data.is_empty());
        let body = if is_stream { body.lines().filter_map(message).collect() } else { body.to_owned() };
        Answer { status: head.lines().next().unwrap().to_owned(), is_stream, body }
    }
}

/// Opens a session as a client with these capabilities. Returns its id.
fn open(served: &Served, capabilities: &Value) -> String {
    let client = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": REVISION, "capabilities": capabilities, "clientInfo": client });
    session(&post(served, &ORDINARY[..2], &message("initialize", params).to_string()))
}

/// The response to a request on a new connection.
fn post(served: &Served, headers: &[(&str, &str)], body: &str) -> String {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (address, length) = (served.address, body.len());
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{lines}\r\n{body}"
    );
    served.exchange(request.as_bytes())
}

fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// Messages, and whether the fast path takes them.
fn messages() -> Vec<(Value, bool)> {
    let read = |params: Value| message("resources/read", params);
    let reference = json!({ "type": "ref/resource", "uri": "belljar://none/{x}" });
    let mut without_params = message("resources/list", json!({}));
    without_params.as_object_mut().unwrap().remove("params");
    let own = json!({ "io.modelcontextprotocol/protocolVersion": REVISION });
    let complete = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    vec![
        (read(json!({ "uri": "belljar://none/x" })), true),
        (read(json!({ "uri": "belljar://none/x", "_meta": {} })), true),
        (read(json!({ "uri": "belljar://none/x", "_meta": { "progressToken": 1 } })), true),
        (message("resources/list", json!({})), true),
        (without_params, true),
        (message("resources/list", json!({ "cursor": "made up" })), true),
        (message("resources/templates/list", json!({})), true),
        (message("completion/complete", json!({ "ref": reference, "argument": { "name": "x", "value": "" } })), true),
        (message("tools/list", json!({})), true),
        (message("tools/call", json!({ "name": "list_resources", "arguments": {} })), true),
        (message("tools/call", json!({ "name": "none" })), true),
        (message("prompts/list", json!({})), true),
        (message("prompts/get", json!({ "name": "none" })), true),
        // A report of progress needs a stream.
        (message("tools/call", json!({ "name": "none", "_meta": { "progressToken": 1 } })), false),
        (message("prompts/get", json!({ "name": "none", "_meta": { "progressToken": 1 } })), false),
        // These say themselves what the session says.
        (read(json!({ "uri": "belljar://none/x", "_meta": own })), false),
        (read(json!({ "uri": "belljar://none/x", "_meta": complete })), false),
        (message("server/discover", json!({})), false),
        (message("ping", json!({})), false),
        (message("resources/subscribe", json!({ "uri": "belljar://none/x" })), false),
        (message("none", json!({})), false),
        (read(json!({ "uri": 5 })), false),
        (read(json!({})), false),
        (message("tools/call", json!({ "name": "none", "arguments": [] })), false),
    ]
}

/// Headers of a read, and whether the fast path takes it.
fn heads() -> Vec<(Vec<(&'static str, &'static str)>, bool)> {
    let with = |name: &'static str, values: &[&'static str]| {
        let mut headers: Vec<_> = ORDINARY.into_iter().filter(|(other, _)| *other != name).collect();
        headers.extend(values.iter().map(|value| (name, *value)));
        headers
    };
    vec![
        (with("MCP-Protocol-Version", &[]), true),
        (with("Accept", &["text/event-stream, application/json"]), true),
        (with("X-Other", &["1"]), true),
        (with("Mcp-Method", &["resources/list"]), true),
        (with("MCP-Protocol-Version", &["2025-06-18"]), false),
        (with("MCP-Protocol-Version", &["2025-03-26"]), false),
        (with("MCP-Protocol-Version", &["2026-07-28"]), false),
        (with("MCP-Protocol-Version", &["2027-01-01"]), false),
        (with("MCP-Protocol-Version", &[REVISION, REVISION]), false),
        (with("Mcp-Session-Id", &["SESSION"]), false),
        (with("Accept", &["application/json"]), false),
        (with("Accept", &["*/*"]), false),
        (with("Accept", &[]), false),
        (with("Content-Type", &["application/json; charset=utf-8"]), false),
        (with("Content-Type", &["text/plain"]), false),
    ]
}

#[test]
fn a_request_of_a_session_is_answered_as_rmcp_answers_it() {
    let [fast, slow] = [true, false].map(|fast_path| Opened::new(fast_path, &json!({})));
    let read = message("resources/read", json!({ "uri": "belljar://none/x" })).to_string();
    let ordinary = messages().into_iter().map(|(message, taken)| (ORDINARY.to_vec(), message.to_string(), taken));
    let heads = heads().into_iter().map(|(headers, taken)| (headers, read.clone(), taken));
    for (headers, body, is_taken) in ordinary.chain(heads) {
        let [one, other] = [&fast, &slow].map(|opened| opened.send(&headers, &body));
        assert!(other.status.contains("200") || !is_taken, "{headers:?} {body} {other:?}");
        // rmcp answers a request of a session with a stream.
        assert_eq!(one.is_stream, other.is_stream && !is_taken, "{headers:?} {body} {one:?} {other:?}");
        let [one, other] = [one, other].map(|answer| {
            let body = serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body));
            (answer.status, body)
        });
        assert_eq!(one, other, "{headers:?} {body}");
    }
}

/// rmcp asks on the stream that it answers with.
#[test]
fn a_request_that_may_ask_its_client_is_left_to_rmcp() {
    let forms = json!({ "elicitation": {} });
    let urls = json!({ "elicitation": { "url": {} } });
    for (capabilities, may_ask) in [(forms, true), (urls, false), (json!({ "sampling": {} }), false)] {
        let opened = Opened::new(true, &capabilities);
        let is_stream =
            |method: &str, params: Value| opened.send(&ORDINARY, &message(method, params).to_string()).is_stream;
        assert_eq!(is_stream("tools/call", json!({ "name": "none" })), may_ask, "{capabilities}");
        assert_eq!(is_stream("prompts/get", json!({ "name": "none" })), may_ask, "{capabilities}");
        // No mount may ask for consent, and belljar's own tools have no other question.
        assert!(!is_stream("tools/call", json!({ "name": "list_resources" })), "{capabilities}");
        assert!(!is_stream("resources/read", json!({ "uri": "belljar://none/x" })), "{capabilities}");
        assert!(!is_stream("resources/list", json!({})), "{capabilities}");
    }
}

/// Ends a session.
fn close(served: &Served, session: &str) {
    let address = served.address;
    let close =
        format!("DELETE /mcp HTTP/1.1\r\nHost: {address}\r\nMcp-Session-Id: {session}\r\nConnection: close\r\n\r\n");
    served.exchange(close.as_bytes());
}

#[test]
fn a_session_that_ended_has_no_answers() {
    let opened = Opened::new(true, &json!({}));
    let list = message("resources/list", json!({})).to_string();
    assert!(opened.send(&ORDINARY, &list).status.contains("200"));
    close(&opened.served, &opened.session);
    assert!(opened.send(&ORDINARY, &list).status.contains("404"));
}

#[test]
fn sessions_stay_while_others_that_ended_are_forgotten() {
    let opened = Opened::new(true, &json!({}));
    for _ in 0..200 {
        close(&opened.served, &open(&opened.served, &json!({})));
    }
    let list = message("resources/list", json!({})).to_string();
    let answer = opened.send(&ORDINARY, &list);
    assert!(answer.status.contains("200") && !answer.is_stream, "{answer:?}");
}

/// rmcp ends a session that it hears nothing of, and the fast path tells it nothing.
#[test]
fn a_session_that_is_used_does_not_end() {
    const IDLE: Duration = Duration::from_secs(2);
    let list = message("resources/list", json!({})).to_string();
    loop {
        let opened = Opened::with(Bounds { session_idle: IDLE, ..Bounds::default() }, &json!({}));
        let (began, mut last) = (Instant::now(), Instant::now());
        let mut longest = Duration::ZERO;
        while began.elapsed() < IDLE * 2 {
            let answer = opened.send(&ORDINARY, &list);
            longest = longest.max(last.elapsed());
            last = Instant::now();
            // On a busy machine, the client may not run for so long that its session ends.
            if longest < IDLE / 3 {
                assert!(answer.status.contains("200") && !answer.is_stream, "{answer:?} after {:?}", began.elapsed());
            }
            std::thread::sleep(IDLE / 30);
        }
        if longest < IDLE / 3 {
            return;
        }
    }
}
