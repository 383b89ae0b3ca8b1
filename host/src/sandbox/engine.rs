//! The wasmtime engine: compilation settings, allocation of instances, and the epoch. Every number has its reason here.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use tokio::runtime::Handle;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, PoolingAllocationConfig, Strategy, WasmFeatures,
};

use crate::model::limits::{CORE_INSTANCES, MEMORIES, TABLES, WASM_STACK};

/// The interval of the epoch while a call runs. It is the precision of deadlines, and the time after which a computing
/// guest yields its thread.
const TICK: Duration = Duration::from_millis(1);

/// Bytes of a linear memory that stay mapped in a free slot, if the kernel reports written pages (`PAGEMAP_SCAN`, Linux
/// 6.7). A read that writes less than this causes no page fault. Twice a 1 MiB result.
const KEEP_RESIDENT: usize = 2 << 20;

/// The same without `PAGEMAP_SCAN`: then all of it is cleared after each call, written or not.
const KEEP_RESIDENT_BLIND: usize = 64 << 10;

/// Proposals that no toolchain of providers needs and that had security advisories.
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

/// The compilation settings. The compiler process and the host must use the same ones, otherwise compiled code does not
/// load.
fn base_config() -> Config {
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
        // Adapters copy values between the parts of a composed component and see the memories of both. JavaScript's
        // componentizer composes each of its components.
        .wasm_multi_memory(true)
        .wasm_features(UNNEEDED, false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .generate_address_map(false)
        // Never parse debug sections from untrusted components.
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Disable);
    let mut cost = OperatorCost::default();
    // A page costs the host a page fault or clearing. 255 is the highest possible cost of an operator.
    cost.variable.memory_grow_per_page = u8::MAX;
    config.operator_cost(cost);
    config
}

/// The engine for calls, with room for `calls` at once.
pub(super) fn host(calls: u32) -> wasmtime::Result<Engine> {
    let mut config = base_config();
    let keep = if PoolingAllocationConfig::is_pagemap_scan_available() { KEEP_RESIDENT } else { KEEP_RESIDENT_BLIND };
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        // The maximum of every call, so that no component takes what another one needs. This is address space, not
        // memory.
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

/// The least size of the memories of [`host`], in bytes: each has the addresses of 32 bits.
pub(super) fn pool_size(calls: u32) -> usize {
    (calls.saturating_mul(MEMORIES) as usize) << 32
}

/// The processors that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processors {
    /// The one of this machine.
    Own,
    /// Most of this machine's architecture, for the packages of belljar.
    Most,
}

/// The target of code for most processors. If it is named, the compiler does not look at the processor of this machine.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

/// The extensions of the instruction set that most processors have: those of x86-64-v3, since 2013.
const COMMON_EXTENSIONS: &[&str] = if cfg!(target_arch = "x86_64") {
    &[
        "has_cmpxchg16b",
        "has_sse3",
        "has_ssse3",
        "has_sse41",
        "has_sse42",
        "has_popcnt",
        "has_avx",
        "has_avx2",
        "has_bmi1",
        "has_bmi2",
        "has_lzcnt",
        "has_fma",
    ]
} else {
    &[]
};

/// The engine of the compiler process: the same code, but no instance pool, because the address space of that process
/// is limited. A processor that lacks an extension does not load code for most processors: the engine checks that.
pub(super) fn compiler(processors: Processors) -> wasmtime::Result<Engine> {
    let mut config = base_config();
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    if processors == Processors::Most {
        config.target(TARGET)?;
        for extension in COMMON_EXTENSIONS {
            #[expect(unsafe_code, reason = "the settings of the code generator are unsafe to set")]
            // SAFETY: these settings only name instructions of the processor, and `deserialize` checks that it has them.
            unsafe {
                config.cranelift_flag_enable(extension);
            }
        }
    }
    Engine::new(&config)
}

/// A hash of everything except the component that compiled code depends on: the engine's version, its settings and the
/// processor. Also of belljar's version: another one may have other interfaces and other limits of the compiler.
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
    hashed.0.update(env!("CARGO_PKG_VERSION").as_bytes());
    hashed.0.finalize().to_hex().chars().take(16).collect()
}

/// Ticks without a call after which the ticker sleeps. Waking a thread costs as much as a small call, so a client with
/// a request every few milliseconds must not cause it each time.
const IDLE_TICKS: u32 = 64;

/// Ticks between two looks at the threads that run calls.
const LOOK_TICKS: u32 = 2;

/// Ticks between two looks for things to tidy up.
const TIDY_TICKS: u32 = 256;

/// A thread that advances the epoch while calls run, and sleeps after a time without calls.
pub(super) struct Ticker {
    shared: Arc<TickerState>,
    thread: Thread,
}

