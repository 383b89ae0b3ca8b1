//! The engine: how code is compiled and how instances are allocated. Every number has its reason here.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use tokio::runtime::Handle;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, PoolingAllocationConfig, Strategy, WasmFeatures,
};

use crate::model::limits::{CORE_INSTANCES, MEMORIES, TABLES, WASM_STACK};

/// How often the epoch moves while a call runs: the precision of a deadline, and how long a computing guest keeps its
/// thread before others get a turn.
const TICK: Duration = Duration::from_millis(1);

/// Bytes of a linear memory that stay mapped in a free slot, when the kernel can say which pages were written
/// (`PAGEMAP_SCAN`, Linux 6.7): a read that dirties less costs no page fault. Twice a 1 MiB answer.
const KEEP_RESIDENT: usize = 2 << 20;

/// The same without `PAGEMAP_SCAN`, where all of it is cleared after each call whether it was written or not.
const KEEP_RESIDENT_BLIND: usize = 64 << 10;

/// Proposals that no provider's tools need, and whose code has had its share of advisories.
const UNNEEDED: WasmFeatures = WasmFeatures::FUNCTION_REFERENCES
    .union(WasmFeatures::GC)
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::LEGACY_EXCEPTIONS)
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::STACK_SWITCHING)
    .union(WasmFeatures::CM_ASYNC)
    .union(WasmFeatures::CM_THREADING)
    .union(WasmFeatures::CM_GC);

/// What decides how code is compiled. The compiler process and the host must agree on it, or nothing loads.
fn code() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .wasm_component_model(true)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .memory_init_cow(true)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        // What passes between the parts of a composed component is copied by adapters that see the memories of both.
        // JavaScript's componentizer composes each of its components.
        .wasm_multi_memory(true)
        .wasm_features(UNNEEDED, false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .generate_address_map(false)
        // Never parse what a stranger's debug sections say.
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Disable);
    let mut cost = OperatorCost::default();
    // A page costs the host a page fault or a clearing; as dear as an operator can be made.
    cost.variable.memory_grow_per_page = u8::MAX;
    config.operator_cost(cost);
    config
}

/// The engine that calls run on, with room for `calls` at once.
pub(super) fn host(calls: u32) -> wasmtime::Result<Engine> {
    let mut config = code();
    let keep = if PoolingAllocationConfig::is_pagemap_scan_available() { KEEP_RESIDENT } else { KEEP_RESIDENT_BLIND };
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        // As much as every call may take at most, so that no component can use up what another needs. It is address
        // space, not memory.
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES))
        .total_memories(calls.saturating_mul(MEMORIES))
        .total_tables(calls.saturating_mul(TABLES))
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_tables_per_module(4)
        .table_elements(1 << 20)
        .linear_memory_keep_resident(keep)
        .table_keep_resident(64 << 10)
        .decommit_batch_size(1)
        .pagemap_scan(Enabled::Auto);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// The engine of the compiler process: the same code, no pool of instances (its address space is limited).
pub(super) fn compiler() -> wasmtime::Result<Engine> {
    let mut config = code();
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&config)
}

/// What compiled code depends on besides the component: the engine's version, settings and processor.
pub(super) fn fingerprint(engine: &Engine) -> String {
    use std::hash::{Hash, Hasher};

    struct Hashed(blake3::Hasher);
    impl Hasher for Hashed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hashed = Hashed(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hashed);
    hashed.0.finalize().to_hex().chars().take(16).collect()
}

/// Ticks without a call after which the ticker sleeps until it is woken. Waking a thread costs as much as a small call:
/// a client that asks every few milliseconds should not pay for it each time.
const IDLE_TICKS: u32 = 64;

/// Ticks between two looks at whether somebody waits for the network.
const LOOK_TICKS: u32 = 4;

/// A thread of its own that moves the epoch while calls run, and sleeps when none has for a while.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    asleep: AtomicBool,
    /// What runs the calls.
    runtime: OnceLock<Handle>,
}

impl Shared {
    /// Wakes a thread of the runtime. The one that waited for the network may run a call, and an instruction that fills
    /// much memory holds it for as long as that takes; the others sleep until there is a task for them.
    fn wake(&self) {
        if let Some(runtime) = self.runtime.get() {
            runtime.spawn(std::future::ready(()));
        }
    }
}

