//! A request that is withdrawn is over: its guest stops, nothing is answered, and the record says so.

use std::time::{Duration, Instant};

use belljar_tests::{Era, Process, Site};
use serde_json::{Value, json};

use crate::place::{WITNESS, site};

/// A call that would go on for longer than any test.
fn endless() -> Site {
    site(
        "list-time = \"600s\"\n[watch]\nlists = \"1day\"\nreread = \"1day\"\n[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = { IMP_LIST = \"loop\" }\n\
         limits = { time = \"600s\", fuel = 1_000_000_000_000_000, concurrency = 2 }\n",
    )
}

/// How much processor time is looked at, in ticks of 10 ms. A guest that computes takes all that it can get.
const LOOK: Duration = Duration::from_millis(500);

/// A share of [`LOOK`] that a server takes which does nothing but answer a test.
const IDLE: u64 = 8;

fn ticks(process: &Process) -> u64 {
    let before = process.cpu_ticks();
    std::thread::sleep(LOOK);
    process.cpu_ticks() - before
}

/// Waits until the process computes.
fn await_busy(process: &Process) {
    let began = Instant::now();
    while ticks(process) <= IDLE {
        assert!(began.elapsed() < Duration::from_secs(30), "the guest does not run");
    }
}

/// Waits until the process rests; the guest's own time ends much later.
fn await_idle(process: &Process, what: &str) {
    let began = Instant::now();
    while ticks(process) > IDLE {
        assert!(began.elapsed() < Duration::from_secs(15), "{what}: the guest goes on");
    }
}

/// Waits until such a call is on record as withdrawn.
fn await_record(site: &Site, operation: &str, reference: Option<&str>) {
    let began = Instant::now();
    loop {
        let records = site.audit();
        let of_it = |record: &&Value| {
            record["mount"] == "imp" && record["operation"] == operation && record["reference"].as_str() == reference
        };
        if let Some(record) = records.iter().find(of_it) {
            assert_eq!(record["outcome"], "cancelled", "{record}");
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "not on record: {records:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_withdrawn_read_stops_the_guest_and_is_not_answered() {
    for era in Era::ALL {
        let site = endless();
        let mut client = site.stdio(era);
        for reference in ["spin", "busy", "fill"] {
            let id = client.send("resources/read", json!({ "uri": format!("belljar://imp/{reference}") }));
            await_busy(&client.wire().process);
            client.cancel(id);
            await_idle(&client.wire().process, reference);
            await_record(&site, "read", Some(reference));
            assert_eq!(client.wait_for(id, Duration::from_millis(300)), None, "{era:?} {reference}");
            client.ping();
            assert!(client.text(WITNESS).contains("UTC"));
        }
        // Both of its turns came free again, each time.
        assert_eq!(client.text("belljar://imp/ok"), "fine");
        assert!(client.close().status.success());
    }
}

#[test]
fn a_withdrawn_read_that_waits_is_over_too() {
    let site = endless();
    let mut client = site.stdio(Era::Modern);
    // More than have a turn at once: some of them wait for one.
    let ids: Vec<u64> = ["sleep/500000", "forever", "sleep/500001", "sleep/500002"]
        .iter()
        .map(|reference| client.send("resources/read", json!({ "uri": format!("belljar://imp/{reference}") })))
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    for id in &ids {
        client.cancel(*id);
    }
    await_record(&site, "read", Some("sleep/500000"));
    await_record(&site, "read", Some("forever"));
    for id in ids {
        assert_eq!(client.wait_for(id, Duration::from_millis(100)), None);
    }
    assert_eq!(client.text("belljar://imp/ok"), "fine");
    assert!(client.close().status.success());
}

#[test]
fn a_withdrawn_listing_stops_its_guests() {
    let site = endless();
    let mut client = site.stdio(Era::Modern);
    let id = client.send("resources/list", json!({}));
    await_busy(&client.wire().process);
    client.cancel(id);
    await_idle(&client.wire().process, "list");
    await_record(&site, "list-resources", None);
    assert_eq!(client.wait_for(id, Duration::from_millis(300)), None);
}

/// Cancelling what is over, or what never was, or another's, harms nobody.
#[test]
fn a_withdrawal_concerns_its_own_request_only() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    for era in Era::ALL {
        let mut client = site.stdio(era);
        let one = client.send("resources/read", json!({ "uri": "belljar://imp/sleep/800" }));
        let two = client.send("resources/read", json!({ "uri": "belljar://imp/sleep/801" }));
        for other in [999_999, 0] {
            client.cancel(other);
        }
        client.notify("notifications/cancelled", json!({ "requestId": "not-one" }));
        client.cancel(one);
        let answer = client.wait(two).unwrap();
        assert_eq!(answer["contents"][0]["text"], "slept 801 ms", "{era:?}");
        assert_eq!(client.wait_for(one, Duration::from_millis(300)), None, "{era:?}");
        client.cancel(two);
        client.ping();
        assert!(client.close().status.success());
    }
}

/// Cancelled at each moment of a short life, over and over: exactly one answer or none, and the server goes on.
#[test]
fn withdrawing_at_any_moment_is_safe() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    let mut client = site.stdio(Era::Modern);
    let mut answered = 0;
    // One that computes and is encoded, which a machine may finish at any moment; and one that waits, of which some are
    // withdrawn long before its end and others long after, however busy the machine is.
    for (uri, step, is_counted) in [("text/100000", 25, false), ("sleep/20", 400, true)] {
        for round in 0..100u64 {
            let id = client.send("resources/read", json!({ "uri": format!("belljar://imp/{uri}") }));
            std::thread::sleep(Duration::from_micros(round * step));
            client.cancel(id);
            // Requests are told apart by their order here: what was answered came before this.
            client.ping();
            let is_answered = client.wait_for(id, Duration::ZERO).is_some();
            answered += usize::from(is_answered && is_counted);
        }
    }
    assert!(answered > 0 && answered < 100, "{answered} of 100 were answered: not every moment was met");
    assert_eq!(client.text("belljar://imp/ok"), "fine");
    assert!(client.close().status.success());
}

