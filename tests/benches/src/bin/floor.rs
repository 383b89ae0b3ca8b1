//! What a read costs, layer by layer, so that what gets slower has an address: the bare engine, the sandbox, the gateway, and
//! the two transports; what the engine's settings and a fresh instance cost; and what limits and records cost a read that
//! takes a while.
//!
//! What runs in this process is measured by the processor time of its one thread, servers by that of their process. All rows
//! of a table are measured in turns.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first surprise, and prints")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar::admission::budget::Budget;
use belljar::admission::{Admission, Gate};
use belljar::audit::Sink;
use belljar::catalog::{Catalog, Mount, Snapshot};
use belljar::config::Watch;
use belljar::gateway::Gateway;
use belljar::gateway::consent::Consents;
use belljar::gateway::watching::Watching;
use belljar::grants::{Ambient, Requested};
use belljar::model::{Caller, Digest, Limits, MountName, Operation};
use belljar::sandbox::{MountId, Options, Sandbox};
use belljar_benches::{Here, Record, Samples, process_cpu, thread_cpu};
use belljar_figures::tables;
use belljar_tests::{Client, Era, Site, Wire};
use tokio::runtime::{Builder, Runtime};
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod bindings {
    wasmtime::component::bindgen!({ path: "../../wit", world: "belljar:provider/provider", exports: { default: async } });
}

/// Calls that run at once, at most; permits for all reads of a round are made before it begins.
const AT_ONCE: u32 = 1000;

/// A store's data, where nothing is granted and nothing is limited.
struct Data {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Data {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// wasmtime alone.
struct Bare {
    engine: Engine,
    pre: bindings::ProviderPre<Data>,
    is_metered: bool,
}

/// How wasmtime is set up.
#[derive(Clone, Copy)]
enum Settings {
    /// As belljar has it.
    Tuned,
    /// The same, and nothing is counted.
    Unmetered,
    /// The pool as it comes.
    Stock,
}

impl Bare {
    fn new(wasm: &[u8], settings: Settings) -> Self {
        let is_metered = !matches!(settings, Settings::Unmetered);
        let mut config = Config::new();
        let mut pool = PoolingAllocationConfig::new();
        if !matches!(settings, Settings::Stock) {
            let keep = if PoolingAllocationConfig::is_pagemap_scan_available() { 2 << 20 } else { 64 << 10 };
            pool.linear_memory_keep_resident(keep)
                .table_keep_resident(64 << 10)
                .decommit_batch_size(1)
                .pagemap_scan(Enabled::Auto);
        }
        config.consume_fuel(is_metered).epoch_interruption(is_metered).max_wasm_stack(512 << 10);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).expect("an engine");
        let component = Component::from_binary(&engine, wasm).expect("a component");
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
        let pre: InstancePre<Data> = linker.instantiate_pre(&component).expect("it links");
        let pre = bindings::ProviderPre::new(pre).expect("a provider");
        Self { engine, pre, is_metered }
    }

    fn store(&self, wasi: WasiCtx) -> Store<Data> {
        let mut store = Store::new(&self.engine, Data { wasi, table: ResourceTable::new() });
        if self.is_metered {
            store.set_fuel(u64::MAX).expect("fuel is counted");
            store.set_epoch_deadline(u64::MAX / 2);
        }
        store
    }

    async fn live(&self) -> Live {
        let mut store = self.store(WasiCtx::builder().build());
        let instance = self.pre.instantiate_async(&mut store).await.expect("it instantiates");
        Live { store, instance }
    }