impl Ticker {
    /// Starts the thread. It ends with the engine.
    pub(super) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (weak, own) = (engine.weak(), Arc::clone(&shared));
        let handle = std::thread::Builder::new().name("epoch".to_owned()).spawn(move || {
            let (mut idle, mut ticks) = (0, 0_u32);
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                drop(engine);
                idle = if own.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
                ticks = ticks.wrapping_add(1);
                if idle == 0 && ticks.is_multiple_of(LOOK_TICKS) {
                    own.wake();
                }
                if idle < IDLE_TICKS {
                    std::thread::sleep(TICK);
                    continue;
                }
                // A call that starts from here on either is seen by the second look, or sees us asleep and wakes us.
                own.asleep.store(true, Ordering::SeqCst);
                if own.running.load(Ordering::SeqCst) == 0 {
                    // The time-out only serves to notice that the engine is gone.
                    std::thread::park_timeout(Duration::from_secs(1));
                }
                own.asleep.store(false, Ordering::SeqCst);
                idle = 0;
            }
        })?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    /// Keeps the epoch moving for as long as the value lives.
    pub(super) fn run(&self) -> Running {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.runtime.get().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            let _ = self.shared.runtime.set(runtime);
        }
        if self.shared.asleep.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(Arc::clone(&self.shared))
    }

    /// How many calls run now.
    pub(super) fn calls(&self) -> usize {
        self.shared.running.load(Ordering::SeqCst)
    }
}

/// See [`Ticker::run`].
pub(super) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_makes_code_that_the_host_loads() {
        assert_eq!(fingerprint(&compiler().unwrap()), fingerprint(&host(1).unwrap()));
    }

    #[test]
    fn the_ticker_wakes_for_a_call_however_long_it_slept() {
        let engine = compiler().unwrap();
        let ticker = Ticker::start(&engine).unwrap();
        for _ in 0..3 {
            while !ticker.shared.asleep.load(Ordering::SeqCst) {
                std::thread::sleep(TICK);
            }
            let running = ticker.run();
            // Were it not woken, it would sleep for a second; awake, it stays so while the call runs.
            std::thread::sleep(TICK * 2 * IDLE_TICKS);
            assert!(!ticker.shared.asleep.load(Ordering::SeqCst));
            assert_eq!(ticker.calls(), 1);
            drop(running);
        }
        assert_eq!(ticker.calls(), 0);
    }

    #[test]
    fn the_features_that_are_on_are_these() {
        let on: Vec<&str> = compiler().unwrap().get_wasm_features().iter_names().map(|(name, _)| name).collect();
        assert_eq!(
            on,
            [
                "MUTABLE_GLOBAL",
                "SATURATING_FLOAT_TO_INT",
                "SIGN_EXTENSION",
                "REFERENCE_TYPES",
                "MULTI_VALUE",
                "BULK_MEMORY",
                "SIMD",
                "RELAXED_SIMD",
                "FLOATS",
                "MULTI_MEMORY",
                "EXTENDED_CONST",
                "COMPONENT_MODEL"
            ]
        );
    }

    #[test]
    fn what_components_do_not_need_is_off() {
        let module = |core: &str| wat::parse_str(format!("(component (core module {core}))")).unwrap();
        let engine = compiler().unwrap();
        for plain in [
            "(memory 1) (memory 1)",
            "(memory 1) (table 1 funcref) (table 1 funcref)",
            "(func (result v128) (v128.const i64x2 0 0))",
        ] {
            assert!(engine.precompile_component(&module(plain)).is_ok(), "{plain}");
        }
        for off in [
            "(memory i64 1)",
            "(memory 1 1 shared)",
            "(func return_call 0)",
            "(tag) (func (throw 0))",
            "(type (struct))",
            "(type (func)) (func (param (ref 0)))",
            "(memory 1 (pagesize 1))",
            "(func (param i64 i64 i64 i64) (result i64 i64) local.get 0 local.get 1 local.get 2 local.get 3 i64.add128)",
        ] {
            assert!(engine.precompile_component(&module(off)).is_err(), "{off}");
        }
        let async_component = "(component (core module $m (func (export \"f\") (result i32) unreachable) (func (export \"c\") (param i32 i32 i32) (result i32) unreachable)) (core instance $i (instantiate $m)) (func (export \"f\") async (canon lift (core func $i \"f\") async (callback (func $i \"c\")))))";
        if let Ok(bytes) = wat::parse_str(async_component) {
            assert!(engine.precompile_component(&bytes).is_err(), "async lifting");
        }
    }
}
