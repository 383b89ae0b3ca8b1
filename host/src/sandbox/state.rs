//! What a store holds: the WASI context, the opened grants, the meter. Made new for each call, dropped with it.

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::host_memory::{HostMemory, HttpHost, IoHost};
use super::meter::Meter;
use super::output::Output;
use crate::admission::account::Account;
use crate::grants::{Held, Opened, Scope, View};
use crate::model::{Guard, Limit};

/// The data of a store.
pub(super) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    opened: Opened,
    pub(super) meter: Meter,
    /// What the host keeps for the call.
    pub(super) host_memory: HostMemory,
    pub(super) account: Account,
    /// Bytes of one request for random numbers.
    pub(super) most_random: u64,
}

impl State {
    pub(super) fn new(account: Account, held: &Held, scope: &Scope<'_>, output: &Output) -> Self {
        let limits = scope.limits;
        // Arguments, environment, working directory and stdin are empty, clocks and random numbers real, sockets closed:
        // the builder's defaults. Grants add to that.
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(output.clone()).stderr(output.clone());
        if Guard::Random.is_on() {
            wasi.max_random_size(limits.random);
        }
        let opened = held.open(&mut wasi, scope);
        let mut table = ResourceTable::new();
        if Guard::Handles.is_on() {
            table.set_max_capacity(limits.handles);
        }
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(super::host_memory::FIELDS);
        let host_memory = HostMemory::new(account.clone(), limits.traffic.requests);
        Self {
            wasi: wasi.build(),
            table,
            http,
            opened,
            meter: Meter::new(account.clone()),
            host_memory,
            account,
            most_random: limits.random,
        }
    }
}

impl State {
    /// The limit on the network that the call reached, if it did.
    pub(super) fn traffic(&self) -> Option<Limit> {
        self.opened.http.refused()
    }

    /// What the host functions of `wasi:http` work on.
    pub(super) fn http_host(&mut self) -> HttpHost<'_> {
        let http = WasiHttpCtxView { hooks: &mut self.opened.http, table: &mut self.table, ctx: &mut self.http };
        HttpHost { http, memory: &mut self.host_memory }
    }

    /// What the host functions of `wasi:io` work on.
    pub(super) fn io_host(&mut self) -> IoHost<'_> {
        IoHost { table: &mut self.table, memory: &mut self.host_memory }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.opened.http, table: &mut self.table, ctx: &mut self.http }
    }
}

impl View for State {
    fn opened(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn keeps(&mut self, handle: u32, bytes: u64) -> wasmtime::Result<()> {
        Ok(self.host_memory.keeps(handle, bytes)?)
    }

    fn keeps_no_more(&mut self, handle: u32) {
        self.host_memory.dropped(handle);
    }
}
