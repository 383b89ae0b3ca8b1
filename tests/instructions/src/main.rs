//! Runs each hot path a few times, and counts its cost. callgrind counts instructions, if valgrind runs this program. The
//! allocator of this program counts allocations. `cargo xtask instructions` runs it and checks the figures.
//!
//! Counts only the thread that sends and answers the requests. The epoch thread and the writer of records depend on the
//! machine's clock; the counted thread has a clock of its own (`clock.rs`). The part of a worker is counted in a run of its
//! own, with `counted-worker`: there, the counted thread is that of the worker (`counted_worker.rs`). Each path is
//! counted alone and many times. Two uncounted runs come before each counted one, so that the other threads are in the same
//! state. The result is the median of the instructions, and the minimum of the allocations.
//!
//! Prints one line for each path: its name, its allocations, and their bytes. The command line names a component,
//! `guest_sized`. With `planted`, each path also copies a kilobyte, which the check of the figures must notice.
#![recursion_limit = "256"]
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

#[cfg(not(test))]
mod clock;
mod count;
mod counted_worker;
mod features;
mod parts;
mod vdso;
mod wires;
mod worker;

use std::ffi::CString;
use std::hint::black_box;
use std::sync::Arc;

use belljar::grants::CallRecord;
use belljar::interfaces::Request;
use belljar::interfaces::resources::Read;
use belljar::limits::CallOrigin;
use belljar::model::{MountName, Resource};
use belljar::policy::{Action, Caller, Evidence, Policy, Target, authenticate};
use belljar::sandbox::CallSpec;
use count::Allocated;
use parts::{ApartWorker, Parts};
use tokio::runtime::{Builder, Runtime};
use wires::{Http, Stdio};

#[global_allocator]
static COUNTED: count::Counted = count::Counted;

/// The number of runs that warm up a path.
const WARM: usize = 20;

/// The number of uncounted runs before each counted one.
const BEFORE: usize = 2;

/// The number of counted runs.
const TIMES: usize = 15;

/// The number of URIs that one run routes. One URI is not enough: its position in a hash table differs in each process.
const ROUTED: usize = 200;

/// The bytes that each run copies with `planted`.
const WASTE: usize = 1024;

/// Counts paths.
struct Counter {
    /// The bytes that each counted run copies with `planted`.
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
            all.push(count::allocated().since(before));
        }
        print(name, &all);
    }
}

/// Prints the line of a path, from the allocations of each counted run.
fn print(name: &str, runs: &[Allocated]) {
    let Allocated { times, bytes } = count::least(runs);
    println!("{name}\t{times}\t{bytes}");
}

/// Work without belljar's code. Its cost shows how the C library and valgrind of this machine count.
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

async fn sandbox(parts: &Parts, name: &MountName) {
    let request = Request::from(Read { reference: "text/1024".to_owned() });
    let principal = authenticate(Evidence::OwnUser);
    let target = Target { mount: name, base: "belljar://sized/", reference: request.reference() };
    let now = std::time::SystemTime::now();
    let access = Policy::default().authorize(&principal, Action::Read, target, now).expect("an access");
    let permit =
        parts.admission.admit(access, &parts.gate, CallOrigin::default(), &request, None).await.expect("a permit");
    let spec = CallSpec::new(&permit, parts.sized, request);
    let outcome = parts.sandbox.call(spec, permit, &CallRecord::default()).await;
    assert!(outcome.result.is_ok());
}

async fn all(counter: &Counter, parts: &Parts) {
    let caller = Caller::new(authenticate(Evidence::OwnUser), "cli");
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
    let name = MountName::new("sized").expect("a name");
    counter.measure("sandbox, 1 KiB", async || sandbox(parts, &name).await).await;
    counter
        .measure("gateway, 1 KiB", async || {
            assert!(parts.gateway.read(&caller, small).await.is_ok());
        })
        .await;

    let mut stdio = Stdio::reading(&parts.handler, small, 1024, false).await;
    counter.measure("stdio, 1 KiB", async || stdio.read().await).await;
    let apart = "belljar://apart/text/1024";
    let mut stdio = Stdio::reading(&parts.handler, apart, 1024, false).await;
    counter.measure("stdio, 1 KiB, in a worker", async || stdio.read().await).await;
    let mut http = Http::reading(&parts.handler, small, 1024, false).await;
    counter.measure("http, 1 KiB", async || http.read().await).await;

    drop(http);
    for (feature, handler) in features::all(parts) {
        let mut http = Http::reading(&handler, small, 1024, false).await;
        counter.measure(&format!("http, 1 KiB, {feature}"), async || http.read().await).await;
    }

    let first = parts.gateway.list::<Resource>(&caller, None, Some(&parts.long)).await;
    let next = first.next.expect("a second page");
    counter
        .measure("a page of 1,000", async || {
            let page = parts.gateway.list::<Resource>(&caller, Some(next.clone()), Some(&parts.long)).await;
            assert_eq!(page.entries.len(), 1000);
        })
        .await;

    // Run this after those: the memory of a session changes the addresses of later allocations.
    let mut session = Stdio::reading(&parts.handler, small, 1024, true).await;
    counter.measure("stdio, a session, 1 KiB", async || session.read().await).await;
    let mut session = Http::reading(&parts.handler, small, 1024, true).await;
    counter.measure("http, a session, 1 KiB", async || session.read().await).await;

    // After all others: later calls would clear the memory that this one has used.
    let mut stdio = Stdio::reading(&parts.handler, "belljar://sized/log/65536", 65_000, false).await;
    counter.measure("stdio, 64 KiB of lines", async || stdio.read().await).await;
}

/// A runtime whose tasks all run on this thread.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (component, options) = arguments.split_first().expect("the path of guest_sized.wasm");
    if component == worker::ARGUMENT {
        return worker::serve();
    }
    let has = |option: &str| options.iter().any(|one| one == option);
    let wasm = std::fs::read(component).expect("a built component; `cargo xtask build` makes it");
    let planted = if has("planted") { WASTE } else { 0 };
    if has(counted_worker::FRONT) {
        return runtime().block_on(counted_worker::read_as_front(&wasm, planted));
    }
    if !count::is_counted() {
        println!("valgrind does not run this; see `cargo xtask instructions --help`");
        std::process::exit(3);
    }
    vdso::fill();
    count::count_this_thread();
    if has(counted_worker::ARGUMENT) {
        counted_worker::count(&arguments, &parts::compiled(&wasm));
    } else {
        let worker = ApartWorker { starter: Arc::new(worker::OwnProgram), variable: 0 };
        runtime().block_on(async {
            let parts = parts::parts(&wasm, parts::compiled(&wasm), worker).await;
            count::start();
            all(&Counter { waste: (planted > 0).then(|| vec![7; planted]) }, &parts).await;
        });
    }
    // All figures are printed, so skip the clean-up.
    std::process::exit(0);
}
