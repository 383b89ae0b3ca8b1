//! Malformed requests: the real `belljar` binary answers each with an error, and keeps the connection. The hostile rows
//! MCP-01 to MCP-04 test invalid JSON, invalid UTF-8, batches and long lines. The rows MCP-09 and MCP-19 test foreign
//! hosts, origins and addresses.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use belljar_tests::{Client, DEADLINE, Era, Server, Site, Stdio};
use serde_json::{Value, json};

/// Bytes of a message that is too long for both transports.
const TOO_LONG: usize = 40 << 20;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;

/// A site with the conformance guest `fixture` at the base `test://`.
fn site() -> Site {
    let site = crate::support::empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("list-time = \"60s\"\n\n[mounts.fixture]\nuri = \"test://\"\n");
    site
}

#[test]
fn empty_lines_are_ignored() {
    let site = site();
    let mut client = site.stdio(Era::Session);
    client.wire().raw(b"\n\r\n  \n");
    client.ping();
    assert!(client.close().status.success());
}

#[test]
fn the_last_request_before_the_end_of_the_stream_is_answered() {
    let site = site();
    let mut stdio = site.silent_stdio();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": Era::Stateless.version(),
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "uri": "test://static-text", "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
    stdio.raw(format!("{request}\n").as_bytes());
    stdio.end();
    let answer = stdio.next_message(DEADLINE).expect("an answer to the last line");
    assert_eq!(answer["result"]["contents"][0]["uri"], "test://static-text", "{answer}");
    assert!(stdio.close().status.success());
}

/// Sends malformed requests. The client checks that each error has the id of its request.
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
    // After all these errors, a correct request is served.
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
    let mut client = Client::<Stdio>::connect_silently(site.silent_stdio(), Era::Session);
    let info = json!({ "name": "test", "version": "0" });
    let asked = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": info });
    let agreed = client.request("initialize", asked).unwrap();
    assert_eq!(agreed["protocolVersion"], Era::Session.version(), "{agreed}");
}

#[test]
fn a_stateless_client_gets_the_supported_versions() {
    let site = site();
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    let versions = client.greeting["supportedVersions"].as_array().unwrap().clone();
    for era in Era::ALL {
        assert!(versions.contains(&json!(era.version())), "{versions:?}");
    }
    assert!(client.greeting["capabilities"]["resources"].is_object(), "{}", client.greeting);
    client.ping();
}

/// Posts `body` as a client with sessions posts its first message. `headers` replaces usual headers, or adds to them.
fn post(server: &Server, headers: &[(&str, &str)], body: &[u8]) -> belljar_tests::Response {
    let usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let given = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut all: Vec<_> = usual.into_iter().filter(|(name, _)| !given(name)).collect();
    all.extend(headers);
    server.exchange("POST", "/mcp", &all, body)
}

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

#[test]
fn a_body_without_a_valid_message_gets_a_json_error() {
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
    let grown = server.process.peak_memory() - before;
    assert!(grown < TOO_LONG as u64, "the server held {grown} bytes of the body");
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
    let mut client = server.client(Era::Session);
    let session = client.wire().session().expect("a session of this era").to_owned();
    let list = br#"{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{}}"#;
    let with = |session: &str| {
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", Era::Session.version())];
        post(&server, &headers, list).status
    };
    assert_eq!(with(&session), 200);
    assert_eq!(with("no-such-session"), 404);
    // After the client ended its session, the server does not know the session.
    let ended = server.exchange("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], b"");
    assert_eq!(ended.status, 204);
    assert_eq!(with(&session), 404);
}

#[test]
fn headers_must_agree_with_the_body() {
    let site = site();
    let server = site.http();
    let wire = server.wire(Era::Stateless);
    let list = json!({ "jsonrpc": "2.0", "id": 9, "method": "resources/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": Era::Stateless.version(),
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } } });
    // Sends the request without the header `leave_out`, and with the header `add`. Returns the status and the error code.
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
    assert_eq!(status(&list, "MCP-Protocol-Version", Some(("MCP-Protocol-Version", Era::Session.version()))), mismatch);

    // A read also sends its URI in the header `Mcp-Name`.
    let mut read = list.clone();
    read["method"] = "resources/read".into();
    read["params"]["uri"] = "test://static-text".into();
    assert_eq!(status(&read, "", None), (200, None));
    assert_eq!(status(&read, "Mcp-Name", None), mismatch);
    assert_eq!(status(&read, "Mcp-Name", Some(("Mcp-Name", "test://static-binary"))), mismatch);
    assert_eq!(status(&read, "Mcp-Name", Some(("mcp-name", "  test://static-text  "))), (200, None));
}

#[test]
fn methods_that_2026_07_28_removed_are_not_found() {
    let site = site();
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let error = client.request(method, json!({ "uri": "test://static-text" })).expect_err("a refusal");
        assert_eq!(error.code, METHOD_NOT_FOUND, "{method}: {error}");
        assert_eq!(client.wire().status, 404, "{method}: {error}");
    }
}

#[test]
fn a_connection_without_a_complete_request_is_closed() {
    let site = site();
    let server = site.http();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(DEADLINE * 2)).unwrap();
    // Send a part of the header section, and then nothing.
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let is_closed = ended.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true);
    assert!(is_closed, "the server keeps the connection open: {ended:?}, {answer:?}");
}
