//! Each request of a client has exactly one line of the record, with the outcome that the client got.

use std::collections::BTreeMap;

use belljar_tests::{Client, Era, RpcError, Site, wait_until};
use serde_json::{Value, json};

use crate::support::empty;

/// How often each request ended in each way: by method and outcome.
type Counts = BTreeMap<(String, String), u64>;

/// A refused request: method, path, headers, body, and the status of the answer.
type Refusal<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8], u16);

const JSON: (&str, &str) = ("content-type", "application/json");

fn site() -> Site {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_hostile", "hostile.wasm");
    site.config("audit = \"audit.jsonl\"\n[limits]\ntime = \"60s\"\nfuel = 20000000\n");
    site
}

/// The outcome of an answer, in the words of the record.
fn outcome(answer: &Result<Value, RpcError>) -> String {
    let kind = match answer {
        Ok(result) => result["_meta"]["dev.belljar/error"]["kind"].as_str().filter(|_| result["isError"] == true),
        Err(error) => error.data["kind"].as_str(),
    };
    match (kind, answer) {
        // The record has one word for everything that does not exist.
        (Some("no-tool" | "no-prompt"), _) => "not-found".to_owned(),
        (Some(kind), _) => kind.to_owned(),
        (None, Ok(_)) => "ok".to_owned(),
        (None, Err(error)) if error.code == -32601 => "no-method".to_owned(),
        (None, Err(_)) => "invalid-request".to_owned(),
    }
}

/// Requests of all kinds: some succeed, some fail in each of many ways.
fn requests(era: Era) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("resources/list", json!({})),
        ("resources/list", json!({})),
        ("resources/list", json!({ "cursor": "nonsense" })),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "belljar://fixture/static-text" })),
        ("resources/read", json!({ "uri": "belljar://fixture/static-text" })),
        ("resources/read", json!({ "uri": "belljar://fixture/nothing-here" })),
        ("resources/read", json!({ "uri": "belljar://nobody/home" })),
        ("resources/read", json!({ "uri": "no uri at all" })),
        ("resources/read", json!({ "uri": 5 })),
        ("resources/read", json!({ "uri": "belljar://hostile/spin" })),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "list_resources", "arguments": {} })),
        ("tools/call", json!({ "name": "search_resources", "arguments": { "query": "static" } })),
        ("tools/call", json!({ "name": "read_resource", "arguments": { "uri": "belljar://fixture/static-text" } })),
        ("tools/call", json!({ "name": "read_resource", "arguments": { "uri": "belljar://fixture/nothing-here" } })),
        ("tools/call", json!({ "name": "read_resource", "arguments": { "url": "x" } })),
        ("tools/call", json!({ "name": "nobody" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "nobody" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "nothing" }, "argument": { "name": "a", "value": "" } }),
        ),
        ("no/such/method", json!({})),
    ];
    if era == Era::Session {
        all.push(("ping", json!({})));
        all.push(("resources/subscribe", json!({ "uri": "belljar://fixture/static-text" })));
        all.push(("resources/subscribe", json!({ "uri": "belljar://nobody/home" })));
        all.push(("resources/unsubscribe", json!({ "uri": "belljar://fixture/static-text" })));
    }
    all
}

fn count(counts: &mut Counts, method: &str, outcome: String) {
    let method = if method == "no/such/method" { "unknown" } else { method };
    *counts.entry((method.to_owned(), outcome)).or_default() += 1;
}

/// Makes the requests, `rounds` times. Returns what the client saw.
fn ask<W: belljar_tests::Wire>(client: &mut Client<W>, era: Era, rounds: u64) -> Counts {
    let mut counts = Counts::new();
    count(&mut counts, era.greeting().0, "ok".to_owned());
    for (method, params) in (0..rounds).flat_map(|_| requests(era)) {
        let answer = client.request(method, params);
        count(&mut counts, method, outcome(&answer));
    }
    counts
}

/// The requests in the record.
fn recorded(records: &[Value]) -> Counts {
    let mut counts = Counts::new();
    for record in records.iter().filter(|record| record["request"].is_object()) {
        count(
            &mut counts,
            record["request"]["method"].as_str().unwrap(),
            record["outcome"].as_str().unwrap().to_owned(),
        );
    }
    counts
}

