//! Many calls at once, in the real server. A call needs a turn to run, and each mount has a limited number of turns.
//! Calls that wait too long for a turn fail as busy. Other mounts are not affected: reads of the witness `clock`
//! succeed.

use std::time::Duration;

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, RpcError, Stdio, wait_until};
use serde_json::{Value, json};

use crate::support::{kind, serve, site, witness};

/// The URIs of `count` reads that sleep about equally long. The URIs differ, because belljar runs identical reads only
/// once.
fn sleeps(count: usize, ms: usize) -> Vec<String> {
    (0..count).map(|n| format!("belljar://hostile/sleep/{}", ms + n)).collect()
}

/// A site with a hostile guest that has these limits.
fn hostile_guest(limits: &str) -> belljar_tests::Site {
    site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nlimits = {{ {limits} }}\n"))
}

/// Sends all reads at once.
fn send_all(client: &mut Client<Stdio>, uris: &[String]) -> Vec<u64> {
    uris.iter().map(|uri| client.send("resources/read", json!({ "uri": uri }))).collect()
}

/// Waits until `count` of the requests `open` are answered, and reads the witness meanwhile. Removes answered requests
/// from
/// `open`.
fn answers(client: &mut Client<Stdio>, open: &mut Vec<u64>, count: usize) -> Vec<Result<Value, RpcError>> {
    let mut answers = Vec::new();
    wait_until(&format!("{count} answers"), || {
        witness(client);
        open.retain(|id| match client.wait_for(*id, Duration::ZERO) {
            None => true,
            Some(answer) => {
                answers.push(answer);
                false
            }
        });
        (answers.len() >= count).then_some(()).ok_or_else(|| format!("{} answers", answers.len()))
    });
    answers
}

/// Sends all reads at once, and waits for all answers.
fn send_and_wait(client: &mut Client<Stdio>, uris: &[String]) -> Vec<Result<Value, RpcError>> {
    let mut open = send_all(client, uris);
    answers(client, &mut open, uris.len())
}

#[test]
fn calls_without_a_turn_fail_as_busy() {
    let site = hostile_guest("concurrency = 4, queue = \"400ms\", time = \"600s\"");
    let mut client = serve(&site);
    // Four calls run for longer than the test. The other 96 calls wait until the `queue` time is over.
    let mut open = send_all(&mut client, &sleeps(100, 500_000));
    for error in answers(&mut client, &mut open, 96).into_iter().map(Result::unwrap_err) {
        assert_eq!((error.code, kind(&error)), (INTERNAL, "busy"), "{error}");
        assert_eq!(error.data["mount"], "hostile", "{error}");
        assert!(error.data["hint"].is_string() && error.message.contains("4 calls at once"), "{error}");
    }
    assert_eq!(open.len(), 4);
    open.into_iter().for_each(|id| client.cancel(id));
    // After the cancellations, a further call gets a turn.
    assert!(client.text("belljar://hostile/sleep/1").contains("slept"));
}

#[test]
fn calls_with_a_long_queue_time_get_a_turn() {
    let site = hostile_guest("concurrency = 8, queue = \"120s\", time = \"120s\"");
    let mut client = serve(&site);
    for answer in send_and_wait(&mut client, &sleeps(100, 100)) {
        assert!(answer.unwrap()["contents"][0]["text"].as_str().unwrap().starts_with("slept 1"));
    }
}

/// The queue has a maximal length. Further calls are refused at once, while the first ones sleep.
#[test]
fn the_queue_is_bounded() {
    let site = hostile_guest("concurrency = 1, queue = \"120s\", time = \"120s\"");
    let mut client = serve(&site);
    let mut open = send_all(&mut client, &sleeps(400, 90_000));
    // Which reads are refused depends on the order in which the host accepts them; their number does not.
    for answer in answers(&mut client, &mut open, 100) {
        let error = answer.expect_err("a waiting call was served before the others were refused");
        assert_eq!(kind(&error), "busy", "{error}");
    }
    open.iter().for_each(|id| client.cancel(*id));
    witness(&mut client);
    assert!(client.close().status.success());
}

/// For any number of waiting calls, belljar processes cancellations and other requests.
#[test]
fn a_full_queue_still_accepts_cancellations_and_other_requests() {
    let site = hostile_guest("concurrency = 2, queue = \"600s\", time = \"600s\"");
    let mut client = serve(&site);
    let ids = send_all(&mut client, &sleeps(600, 500_000));
    let ping = client.send("server/discover", json!({}));
    for id in &ids {
        client.cancel(*id);
    }
    client.wait(ping).unwrap();
    witness(&mut client);
    assert_eq!(client.text("belljar://hostile/ok"), "fine");
}

/// The memory of calls is freed or reused by later calls, and does not grow.
#[test]
fn memory_of_many_calls_does_not_add_up() {
    let site = hostile_guest("concurrency = 8, queue = \"120s\", time = \"120s\"");
    let mut client = serve(&site);
    let uris: Vec<_> =
        (0..30).map(|n| format!("belljar://hostile/{}{n:02}", ["grow/0", "grow/10", "text/40000"][n % 3])).collect();
    let mut memory_after = |count| {
        (0..count).for_each(|_| drop(send_and_wait(&mut client, &uris)));
        client.wire().process.memory() >> 20
    };
    // The first calls allocate all slots and buffers. Later calls reuse them.
    let before = memory_after(12);
    let after = memory_after(6);
    // Each of the 32 slots keeps 2 MiB mapped after its first use.
    assert!(after < before + 64, "from {before} to {after} MiB");
    // Allow eight calls with 64 MiB each, and the answer that is being written.
    let peak = client.wire().process.peak_memory() >> 20;
    assert!(peak < 8 * 64 + 256, "the peak is {peak} MiB");
}
