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
    let id = nap(&mut client, 350);
    client.wire().process.terminate();
    assert!(client.wait(id).is_ok());
    assert_eq!(client.close().status.code(), Some(0));
    assert_eq!(last_read(&site)["outcome"], "ok");
}

#[test]
fn a_stop_lets_an_answer_finish_over_http() {
    let site = site();
    let server = site.http();
    let napping = nap_over_http(&server, 450);
    server.process.terminate();
    assert!(napping.join().expect("a whole answer").is_ok());
    assert_eq!(server.stop().status.code(), Some(0));
}

#[test]
fn a_stop_does_not_wait_for_ever_and_says_so() {
    let site = site();
    let server = site.http();
    let napping = nap_over_http(&server, 59_000);
    let began = Instant::now();
    assert_eq!(server.stop().status.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "it waited {:?}", began.elapsed());
    let error = napping.join().expect("a whole answer").expect_err("the nap was ended");
    assert!(shuts_down(&error), "{error}");
    assert_eq!(last_read(&site)["outcome"], "cancelled", "what was given up is on record");
}

#[test]
fn a_client_that_goes_away_takes_its_server_with_it() {
    let site = site();
    let mut client = site.stdio(Era::Modern);
    let id = nap(&mut client, 59_000);
    let began = Instant::now();
    client.wire().end();
    let error = client.wait(id).expect_err("the nap was ended");
    assert!(shuts_down(&error), "{error}");
    assert_eq!(client.close().status.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "it stayed for {:?}", began.elapsed());
    assert_eq!(last_read(&site)["outcome"], "cancelled");
}

fn shuts_down(error: &RpcError) -> bool {
    error.message.contains("shutting down") && error.data["kind"] == "unavailable"
}

/// Whether a request under a stop may fail like this: it was stopped, or it had reached a limit of its own.
fn is_fair(error: &RpcError) -> bool {
    shuts_down(error) || error.data["kind"] == "limit"
}

/// The last read on record; what is watched may be behind it.
fn last_read(site: &Site) -> Value {
    site.audit().into_iter().rfind(|record| record["operation"] == "read").expect("a read on record")
}

/// Stops under load, again and again, in both eras and on both transports: each request is answered, and nothing panics.
#[test]
fn every_stop_answers_every_request() {
    const ROUNDS: usize = 35;
    let site = site();
    // Some wait, some compute, some are quick.
    let what = ["sleep/59000", "spin", "ok", "sleep/300", "text/100000"];
    for round in 0..ROUNDS {
        let era = Era::ALL[round % 2];
        let began;
        if round % 3 == 2 {
            let server = site.http();
            let mut clients: Vec<_> = what.iter().map(|_| server.client(era)).collect();
            clients.iter_mut().for_each(|client| drop(client.uris()));
            let asking: Vec<_> = clients
                .into_iter()
                .zip(what)
                .map(|(mut client, what)| std::thread::spawn(move || client.read(&format!("belljar://imp/{what}"))))
                .collect();
            std::thread::sleep(Duration::from_millis(200));
            began = Instant::now();
            let ended = server.stop();
            assert_eq!(ended.status.code(), Some(0), "round {round}: {}", ended.stderr);
            assert!(!ended.stderr.contains("panicked"), "round {round}: {}", ended.stderr);
            for (asking, what) in asking.into_iter().zip(what) {
                let answer = asking.join().unwrap_or_else(|_| panic!("round {round}, {era:?}: no answer for {what}"));
                assert!(answer.as_ref().err().is_none_or(is_fair), "round {round}, {what}: {answer:?}");
            }
        } else {
            let mut client = site.stdio(era);
            client.uris();
            let ids = what.map(|what| client.send("resources/read", json!({ "uri": format!("belljar://imp/{what}") })));
            std::thread::sleep(Duration::from_millis(100));
            began = Instant::now();
            client.wire().process.terminate();
            for (id, what) in ids.into_iter().zip(what) {
                let answer = client.wait(id);
                assert!(answer.as_ref().err().is_none_or(is_fair), "round {round}, {what}: {answer:?}");
            }
            let ended = client.close();
            assert_eq!(ended.status.code(), Some(0), "round {round}: {}", ended.stderr);
            assert!(!ended.stderr.contains("panicked"), "round {round}: {}", ended.stderr);
        }
        assert!(began.elapsed() < Duration::from_secs(30), "round {round} took {:?}", began.elapsed());
    }
}