    async fn read(&self, reference: &String) {
        self.live().await.read(reference).await;
    }
}

/// An instance and what it lives in.
struct Live {
    store: Store<Data>,
    instance: bindings::Provider,
}

impl Live {
    async fn read(&mut self, reference: &String) {
        let provider = self.instance.belljar_provider_resource_provider();
        let reading = provider.call_read(&mut self.store, reference).await.expect("no trap").expect("a reading");
        assert_eq!(reading.contents.len(), 1);
    }
}

/// belljar without a transport.
struct Ours {
    sandbox: Arc<Sandbox>,
    gateway: Gateway,
    admission: Admission,
    gate: Gate,
    id: MountId,
}

impl Ours {
    async fn new(wasm: &[u8]) -> Self {
        let options =
            Options { calls: 32, cache: None, descriptors: 32 * 1024, key: [0; 32], compiler: Arc::new(Here) };
        let sandbox = Arc::new(Sandbox::new(options).expect("a sandbox"));
        let name = MountName::new("sized").expect("a name");
        let digest = Digest::of(wasm);
        let held = Requested::default().configure(&Ambient::default()).expect("no grants");
        let loaded = sandbox.load(&name, wasm.into(), &digest, held).await.expect("it loads");
        // Nothing else of a machine's noise counts here: its share of a processor is not what is measured.
        let limits = Limits { concurrency: AT_ONCE as usize, cpu: 10_000, ..Limits::default() };
        let plain = Mount::plain(name.clone(), &format!("belljar://{name}/"), limits.clone());
        let id = loaded.id();
        let mount = Mount { digest, loaded, ..plain };
        let catalog = Arc::new(Catalog::new(Budget::new(1 << 30)));
        catalog.publish(Snapshot::new(vec![Arc::new(mount)], Vec::new()));
        catalog.settle();
        // Records are written, as they would be, to where writing costs nothing.
        let audit = Sink::to_writer(std::io::sink()).expect("a thread");
        let gateway = Gateway::new(
            catalog,
            Arc::clone(&sandbox),
            Admission::new(32, Budget::new(512 << 20)),
            audit,
            Consents::new(&[0; 32], None),
            Watching::new(Watch::default(), None),
            Duration::from_secs(3),
        );
        let admission = Admission::new(AT_ONCE as usize * 2, Budget::new(512 << 20));
        Self { sandbox, gateway, admission, gate: Gate::new(name, limits), id }
    }

    async fn admit(&self, operation: &Operation) -> belljar::admission::Permit {
        self.admission.admit(&self.gate, operation, None).await.expect("a permit")
    }
}

/// A row: what it is, and the processor time in nanoseconds of so many of it.
struct Line<'a> {
    name: &'static str,
    cost: Box<dyn FnMut(u32) -> u64 + 'a>,
    samples: Samples,
}

impl<'a> Line<'a> {
    fn new(name: &'static str, cost: impl FnMut(u32) -> u64 + 'a) -> Self {
        Self { name, cost: Box::new(cost), samples: Samples::default() }
    }

    /// Something that this thread does.
    fn here<F: Future<Output = ()>>(name: &'static str, on: &'a Runtime, mut once: impl FnMut() -> F + 'a) -> Self {
        Self::new(name, move |times| {
            on.block_on(async {
                let before = thread_cpu();
                for _ in 0..times {
                    once().await;
                }
                thread_cpu() - before
            })
        })
    }

    /// Something that a server does.
    fn there<W: Wire + 'a>(name: &'static str, mut client: Client<W>, server: u32, uri: String) -> Self {
        Self::new(name, move |times| {
            let before = process_cpu(server);
            for _ in 0..times {
                client.read(&uri).expect("a reading");
            }
            process_cpu(server) - before
        })
    }
}

