//! Memory that the host keeps for a provider counts as the provider's memory. Eight calls at once make the host keep as
//! much as possible, through every interface that all mounts have. The process, measured in `/proc`, may grow by
//! `total-memory` and a fixed amount. The error of each stopped call names its cure.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{reached, serve, site};

/// How much the process may grow beyond `total-memory`, for answers and allocators.
const OVERHEAD: u64 = 64 << 20;

/// Like [`OVERHEAD`], if answers of 7 MB wait for a slow client. Each character of these answers takes six bytes as
/// JSON.
const OVERHEAD_OF_ANSWERS: u64 = 192 << 20;

/// The value of `total-memory`: for all calls and all waiting answers. A mount gets half of it.
const TOTAL: u64 = 384 << 20;

/// The memory limit of one call. Eight calls together may use all the memory of their mount.
const MEMORY: u64 = 24 << 20;

/// The longest time for one case, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// The number of answers for each case, while eight calls run at once. For a long test, set `BELLJAR_GROWTH=1000`.
fn rounds() -> usize {
    std::env::var("BELLJAR_GROWTH").ok().and_then(|count| count.parse().ok()).unwrap_or(8)
}

/// The cases: the kind of resource, the count, the size in bytes, and the limits that may stop the call. In a case
/// without a limit, the host refuses the resource, or needs little memory.
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
fn host_memory_for_eight_concurrent_calls_stays_below_total_memory() {
    let site = site(&format!(
        "total-memory = \"{}MiB\"\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\n[mounts.hostile.limits]\nmemory = \"{}MiB\"\ncpu = \"1000%\"\ntime = \"120s\"\n",
        TOTAL >> 20,
        MEMORY >> 20
    ));
    let mut client = serve(&site);
    client.text("belljar://hostile/ok");
    let before = client.wire().process.memory();
    let mut results = Vec::new();
    let mut serial = 0;
    for (kind, count, bytes, limits) in KINDS {
        let began = Instant::now();
        let mut pending = Vec::new();
        let (mut answers, mut reached_limits, mut texts) = (0, BTreeSet::new(), BTreeSet::new());
        while answers < rounds() {
            while pending.len() < 8 {
                serial += 1;
                // Each read has its own name, because the circuit breaker refuses repeated failures of one name.
                let uri = format!("belljar://hostile/keep/{kind}%252F{count}%252F{bytes}%252F{serial}");
                pending.push(client.send("resources/read", json!({ "uri": uri })));
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{kind}: {answers} answers in {PATIENCE:?}; {reached_limits:?}; {texts:?}"
            );
            let first = pending.remove(0);
            let answer = client.wait(first);
            match &answer {
                Err(error) if error.data["kind"] == "limit" => {
                    reached_limits.insert(reached(error, "hostile").limit);
                    answers += 1;
                }
                Err(error) => {
                    texts.insert(error.message.clone());
                }
                Ok(result) => {
                    let text = result["contents"][0]["text"].as_str().unwrap_or_default();
                    texts.insert(text.chars().take(80).collect::<String>());
                    answers += 1;
                }
            }
        }
        for id in pending {
            let _ = client.wait(id);
        }
        let grown = client.wire().process.peak_memory().saturating_sub(before);
        results.push(format!("{kind}/{count}/{bytes}: {} MiB; limits {reached_limits:?}; {texts:?}", grown >> 20));
        let overhead = if *kind == "text" { OVERHEAD_OF_ANSWERS } else { OVERHEAD };
        assert!(grown <= TOTAL + overhead, "the process grew too much:\n{}", results.join("\n"));
        assert!(
            reached_limits.iter().all(|limit| limits.contains(&limit.as_str())),
            "an unexpected limit stopped a call:\n{}",
            results.join("\n")
        );
        if let [only] = limits {
            assert!(reached_limits.contains(*only), "no limit stopped the calls:\n{}", results.join("\n"));
        }
    }
}

/// The memory in the audit record of a call is the memory in the guest and in the host.
#[test]
fn memory_kept_by_the_host_is_recorded() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n");
    let mut client = serve(&site);
    let mut memory = |reference: &str| {
        let text = client.text(&format!("belljar://hostile/{reference}"));
        let record = site.await_record(reference, |record| record["reference"] == *reference);
        (text, record["usage"]["memory"].as_u64().unwrap_or_else(|| panic!("{record}")))
    };
    let (_, little) = memory("keep/options%252F1");
    let (text, bodies) = memory("keep/finished%252F8%252F1000000");
    assert_eq!(text, "8 finished");
    // The host buffers two pieces of 1 MB for each of the eight bodies.
    assert!(bodies >= little + 16_000_000, "{bodies} after {little}");
    let (text, fields) = memory("keep/fields%252F100%252F60000");
    assert_eq!(text, "100 fields");
    assert!(fields >= little + 6_000_000, "{fields} after {little}");
}

/// The memory of dropped resources no longer counts. So a provider may use many resources one after another.
#[test]
fn dropped_values_are_no_longer_counted() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n[mounts.hostile.limits]\nmemory = \"8MiB\"\n");
    let mut client = serve(&site);
    for (reference, expected) in [
        ("keep/dropped%252F200%252F1000000", "200 dropped"),
        ("keep/replaced%252F20%252F60000", "20 replaced"),
        ("keep/printed%252F2000%252F4096", "2000 printed"),
        ("keep/random%252F20%252F1000000", "20 random"),
    ] {
        assert_eq!(client.text(&format!("belljar://hostile/{reference}")), expected);
    }
}