/// In the modern era a client withdraws a request by closing its connection.
#[test]
fn a_client_that_goes_away_over_http_stops_its_guest() {
    let site = endless();
    let server = site.http();
    let wire = server.wire(Era::Modern);
    for (method, params, operation, reference) in [
        ("resources/read", json!({ "uri": "belljar://imp/spin" }), "read", Some("spin")),
        ("resources/list", json!({}), "list-resources", None),
    ] {
        let stream = server.begin(&wire, &Era::Modern.message(7, method, params));
        await_busy(&server.process);
        drop(stream);
        await_idle(&server.process, method);
        await_record(&site, operation, reference);
    }
    let mut client = server.client(Era::Modern);
    assert_eq!(client.text("belljar://imp/ok"), "fine");
}

/// In the older era it says so, on another connection of its session.
#[test]
fn a_session_that_withdraws_a_request_stops_its_guest() {
    let site = endless();
    let server = site.http();
    let mut client = server.client(Era::Older);
    let read =
        json!({ "jsonrpc": "2.0", "id": 77, "method": "resources/read", "params": { "uri": "belljar://imp/spin" } });
    let stream = server.begin(client.wire(), &read);
    await_busy(&server.process);
    client.notify("notifications/cancelled", json!({ "requestId": 77 }));
    await_idle(&server.process, "read");
    await_record(&site, "read", Some("spin"));
    drop(stream);
    assert_eq!(client.text("belljar://imp/ok"), "fine");
}

/// The stream's end is the end of everything on it.
#[test]
fn a_client_that_goes_away_on_stdio_stops_its_guests() {
    let site = endless();
    let mut client = site.stdio(Era::Modern);
    for _ in 0..2 {
        client.send("resources/read", json!({ "uri": "belljar://imp/spin" }));
    }
    await_busy(&client.wire().process);
    let began = Instant::now();
    let ended = client.close();
    assert!(ended.status.success(), "{:?}: {}", ended.status, ended.stderr);
    assert!(began.elapsed() < Duration::from_secs(15), "it took {:?} to end", began.elapsed());
}
