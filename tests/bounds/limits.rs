//! One call takes more than its share, in each way that there is: it ends within its deadline, says which limit it met,
//! and the witness answers meanwhile.

use std::time::Duration;

use crate::place::{Reached, SLACK, attack_by_read, cure, imp, reached, serve};

const TIME: &str = "time = \"700ms\"";
const FUEL: &str = "fuel = 20_000_000";
const MEMORY: &str = "memory = \"8MiB\"";
const RESULT: &str = "result = \"64KiB\"";

/// Reads `reference` of an imp with `limits`, which must end at a limit.
fn stopped(limits: &str, reference: &str) -> (Reached, Duration, usize) {
    let site = imp(limits);
    let mut client = serve(&site);
    let attack = attack_by_read(&mut client, &format!("belljar://imp/{reference}"));
    let error = attack.answer.expect_err("an error");
    let ended = client.close();
    assert!(ended.status.success(), "{}", ended.stderr);
    (reached(&error, "imp"), attack.took, attack.witnessed)
}

/// Whatever a guest does with its time, it ends when that is over; and as long as it goes on, others are served.
#[test]
fn time_ends_a_call_that_computes_or_waits() {
    let slow = format!("{TIME}\nfuel = 1_000_000_000_000");
    for reference in ["spin", "sleep/60000", "forever", "busy", "fill"] {
        let (reached, took, witnessed) = stopped(&slow, reference);
        assert_eq!((reached.limit.as_str(), reached.cap), ("time", 700), "{reference}");
        assert!(took < Duration::from_millis(700) + SLACK, "{reference} took {took:?}");
        assert!(witnessed > 0, "{reference}: the witness did not answer before it was over");
    }
}

#[test]
fn each_limit_that_is_reached_is_named() {
    for (limits, reference, limit, cap) in [
        (FUEL, "spin", "fuel", 20_000_000),
        (FUEL, "busy", "fuel", 20_000_000),
        (FUEL, "fill", "fuel", 20_000_000),
        (MEMORY, "grow/64", "memory", 8 << 20),
        (MEMORY, "text/60000000", "memory", 8 << 20),
        ("", "grow/100000", "memory", 64 << 20),
        ("", "recurse/0", "stack", 512 << 10),
        (RESULT, "text/200000", "result", 64 << 10),
        (RESULT, "blob/200000", "result", 64 << 10),
        (RESULT, "blob/65536", "result", 64 << 10),
        (RESULT, "many/5000", "result", 64 << 10),
        ("", "text/20000000", "result", 8 << 20),
        ("handles = 100", "handles/200", "handles", 100),
        ("", "handles/1000000", "handles", 1024),
        ("random = \"1KiB\"", "random/2000", "random", 1 << 10),
        ("", "random/30000000", "random", 1 << 20),
    ] {
        let (reached, took, _) = stopped(limits, reference);
        assert_eq!((reached.limit.as_str(), reached.cap), (limit, cap), "{limits} {reference}");
        assert!(took < Duration::from_secs(5) + SLACK, "{limits} {reference} took {took:?}");
        if limit != "stack" {
            cure(&reached, "imp");
        }
    }
}

/// The hint is believed, and the same read passes, at the first try.
#[test]
fn what_the_hint_says_helps() {
    for (limits, reference, expected) in [
        (TIME, "sleep/900", "slept 900 ms"),
        ("fuel = 200_000", "recurse/5000", "5000 frames"),
        ("memory = \"4MiB\"", "grow/4", "4 MiB"),
        (RESULT, "text/100000", "xxx"),
        ("handles = 100", "handles/80", "80 handles"),
        ("random = \"1KiB\"", "random/4000", "4000 random bytes"),
    ] {
        let (reached, ..) = stopped(limits, reference);
        let site = imp(&cure(&reached, "imp"));
        let mut client = serve(&site);
        let text = client.text(&format!("belljar://imp/{reference}"));
        assert!(
            text.starts_with(expected),
            "{limits} {reference}: {:?} after {reached:?}",
            text.get(..100).unwrap_or(&text)
        );
    }
}

/// Were a limit not taken off again, or counted over calls, the second of these would fail.
#[test]
fn a_limit_is_one_of_each_call() {
    let site = imp("memory = \"16MiB\"\nfuel = 50_000_000\nhandles = 100");
    let mut client = serve(&site);
    for _ in 0..20 {
        for (reference, expected) in [("grow/10", "10 MiB"), ("handles/40", "40 handles")] {
            assert_eq!(client.text(&format!("belljar://imp/{reference}")), expected);
        }
    }
}

/// What a guest may take, the host does not take for it: neither while it grows nor afterwards.
#[test]
fn memory_that_is_refused_is_not_used() {
    let site = imp(MEMORY);
    let mut client = serve(&site);
    let before = client.wire().process.memory();
    for _ in 0..50 {
        let attack = attack_by_read(&mut client, "belljar://imp/grow/1000");
        assert_eq!(reached(&attack.answer.expect_err("an error"), "imp").limit, "memory");
    }
    let peak = client.wire().process.peak_memory();
    assert!(peak < before + (64 << 20), "from {before} to {peak} bytes");
}

#[test]
fn a_large_answer_within_its_limit_is_delivered() {
    let site = imp("result = \"32MiB\"\nmemory = \"128MiB\"");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://imp/text/20000000").len(), 20_000_000);
    assert_eq!(client.blob("belljar://imp/blob/10000000"), vec![0xff; 10_000_000]);
}
