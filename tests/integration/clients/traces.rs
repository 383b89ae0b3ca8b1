//! Traces: one from a real client through belljar to an upstream server, with the attributes of OpenTelemetry's
//! conventions for MCP. The receiver decodes the spans with OpenTelemetry's own messages.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use belljar_tests::{Client, Era, Site, places, wait_until};
use belljar_upstream::{Upstream, answer};
use serde_json::{Value, json};

use super::programs::{Reach, report};
use crate::support::empty;

/// The receiver of spans.
struct Receiver {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    port: u16,
}

impl Receiver {
    /// Starts the receiver. `None` if this machine lacks Python.
    fn start(arguments: &[&str]) -> Option<Receiver> {
        let mut command = Command::new(places::python(2)?);
        command.arg(places::client_script("py/otlp_receiver.py")).args(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Some(Receiver { process, output, port: line.trim().parse().unwrap() })
    }

    /// All spans that it received.
    fn spans(mut self) -> Vec<Value> {
        drop(self.process.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.process.wait().unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// A site whose mount `hostile` may send requests to `upstream`, and which traces all requests.
fn site(receiver: &Receiver, upstream: &Upstream, sample: &str) -> Site {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_hostile", "hostile.wasm");
    let origin = format!("http://{}", upstream.address());
    site.config(&format!(
        "audit = \"audit.jsonl\"\n[trace]\notlp = \"http://127.0.0.1:{}\"\nsample = \"{sample}\"\n[limits]\ntime = \"60s\"\n[mounts.hostile]\nhttp = [{{ origin = \"{origin}\" }}]\n",
        receiver.port
    ));
    site
}

/// The URI of a read that sends a request to the upstream server.
fn reach(upstream: &Upstream) -> String {
    let url = format!("http://{}/x", upstream.address()).replace(':', "%253A").replace('/', "%252F");
    format!("belljar://hostile/reach/{url}")
}

/// The spans with this name.
fn named<'s>(spans: &'s [Value], name: &str) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

#[test]
fn one_trace_leads_from_the_client_through_belljar_to_the_upstream_server() {
    let Some(receiver) = Receiver::start(&[]) else { return };
    let upstream = Upstream::plain(|_| answer("200 OK", "", "fine"));
    // The client traces its requests, so the share does not matter.
    let site = site(&receiver, &upstream, "0%");
    let mut command = Command::new(places::python(2).unwrap());
    command.arg(places::client_script("py/traces_2.py"));
    let mut request = Reach::Stdio(&site).request("auto", &[]);
    request["read"] = json!([reach(&upstream), "belljar://fixture/nothing-here"]);
    let client = report(command, &request);
    let spans = receiver.spans();
    let of_client = client["spans"].as_array().unwrap();
    let reads = named(&spans, "resources/read");
    assert_eq!(reads.len(), 2, "{spans:?}");
    for read in &reads {
        let parent = of_client.iter().find(|span| span["span"] == read["parent"]);
        let parent = parent.unwrap_or_else(|| panic!("no parent: {read} {of_client:?}"));
        assert_eq!(parent["trace"], read["trace"], "the client and belljar are in one trace");
        assert!(parent["start"].as_u64() <= read["start"].as_u64() && read["end"].as_u64() <= parent["end"].as_u64());
    }
    let (read, failed) = (reads[0], reads[1]);
    // The attributes of the convention, one by one.
    for (key, value) in [
        ("mcp.method.name", json!("resources/read")),
        ("mcp.protocol.version", json!("2026-07-28")),
        ("mcp.resource.uri", json!(reach(&upstream))),
        ("network.transport", json!("pipe")),
    ] {
        assert_eq!(read["attributes"][key], value, "{key}: {read}");
    }
    assert!(read["attributes"]["jsonrpc.request.id"].is_string(), "{read}");
    assert_eq!((&read["kind"], &read["failed"]), (&json!("server"), &json!(false)));
    assert_eq!(read["resource"]["service.name"], "belljar");
    assert_eq!((&failed["attributes"]["error.type"], &failed["failed"]), (&json!("not-found"), &json!(true)));
    assert!(spans.iter().all(|span| !span["name"].as_str().unwrap().contains("://")), "no name has a URI");
    // The parts of the read, below it.
    let below: Vec<_> = spans.iter().filter(|span| span["parent"] == read["span"]).collect();
    let names: Vec<_> = below.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["queue", "sandbox", "GET"], "{below:?}");
    let sent = below[2];
    assert_eq!(sent["kind"], "client");
    for (key, value) in [
        ("http.request.method", json!("GET")),
        ("http.response.status_code", json!(200)),
        ("server.address", json!("127.0.0.1")),
        ("server.port", json!(upstream.port())),
    ] {
        assert_eq!(sent["attributes"][key], value, "{key}: {sent}");
    }
    // The upstream server got the span of its request as its parent.
    let got = upstream.requests();
    let expected = format!("00-{}-{}-01", sent["trace"].as_str().unwrap(), sent["span"].as_str().unwrap());
    assert_eq!(got.last().unwrap().header("traceparent"), Some(expected.as_str()));
    // A list has a span, and its calls are below it.
    let list = named(&spans, "resources/list")[0];
    let calls = named(&spans, "call list-resources");
    assert_eq!(calls.len(), 2, "{spans:?}");
    assert!(calls.iter().all(|call| call["parent"] == list["span"]), "{spans:?}");
    // The record has the same trace.
    let record = site.audit().into_iter().find(|record| record["reference"] == "nothing-here").unwrap();
    assert_eq!(record["request"]["trace_id"], failed["trace"]);
}

#[test]
fn over_http_the_header_is_a_link_and_the_share_of_requests_is_exact() {
    let Some(receiver) = Receiver::start(&[]) else { return };
    let upstream = Upstream::plain(|_| answer("200 OK", "", "fine"));
    let site = site(&receiver, &upstream, "10%");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    for _ in 0..99 {
        client.text("belljar://fixture/static-text");
    }
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
    let message = |flags: &str, id: u64| {
        let meta = json!({ "traceparent": format!("00-{trace}-{span}-{flags}") });
        Era::Stateless.message(id, "resources/read", json!({ "uri": "belljar://fixture/static-text", "_meta": meta }))
    };
    let send = |message: &Value| {
        let wire = server.wire(Era::Stateless);
        let mut headers = wire.headers(message);
        headers.push(("traceparent", format!("00-{}-{}-01", "1".repeat(32), "2".repeat(16))));
        assert_eq!(server.post(&headers, message).status, 200);
    };
    send(&message("01", 1));
    send(&message("00", 2));
    drop(client);
    assert!(server.stop().status.success());
    let spans = receiver.spans();
    let requests: Vec<_> = spans.iter().filter(|span| span["kind"] == "server").collect();
    // 100 requests without a parent, and one whose parent is traced.
    assert_eq!(requests.len(), 11, "{requests:?}");
    let own = requests.iter().find(|one| one["trace"] == trace).unwrap();
    assert_eq!(own["parent"], span, "the parent is the one of the message");
    assert_eq!(own["links"], json!([{ "trace": "1".repeat(32), "span": "2".repeat(16) }]));
    assert_eq!(own["attributes"]["network.transport"], "tcp");
    assert_eq!(own["attributes"]["network.protocol.name"], "http");
}

#[test]
fn a_failed_tool_has_the_error_of_the_convention() {
    let Some(receiver) = Receiver::start(&[]) else { return };
    let upstream = Upstream::plain(|_| answer("200 OK", "", "fine"));
    let site = site(&receiver, &upstream, "100%");
    let mut client = site.stdio(Era::Session);
    let arguments = json!({ "uri": "belljar://fixture/nothing-here" });
    client.request("tools/call", json!({ "name": "read_resource", "arguments": arguments })).unwrap();
    assert!(client.close().status.success());
    let spans = receiver.spans();
    let call = spans.iter().find(|span| span["attributes"]["mcp.method.name"] == "tools/call").unwrap();
    assert_eq!(call["attributes"]["gen_ai.operation.name"], "execute_tool", "{call}");
    assert_eq!(call["attributes"]["gen_ai.tool.name"], "read_resource", "{call}");
    assert_eq!(
        (&call["name"], &call["attributes"]["error.type"]),
        (&json!("tools/call read_resource"), &json!("tool_error"))
    );
}

#[test]
fn no_request_waits_for_a_receiver_that_hangs() {
    let Some(receiver) = Receiver::start(&["hang"]) else { return };
    let upstream = Upstream::plain(|_| answer("200 OK", "", "fine"));
    let site = site(&receiver, &upstream, "100%");
    let mut client = site.stdio(Era::Stateless);
    for _ in 0..2000 {
        client.text("belljar://fixture/static-text");
    }
    assert!(client.close().status.success());
    let mut receiver = receiver.process;
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert_eq!(site.audit().iter().filter(|record| record["operation"] == "read").count(), 2000);
}

#[test]
fn a_receiver_that_is_not_there_is_logged_and_nothing_else_happens() {
    let Some(receiver) = Receiver::start(&[]) else { return };
    let upstream = Upstream::plain(|_| answer("200 OK", "", "fine"));
    let site = site(&receiver, &upstream, "100%");
    drop(receiver.spans());
    let mut client: Client<_> = site.stdio(Era::Stateless);
    client.text("belljar://fixture/static-text");
    wait_until("a log line", || {
        let log = client.wire().process.stderr();
        if log.contains("spans of traces to \"http://127.0.0.1:") { Ok(()) } else { Err(log) }
    });
    client.text("belljar://fixture/static-text");
    assert!(client.close().status.success());
}

#[test]
fn a_wrong_setting_is_explained() {
    let site = empty();
    for (text, part) in [
        ("otlp = \"http://collector.example:4318\"", "https://"),
        ("otlp = \"127.0.0.1:4318\"", "https://"),
        ("otlp = \"http://127.0.0.1:4318\"\nsample = \"0.1\"", "such as \"10%\""),
        ("otlp = \"http://127.0.0.1:4318\"\nsample = \"101%\"", "\"100%\""),
        ("sample = \"10%\"", "otlp"),
    ] {
        site.config(&format!("[trace]\n{text}\n"));
        let output = site.run(&["check"]);
        let said = crate::support::stdout_and_stderr(&output);
        assert!(!output.status.success() && said.contains(part), "{text}: {said}");
    }
}
