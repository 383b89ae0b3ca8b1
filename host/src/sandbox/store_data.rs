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
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    call_grants: CallGrants,
    pub(super) meter: Meter,
    /// The host memory of the call.
    pub(super) host_memory: HostMemory,
    pub(super) account: MemoryAccount,
    /// Bytes of one request for random numbers.
    max_random: u64,
    /// True if a host function has used it.
    is_used: bool,
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
        let host_memory = HostMemory::new(account.clone(), bounds::of_requests_made(limits.traffic.requests));
        Self {
            wasi: wasi.build(),
            table,
            http,
            call_grants,
            meter: Meter::new(account.clone()),
            host_memory,
            account,
            max_random: limits.random,
            is_used: false,
        }
    }
}

impl StoreData {
    /// The network limit that the call reached, if any.
    pub(super) fn traffic(&self) -> Option<Limit> {
        self.call_grants.reached_limit()
    }

    /// True if a host function has used it.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Bytes of one request for random numbers.
    pub(super) fn max_random(&mut self) -> u64 {
        self.is_used = true;
        self.max_random
    }

    /// The view for the host functions of `wasi:http`.
    pub(super) fn http_host(&mut self) -> HttpHost<'_> {
        self.is_used = true;
        let http =
            WasiHttpCtxView { hooks: self.call_grants.http_hooks(), table: &mut self.table, ctx: &mut self.http };
        HttpHost { http, memory: &mut self.host_memory }
    }

    /// The view for the host functions of `wasi:io`.
    pub(super) fn io_host(&mut self) -> IoHost<'_> {
        self.is_used = true;
        IoHost { table: &mut self.table, memory: &mut self.host_memory }
    }
}

impl WasiView for StoreData {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.is_used = true;
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for StoreData {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.is_used = true;
        WasiHttpCtxView { hooks: self.call_grants.http_hooks(), table: &mut self.table, ctx: &mut self.http }
    }
}

impl GrantView for StoreData {
    fn record(&mut self) -> &CallRecord {
        self.is_used = true;
        self.call_grants.record()
    }

    fn charge_handle(&mut self, handle: u32, bytes: u64) -> wasmtime::Result<()> {
        self.is_used = true;
        Ok(self.host_memory.charge_grant_handle(handle, bytes)?)
    }

    fn release_handle(&mut self, handle: u32) {
        self.is_used = true;
        self.host_memory.release_handle(handle);
    }
}

impl HasRecord for StoreData {
    fn call_record(&mut self) -> &CallRecord {
        self.is_used = true;
        self.call_grants.record()
    }
}

impl HasCallGrants for StoreData {
    fn call_grants(&mut self) -> &mut CallGrants {
        self.is_used = true;
        &mut self.call_grants
    }
}
