//! Tests which heads and bodies the fast path takes, and that rmcp gives the same answer to each of them.

use std::net::SocketAddr;

use futures_util::FutureExt;
use serde_json::{Value, json};

use super::super::head::Door;
use super::super::tests::Served;
use super::super::{Bounds, FrontDoor, PATH};
use super::*;

mod sessions;

/// A request. `written` adds the request line, `Connection` and `Content-Length`. In values, `OWN` stands for the
/// server's address, and `PORT` for its port.
#[derive(Clone)]
struct Sent {
    headers: Vec<(String, String)>,
    body: String,
}

impl Sent {
    /// The request of an ordinary client.
    fn ordinary(message: &Value) -> Self {
        let method = message["method"].as_str().unwrap();
        let mut headers = vec![
            ("Host", "OWN"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        let name = message["params"]["uri"].as_str().or_else(|| message["params"]["name"].as_str());
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { headers, body: message.to_string() }
    }

    /// The same request with other values of one header.
    fn with(&self, name: &str, values: &[&str]) -> Self {
        let mut own = self.clone();
        own.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        own.headers.extend(values.iter().map(|value| (name.to_owned(), (*value).to_owned())));
        own
    }

    fn with_body(&self, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..self.clone() }
    }

    fn written(&self, address: SocketAddr) -> Vec<u8> {
        let own = |value: &str| value.replace("OWN", &address.to_string()).replace("PORT", &address.port().to_string());
        let lines: String = self.headers.iter().map(|(name, value)| format!("{name}: {}\r\n", own(value))).collect();
        let length = self.body.len();
        format!("POST {PATH} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{lines}\r\n{}", self.body)
            .into_bytes()
    }

    /// True if the fast path of a server at `address` takes this request.
    fn is_taken(&self, address: SocketAddr) -> bool {
        let mut head = http::Request::post(PATH);
        for (name, value) in &self.headers {
            let value = value.replace("OWN", &address.to_string()).replace("PORT", &address.port().to_string());
            head = head.header(name, value);
        }
        let (head, ()) = head.body(()).unwrap().into_parts();
        let door = Door::new(address, FrontDoor::default());
        let checked = door.check(head, address.ip()).now_or_never().unwrap();
        checked.is_ok_and(|head| stateless_request(&head, self.body.as_bytes(), &MetaCache::default()).is_some())
    }
}

fn message(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

/// The requests that the fast path takes, and those that it does not take.
fn requests() -> (Vec<Sent>, Vec<Sent>) {
    let read = message("resources/read", json!({ "uri": "belljar://none/x?y=%20z" }));
    let list = message("resources/list", json!({}));
    let (asked, listed) = (Sent::ordinary(&read), Sent::ordinary(&list));
    let with = |path: &[&str], value: Value| {
        let mut message = read.clone();
        let (last, before) = path.split_last().unwrap();
        before.iter().fold(&mut message, |at, key| &mut at[*key])[*last] = value;
        asked.with_body(message.to_string())
    };
    let meta = |key: &str, value: Value| with(&["params", "_meta", &format!("io.modelcontextprotocol/{key}")], value);
    let tool = Sent::ordinary(&message("tools/call", json!({ "name": "list_resources", "arguments": {} })));
    let prompt = Sent::ordinary(&message("prompts/get", json!({ "name": "none" })));
    let reporting = |method, params| {
        let mut message = message(method, params);
        message["params"]["_meta"]["progressToken"] = json!(1);
        Sent::ordinary(&message)
    };
    let complete = |reference: Value| {
        let argument = json!({ "name": "x", "value": "" });
        Sent::ordinary(&message("completion/complete", json!({ "ref": reference, "argument": argument })))
            .with("Mcp-Name", &[])
    };
    let swapped = "text/event-stream, application/json";
    let taken = vec![
        asked.clone(),
        listed.clone(),
        Sent::ordinary(&message("resources/templates/list", json!({}))),
        Sent::ordinary(&message("resources/list", json!({ "cursor": "made up" }))),
        asked.with("Host", &["localhost:PORT"]),
        asked.with("Host", &["LOCALHOST:PORT"]),
        asked.with("Origin", &["http://OWN"]),
        asked.with("Origin", &["http://localhost:PORT"]),
        asked.with("Accept", &[swapped]),
        asked.with("X-Other", &["1", "2"]),
        with(&["id"], json!("a \"b\"")),
        with(&["id"], json!(-1)),
        meta("clientInfo", Value::Null),
        meta("clientCapabilities", json!({ "elicitation": { "form": {} } })),
        with(&["params", "_meta", "progressToken"], json!(1)),
        with(&["params", "_meta", "com.example/x"], json!([{}])),
        asked.with_body(format!(" {}\n", read)),
        listed.with("Mcp-Name", &["whatever"]),
        with(&["params", "extra"], json!({})),
        with(&["params", "cursor"], json!("x")),
        with(&["params", "inputResponses"], json!({})),
        with(&["params", "requestState"], json!("made up")),
        Sent::ordinary(&message("tools/list", json!({}))),
        Sent::ordinary(&message("tools/list", json!({ "cursor": "made up" }))),
        tool.clone(),
        Sent::ordinary(&message("tools/call", json!({ "name": "list_resources", "arguments": { "limit": 0 } }))),
        Sent::ordinary(&message("tools/call", json!({ "name": "none" }))),
        Sent::ordinary(&message("server/discover", json!({}))),
        complete(json!({ "type": "ref/resource", "uri": "belljar://none/{x}" })),
        complete(json!({ "type": "ref/prompt", "name": "none" })),
        Sent::ordinary(&message("prompts/list", json!({}))),
        Sent::ordinary(&message("prompts/list", json!({ "cursor": "made up" }))),
        prompt.clone(),
        Sent::ordinary(&message("prompts/get", json!({ "name": "none", "arguments": { "a": 1 } }))),
    ];
    let uri = "belljar://none/x?y=%20z";
    let wrapped = format!("=?base64?{}?=", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, uri));
    let odd = |uri: &str| Sent::ordinary(&message("resources/read", json!({ "uri": uri })));
    let mut others = vec![
        asked.with("Mcp-Name", &[&wrapped]),
        asked.with("Mcp-Name", &[]),
        asked.with("Mcp-Name", &["belljar://none/other"]),
        asked.with("Mcp-Name", &[uri, uri]),
        asked.with("Mcp-Name", &["=?base64?!?="]),
        odd("=?base64?YQ==?=").with("Mcp-Name", &["=?base64?YQ==?="]),
        odd("a b").with("Mcp-Name", &["a b"]),
        odd("").with("Mcp-Name", &[]),
        odd("belljar://none/\u{fc}").with("Mcp-Name", &["x"]),
        asked.with("Mcp-Session-Id", &["none"]),
        asked.with_body(format!("\u{feff}{read}")),
        asked.with_body(format!("{read}{read}")),
        asked.with_body(format!("[{read}]")),
        asked.with_body(""),
        asked.with_body(read.to_string().replacen("\"uri\"", "\"uri\":\"x\",\"uri\"", 1)),
        asked.with_body(read.to_string().replacen("\"id\"", "\"id\":8,\"id\"", 1)),
        asked.with_body(read.to_string().replacen("resources/read", "resources\\/read", 1)),
        asked.with_body(read.to_string().replacen("resources/read", "resources/none", 1)),
        asked.with_body(read.to_string().replacen("resources/read", "ping", 1)).with("Mcp-Method", &["ping"]),
        with(&["jsonrpc"], json!("1.0")),
        with(&["id"], Value::Null),
        with(&["id"], json!(1.5)),
        with(&["result"], json!({})),
        with(&["extra"], json!({})),
        with(&["params", "uri"], json!(5)),
        with(&["params", "inputResponses"], json!(5)),
        with(&["params", "requestState"], json!(5)),
        with(&["params", "_meta"], Value::Null),
        with(&["params", "_meta"], json!({})),
        with(&["params"], Value::Null),
        meta("protocolVersion", json!("2025-11-25")),
        meta("protocolVersion", json!("2027-01-01")),
        meta("protocolVersion", json!(5)),
        meta("protocolVersion", Value::Null),
        meta("clientCapabilities", json!("x")),
        meta("clientCapabilities", Value::Null),
        Sent::ordinary(&message("resources/list", json!({ "cursor": 5 }))),
        tool.with("Mcp-Name", &[]),
        tool.with("Mcp-Name", &["read_resource"]),
        tool.with("Mcp-Method", &["tools/list"]),
        Sent::ordinary(&message("tools/call", json!({}))),
        Sent::ordinary(&message("tools/call", json!({ "name": "list_resources", "arguments": [] }))),
        Sent::ordinary(&message("server/discover", json!({ "x": 1 }))),
        complete(json!({ "type": "ref/other" })),
        Sent::ordinary(&message("completion/complete", json!({}))),
        Sent::ordinary(&message("prompts/list", json!({ "cursor": 5 }))),
        prompt.with("Mcp-Name", &[]),
        prompt.with("Mcp-Name", &["other"]),
        prompt.with("Mcp-Method", &["prompts/list"]),
        Sent::ordinary(&message("prompts/get", json!({}))),
        Sent::ordinary(&message("prompts/get", json!({ "name": "none", "arguments": [] }))),
        // A report of progress needs a stream.
        reporting("tools/call", json!({ "name": "list_resources" })),
        reporting("prompts/get", json!({ "name": "none" })),
        Sent::ordinary(&message("resources/subscribe", json!({ "uri": uri }))),
    ];
    // Each of these differs from an ordinary request in one header.
    let varied: [(&str, &[&[&str]]); 8] = [
        ("Host", &[&["127.0.0.1"], &["127.0.0.1:1"], &["evil.example"], &["localhost"], &["[::1]:PORT"], &[""]]),
        ("Host", &[&[], &["OWN", "OWN"], &["OWN", "evil.example"], &["OWN."], &["x@OWN"]]),
        ("Origin", &[&["http://OWN", "http://OWN"], &["http://evil.example"], &["null"], &[""]]),
        (
            "Content-Type",
            &[
                &["application/json; charset=utf-8"],
                &["Application/JSON"],
                &["text/plain"],
                &[],
                &["application/json", "text/plain"],
            ],
        ),
        (
            "Accept",
            &[
                &[],
                &["*/*"],
                &["application/json"],
                &["text/event-stream"],
                &["application/json;q=0, text/event-stream"],
            ],
        ),
        (
            "Accept",
            &[
                &["application/json", "text/event-stream"],
                &["application/json,text/event-stream"],
                &["application/json, text/event-stream", "text/html"],
            ],
        ),
        (
            "MCP-Protocol-Version",
            &[
                &[],
                &["2025-11-25"],
                &["2027-01-01"],
                &["x"],
                &["2026-07-28", "2026-07-28"],
                &["2026-07-28", "2025-11-25"],
            ],
        ),
        (
            "Mcp-Method",
            &[
                &[],
                &["resources/list"],
                &["Resources/Read"],
                &["resources/read", "resources/read"],
                &["resources/read", "ping"],
            ],
        ),
    ];
    for (name, values) in varied {
        others.extend(values.iter().map(|values| asked.with(name, values)));
    }
    (taken, others)
}

#[test]
fn the_fast_path_takes_an_ordinary_head_with_a_complete_body_only() {
    let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let (taken, others) = requests();
    for (requests, expected) in [(taken, true), (others, false)] {
        for sent in requests {
            assert_eq!(sent.is_taken(address), expected, "{:?} {}", sent.headers, sent.body);
        }
    }
}

#[test]
fn the_fast_path_and_rmcp_give_the_same_answers() {
    let servers = [true, false].map(|fast_path| Served::start(Bounds { fast_path, ..Bounds::default() }));
    let (taken, others) = requests();
    for sent in taken.into_iter().chain(others) {
        let [one, other] = servers.each_ref().map(|served| {
            let answer = served.exchange(&sent.written(served.address));
            let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
            let head = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
            let mut head: Vec<String> = head.map(str::to_ascii_lowercase).collect();
            head.sort();
            // The id of a session is random.
            head.retain(|line| !line.starts_with("mcp-session-id:"));
            let body = body.replace(&served.address.to_string(), "OWN");
            (head, body.replace(&served.address.port().to_string(), "PORT"))
        });
        assert!(!one.0.is_empty(), "no answer to {:?} {}", sent.headers, sent.body);
        assert_eq!(one, other, "{:?} {}", sent.headers, sent.body);
    }
}

#[test]
fn an_error_has_the_status_that_rmcp_gives_it() {
    for (error, expected) in [
        (None, 200),
        (Some(ErrorCode::INVALID_PARAMS), 200),
        (Some(ErrorCode::INTERNAL_ERROR), 200),
        (Some(ErrorCode::METHOD_NOT_FOUND), 404),
        (Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY), 400),
    ] {
        assert_eq!(status(error).as_u16(), expected, "{error:?}");
    }
}
