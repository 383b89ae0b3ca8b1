//! What the host keeps for a provider is part of the provider's memory. The process is watched from outside (`/proc`) while
//! eight calls at once have the host keep as much as it will, through every interface that is linked for everybody: it
//! grows by `total-memory` and what is allowed beside it, at the most, and what stopped a call is told with its cure.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::place::{reached, serve, site};

/// What may be taken beside `total-memory`: what answers and allocators need.
const BESIDE: u64 = 64 << 20;

/// The memory of all calls and of all answers on their way; a mount gets half of it.
const TOTAL: u64 = 384 << 20;

/// The memory of one call: eight of them have all that their mount may have.
const MEMORY: u64 = 24 << 20;

/// How long one kind may take until it is stopped for the first time, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(240);

/// How long each of them goes on. The long form: `BELLJAR_GROWTH=30`.
fn time() -> Duration {
    let seconds = std::env::var("BELLJAR_GROWTH").ok().and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Duration::from_millis(1000), Duration::from_secs)
}

/// What is kept, how often, of which size, and the limits that it may end with; none: the guest is told no, or it is little.
const KINDS: &[(&str, usize, usize, &[&str])] = &[
    ("bodies", 1000, 1 << 20, &["memory"]),
    ("finished", 1000, 1 << 20, &["memory"]),
    ("dropped", 50, 1 << 20, &[]),
    ("pieces", 1000, 1 << 20, &["requests"]),
    ("zeroes", 1000, 1 << 20, &["memory"]),
    ("spliced", 1000, 1 << 20, &["requests"]),
    ("responses", 1000, 1 << 20, &["memory"]),
    ("method", 1000, 4 << 20, &[]),
    ("scheme", 1000, 4 << 20, &[]),
    ("authority", 1000, 4 << 20, &[]),
    ("authority", 1000, 1000, &["requests"]),
    ("path", 1000, 4 << 20, &[]),
    ("path", 1000, 30_000, &["requests"]),
    ("query", 1000, 60_000, &[]),
    ("fields", 500, 60_000, &["memory"]),
    ("empty-fields", 200, 850, &["memory"]),
    ("listed-fields", 200, 850, &["memory"]),
    ("values", 100, 1600, &["memory"]),
    ("copies", 60, 60_000, &["memory"]),
    ("headers", 60, 850, &["memory"]),
    ("replaced", 10, 60_000, &[]),
    ("trailers", 500, 60_000, &["memory"]),
    ("options", 5000, 0, &["handles"]),
    ("futures", 1000, 500, &["memory"]),
    ("timers", 5000, 0, &["handles"]),
    ("streams", 5000, 0, &["handles"]),
    ("networks", 5000, 0, &["handles"]),
    ("name", 10, 2 << 20, &[]),
    ("random", 20, 1 << 20, &[]),
    ("insecure", 20, 1 << 20, &[]),
    ("environment", 1000, 0, &[]),
    ("printed", 500, 4096, &[]),
    ("errors", 5000, 0, &["handles"]),
    ("list", 1, 500_000, &["handles"]),
    ("text", 1, 7 << 20, &[]),
];

#[test]
fn eight_calls_at_once_cannot_have_the_host_keep_more_than_the_memory_of_all_calls() {
    let site = site(&format!(
        "total-memory = \"{}MiB\"\n[mounts.imp]\ncomponent = \"imp.wasm\"\n[mounts.imp.limits]\nmemory = \"{}MiB\"\ncpu = \"1000%\"\ntime = \"120s\"\n",
        TOTAL >> 20,
        MEMORY >> 20
    ));
    let mut client = serve(&site);
    client.text("belljar://imp/ok");
    let before = client.wire().process.memory();
    let mut told = Vec::new();
    let mut serial = 0;
    for (kind, count, bytes, limits) in KINDS {
        let began = Instant::now();
        let mut flying = Vec::new();
        let (mut answers, mut met, mut seen) = (0, BTreeSet::new(), BTreeSet::new());
        while began.elapsed() < time() || answers == 0 {
            while flying.len() < 8 {
                serial += 1;
                // Each by a name of its own: what fails again and again by one name is not tried again.
                let uri = format!("belljar://imp/keep/{kind}%252F{count}%252F{bytes}%252F{serial}");
                flying.push(client.send("resources/read", json!({ "uri": uri })));
            }
            assert!(began.elapsed() < PATIENCE, "nothing came of {kind}: {seen:?}");
            let first = flying.remove(0);
            let answer = client.wait(first);
            match &answer {
                Err(error) if error.data["kind"] == "limit" => {
                    met.insert(reached(error, "imp").limit);
                    answers += 1;
                }
                Err(error) => {
                    seen.insert(error.message.clone());
                }
                Ok(result) => {
                    let text = result["contents"][0]["text"].as_str().unwrap_or_default();
                    seen.insert(text.chars().take(80).collect::<String>());
                    answers += 1;
                }
            }
        }
        for id in flying {
            let _ = client.wait(id);
        }
        let grown = client.wire().process.peak_memory().saturating_sub(before);
        told.push(format!("{kind}/{count}/{bytes}: {} MiB; limits {met:?}; {seen:?}", grown >> 20));
        assert!(grown <= TOTAL + BESIDE, "it grew too much:\n{}", told.join("\n"));
        assert!(met.iter().all(|limit| limits.contains(&limit.as_str())), "another limit:\n{}", told.join("\n"));
        if let [only] = limits {
            assert!(met.contains(*only), "not stopped:\n{}", told.join("\n"));
        }
    }
}

/// The record tells what a call took, wherever it lay.
#[test]
fn what_the_host_keeps_is_in_the_record() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n");
    let mut client = serve(&site);
    let mut memory = |reference: &str| {
        let text = client.text(&format!("belljar://imp/{reference}"));
        let record = loop {
            let all = site.audit();
            if let Some(record) = all.into_iter().rfind(|record| record["reference"] == *reference) {
                break record;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        (text, record["usage"]["memory"].as_u64().unwrap_or_else(|| panic!("{record}")))
    };
    let (_, little) = memory("keep/options%252F1");
    let (said, bodies) = memory("keep/finished%252F8%252F1000000");
    assert_eq!(said, "8 finished");
    // Two pieces of each wait in its body.
    assert!(bodies >= little + 16_000_000, "{bodies} after {little}");
    let (said, fields) = memory("keep/fields%252F100%252F60000");
    assert_eq!(said, "100 fields");
    assert!(fields >= little + 6_000_000, "{fields} after {little}");
}

/// What is given back can be taken again: a provider that goes through many things, one after the other, is let.
#[test]
fn what_is_dropped_is_no_longer_counted() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\n[mounts.imp.limits]\nmemory = \"8MiB\"\n");
    let mut client = serve(&site);
    for (reference, expected) in [
        ("keep/dropped%252F200%252F1000000", "200 dropped"),
        ("keep/replaced%252F20%252F60000", "20 replaced"),
        ("keep/printed%252F2000%252F4096", "2000 printed"),
        ("keep/random%252F20%252F1000000", "20 random"),
    ] {
        assert_eq!(client.text(&format!("belljar://imp/{reference}")), expected);
    }
}
