//! Measures the cost of a read in each layer: the bare engine, the sandbox, the gateway, and the two transports. So a
//! regression can be assigned to a layer. Also measures the cost of engine settings, of a fresh instance, and of limits
//! and records in a long read.
//!
//! A layer in this process is measured by the processor time of one thread, and a server by the processor time of its
//! process. Each round measures all rows of a table, one after the other.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar::catalog::{Catalog, Mount, Snapshot};
use belljar::config::Watch;
use belljar::gateway::Gateway;
use belljar::gateway::consent::ConsentManager;
use belljar::gateway::request_states::RequestStates;
use belljar::gateway::subscriptions::Subscriptions;
use belljar::grants::CallRecord;
use belljar::grants::{Ambient, GrantConfig};
use belljar::interfaces::Request;
use belljar::interfaces::resources::Read;
use belljar::limits::CallOrigin;
use belljar::limits::memory_budget::MemoryBudget;
use belljar::limits::{Admission, Gate};
use belljar::model::{Digest, Limits, MountName};
use belljar::policy::{Action, Caller, Evidence, Policy, Target, authenticate};
use belljar::sandbox::{CallSpec, Executor, MountId, Sandbox, SandboxOptions};
use belljar::telemetry::{LineChain, RecordFormat, Sink};
use belljar_benches::bare_engine::{BareEngine, Settings};
use belljar_benches::{Record, Samples, process_cpu, sandbox_options, thread_cpu};
use belljar_figures::tables;
use belljar_figures::verdict::CALLER_WAIT;
use belljar_tests::{Client, Era, Site, Wire};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use wasmtime_wasi::WasiCtx;

/// The most calls at once. The bench creates all permits of a round before the round begins.
const AT_ONCE: u32 = 1000;

/// The layers of belljar below the transports.
struct BelljarLayers {
    sandbox: Arc<Sandbox>,
    gateway: Gateway,
    admission: Admission,
    gate: Gate,
    id: MountId,
}

impl BelljarLayers {
    /// With room for `calls` calls in the pool of instances.
    async fn new(wasm: &[u8], calls: u32) -> Self {
        let options = SandboxOptions { calls, ..sandbox_options() };
        let sandbox = Arc::new(Sandbox::new(options).expect("a sandbox"));
        let name = MountName::new("sized").expect("a name");
        let digest = Digest::of(wasm);
        let held = GrantConfig::default().configure(&Ambient::default()).expect("no grants");
        let loaded = sandbox.load(&name, wasm.into(), &digest, held).await.expect("a loaded mount");
        // Set the CPU share so high that it delays no call.
        let limits = Limits { concurrency: AT_ONCE as usize, cpu: 10_000, ..Limits::default() };
        let plain = Mount::plain(name.clone(), &format!("belljar://{name}/"), limits.clone());
        let id = loaded.id();
        let mount = Mount { digest, loaded, ..plain };
        let catalog = Arc::new(Catalog::new(MemoryBudget::new(1 << 30)));
        catalog.publish(Snapshot::new(vec![Arc::new(mount)], Vec::new()));
        catalog.mark_loaded();
        // Write records to a sink without a cost.
        let audit = Sink::to_writer(RecordFormat::new(LineChain::new([0; 8])), std::io::sink()).expect("a thread");
        let gateway = Gateway::new(
            catalog,
            Executor::Local(Arc::clone(&sandbox)),
            Admission::new(32, MemoryBudget::new(512 << 20)),
            audit,
            ConsentManager::new(RequestStates::new(&[0; 32], None), None),
            Subscriptions::new(Watch::default(), None),
            Duration::from_secs(3),
        );
        let admission = Admission::new(AT_ONCE as usize * 2, MemoryBudget::new(512 << 20));
        Self { sandbox, gateway, admission, gate: Gate::new(name, limits), id }
    }

    /// Admits one call of the mount.
    async fn admit(&self, request: &Request) -> belljar::limits::Permit {
        let name = MountName::new("sized").expect("a name");
        let principal = authenticate(Evidence::OwnUser);
        let target = Target { mount: &name, base: "belljar://sized/", reference: request.reference() };
        let now = std::time::SystemTime::now();
        let access = Policy::default().authorize(&principal, Action::Read, target, now).expect("an access");
        self.admission.admit(access, &self.gate, CallOrigin::default(), request, None).await.expect("a permit")
    }
}

