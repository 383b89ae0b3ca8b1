//! The engine: how code is compiled and how instances are allocated. Every number has its reason here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, PoolingAllocationConfig, Strategy};

use crate::model::limits::{CORE_INSTANCES, MEMORIES, TABLES, WASM_STACK};

/// How often the epoch moves while a call runs: the precision of a deadline, and how long a computing guest keeps its
/// thread before others get a turn.
const TICK: Duration = Duration::from_millis(1);

/// Bytes of a linear memory that stay mapped in a free slot, when the kernel can say which pages were written
/// (`PAGEMAP_SCAN`, Linux 6.7): a read that dirties less costs no page fault. Twice a 1 MiB answer.
const KEEP_RESIDENT: usize = 2 << 20;

/// The same without `PAGEMAP_SCAN`, where all of it is cleared after each call whether it was written or not.
const KEEP_RESIDENT_BLIND: usize = 64 << 10;

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
        .wasm_exceptions(false)
        .wasm_function_references(false)
        .wasm_gc(false)
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
        .total_core_instances(calls.saturating_mul(8).max(CORE_INSTANCES))
        .total_memories(calls.saturating_mul(2).max(MEMORIES))
        .total_tables(calls.saturating_mul(4).max(TABLES))
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
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

/// A thread of its own that moves the epoch while calls run, and sleeps while none does.
pub(super) struct Ticker {
    running: Arc<AtomicUsize>,
    thread: Thread,
}

impl Ticker {
    /// Starts the thread. It ends with the engine.
    pub(super) fn start(engine: &Engine) -> std::io::Result<Self> {
        let running = Arc::new(AtomicUsize::new(0));
        let (weak, count) = (engine.weak(), Arc::clone(&running));
        let handle = std::thread::Builder::new().name("epoch".to_owned()).spawn(move || {
            loop {
                if count.load(Ordering::Acquire) == 0 {
                    // Woken by the next call; the time-out only serves to notice that the engine is gone.
                    std::thread::park_timeout(Duration::from_secs(1));
                } else {
                    std::thread::sleep(TICK);
                }
                let Some(engine) = weak.upgrade() else { return };
                engine.increment_epoch();
            }
        })?;
        Ok(Self { running, thread: handle.thread().clone() })
    }

    /// Keeps the epoch moving for as long as the value lives.
    pub(super) fn run(&self) -> Running {
        if self.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.thread.unpark();
        }
        Running(Arc::clone(&self.running))
    }

    /// How many calls run now.
    pub(super) fn calls(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }
}

/// See [`Ticker::run`].
pub(super) struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
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
    fn what_components_do_not_need_is_off() {
        let module = |core: &str| wat::parse_str(format!("(component (core module {core}))")).unwrap();
        let engine = compiler().unwrap();
        for plain in ["(memory 1) (memory 1)", "(func (result v128) (v128.const i64x2 0 0))"] {
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
