//! What a client may send wrong, and what it may not get in return: silence, a dead connection, or another's answer.
//!
//! Real clients never send these; whoever tries a server does.

use std::time::Duration;

use belljar_tests::{Client, Era, Server, Site, Stdio};
use serde_json::{Value, json};

/// How long an answer to nonsense may take.
const SOON: Duration = Duration::from_secs(10);

/// Longer than the longest message that either transport takes.
const TOO_LONG: usize = 40 << 20;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;

fn site() -> Site {
    let site = Site::new();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("list-time = \"60s\"\n\n[mounts.fixture]\nuri = \"test://\"\n");
    site
}

/// Sends a line that is no request; the answer has `codes`, and the connection works as before.
fn refused_on_stdio(line: &[u8], codes: &[i64]) {
    let site = site();
    let mut client = site.stdio(Era::Older);
    client.wire().raw(line);
    client.wire().raw(b"\n");
    let answer = client.wire().next_message(SOON).expect("an answer to nonsense");
    assert!(codes.contains(&answer["error"]["code"].as_i64().unwrap()), "{answer}");
    assert_eq!(answer["id"], Value::Null, "{answer}");
    assert_eq!(client.text("test://watched-resource"), "This is the content of the watched resource.");
    assert!(client.close().status.success());
}

#[test]
fn a_line_that_is_no_json_is_answered() {
    refused_on_stdio(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":", &[PARSE_ERROR]);
}