/// A row: its name, and a function that runs a number of operations and returns their processor time in nanoseconds.
struct Case<'a> {
    name: &'static str,
    cost: Box<dyn FnMut(u32) -> u64 + 'a>,
    samples: Samples,
}

impl<'a> Case<'a> {
    fn new(name: &'static str, cost: impl FnMut(u32) -> u64 + 'a) -> Self {
        Self { name, cost: Box::new(cost), samples: Samples::default() }
    }

    /// A row for operations of this thread.
    fn in_process<F: Future<Output = ()>>(
        name: &'static str,
        on: &'a Runtime,
        mut once: impl FnMut() -> F + 'a,
    ) -> Self {
        Self::new(name, move |times| {
            on.block_on(async {
                let before = thread_cpu();
                for _ in 0..times {
                    once().await;
                    // What remains of a call is done after its answer.
                    yield_now().await;
                }
                thread_cpu() - before
            })
        })
    }

    /// A row for reads from a server process.
    fn of_server<W: Wire + 'a>(name: &'static str, mut client: Client<W>, server: u32, uri: String) -> Self {
        Self::new(name, move |times| {
            let before = process_cpu(server);
            for _ in 0..times {
                client.read(&uri).expect("a reading");
            }
            process_cpu(server) - before
        })
    }
}

