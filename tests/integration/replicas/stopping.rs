//! A replica that is told to stop loses no request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use belljar_tests::{DEADLINE, Era, Site, wait_until};
use serde_json::json;

use crate::subscriptions::notifications::Watcher;
use crate::support::{empty, patient};

const URI: &str = "belljar://fixture/static-text";

/// A site whose belljar serves on for this time after it is told to stop.
fn site(delay: &str) -> Site {
    let site = empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount_as("guest_hostile", "hostile.wasm");
    let config = "[serve]\ndrain-delay = \"DELAY\"\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\n";
    site.config(&patient(&config.replace("DELAY", delay)));
    site
}

#[test]
fn a_call_that_runs_is_finished_and_streams_get_their_last_result() {
    let site = site("300ms");
    let server = site.http();
    let watcher = Watcher::http(&server, Era::Stateless, &[URI], false);
    let mut client = server.client(Era::Stateless);
    // Longer than the delay, and than the time that running requests have without one.
    let slow = client.send("resources/read", json!({ "uri": "belljar://hostile/sleep/3000" }));
    std::thread::sleep(Duration::from_millis(500));
    server.process.terminate();
    let answer = client.wait_for(slow, DEADLINE).expect("an answer");
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(watcher.last_result(), Some(json!(77)), "the stream ends with its result");
    let ended = server.process.wait(DEADLINE);
    assert!(ended.status.success(), "{}", ended.stderr);
}

/// The body of the answer to one read, on a connection of its own. `None` if no connection was made. Panics if a request
/// was sent and no whole answer came.
fn read(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let body = Era::Stateless.message(1, "resources/read", json!({ "uri": URI })).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: resources/read\r\nmcp-name: {URI}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("a server that reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a whole answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"contents\""), "{answer}");
    Some(answer)
}

#[test]
fn a_rolling_restart_of_all_replicas_loses_no_request() {
    let sites: Vec<Site> = (0..3).map(|_| site("10m")).collect();
    let servers: Vec<_> = sites.iter().map(Site::http).collect();
    let addresses = Mutex::new(servers.iter().map(|server| server.address()).collect::<Vec<_>>());
    let mut started = Vec::new();
    let is_over = AtomicBool::new(false);
    let answered: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
    // Each client has since read the list of addresses and finished a request.
    let all_went_on = || {
        let counts = || answered.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = counts();
        wait_until("answers of all clients", || {
            let now = counts();
            if now.iter().zip(&before).all(|(now, before)| *now > before + 1) {
                Ok(())
            } else {
                Err(format!("{now:?}"))
            }
        });
    };
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (addresses, is_over, answered) = (&addresses, &is_over, &answered);
            scope.spawn(move || {
                let mut turn = client;
                while !is_over.load(Ordering::Relaxed) {
                    turn += 1;
                    let all = addresses.lock().unwrap().clone();
                    // A client that cannot connect tries the next replica.
                    let found = (0..all.len()).find_map(|more| read(all[(turn + more) % all.len()]));
                    assert!(found.is_some(), "no replica accepts a connection");
                    answered[client].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for (at, server) in servers.into_iter().enumerate() {
            let new = sites[at].http();
            server.process.terminate();
            // The balancer has not noticed yet, and sends more requests.
            all_went_on();
            addresses.lock().unwrap()[at] = new.address();
            all_went_on();
            // The second signal ends the delay.
            server.process.terminate();
            let ended = server.process.wait(DEADLINE);
            assert!(ended.status.success(), "{}", ended.stderr);
            started.push(new);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
