//! What the sandbox and the gateway add to the bare engine, in one process: instantiate, read, drop.
//!
//! Rows: the bare engine, tuned alike (a store, a WASI context, instantiate, call, drop; fuel and epoch compiled in, no
//! limit checked); `Sandbox::call` with every limit, meter and trail; `Gateway::read` with routing, admission, checks and
//! the audit record.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first surprise, and prints")]

use std::sync::Arc;
use std::time::Duration;

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
use belljar_benches::{Here, Samples, row, thread_cpu};
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod bindings {
    wasmtime::component::bindgen!({ path: "../../wit", world: "belljar:provider/provider", exports: { default: async } });
}

struct Bare {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Bare {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

fn bare(wasm: &[u8]) -> (Engine, bindings::ProviderPre<Bare>) {
    let mut config = Config::new();
    let mut pool = PoolingAllocationConfig::new();
    let keep = if PoolingAllocationConfig::is_pagemap_scan_available() { 2 << 20 } else { 64 << 10 };
    pool.linear_memory_keep_resident(keep)
        .table_keep_resident(64 << 10)
        .decommit_batch_size(1)
        .pagemap_scan(Enabled::Auto);
    config.consume_fuel(true).epoch_interruption(true).max_wasm_stack(512 << 10);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    let engine = Engine::new(&config).expect("an engine");
    let component = Component::from_binary(&engine, wasm).expect("a component");
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
    let pre: InstancePre<Bare> = linker.instantiate_pre(&component).expect("it links");
    let pre = bindings::ProviderPre::new(pre).expect("a provider");
    (engine, pre)
}

async fn bare_read(engine: &Engine, pre: &bindings::ProviderPre<Bare>, reference: &String) -> usize {
    let mut store = Store::new(engine, Bare { wasi: WasiCtx::builder().build(), table: ResourceTable::new() });
    store.set_fuel(u64::MAX).expect("fuel is counted");
    store.set_epoch_deadline(u64::MAX / 2);
    let instance = pre.instantiate_async(&mut store).await.expect("it instantiates");
    let read = instance.belljar_provider_resource_provider().call_read(&mut store, reference).await;
    read.expect("no trap").expect("a reading").contents.len()
}

struct Ours {
    sandbox: Arc<Sandbox>,
    gateway: Gateway,
    admission: Admission,
    gate: Gate,
    id: MountId,
}

async fn ours(wasm: &[u8]) -> Ours {
    let options = Options { calls: 32, cache: None, descriptors: 1024, key: [0; 32], compiler: Arc::new(Here) };
    let sandbox = Arc::new(Sandbox::new(options).expect("a sandbox"));
    let name = MountName::new("sized").expect("a name");
    let digest = Digest::of(wasm);
    let held = Requested::default().configure(&Ambient::default()).expect("no grants");
    let loaded = sandbox.load(&name, wasm.into(), &digest, held).await.expect("it loads");
    let plain = Mount::plain(name.clone(), &format!("belljar://{name}/"), Limits::default());
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
    Ours {
        sandbox,
        gateway,
        admission: Admission::new(32, Budget::new(512 << 20)),
        gate: Gate::new(name, Limits::default()),
        id,
    }
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(41);
    let wasm = std::fs::read(belljar_tests::places::component("guest_sized")).expect("run \"cargo xtask build\" first");
    // One thread: what is measured is its own processor time, so that other work on the machine counts little.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (engine, pre) = bare(&wasm);
        let ours = ours(&wasm).await;
        let caller = Caller { transport: "cli", client: None };
        for (label, reference, operations) in [("1 KiB", "text/1024", 400u32), ("1 MiB", "text/1048576", 40)] {
            let uri = format!("belljar://sized/{reference}");
            let asked = reference.to_owned();
            let (mut engine_cpu, mut sandbox_cpu, mut gateway_cpu) = (Samples::default(), Samples::default(), Samples::default());
            for round in 0..rounds + 3 {
                let mut spent = [0u64; 3];
                let before = thread_cpu();
                for _ in 0..operations {
                    assert_eq!(bare_read(&engine, &pre, &asked).await, 1);
                }
                let after_engine = thread_cpu();
                for _ in 0..operations {
                    let operation = Operation::Read { reference: reference.to_owned() };
                    let permit = ours.admission.admit(&ours.gate, &operation, None).await.expect("a permit");
                    assert!(ours.sandbox.call(ours.id, permit, operation).await.result.is_ok());
                }
                let after_sandbox = thread_cpu();
                for _ in 0..operations {
                    assert!(ours.gateway.read(&caller, &uri).await.is_ok());
                }
                let end = thread_cpu();
                for (to, nanos) in spent.iter_mut().zip([after_engine - before, after_sandbox - after_engine, end - after_sandbox]) {
                    *to = nanos;
                }
                // The first rounds warm slots, caches and allocators.
                if round >= 3 {
                    let [a, b, c] = spent;
                    engine_cpu.add(a, operations);
                    sandbox_cpu.add(b, operations);
                    gateway_cpu.add(c, operations);
                }
            }
            println!("\n| {label} text, in one process | us CPU, median | middle half | over the bare engine |\n|---|---|---|---|");
            println!("{}", row("bare engine: store, instantiate, call, drop", &engine_cpu, &engine_cpu));
            println!("{}", row("`Sandbox::call`: with every limit, meter and trail", &sandbox_cpu, &engine_cpu));
            println!("{}", row("`Gateway::read`: with routing, admission, checks, audit", &gateway_cpu, &engine_cpu));
            let share = (gateway_cpu.median() - sandbox_cpu.median()) / sandbox_cpu.median() * 100.0;
            println!("The gateway's own share: {share:.0} % of a fresh sandbox's cost.");
        }
    });
}