/// Measures all rows. Each round measures the rows one after the other.
fn measure(cases: &mut [Case<'_>], rounds: u32, operations: u32) {
    for round in 0..rounds + 3 {
        for case in &mut *cases {
            let nanos = (case.cost)(operations);
            // Drop the first rounds. They warm up slots, caches and allocators.
            if round >= 3 {
                case.samples.add(nanos, operations);
            }
        }
    }
}

/// Records the cases as one group.
fn add_group(record: &mut Record, group: &str, cases: &[Case<'_>]) {
    for case in cases {
        record.row(group, case.name, "us", &case.samples.0);
    }
}

/// Records the cost that each layer adds to the layer below, for each round. Rounds of the servers come after the
/// rounds of the layers in this process.
fn increments(record: &mut Record, group: &str, cases: &[Case<'_>]) {
    let of = |name: &str| cases.iter().find(|case| case.name == name).map(|case| case.samples.0.as_slice());
    let nothing: &[f64] = &[];
    for (name, whole, parts) in [
        ("the bare engine", "bare engine", &[] as &[&str]),
        ("the sandbox: limits, meters, grants, log of decisions", "Sandbox::call", &["bare engine"]),
        ("admission: slots, share, budget", "limits", &[]),
        ("the gateway: routing, checks, the record", "Gateway::read", &["Sandbox::call", "limits"]),
        ("MCP and stdio", "stdio", &["Gateway::read"]),
        ("MCP and HTTP", "HTTP", &["Gateway::read"]),
    ] {
        let rounds: Vec<f64> = of(whole)
            .unwrap_or(nothing)
            .iter()
            .enumerate()
            .map(|(n, all)| all - parts.iter().filter_map(|part| of(part)?.get(n)).sum::<f64>())
            .collect();
        record.row(group, name, "us", &rounds);
    }
}

/// Measures the wall-clock time of each step of a read in a fresh instance on the bare engine. Also measures a read in
/// an instance that was created before.
fn steps(record: &mut Record, on: &Runtime, bare: &BareEngine, rounds: u32) {
    const NAMES: [&str; 5] = ["WASI context", "store", "instance", "call", "drop"];
    let reference = "text/1024".to_owned();
    let mut steps: [Samples; 5] = Default::default();
    let mut spare = Samples::default();
    for _ in 0..rounds {
        let mut seen: [Samples; 5] = Default::default();
        let mut waited = Samples::default();
        for _ in 0..400 {
            on.block_on(async {
                let mut at = [Instant::now(); 6];
                let wasi = WasiCtx::builder().build();
                at[1] = Instant::now();
                let store = bare.store(wasi);
                at[2] = Instant::now();
                let mut live = bare.instantiate(store).await;
                at[3] = Instant::now();
                live.read(&reference).await;
                at[4] = Instant::now();
                drop(live);
                at[5] = Instant::now();
                for (samples, pair) in seen.iter_mut().zip(at.windows(2)) {
                    let [from, to] = pair else { continue };
                    samples.add(nanos(*to - *from), 1);
                }
                let mut live = bare.live().await;
                let began = Instant::now();
                live.read(&reference).await;
                waited.add(nanos(began.elapsed()), 1);
            });
        }
        for (samples, seen) in steps.iter_mut().zip(&seen) {
            samples.0.push(seen.median());
        }
        spare.0.push(waited.median());
    }
    const GROUP: &str = "a fresh read of 1 KiB on the bare engine, step by step";
    for (name, samples) in NAMES.iter().zip(&steps) {
        record.row(GROUP, name, "us on the wall", &samples.0);
    }
    record.row(GROUP, "what a caller waits for with a spare instance", "us on the wall", &spare.0);
    record.note(
        "instead of all of the above; the processor does the same work, and a slot of the pool is taken for each mount",
    );
}

/// Measures the wall-clock time of a call in the sandbox: without spare instances, and with one.
fn waits(record: &mut Record, on: &Runtime, layers: [&BelljarLayers; 2], rounds: u32) {
    let request = Request::from(Read { reference: "text/1024".to_owned() });
    let mut waits: [Samples; 2] = Default::default();
    for _ in 0..rounds {
        for (layers, waits) in layers.iter().zip(&mut waits) {
            let mut seen = Samples::default();
            for _ in 0..400 {
                on.block_on(async {
                    let permit = layers.admit(&request).await;
                    let spec = CallSpec::new(&permit, layers.id, request.clone());
                    let log = CallRecord::default();
                    let began = Instant::now();
                    let outcome = layers.sandbox.call(spec, permit, &log).await;
                    seen.add(nanos(began.elapsed()), 1);
                    assert!(outcome.result.is_ok());
                    yield_now().await;
                });
            }
            waits.0.push(seen.median());
        }
    }
    assert_eq!(layers.map(|layers| layers.sandbox.spare_instances()), [0, 1], "the rows are what their names say");
    for (name, samples) in ["with a new instance", "with a spare instance"].iter().zip(&waits) {
        record.row(CALLER_WAIT, name, "us on the wall", &samples.0);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Measures one row a hundred times, so that a profiler gets enough samples.
fn profile(cases: &mut [Case<'_>], only: &str, operations: u32) {
    let case = cases.iter_mut().find(|case| case.name == only).expect("a row with this name");
    (0..100).for_each(|_| case.samples.add((case.cost)(operations), operations));
    println!("{only}: {} us", tables::number(case.samples.median()));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // For a profiler, run one row alone.
    let only = arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let rounds: u32 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(41);
    let wasm = std::fs::read(belljar_tests::places::component("guest_sized")).expect("run \"cargo xtask build\" first");
    let on = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let [tuned, unmetered, stock] =
        [Settings::Tuned, Settings::Unmetered, Settings::Stock].map(|settings| BareEngine::new(&wasm, settings));
    let layers = &on.block_on(BelljarLayers::new(&wasm, 32));
    // So few slots that none is for spare instances.
    let unprepared = &on.block_on(BelljarLayers::new(&wasm, 1));
    let caller = &Caller::new(authenticate(Evidence::OwnUser), "cli");
    // Each read runs in belljar's own process, as the rows of this process do, and is recorded, as in production.
    let config = "audit = \"audit.jsonl\"\n[mounts.sized]\ncache = \"off\"\nlimits = { cpu = \"10000%\" }\n";
    let site = served("none", config);
    let server = site.http();
    // The default: a worker process.
    let apart = served("shared", config);
    let apart_server = apart.http();
    let mut record = Record::new();
    for (label, reference, operations) in [("1 KiB", "text/1024", 400u32), ("1 MiB", "text/1048576", 20)] {
        let uri = format!("belljar://sized/{reference}");
        let (uri, reference_text) = (uri.as_str(), &reference.to_owned());
        let request = &Request::from(Read { reference: reference_text.clone() });
        let live = &tokio::sync::Mutex::new(on.block_on(tuned.live()));
        let mut stdio = site.stdio(Era::Stateless);
        let pid = stdio.wire().process.id();
        let mut apart_stdio = apart.stdio(Era::Stateless);
        let apart_pid = apart_stdio.wire().process.id();
        let mut older = site.stdio(Era::Session);
        let older_pid = older.wire().process.id();
        let mut cases = vec![
            Case::in_process("bare engine", &on, async || drop(tuned.read(reference_text).await)),
            Case::in_process("live instance", &on, async || drop(live.lock().await.read(reference_text).await)),
            Case::in_process("stock pooling", &on, async || drop(stock.read(reference_text).await)),
            Case::in_process("limits", &on, async || drop(layers.admit(request).await)),
            Case::new("Sandbox::call", |times| {
                on.block_on(async {
                    let mut permits = Vec::new();
                    for _ in 0..times {
                        permits.push(layers.admit(request).await);
                    }
                    let before = thread_cpu();
                    for permit in permits {
                        let spec = CallSpec::new(&permit, layers.id, request.clone());
                        let outcome = layers.sandbox.call(spec, permit, &CallRecord::default()).await;
                        assert!(outcome.result.is_ok());
                        yield_now().await;
                    }
                    thread_cpu() - before
                })
            }),
            Case::in_process("Gateway::read", &on, async || assert!(layers.gateway.read(caller, uri).await.is_ok())),
            Case::of_server("stdio", stdio, pid, uri.to_owned()),
            Case::of_server("HTTP", server.client(Era::Stateless), server.process.id(), uri.to_owned()),
            Case::of_server("stdio, in a worker", apart_stdio, apart_pid, uri.to_owned()),
            Case::of_server(
                "HTTP, in a worker",
                apart_server.client(Era::Stateless),
                apart_server.process.id(),
                uri.to_owned(),
            ),
            // belljar itself dispatches requests on stdio and stateless requests. rmcp dispatches those of HTTP sessions.
            Case::of_server("stdio, a session", older, older_pid, uri.to_owned()),
            Case::of_server("HTTP, a session", server.client(Era::Session), server.process.id(), uri.to_owned()),
        ];
        if let Some(only) = &only {
            profile(&mut cases, only, operations);
            continue;
        }
        // Measure the servers separately. Otherwise, they and their client would evict the data of this process from
        // the processor's caches.
        let (here, servers) = cases.split_at_mut(INSIDE);
        measure(here, rounds, operations);
        measure(servers, rounds, operations);
        let (here, servers) = cases.split_at(INSIDE);
        add_group(&mut record, &format!("one process, {label} text"), here);
        increments(&mut record, &format!("{label} text, what each layer adds"), &cases);
        add_group(&mut record, &format!("{label} text, the whole server"), servers);
    }
    if only.is_some() {
        return;
    }
    steps(&mut record, &on, &tuned, rounds);
    waits(&mut record, &on, [unprepared, layers], rounds);
    for (what, reference) in MILLISECONDS {
        let (reference, uri) = (&reference.to_owned(), &format!("belljar://sized/{reference}"));
        let mut both = [
            Case::in_process("off", &on, async || drop(unmetered.read(reference).await)),
            Case::in_process("on", &on, async || assert!(layers.gateway.read(caller, uri).await.is_ok())),
        ];
        measure(&mut both, rounds, 20);
        add_group(&mut record, &format!("limits and records, a read of 1 ms: {what}"), &both);
    }
    for group in record.groups() {
        println!("\n{}", tables::group(&record, group));
    }
    record.hand_over().expect("a file that can be written");
}

/// A site with one mount, whose calls run in this kind of process.
fn served(isolation: &str, config: &str) -> Site {
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    site.config(&format!("isolation = {isolation:?}\n{config}"));
    site
}

/// The number of rows that measure this process. They are the first rows.
const INSIDE: usize = 6;

/// Reads that take about a millisecond, by the cost of their metering, highest first.
const MILLISECONDS: [(&str, &str); 3] =
    [("many small calls", "lines/4000"), ("a loop", "sum/600000"), ("a large body", "text/3145728")];