#[test]
fn a_line_that_is_no_utf_8_is_answered() {
    refused_on_stdio(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", &[PARSE_ERROR]);
}

#[test]
fn a_batch_is_answered() {
    refused_on_stdio(br#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, &[INVALID_REQUEST]);
}

#[test]
fn json_that_is_no_message_is_answered() {
    refused_on_stdio(b"42", &[INVALID_REQUEST, PARSE_ERROR]);
}

#[test]
fn a_line_that_is_too_long_is_answered() {
    let mut line = br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":""#.to_vec();
    line.resize(TOO_LONG, b'x');
    line.extend_from_slice(b"\"}}");
    refused_on_stdio(&line, &[INVALID_REQUEST, PARSE_ERROR]);
}

#[test]
fn empty_lines_are_nothing() {
    let site = site();
    let mut client = site.stdio(Era::Older);
    client.wire().raw(b"\n\r\n  \n");
    client.ping();
    assert!(client.close().status.success());
}

#[test]
fn a_request_is_answered_though_the_stream_ends_behind_it() {
    let site = site();
    let mut stdio = site.silent_stdio();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": Era::Modern.version(),
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "uri": "test://static-text", "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
    stdio.raw(format!("{request}\n").as_bytes());
    stdio.end();
    let answer = stdio.next_message(SOON).expect("an answer to the last line");
    assert_eq!(answer["result"]["contents"][0]["uri"], "test://static-text", "{answer}");
    assert!(stdio.close().status.success());
}

/// What is wrong with a request is told with its id, in both eras, whatever the transport.
fn refuses_wrong_requests<W: belljar_tests::Wire>(client: &mut Client<W>) {
    for (method, params, code) in [
        ("no/such/method", json!({}), METHOD_NOT_FOUND),
        ("resources/read", json!({}), INVALID_PARAMS),
        ("resources/read", json!({ "uri": 5 }), INVALID_PARAMS),
        ("resources/read", json!({ "uri": "" }), INVALID_PARAMS),
        ("resources/read", json!({ "uri": "test://a b" }), INVALID_PARAMS),
        ("resources/read", json!({ "uri": "test://%2e%2e/x" }), INVALID_PARAMS),
        ("resources/read", json!({ "uri": "static-text" }), INVALID_PARAMS),
        ("resources/list", json!({ "cursor": "forged" }), INVALID_PARAMS),
        ("resources/templates/list", json!({ "cursor": "forged" }), INVALID_PARAMS),
    ] {
        let error = client.request(method, params.clone()).expect_err("a refusal");
        assert_eq!(error.code, code, "{:?}, {method} {params}: {error}", client.era());
    }
    // Whatever went before, the next one is served.
    assert_eq!(client.text("test://static-text"), "This is the content of the static text resource.");
}

#[test]
fn wrong_requests_are_refused_on_stdio() {
    let site = site();
    for era in Era::ALL {
        let mut client = site.stdio(era);
        refuses_wrong_requests(&mut client);
        assert!(client.close().status.success());
    }
}

#[test]
fn wrong_requests_are_refused_over_http() {
    let site = site();
    let server = site.http();
    for era in Era::ALL {
        refuses_wrong_requests(&mut server.client(era));
    }
}

#[test]
fn an_unknown_version_is_not_echoed() {
    let site = site();
    let mut client = Client::<Stdio>::connect_silently(site.silent_stdio(), Era::Older);
    let info = json!({ "name": "test", "version": "0" });
    let asked = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": info });
    let agreed = client.request("initialize", asked).unwrap();
    assert_eq!(agreed["protocolVersion"], Era::Older.version(), "{agreed}");
}

#[test]
fn a_modern_client_is_told_which_versions_there_are() {
    let site = site();
    let server = site.http();
    let mut client = server.client(Era::Modern);
    let versions = client.greeting["supportedVersions"].as_array().unwrap().clone();
    for era in Era::ALL {
        assert!(versions.contains(&json!(era.version())), "{versions:?}");
    }
    assert!(client.greeting["capabilities"]["resources"].is_object(), "{}", client.greeting);
    client.ping();
}

/// Posts `body` as a client of the older era would post its first message, with `headers` instead of or beside the usual.
fn post(server: &Server, headers: &[(&str, &str)], body: &[u8]) -> belljar_tests::Response {
    let usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let given = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut all: Vec<_> = usual.into_iter().filter(|(name, _)| !given(name)).collect();
    all.extend(headers);
    server.exchange("POST", "/mcp", &all, body)
}

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

#[test]
fn bodies_that_are_no_message_are_answered_in_json() {
    let site = site();
    let server = site.http();
    for (body, code) in [
        (&b"{\"jsonrpc\":"[..], PARSE_ERROR),
        (b"", PARSE_ERROR),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", PARSE_ERROR),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
    ] {
        let answer = post(&server, &[], body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(answer.status, 400, "{shown}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], code, "{shown}");
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let site = site();
    let server = site.http();
    let before = server.process.peak_memory();
    let answer = post(&server, &[], &vec![b' '; TOO_LONG]);
    assert_eq!(answer.status, 413, "{}", answer.text());
    // Chunked, nothing is promised beforehand.
    let own = server.address();
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\n").into_bytes();
    head.extend_from_slice(b"Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    head.extend_from_slice(format!("{TOO_LONG:x}\r\n").as_bytes());
    head.resize(head.len() + TOO_LONG, b' ');
    let raw = String::from_utf8_lossy(&server.raw(&head)).into_owned();
    assert!(raw.starts_with("HTTP/1.1 413"), "{:?}", raw.get(..200));
    let grown = server.process.peak_memory() - before;
    assert!(grown < TOO_LONG as u64, "the server held {grown} bytes of it");
}

#[test]
fn another_host_or_origin_is_refused() {
    let site = site();
    let server = site.http();
    for headers in [
        [("Host", "evil.example")],
        [("Host", "evil.example:80")],
        [("Host", "localhost")],
        [("Host", "localhost:1")],
        [("Origin", "http://evil.example")],
        [("Origin", "null")],
        [("Origin", "https://localhost.evil.example")],
    ] {
        let answer = post(&server, &headers, INITIALIZE);
        assert_eq!(answer.status, 403, "{headers:?}: {}", answer.text());
    }
    let own = server.address().to_string();
    let origin = format!("http://{own}");
    let local = format!("localhost:{}", server.address().port());
    for headers in [[("Host", own.as_str())], [("Host", local.as_str())], [("Origin", origin.as_str())]] {
        let answer = post(&server, &headers, INITIALIZE);
        assert_eq!(answer.status, 200, "{headers:?}: {}", answer.text());
    }
}

#[test]
fn other_paths_methods_and_types_are_refused() {
    let site = site();
    let server = site.http();
    let status = |method: &str, path: &str| server.exchange(method, path, &[], b"").status;
    assert_eq!(status("GET", "/"), 404);
    assert_eq!(status("POST", "/mcp/../etc"), 404);
    assert_eq!(status("PUT", "/mcp"), 405);
    assert_eq!(post(&server, &[("Content-Type", "text/plain")], INITIALIZE).status, 415);
    assert_eq!(post(&server, &[("Accept", "text/html")], INITIALIZE).status, 406);
}

#[test]
fn a_session_must_be_known() {
    let site = site();
    let server = site.http();
    let mut client = server.client(Era::Older);
    let session = client.wire().session().expect("a session in the older era").to_owned();
    let list = br#"{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{}}"#;
    let with = |session: &str| {
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", Era::Older.version())];
        post(&server, &headers, list).status
    };
    assert_eq!(with(&session), 200);
    assert_eq!(with("no-such-session"), 404);
    // Ended by the client, it is not known any more.
    let ended = server.exchange("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], b"");
    assert!(matches!(ended.status, 200 | 202 | 204), "{}", ended.status);
    assert_eq!(with(&session), 404);
}

#[test]
fn headers_must_agree_with_the_body() {
    let site = site();
    let server = site.http();
    let wire = server.wire(Era::Modern);
    let list = json!({ "jsonrpc": "2.0", "id": 9, "method": "resources/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": Era::Modern.version(),
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } } });
    // The answer to a request with one header field left out, and one added.
    let status = |request: &Value, leave_out: &str, add: Option<(&str, &str)>| {
        let headers = wire.headers(request);
        let kept = headers.iter().filter(|(name, _)| *name != leave_out);
        let headers: Vec<_> = kept.map(|(name, value)| (*name, value.as_str())).chain(add).collect();
        let answer = server.exchange("POST", "/mcp", &headers, request.to_string().as_bytes());
        (answer.status, answer.json()["error"]["code"].as_i64())
    };
    let mismatch = (400, Some(HEADER_MISMATCH));
    assert_eq!(status(&list, "", None), (200, None));
    assert_eq!(status(&list, "Mcp-Method", None), mismatch);
    assert_eq!(status(&list, "Mcp-Method", Some(("Mcp-Method", "resources/read"))), mismatch);
    assert_eq!(status(&list, "MCP-Protocol-Version", None), mismatch);
    assert_eq!(status(&list, "MCP-Protocol-Version", Some(("MCP-Protocol-Version", Era::Older.version()))), mismatch);

    // A read has its URI in a header too.
    let mut read = list.clone();
    read["method"] = "resources/read".into();
    read["params"]["uri"] = "test://static-text".into();
    assert_eq!(status(&read, "", None), (200, None));
    assert_eq!(status(&read, "Mcp-Name", None), mismatch);
    assert_eq!(status(&read, "Mcp-Name", Some(("Mcp-Name", "test://static-binary"))), mismatch);
    assert_eq!(status(&read, "Mcp-Name", Some(("mcp-name", "  test://static-text  "))), (200, None));
}

#[test]
fn what_the_modern_era_removed_is_not_there() {
    let site = site();
    let server = site.http();
    let mut client = server.client(Era::Modern);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let error = client.request(method, json!({ "uri": "test://static-text" })).expect_err("a refusal");
        assert_eq!(error.code, METHOD_NOT_FOUND, "{method}: {error}");
        assert_eq!(client.wire().status, 404, "{method}: {error}");
    }
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let site = site();
    let server = site.http();
    let began = std::time::Instant::now();
    // Half a head, and then silence.
    let answer = server.raw_within(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n", Duration::from_secs(60));
    assert!(began.elapsed() < Duration::from_secs(45), "held open for {:?}: {answer:?}", began.elapsed());
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let site = site();
    let output = site.run(&["serve", "--http", "0.0.0.0:0"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stderr}");
    assert!(stderr.contains("authentication"), "{stderr}");
}
