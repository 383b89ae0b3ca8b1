//! The engine without belljar: wasmtime with belljar's settings or others, and nothing around a call.

#![expect(clippy::expect_used, reason = "a bench ends at the first error")]

use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod bindings {
    wasmtime::component::bindgen!({ path: "../../wit", world: "belljar:provider/provider", exports: { default: async } });
}

/// The data of a store without grants and limits.
pub struct Data {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Data {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The engine, wasmtime, without belljar.
pub struct BareEngine {
    engine: Engine,
    pre: bindings::ProviderPre<Data>,
    is_metered: bool,
}

/// The settings of wasmtime.
#[derive(Clone, Copy)]
pub enum Settings {
    /// The settings of belljar.
    Tuned,
    /// The settings of belljar without fuel and epochs.
    Unmetered,
    /// wasmtime's pool with its default settings.
    Stock,
}

impl BareEngine {
    /// Compiles the component `wasm`.
    pub fn new(wasm: &[u8], settings: Settings) -> Self {
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
        let pre: InstancePre<Data> = linker.instantiate_pre(&component).expect("the imports of a provider");
        let pre = bindings::ProviderPre::new(pre).expect("a provider");
        Self { engine, pre, is_metered }
    }

    /// A store for one instance.
    pub fn store(&self, wasi: WasiCtx) -> Store<Data> {
        let mut store = Store::new(&self.engine, Data { wasi, table: ResourceTable::new() });
        if self.is_metered {
            store.set_fuel(u64::MAX).expect("fuel is counted");
            store.set_epoch_deadline(u64::MAX / 2);
        }
        store
    }

    /// Creates an instance for several reads.
    pub async fn live(&self) -> LiveInstance {
        self.instantiate(self.store(WasiCtx::builder().build())).await
    }

    /// Reads a text in an instance of its own.
    pub async fn read(&self, reference: &String) -> String {
        self.live().await.read(reference).await
    }

    /// Creates an instance in `store`.
    pub async fn instantiate(&self, mut store: Store<Data>) -> LiveInstance {
        let instance = self.pre.instantiate_async(&mut store).await.expect("an instance");
        LiveInstance { store, instance }
    }
}

/// An instance with its store.
pub struct LiveInstance {
    store: Store<Data>,
    instance: bindings::Provider,
}

impl LiveInstance {
    /// Reads a text. Empty for a blob.
    pub async fn read(&mut self, reference: &String) -> String {
        let provider = self.instance.belljar_provider_resource_provider();
        let reading = provider.call_read(&mut self.store, reference).await.expect("no trap").expect("a reading");
        let [content] = reading.contents.try_into().expect("one content");
        match content.body {
            bindings::belljar::provider::types::Body::Text(text) => text,
            _ => String::new(),
        }
    }
}
