//! Runs each hot path a few times, and has what it costs counted: by callgrind, where valgrind runs this program, in
//! instructions; and by its own allocator, in allocations. `cargo xtask instructions` runs it and judges the figures.
//!
//! Only the thread is counted on which everything is asked and answered: the epoch's thread and the writer of records go by
//! the machine's clock. What is counted goes by a clock of its own (`clock.rs`). Each path is counted alone, many times, right
//! after two runs of it that are not, so that those threads are in the same state each time; of what differs all the same, the
//! median of instructions is taken, and the least of allocations.
//!
//! Prints a line a path: its name, its allocations, the bytes of these. The command line names a component, `guest_sized`,
//! and may say `planted`: then each path wastes the copy of a kilobyte, and whoever judges the figures must see it.
#![recursion_limit = "256"]
#![expect(clippy::expect_used, clippy::print_stdout, reason = "it ends at the first surprise, and prints")]

#[cfg(not(test))]
mod clock;
mod count;
mod parts;
mod vdso;
mod wires;

use std::ffi::CString;
use std::hint::black_box;

use belljar::model::{Caller, Operation, Resource};
use count::Allocated;
use parts::Parts;
use wires::{Http, Stdio};

#[global_allocator]
static COUNTED: count::Counted = count::Counted;

/// Runs that warm a path up.
const WARM: usize = 20;

/// Runs right before one that is counted.
const BEFORE: usize = 2;

/// Runs that are counted.
const TIMES: usize = 15;

/// URIs that are routed in one run: where each stands in a table of hashes is another one in each process.
const ROUTED: usize = 200;

/// What is wasted where that was asked for.
const WASTE: usize = 1024;

/// Counts paths.
struct Counter {
    /// What each run that is counted copies for nothing.
    waste: Option<Vec<u8>>,
}

impl Counter {
    /// Counts `path`.
    async fn measure(&self, name: &str, mut path: impl AsyncFnMut()) {
        for _ in 0..WARM {
            path().await;
        }
        let title = CString::new(name).expect("a name");
        let mut all = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            for _ in 0..BEFORE {
                path().await;
            }
            let before = count::allocated();
            count::zero();
            path().await;
            drop(black_box(self.waste.clone()));
            count::dump(&title);
            let after = count::allocated();
            all.push(Allocated { times: after.times - before.times, bytes: after.bytes - before.bytes });
        }
        // What some runs allocate and others do not is left out.
        let times = all.iter().map(|one| one.times).min().unwrap_or_default();
        let bytes = all.iter().map(|one| one.bytes).min().unwrap_or_default();
        println!("{name}\t{times}\t{bytes}");
    }
}

/// Work that is none of belljar's: what it costs says how this machine's C library and valgrind count.
fn yardstick() {
    let mut kept = Vec::with_capacity(8);
    for size in [1u8, 8, 24, 50, 100, 150, 200, 250].map(|times| usize::from(times) * 8) {
        let one = black_box(vec![7u8; size]);
        kept.push(black_box(one.clone()));
    }
    let text = serde_json::to_string(&black_box([("belljar", 1.5), ("a list", 2.25)])).expect("text");
    let value: serde_json::Value = serde_json::from_str(black_box(&text)).expect("the same");
    assert!(black_box(value).is_array() && kept.len() == 8);
}

async fn sandbox(parts: &Parts) {
    let operation = Operation::Read { reference: "text/1024".to_owned() };
    let permit = parts.admission.admit(&parts.gate, &operation, None).await.expect("a permit");
    let outcome = parts.sandbox.call(parts.sized, permit, operation).await;
    assert!(outcome.result.is_ok());
}

async fn all(counter: &Counter, parts: &Parts) {
    let caller = Caller { transport: "cli", client: None, peer: 0 };
    let small = "belljar://sized/text/1024";
    counter.measure("yardstick", async || yardstick()).await;

    let uris: Vec<String> =
        (0..ROUTED).map(|n| format!("belljar://idle-{:04}/a/b", n * parts::IDLE / ROUTED)).collect();
    counter
        .measure("route at 1,000 mounts, 200 times", async || {
            for uri in &uris {
                assert!(black_box(parts.snapshot.route(black_box(uri))).is_some());
            }
        })
        .await;
    counter.measure("sandbox, 1 KiB", async || sandbox(parts).await).await;
    counter
        .measure("gateway, 1 KiB", async || {
            assert!(parts.gateway.read(&caller, small).await.is_ok());
        })
        .await;

    let mut stdio = Stdio::reading(&parts.handler, small, 1024).await;
    counter.measure("stdio, 1 KiB", async || stdio.read().await).await;
    let mut http = Http::reading(&parts.handler, small, 1024).await;
    counter.measure("http, 1 KiB", async || http.read().await).await;

    let first = parts.gateway.list::<Resource>(&caller, None, Some(&parts.long)).await;
    let next = first.next.expect("a second page");
    counter
        .measure("a page of 1,000", async || {
            let page = parts.gateway.list::<Resource>(&caller, Some(next.clone()), Some(&parts.long)).await;
            assert_eq!(page.entries.len(), 1000);
        })
        .await;
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let component = arguments.next().expect("the path of guest_sized.wasm");
    let wasm = std::fs::read(component).expect("a component that was built");
    let waste = arguments.any(|argument| argument == "planted").then(|| vec![7; WASTE]);
    if !count::is_counted() {
        println!("valgrind does not run this; see `cargo xtask instructions --help`");
        std::process::exit(3);
    }
    vdso::fill();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let parts = parts::parts(&wasm).await;
        count::start();
        all(&Counter { waste }, &parts).await;
    });
    // What is counted is counted by now: nothing has to be taken apart.
    std::process::exit(0);
}