/// Measures all lines in turns.
fn measure(lines: &mut [Line<'_>], rounds: u32, operations: u32) {
    for round in 0..rounds + 3 {
        for line in &mut *lines {
            let nanos = (line.cost)(operations);
            // The first rounds warm slots, caches and allocators.
            if round >= 3 {
                line.samples.add(nanos, operations);
            }
        }
    }
}

/// The lines as one group.
fn keep(record: &mut Record, group: &str, lines: &[Line<'_>]) {
    for line in lines {
        record.row(group, line.name, "us", &line.samples.0);
    }
}

/// What each layer adds to the one below, round by round; the rounds of the servers come after those of this process.
fn increments(record: &mut Record, group: &str, lines: &[Line<'_>]) {
    let of = |name: &str| lines.iter().find(|line| line.name == name).map(|line| line.samples.0.as_slice());
    let nothing: &[f64] = &[];
    for (name, whole, parts) in [
        ("the bare engine", "bare engine", &[] as &[&str]),
        ("the sandbox: limits, meters, grants, the trail", "Sandbox::call", &["bare engine"]),
        ("admission: slots, share, budget", "admission", &[]),
        ("the gateway: routing, checks, the record", "Gateway::read", &["Sandbox::call", "admission"]),
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

/// The steps of a fresh read on the bare engine, by the clock on the wall; and what the caller would wait for if the next
/// instance were made before it is asked for.
fn steps(record: &mut Record, on: &Runtime, bare: &Bare, rounds: u32) {
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
                let mut store = bare.store(wasi);
                at[2] = Instant::now();
                let instance = bare.pre.instantiate_async(&mut store).await.expect("it instantiates");
                let mut live = Live { store, instance };
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
    record.row(GROUP, "what a caller waits for with an instance made ahead", "us on the wall", &spare.0);
    record.note(
        "instead of all of the above; the processor does the same work, and a slot of the pool is taken for each mount",
    );
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs one line for as long as a profiler needs.
fn profile(lines: &mut [Line<'_>], only: &str, operations: u32) {
    let line = lines.iter_mut().find(|line| line.name == only).expect("one of the lines");
    (0..100).for_each(|_| line.samples.add((line.cost)(operations), operations));
    println!("{only}: {} us", tables::number(line.samples.median()));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // What is to be looked at with a profiler is run alone.
    let only = arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let rounds: u32 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(41);
    let wasm = std::fs::read(belljar_tests::places::component("guest_sized")).expect("run \"cargo xtask build\" first");
    let on = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let [tuned, unmetered, stock] =
        [Settings::Tuned, Settings::Unmetered, Settings::Stock].map(|settings| Bare::new(&wasm, settings));
    let ours = &on.block_on(Ours::new(&wasm));
    let caller = &Caller { transport: "cli", client: None };
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    // Records are kept, as an operator would.
    site.config("audit = \"audit.jsonl\"\n[mounts.sized.limits]\ncpu = \"10000%\"\n");
    let server = site.http();
    let mut record = Record::new();
    for (label, reference, operations) in [("1 KiB", "text/1024", 400u32), ("1 MiB", "text/1048576", 20)] {
        let uri = format!("belljar://sized/{reference}");
        let (uri, asked) = (uri.as_str(), &reference.to_owned());
        let operation = &Operation::Read { reference: asked.clone() };
        let live = &tokio::sync::Mutex::new(on.block_on(tuned.live()));
        let mut stdio = site.stdio(Era::Modern);
        let pid = stdio.wire().process.id();
        let mut lines = vec![
            Line::here("bare engine", &on, || tuned.read(asked)),
            Line::here("live instance", &on, async || live.lock().await.read(asked).await),
            Line::here("stock pooling", &on, || stock.read(asked)),
            Line::here("admission", &on, async || drop(ours.admit(operation).await)),
            Line::new("Sandbox::call", |times| {
                on.block_on(async {
                    let mut permits = Vec::new();
                    for _ in 0..times {
                        permits.push(ours.admit(operation).await);
                    }
                    let before = thread_cpu();
                    for permit in permits {
                        assert!(ours.sandbox.call(ours.id, permit, operation.clone()).await.result.is_ok());
                    }
                    thread_cpu() - before
                })
            }),
            Line::here("Gateway::read", &on, async || assert!(ours.gateway.read(caller, uri).await.is_ok())),
            Line::there("stdio", stdio, pid, uri.to_owned()),
            Line::there("HTTP", server.client(Era::Modern), server.process.id(), uri.to_owned()),
        ];
        if let Some(only) = &only {
            profile(&mut lines, only, operations);
            continue;
        }
        // Servers and their client would drive what is measured here out of the processor's caches.
        let (here, servers) = lines.split_at_mut(INSIDE);
        measure(here, rounds, operations);
        measure(servers, rounds, operations);
        let (here, servers) = lines.split_at(INSIDE);
        keep(&mut record, &format!("one process, {label} text"), here);
        increments(&mut record, &format!("{label} text, what each layer adds"), &lines);
        keep(&mut record, &format!("{label} text, the whole server"), servers);
    }
    if only.is_some() {
        return;
    }
    steps(&mut record, &on, &tuned, rounds);
    for (what, reference) in MILLISECONDS {
        let (reference, uri) = (&reference.to_owned(), &format!("belljar://sized/{reference}"));
        let mut both = [
            Line::here("off", &on, || unmetered.read(reference)),
            Line::here("on", &on, async || assert!(ours.gateway.read(caller, uri).await.is_ok())),
        ];
        measure(&mut both, rounds, 20);
        keep(&mut record, &format!("limits and records, a read of 1 ms: {what}"), &both);
    }
    for group in record.groups() {
        println!("\n{}", tables::group(&record, group));
    }
    record.hand_over().expect("a file that can be written");
}

/// How many lines are about this process.
const INSIDE: usize = 6;

/// Reads that take about a millisecond, from the dearest kind to meter to the cheapest.
const MILLISECONDS: [(&str, &str); 3] =
    [("many small calls", "lines/4000"), ("a loop", "sum/600000"), ("a large body", "text/3145728")];
