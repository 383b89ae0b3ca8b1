//! The data of a store: the WASI context, the opened grants, the meter. Created for each call and dropped with it. Host
//! functions reach it only by the methods below.

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::host_memory::{HostMemory, HttpHost, IoHost};
use super::meter::Meter;
use super::output::GuestOutput;
use crate::grants::{CallGrants, CallRecord, CallScope, GrantView, HasCallGrants, MountGrants};
use crate::interfaces::progress::HasRecord;
use crate::limits::memory_account::MemoryAccount;
use crate::model::{Limit, bounds};

/// The data of a store.
pub(super) struct StoreData {
    of_host_functions: HostFunctionData,
    /// True if a host function has used its data.
    is_used: bool,
    pub(super) meter: Meter,
    pub(super) account: MemoryAccount,
}

/// What host functions use.
struct HostFunctionData {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    call_grants: CallGrants,
    /// The host memory of the call.
    memory: HostMemory,
    /// Bytes of one request for random numbers.
    max_random: u64,
}

impl StoreData {
    pub(super) fn new(
        account: MemoryAccount,
        grants: &MountGrants,
        scope: &CallScope<'_>,
        variables: &[(String, String)],
        output: &GuestOutput,
    ) -> Self {
        let limits = scope.limits;
        // The defaults of the builder: arguments, environment, working directory and stdin are empty, clocks and random
        // numbers are real, sockets are closed. Grants add to that.
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(output.clone()).stderr(output.clone());
        wasi.max_random_size(limits.random);
        for (name, value) in variables {
            wasi.env(name, value);
        }
        let call_grants = grants.open(&mut wasi, scope);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(super::host_memory::MAX_FIELDS);
        let memory = HostMemory::new(account.clone(), bounds::of_requests_made(limits.traffic.requests));
        let (wasi, max_random) = (wasi.build(), limits.random);
        let of_host_functions = HostFunctionData { wasi, table, http, call_grants, memory, max_random };
        Self { of_host_functions, is_used: false, meter: Meter::new(account.clone()), account }
    }
}

impl StoreData {
    /// The network limit that the call reached, if any.
    pub(super) fn traffic(&self) -> Option<Limit> {
        self.of_host_functions.call_grants.reached_limit()
    }

    /// True if a host function was called.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// What a host function uses. There is no other way to it.
    fn used(&mut self) -> &mut HostFunctionData {
        self.is_used = true;
        &mut self.of_host_functions
    }

    /// Bytes of one request for random numbers.
    pub(super) fn max_random(&mut self) -> u64 {
        self.used().max_random
    }

    /// The host memory of the call.
    pub(super) fn host_memory(&mut self) -> &mut HostMemory {
        &mut self.used().memory
    }

    /// The view for the host functions of `wasi:http`.
    pub(super) fn http_host(&mut self) -> HttpHost<'_> {
        let HostFunctionData { table, http, call_grants, memory, .. } = self.used();
        HttpHost { http: WasiHttpCtxView { hooks: call_grants.http_hooks(), table, ctx: http }, memory }
    }

    /// The view for the host functions of `wasi:io`.
    pub(super) fn io_host(&mut self) -> IoHost<'_> {
        let HostFunctionData { table, memory, .. } = self.used();
        IoHost { table, memory }
    }
}

impl WasiView for StoreData {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let HostFunctionData { wasi, table, .. } = self.used();
        WasiCtxView { ctx: wasi, table }
    }
}

impl WasiHttpView for StoreData {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.http_host().http
    }
}

impl GrantView for StoreData {
    fn record(&mut self) -> &CallRecord {
        self.used().call_grants.record()
    }

    fn charge_handle(&mut self, handle: u32, bytes: u64) -> wasmtime::Result<()> {
        Ok(self.used().memory.charge_grant_handle(handle, bytes)?)
    }

    fn release_handle(&mut self, handle: u32) {
        self.used().memory.release_handle(handle);
    }
}

impl HasRecord for StoreData {
    fn call_record(&mut self) -> &CallRecord {
        self.used().call_grants.record()
    }
}

impl HasCallGrants for StoreData {
    fn call_grants(&mut self) -> &mut CallGrants {
        &mut self.used().call_grants
    }
}
