//! Many at once: each mount has its own turns, whoever finds none is told so, and the others do not notice.

use std::time::{Duration, Instant};

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, RpcError, Stdio};
use serde_json::{Value, json};

use crate::place::{kind, serve, site, witness};

/// So many different reads that sleep about as long: those that are the same are run once.
fn sleeps(count: usize, ms: usize) -> Vec<String> {
    (0..count).map(|n| format!("belljar://imp/sleep/{}", ms + n)).collect()
}

fn imp(limits: &str) -> belljar_tests::Site {
    site(&format!("[mounts.imp]\ncomponent = \"imp.wasm\"\nlimits = {{ {limits} }}\n"))
}

/// Sends so many reads at once, reads the witness until the last of them is answered, and tells what came of each and how
/// long the witness took at worst.
fn crowd(client: &mut Client<Stdio>, uris: &[String]) -> (Vec<Result<Value, RpcError>>, Duration) {
    let ids: Vec<u64> = uris.iter().map(|uri| client.send("resources/read", json!({ "uri": uri }))).collect();
    let mut answers: Vec<Option<Result<Value, RpcError>>> = vec![None; ids.len()];
    let mut worst = Duration::ZERO;
    while answers.iter().any(Option::is_none) {
        let began = Instant::now();
        witness(client);
        worst = worst.max(began.elapsed());
        for (id, answer) in ids.iter().zip(&mut answers) {
            if answer.is_none() {
                *answer = client.wait_for(*id, Duration::ZERO);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (answers.into_iter().map(Option::unwrap).collect(), worst)
}

#[test]
fn who_finds_no_turn_is_told_and_the_rest_is_served() {
    let site = imp("concurrency = 4, queue = \"400ms\", time = \"30s\"");
    let mut client = serve(&site);
    let (answers, worst) = crowd(&mut client, &sleeps(100, 250));
    let (fine, busy): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(fine.len() >= 4 && busy.len() >= 50, "{} served, {} refused", fine.len(), busy.len());
    for error in busy.into_iter().map(Result::unwrap_err) {
        assert_eq!((error.code, kind(&error)), (INTERNAL, "busy"), "{error}");
        assert_eq!(error.data["mount"], "imp", "{error}");
        assert!(error.data["hint"].is_string() && error.message.contains("4 calls at once"), "{error}");
    }
    assert!(worst < Duration::from_secs(3), "the witness took {worst:?}");
    // When they are through, there is room again.
    assert!(client.text("belljar://imp/sleep/1").contains("slept"));
}

#[test]
fn who_may_wait_gets_a_turn() {
    let site = imp("concurrency = 8, queue = \"60s\", time = \"60s\"");
    let mut client = serve(&site);
    let (answers, worst) = crowd(&mut client, &sleeps(100, 100));
    for answer in answers {
        assert!(answer.unwrap()["contents"][0]["text"].as_str().unwrap().starts_with("slept 1"));
    }
    assert!(worst < Duration::from_secs(3), "the witness took {worst:?}");
}

/// The queue has an end too, and whoever comes after it does not wait at all: they are refused while the first ones sleep.
#[test]
fn the_queue_is_bounded() {
    let site = imp("concurrency = 1, queue = \"120s\", time = \"120s\"");
    let mut client = serve(&site);
    let mut open: Vec<u64> =
        sleeps(400, 90_000).iter().map(|uri| client.send("resources/read", json!({ "uri": uri }))).collect();
    // Which of them are refused hangs on the order in which the host takes them up; that so many are does not.
    let (mut refused, began) = (0, Instant::now());
    while refused < 100 {
        assert!(began.elapsed() < Duration::from_secs(60), "{refused} refused");
        open.retain(|id| match client.wait_for(*id, Duration::from_millis(1)) {
            None => true,
            Some(answer) => {
                let error = answer.expect_err("served before the others were refused");
                assert_eq!(kind(&error), "busy", "{error}");
                refused += 1;
                false
            }
        });
    }
    open.iter().for_each(|id| client.cancel(*id));
    witness(&mut client);
    assert!(client.close().status.success());
}

/// However many wait, whoever withdraws them is heard, and whoever asks something else is answered.
#[test]
fn a_full_house_still_hears_what_is_said() {
    let site = imp("concurrency = 2, queue = \"20s\", time = \"20s\"");
    let mut client = serve(&site);
    let ids: Vec<u64> =
        sleeps(600, 19_000).iter().map(|uri| client.send("resources/read", json!({ "uri": uri }))).collect();
    let began = Instant::now();
    let ping = client.send("server/discover", json!({}));
    for id in &ids {
        client.cancel(*id);
    }
    assert!(client.wait_for(ping, Duration::from_secs(10)).is_some(), "no answer to a question that runs no guest");
    witness(&mut client);
    assert_eq!(client.text("belljar://imp/ok"), "fine");
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
}

/// What all of them took is given back, or kept for the next ones, and does not become more and more.
#[test]
fn crowds_do_not_add_up_in_memory() {
    let site = imp("concurrency = 8, queue = \"60s\", time = \"60s\"");
    let mut client = serve(&site);
    let uris: Vec<_> =
        (0..30).map(|n| format!("belljar://imp/{}{n:02}", ["grow/0", "grow/10", "text/40000"][n % 3])).collect();
    let mut crowds = |count| {
        (0..count).for_each(|_| drop(crowd(&mut client, &uris)));
        client.wire().process.memory() >> 20
    };
    // Slots and buffers that are kept for later ones come to their number first.
    let before = crowds(12);
    let after = crowds(6);
    // Of each of the 32 places for calls, 2 MiB stay mapped once it was used.
    assert!(after < before + 64, "from {before} to {after} MiB");
    // Eight at once, with 64 MiB each, and what an answer takes while it is written.
    let peak = client.wire().process.peak_memory() >> 20;
    assert!(peak < 8 * 64 + 256, "{peak} MiB at the most");
}
