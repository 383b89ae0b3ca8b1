//! Cancelled requests, with the hostile guest (`tests/guests/hostile`) in the real server: the guest
//! stops, the client gets no answer, and the record says "cancelled".

use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

use belljar_tests::{Client, DEADLINE, Era, Http, Process, Server, Site, Stdio, Wire, wait_until};
use serde_json::json;

use crate::support::{WITNESS, site};

/// A site with a hostile guest whose limits allow a call to run longer than any test. Its lists do not end by themselves.
fn endless() -> Site {
    with_guest("list-time = \"600s\"\n[watch]\nlists = \"1day\"\nreread = \"1day\"", "HOSTILE_LIST = \"loop\"")
}

/// A site with a hostile guest whose limits allow a call to run longer than any test. `before` stands before the mount.
fn with_guest(before: &str, variables: &str) -> Site {
    site(&format!(
        "{before}\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = {{ {variables} }}\n\
         limits = {{ time = \"600s\", fuel = 1_000_000_000_000_000, concurrency = 2 }}\n"
    ))
}

/// Reads from the guest, so that belljar has loaded its component: the processor time of later calls is the guest's.
fn await_mount<W: Wire>(client: &mut Client<W>) {
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
}

/// The interval in which processor time is measured. A computing guest uses each tick (10 ms) of processor time that it
/// gets.
const WINDOW: Duration = Duration::from_millis(200);

/// The most ticks in one [`WINDOW`] of a server that runs no guest.
const IDLE: u64 = 3;

/// Waits until the process has used more processor time than an idle one.
fn await_busy(process: &Process) {
    let before = process.cpu_ticks();
    wait_until("a guest that computes", || {
        let used = process.cpu_ticks() - before;
        (used > 2 * IDLE).then_some(()).ok_or_else(|| format!("{used} ticks of processor time"))
    });
}

/// Waits until the process is idle. The guest's own time limit ends much later than this wait.
fn await_idle(process: &Process, call: &str) {
    wait_until(&format!("the end of the guest of {call}"), || {
        let before = process.cpu_ticks();
        std::thread::sleep(WINDOW);
        let used = process.cpu_ticks() - before;
        (used <= IDLE).then_some(()).ok_or_else(|| format!("{used} ticks of processor time in {WINDOW:?}"))
    });
}

/// Waits until the record of such a call says "cancelled".
fn await_record(site: &Site, operation: &str, reference: Option<&str>) {
    let record = site.await_record(&format!("{operation} {reference:?}"), |record| {
        record["mount"] == "hostile" && record["operation"] == operation && record["reference"].as_str() == reference
    });
    assert_eq!(record["outcome"], "cancelled", "{record}");
}

/// Asserts that a cancelled request was not answered. An answer would arrive before the answer to a later ping.
fn assert_unanswered(client: &mut Client<Stdio>, id: u64) {
    client.ping();
    assert_eq!(client.wait_for(id, Duration::ZERO), None);
}

#[test]
fn a_cancelled_read_stops_the_guest_and_is_not_answered() {
    for era in Era::ALL {
        let site = endless();
        let mut client = site.stdio(era);
        await_mount(&mut client);
        for reference in ["spin", "busy", "fill"] {
            let id = client.send("resources/read", json!({ "uri": format!("belljar://hostile/{reference}") }));
            await_busy(&client.wire().process);
            client.cancel(id);
            await_idle(&client.wire().process, reference);
            await_record(&site, "read", Some(reference));
            assert_unanswered(&mut client, id);
            assert!(client.text(WITNESS).contains("UTC"));
        }
        // Both call slots of the mount (`concurrency = 2`) must be free again.
        assert_eq!(client.text("belljar://hostile/ok"), "fine");
        assert!(client.close().status.success());
    }
}

#[test]
fn a_cancelled_read_that_waits_ends_too() {
    let site = endless();
    let mut client = site.stdio(Era::Stateless);
    // Two of these reads run at once, and the others wait for a turn.
    let ids: Vec<u64> = (0..8)
        .map(|number| {
            let uri = format!("belljar://hostile/sleep/{}", 500_000 + number);
            let id = client.send("resources/read", json!({ "uri": uri }));
            // The answer to a ping gives the server time to begin the read.
            client.ping();
            id
        })
        .collect();
    for id in &ids {
        client.cancel(*id);
    }
    // More records than calls that can run. A read that had not begun leaves no record.
    wait_until("records of reads that ran and of reads that waited", || {
        let records = site.audit();
        let reads = records.iter().filter(|record| record["mount"] == "hostile" && record["operation"] == "read");
        let outcomes: Vec<_> = reads.map(|record| record["outcome"].clone()).collect();
        assert!(outcomes.iter().all(|outcome| outcome == "cancelled"), "{outcomes:?}");
        if outcomes.len() > 2 { Ok(()) } else { Err(format!("{outcomes:?}")) }
    });
    for id in ids {
        assert_unanswered(&mut client, id);
    }
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
    assert!(client.close().status.success());
}

