//! What a store holds: the WASI context, the opened grants, the meter. Made new for each call, dropped with it.

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::meter::Meter;
use super::output::Output;
use crate::admission::budget::Allowance;
use crate::grants::{Held, Opened, Scope, View};
use crate::model::{Guard, Limit};

/// Bytes of the headers of one request or answer, as `wasi:http` counts them.
const HEADERS: usize = 64 << 10;

/// The data of a store.
pub(super) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    opened: Opened,
    pub(super) meter: Meter,
}

impl State {
    pub(super) fn new(allowance: Allowance, held: &Held, scope: &Scope<'_>, output: &Output) -> Self {
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
        http.set_field_size_limit(HEADERS);
        Self { wasi: wasi.build(), table, http, opened, meter: Meter::new(limits.memory, allowance) }
    }
}

impl State {
    /// The limit on the network that the call reached, if it did.
    pub(super) fn traffic(&self) -> Option<Limit> {
        self.opened.http.refused()
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
}