#[test]
fn each_request_on_stdio_has_one_line() {
    for era in Era::ALL {
        let site = site();
        let mut client = site.stdio(era);
        let seen = ask(&mut client, era, 1);
        client.wire().raw(b"nonsense\n{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}\n");
        for _ in 0..2 {
            client.wire().next_message(std::time::Duration::from_secs(60)).expect("an answer");
        }
        assert!(client.close().status.success());
        let records = site.audit();
        assert_eq!(recorded(&records), seen, "{era:?}");
        let refused: Vec<_> = records.iter().filter(|record| record["operation"] == "receive").collect();
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert_eq!((&refused[0]["outcome"], &refused[1]["outcome"]), (&"not-json".into(), &"invalid-request".into()));
        let read = records.iter().find(|record| record["reference"] == "static-text").unwrap();
        assert_eq!(read["request"]["revision"], era.version(), "{read}");
        assert!(read["request"]["bytes"].as_u64().unwrap() > 50, "{read}");
        assert!(read["request"]["micros"].as_u64().unwrap() >= read["usage"]["micros"].as_u64().unwrap(), "{read}");
        assert!(records.iter().filter(|record| record["request"].is_object()).all(|record| {
            record["caller"]["client"].as_str().is_some_and(|name| name.starts_with("belljar-tests"))
        }));
    }
}

#[test]
fn each_request_over_http_has_one_line_and_so_have_refusals_at_the_front_door() {
    for era in Era::ALL {
        let site = site();
        let server = site.http();
        let seen = ask(&mut server.client(era), era, 1);
        let refusals: [Refusal<'_>; 5] = [
            ("POST", "/mcp", &[("host", "evil.example"), JSON], b"{}", 403),
            ("POST", "/mcp", &[("origin", "https://evil.example"), JSON], b"{}", 403),
            ("GET", "/elsewhere", &[], b"", 404),
            ("POST", "/mcp", &[JSON, ("accept", "application/json, text/event-stream")], b"nonsense", 400),
            ("POST", "/mcp", &[JSON, ("accept", "text/html")], b"{}", 406),
        ];
        // More than an address gets lines for.
        let times = 5;
        for _ in 0..times {
            for (method, path, headers, body, status) in refusals {
                let answer = server.exchange(method, path, headers, body);
                assert_eq!(answer.status, status, "{path} {headers:?}");
            }
        }
        assert!(server.stop().status.success());
        let records = site.audit();
        assert_eq!(recorded(&records), seen, "{era:?}");
        let refused = records.iter().filter(|record| record["operation"] == "receive");
        let (lines, count) =
            refused.fold((0, 0), |(lines, count), record| (lines + 1, count + record["calls"].as_u64().unwrap_or(1)));
        assert_eq!(count, times * refusals.len() as u64, "{era:?}");
        assert!(lines < count, "a flood does not fill the record");
    }
}

/// A request that its client withdraws has one line.
#[test]
fn a_withdrawn_request_has_one_line() {
    let site = site();
    let mut client = site.stdio(Era::Stateless);
    let id = client.send("resources/read", json!({ "uri": "belljar://hostile/forever" }));
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.cancel(id);
    let read = site.await_record("the withdrawn read", |record| record["outcome"] == "cancelled");
    assert_eq!(read["request"]["method"], "resources/read");
    assert!(client.close().status.success());
    let requests = recorded(&site.audit());
    assert_eq!(requests.values().sum::<u64>(), 2, "the greeting and the read: {requests:?}");
}

/// What clients count is what the record says, with many clients at once.
#[test]
fn the_sums_of_the_record_are_those_of_the_clients() {
    let rounds: u64 = std::env::var("BELLJAR_RECORD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4);
    let site = site();
    let server = site.http();
    let mut seen = Counts::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|at| {
                let (server, era) = (&server, Era::ALL[at % 2]);
                scope.spawn(move || ask(&mut server.client(era), era, rounds))
            })
            .collect();
        for client in clients {
            for (key, times) in client.join().unwrap() {
                *seen.entry(key).or_default() += times;
            }
        }
    });
    assert!(server.stop().status.success());
    assert_eq!(recorded(&site.audit()), seen);
    let sums = site.run_json(&["audit"]);
    assert_eq!(sums["total"]["requests"], seen.values().sum::<u64>());
    let verified = site.run_json(&["audit", "verify"]);
    assert_eq!((&verified["whole"], &verified["lines"]), (&true.into(), &site.audit().len().into()), "{verified}");
}

/// After `kill -9`, the record lacks at most the requests of the last moment, and the next belljar continues the file.
#[test]
fn a_killed_belljar_leaves_a_whole_record() {
    let site = site();
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    for _ in 0..50 {
        client.text("belljar://fixture/static-text");
    }
    wait_until("50 reads on record", || {
        let reads = site.audit().iter().filter(|record| record["operation"] == "read").count();
        if reads == 50 { Ok(()) } else { Err(reads) }
    });
    server.process.kill();
    drop(client);
    let mut client = site.stdio(Era::Stateless);
    client.text("belljar://fixture/static-text");
    assert!(client.close().status.success());
    let verified = site.run_json(&["audit", "verify"]);
    assert_eq!(verified["whole"], true, "{verified}");
    assert_eq!(verified["chains"].as_array().map(Vec::len), Some(2), "{verified}");
}