#[test]
fn a_cancelled_listing_stops_its_guests() {
    let site = endless();
    let mut client = site.stdio(Era::Stateless);
    await_mount(&mut client);
    let id = client.send("resources/list", json!({}));
    await_busy(&client.wire().process);
    client.cancel(id);
    await_idle(&client.wire().process, "list");
    await_record(&site, "list-resources", None);
    assert_unanswered(&mut client, id);
}

/// Cancelling a finished, an unknown or another client's request has no effect.
#[test]
fn a_cancellation_affects_only_its_own_request() {
    let site = endless();
    for era in Era::ALL {
        let mut client = site.stdio(era);
        let one = client.send("resources/read", json!({ "uri": "belljar://hostile/sleep/500000" }));
        let two = client.send("resources/read", json!({ "uri": "belljar://hostile/sleep/301" }));
        for other in [999_999, 0] {
            client.cancel(other);
        }
        client.notify("notifications/cancelled", json!({ "requestId": "not-one" }));
        client.cancel(one);
        let answer = client.wait(two).unwrap();
        assert_eq!(answer["contents"][0]["text"], "slept 301 ms", "{era:?}");
        client.cancel(two);
        assert_unanswered(&mut client, one);
        assert!(client.close().status.success());
    }
}

/// A stateless client (2026-07-28) cancels a request over HTTP by closing its connection. Row MCP-14 of the hostile
/// table does the same with reads. This row also tests both ways in which a client with a session cancels. Row MCP-15
/// cancels at every moment of a read.
#[test]
fn a_client_that_disconnects_over_http_stops_its_listing() {
    let site = endless();
    let server = site.http();
    await_mount(&mut server.client(Era::Stateless));
    let wire = server.wire(Era::Stateless);
    let stream = server.begin(&wire, &Era::Stateless.message(7, "resources/list", json!({})));
    await_busy(&server.process);
    drop(stream);
    await_idle(&server.process, "list");
    await_record(&site, "list-resources", None);
    let mut client = server.client(Era::Stateless);
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
}

/// The end of standard input cancels all requests of the client.
#[test]
fn a_client_that_disconnects_on_stdio_stops_its_guests() {
    let site = endless();
    let mut client = site.stdio(Era::Stateless);
    await_mount(&mut client);
    for _ in 0..2 {
        client.send("resources/read", json!({ "uri": "belljar://hostile/spin" }));
    }
    await_busy(&client.wire().process);
    // The time limit of the guests is 600 s, longer than the deadline of `close`.
    let ended = client.close();
    assert!(ended.status.success(), "{:?}: {}", ended.status, ended.stderr);
}

/// Begins a read of a session that does not end by itself, and waits until it is in flight: its id is then refused.
fn begin_endless(server: &Server, client: &mut Client<Http>, id: u64) -> TcpStream {
    let read = |reference: &str| {
        let params = json!({ "uri": format!("belljar://hostile/{reference}") });
        json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params })
    };
    let headers = client.wire().headers(&read("ok"));
    wait_until("a request in flight", || {
        let stream = server.begin(client.wire(), &read("sleep/500000"));
        // If this comes first, the other one is refused.
        let answer = server.post(&headers, &read("ok"));
        if answer.text().contains("is in flight already") { Ok(stream) } else { Err(answer.text()) }
    })
}

/// The first bytes of an answer, until the end of its head.
fn head_of(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        head.extend(byte);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_session_over_http_cancels_its_own_reads_only() {
    let site = with_guest("", "");
    let server = site.http();
    let [mut own, mut other] = [(), ()].map(|()| server.client(Era::Session));
    await_mount(&mut own);
    let stream = begin_endless(&server, &mut own, 4000);
    let another = begin_endless(&server, &mut other, 4000);
    other.cancel(4000);
    // A stream of events that has ended: no answer.
    let head = head_of(another);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-length: 0"), "{head}");
    // It may have been cancelled before its call began.
    site.await_record("a cancelled read", |record| record["outcome"] == "cancelled");
    // The mount has two turns, and the read of the other session keeps one of them.
    assert_eq!(other.text("belljar://hostile/ok"), "fine");
    stream.set_nonblocking(true).unwrap();
    assert!(stream.peek(&mut [0]).is_err(), "the read of the other session was answered");
    stream.set_nonblocking(false).unwrap();
    own.cancel(4000);
    assert!(head_of(stream).contains("content-length: 0"));
}

/// A request in flight must not keep its session open.
#[test]
fn a_session_that_ended_answers_nothing_beside_a_request_in_flight() {
    let site = with_guest("", "");
    let server = site.http();
    let mut client = server.client(Era::Session);
    await_mount(&mut client);
    let _stream = begin_endless(&server, &mut client, 4000);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/templates/list", "params": {} });
    let (headers, session) = (client.wire().headers(&list), client.wire().session().unwrap().to_owned());
    let ask = || server.post(&headers, &list).status;
    assert_eq!(ask(), 200);
    server.exchange("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], b"");
    assert_eq!(ask(), 404);
}