#[derive(Default)]
struct TickerState {
    running: AtomicUsize,
    asleep: AtomicBool,
    /// The runtime of the calls.
    runtime: OnceLock<Handle>,
    /// How often threads of the runtime had waited for events at the last look.
    waits: AtomicU64,
    /// What looks at the calls.
    watch: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl TickerState {
    /// Wakes a thread of the runtime, which then polls the network, unless a thread has waited for events since the last
    /// time. Otherwise the only thread that polls it may be running a call, and one instruction that fills much memory
    /// can block it. The other threads sleep until a task is ready.
    fn wake(&self) {
        let Some(runtime) = self.runtime.get() else { return };
        let threads = runtime.metrics();
        let waits = (0..threads.num_workers()).map(|thread| threads.worker_park_count(thread)).sum();
        if self.waits.swap(waits, Ordering::Relaxed) == waits {
            runtime.spawn(std::future::ready(()));
        }
    }
}

impl Ticker {
    /// Starts the thread. It ends when the engine is dropped. It calls `tidy` from time to time.
    pub(super) fn start(engine: &Engine, tidy: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(TickerState::default());
        let (weak, own) = (engine.weak(), Arc::clone(&shared));
        let handle = std::thread::Builder::new().name("epoch".to_owned()).spawn(move || {
            let (mut idle, mut ticks) = (0, 0_u32);
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                drop(engine);
                idle = if own.running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
                ticks = ticks.wrapping_add(1);
                if idle == 0 && ticks.is_multiple_of(LOOK_TICKS) {
                    own.watch.get().iter().for_each(|watch| watch());
                    own.wake();
                }
                if ticks.is_multiple_of(TIDY_TICKS) || idle >= IDLE_TICKS {
                    tidy();
                }
                if idle < IDLE_TICKS {
                    std::thread::sleep(TICK);
                    continue;
                }
                // A call that starts after this store sees `asleep` and wakes the thread. An earlier one is seen by the
                // second load of `running`.
                own.asleep.store(true, Ordering::SeqCst);
                if own.running.load(Ordering::SeqCst) == 0 {
                    // The timeout serves to notice that the engine was dropped, and to tidy up.
                    std::thread::park_timeout(Duration::from_secs(1));
                }
                own.asleep.store(false, Ordering::SeqCst);
                // Without a call, it goes on sleeping at once.
                idle = if own.running.load(Ordering::SeqCst) == 0 { IDLE_TICKS } else { 0 };
            }
        })?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    /// Advances the epoch for as long as the returned value lives.
    pub(super) fn start_call(&self) -> RunningCall {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.runtime.get().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            let _ = self.shared.runtime.set(runtime);
        }
        if self.shared.asleep.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
        RunningCall(Arc::clone(&self.shared))
    }

    /// Calls `watch` every [`LOOK_TICKS`] ticks while calls run. Only the first function is taken.
    pub(super) fn watch(&self, watch: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.watch.set(Box::new(watch));
    }

    /// Number of running calls.
    pub(super) fn running_calls(&self) -> usize {
        self.shared.running.load(Ordering::SeqCst)
    }
}

/// A running call; see [`Ticker::start_call`].
pub(super) struct RunningCall(Arc<TickerState>);

impl RunningCall {
    /// True if no other call runs.
    pub(super) fn is_alone(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) == 1
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_makes_code_that_the_host_loads() {
        assert_eq!(fingerprint(&compiler(Processors::Own).unwrap()), fingerprint(&host(1).unwrap()));
    }

    #[test]
    fn the_ticker_wakes_for_a_call_however_long_it_slept() {
        let engine = compiler(Processors::Own).unwrap();
        let ticker = Ticker::start(&engine, || ()).unwrap();
        for _ in 0..3 {
            while !ticker.shared.asleep.load(Ordering::SeqCst) {
                std::thread::sleep(TICK);
            }
            let running = ticker.start_call();
            // Without the wake-up it would sleep for a second. Once awake, it stays awake while the call runs.
            std::thread::sleep(TICK * 2 * IDLE_TICKS);
            assert!(!ticker.shared.asleep.load(Ordering::SeqCst));
            assert_eq!(ticker.running_calls(), 1);
            assert!(running.is_alone());
            let other = ticker.start_call();
            assert!(!running.is_alone());
            drop((running, other));
        }
        assert_eq!(ticker.running_calls(), 0);
    }

    #[test]
    fn the_ticker_looks_at_calls_while_they_run() {
        let engine = compiler(Processors::Own).unwrap();
        let ticker = Ticker::start(&engine, || ()).unwrap();
        let (look, looks) = std::sync::mpsc::channel();
        ticker.watch(move || look.send(()).unwrap_or_default());
        let running = ticker.start_call();
        looks.recv().unwrap();
        looks.recv().unwrap();
        drop(running);
        while !ticker.shared.asleep.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
        }
        looks.try_iter().for_each(drop);
        assert!(looks.recv_timeout(TICK * 2 * IDLE_TICKS).is_err(), "no call runs");
    }

    /// A runtime of two threads, of which one is kept by a call.
    #[test]
    fn a_thread_that_a_call_keeps_does_not_keep_the_events_from_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let engine = compiler(Processors::Own).unwrap();
        let ticker = Ticker::start(&engine, || ()).unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let (mut client, own) = std::os::unix::net::UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let called = async move {
            let own = tokio::net::UnixStream::from_std(own).unwrap();
            // Registered before the only thread that is awake stops looking at events.
            let waiting = tokio::spawn(async move { own.readable().await.unwrap() });
            tokio::time::sleep(TICK * 10).await;
            let _running = ticker.start_call();
            std::io::Write::write_all(&mut client, b"x").unwrap();
            while !waiting.is_finished() {
                std::thread::sleep(TICK);
            }
            done.send(()).unwrap();
        };
        runtime.spawn(called);
        is_done.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn enabled_wasm_features() {
        let on: Vec<&str> =
            compiler(Processors::Own).unwrap().get_wasm_features().iter_names().map(|(name, _)| name).collect();
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
    fn unneeded_wasm_features_are_off() {
        let module = |core: &str| wat::parse_str(format!("(component (core module {core}))")).unwrap();
        let engine = compiler(Processors::Own).unwrap();
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
