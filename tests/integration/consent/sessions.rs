//! Consent in sessions over HTTP: the client is asked on the stream that answers its request.

use belljar_tests::{DEADLINE, Era, Server, Wire as _};
use serde_json::{Value, json};

use super::questions::{notes, plan};

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params })
}

/// Sends a request in a session of a client that can ask a person. Accepts its question, if there is one. Returns whether
/// there was one, and the result.
fn accept(server: &Server, message: &Value) -> (bool, Value) {
    let mut wire = server.wire(Era::Session);
    let client = json!({ "name": "t", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": client });
    wire.send(&request("initialize", hello));
    let stream = match wire.open(message) {
        Ok(stream) => stream,
        Err(answer) => return (false, answer.json()["result"].clone()),
    };
    let asked = stream.next(DEADLINE).expect("a question");
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let result = json!({ "action": "accept", "content": { "consent": "once" } });
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
    assert_eq!(server.post(&wire.headers(&reply), &reply).status, 202);
    (true, stream.next(DEADLINE).expect("an answer")["result"].clone())
}

#[test]
fn a_session_over_http_is_asked_while_its_request_is_open() {
    let read = json!({ "name": "read_resource", "arguments": { "uri": plan() } });
    for message in [request("resources/read", json!({ "uri": plan() })), request("tools/call", read)] {
        // A person is not asked the same again soon, so each request has a site of its own.
        let site = notes("true");
        let (asked, result) = accept(&site.http(), &message);
        assert!(asked && result.to_string().contains("the plan"), "{result}");
    }
    // A list asks nothing.
    let site = notes("true");
    let server = site.http();
    let (asked, result) = accept(&server, &request("resources/templates/list", json!({})));
    assert!(!asked && result["resourceTemplates"].is_array(), "{result}");
}
