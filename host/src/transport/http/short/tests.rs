//! Heads and bodies of every kind: which go the short way, and that rmcp gives the same answer to all of them.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::super::head::Own;
use super::super::tests::Served;
use super::super::{Bounds, PATH};
use super::*;

/// A request: its headers but for Host and what is added here, and its body.
#[derive(Clone)]
struct Asked {
    headers: Vec<(String, String)>,
    body: String,
}

impl Asked {
    /// As an ordinary client asks.
    fn ordinary(message: &Value) -> Self {
        let method = message["method"].as_str().unwrap();
        let mut headers = vec![
            ("Host", "OWN"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        headers.extend(message["params"]["uri"].as_str().map(|uri| ("Mcp-Name", uri)));
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { headers, body: message.to_string() }
    }

    /// With these values of a header in place of its own.
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

    /// Whether a server at `address` lets it go the short way.
    fn is_short(&self, address: SocketAddr) -> bool {
        let mut head = http::Request::post(PATH);
        for (name, value) in &self.headers {
            let value = value.replace("OWN", &address.to_string()).replace("PORT", &address.port().to_string());
            head = head.header(name, value);
        }
        let (head, ()) = head.body(()).unwrap().into_parts();
        Own::new(address).judge(head).is_ok_and(|head| plain(&head, self.body.as_bytes()).is_some())
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

/// What goes the short way, and what does not.
fn all() -> (Vec<Asked>, Vec<Asked>) {
    let read = message("resources/read", json!({ "uri": "belljar://none/x?y=%20z" }));
    let list = message("resources/list", json!({}));
    let (asked, listed) = (Asked::ordinary(&read), Asked::ordinary(&list));
    let with = |path: &[&str], value: Value| {
        let mut message = read.clone();
        let (last, before) = path.split_last().unwrap();
        before.iter().fold(&mut message, |at, key| &mut at[*key])[*last] = value;
        asked.with_body(message.to_string())
    };
    let meta = |key: &str, value: Value| with(&["params", "_meta", &format!("io.modelcontextprotocol/{key}")], value);
    let swapped = "text/event-stream, application/json";
    let short = vec![
        asked.clone(),
        listed.clone(),
        Asked::ordinary(&message("resources/templates/list", json!({}))),
        Asked::ordinary(&message("resources/list", json!({ "cursor": "made up" }))),
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
    ];
    let uri = "belljar://none/x?y=%20z";
    let wrapped = format!("=?base64?{}?=", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, uri));
    let odd = |uri: &str| Asked::ordinary(&message("resources/read", json!({ "uri": uri })));
    let mut long = vec![
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
        with(&["params", "extra"], json!({})),
        with(&["params", "uri"], json!(5)),
        with(&["params", "cursor"], json!("x")),
        with(&["params", "inputResponses"], json!({})),
        with(&["params", "requestState"], json!("made up")),
        with(&["params", "_meta"], Value::Null),
        with(&["params", "_meta"], json!({})),
        with(&["params"], Value::Null),
        meta("protocolVersion", json!("2025-11-25")),
        meta("protocolVersion", json!("2027-01-01")),
        meta("protocolVersion", json!(5)),
        meta("protocolVersion", Value::Null),
        meta("clientCapabilities", json!("x")),
        meta("clientCapabilities", Value::Null),
        Asked::ordinary(&message("resources/list", json!({ "cursor": 5 }))),
        Asked::ordinary(&message("resources/list", json!({ "uri": "x" }))).with("Mcp-Name", &[]),
        Asked::ordinary(&message("tools/list", json!({}))),
        Asked::ordinary(&message("server/discover", json!({}))),
    ];
    // Each of these differs from an ordinary one in one header.
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
        long.extend(values.iter().map(|values| asked.with(name, values)));
    }
    (short, long)
}

#[test]
fn only_an_ordinary_head_and_a_plain_body_go_the_short_way() {
    let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
    let (short, long) = all();
    for (all, expected) in [(short, true), (long, false)] {
        for asked in all {
            assert_eq!(asked.is_short(address), expected, "{:?} {}", asked.headers, asked.body);
        }
    }
}

#[test]
fn both_ways_say_the_same() {
    let ways = [true, false].map(|short| Served::start(Bounds { short, ..Bounds::default() }));
    let (short, long) = all();
    for asked in short.into_iter().chain(long) {
        let [one, other] = ways.each_ref().map(|served| {
            let answer = served.exchange(&asked.written(served.address));
            let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
            let head = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
            let mut head: Vec<String> = head.map(str::to_ascii_lowercase).collect();
            head.sort();
            // A session's id is made up each time.
            head.retain(|line| !line.starts_with("mcp-session-id:"));
            let body = body.replace(&served.address.to_string(), "OWN");
            (head, body.replace(&served.address.port().to_string(), "PORT"))
        });
        assert!(!one.0.is_empty(), "no answer to {:?} {}", asked.headers, asked.body);
        assert_eq!(one, other, "{:?} {}", asked.headers, asked.body);
    }
}
