//! How a server ends: answers under way come first, then it is gone, with its records written.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, RpcError, Server, Site, Wire};
use serde_json::{Value, json};

/// A site whose mount `imp` sleeps as long as it is asked to, within a minute.
fn site() -> Site {
    let site = Site::new();
    site.mount_as("guest_imp", "imp.wasm");
    let audit = site.path("audit.jsonl");
    site.config(&format!("audit = {audit:?}\n[mounts.imp.limits]\ntime = \"60s\""));
    site
}

/// Asks for a nap of so many milliseconds, and gives the server time to begin it.
fn nap<W: Wire>(client: &mut Client<W>, milliseconds: u32) -> u64 {
    client.uris();
    let id = client.send("resources/read", json!({ "uri": format!("belljar://imp/sleep/{milliseconds}") }));
    std::thread::sleep(Duration::from_millis(200));
    id
}

/// The same over HTTP, where a request keeps its connection, and its thread, until it is answered.
fn nap_over_http(server: &Server, milliseconds: u32) -> JoinHandle<Result<Value, RpcError>> {
    let mut client = server.client(Era::Modern);
    client.uris();
    let uri = format!("belljar://imp/sleep/{milliseconds}");
    let napping = std::thread::spawn(move || client.read(&uri));
    std::thread::sleep(Duration::from_millis(300));
    napping
}

#[test]
fn a_stop_lets_an_answer_finish_on_stdio() {
    let site = site();
    let mut client = site.stdio(Era::Modern);
    let id = nap(&mut client, 700);
    client.wire().process.terminate();
    assert!(client.wait(id).is_ok());
    assert_eq!(client.close().status.code(), Some(0));
    assert_eq!(site.audit().last().unwrap()["outcome"], "ok");
}

#[test]
fn a_stop_lets_an_answer_finish_over_http() {
    let site = site();
    let server = site.http();
    let napping = nap_over_http(&server, 700);
    server.process.terminate();
    assert!(napping.join().expect("a whole answer").is_ok());
    assert_eq!(server.stop().status.code(), Some(0));
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let site = site();
    let server = site.http();
    let napping = nap_over_http(&server, 59_000);
    let began = Instant::now();
    assert_eq!(server.stop().status.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "it waited {:?}", began.elapsed());
    assert!(napping.join().is_err(), "an answer came after all");
    assert_eq!(site.audit().last().unwrap()["outcome"], "cancelled", "what was given up is on record");
}

#[test]
fn a_client_that_goes_away_takes_its_server_with_it() {
    let site = site();
    let mut client = site.stdio(Era::Modern);
    nap(&mut client, 59_000);
    let began = Instant::now();
    assert_eq!(client.close().status.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "it stayed for {:?}", began.elapsed());
    assert_eq!(site.audit().last().unwrap()["outcome"], "cancelled");
}
