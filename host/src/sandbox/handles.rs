//! Host functions of the other interfaces that create handles (timers, standard streams, networks), and random bytes.
//! The handles of files are charged where they are created, in [`crate::grants::fs`].

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::bindings::cli::{stderr, stdin, stdout};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::bindings::random::{insecure, random};
use wasmtime_wasi::p2::bindings::sockets::instance_network;
use wasmtime_wasi::random::WasiRandomView;
use wasmtime_wasi::sockets::WasiSocketsView;

use super::store_data::StoreData;
use crate::grants::wasi;

type Store<'a> = StoreContextMut<'a, StoreData>;

/// Charges a handle that `make` creates.
fn charge_new_handle<T: 'static>(
    store: &mut Store<'_>,
    make: impl FnOnce(&mut StoreData) -> wasmtime::Result<Resource<T>>,
) -> wasmtime::Result<(Resource<T>,)> {
    let state = store.data_mut();
    let handle = make(state)?;
    Ok((state.host_memory().charge_handle(handle)?,))
}

/// Charges random bytes before they are generated.
fn charge_random_bytes(
    store: &mut Store<'_>,
    len: u64,
    make: impl FnOnce(&mut StoreData) -> wasmtime::Result<Vec<u8>>,
) -> wasmtime::Result<(Vec<u8>,)> {
    let state = store.data_mut();
    // The library refuses more than the limit of one request, with its own error.
    if len <= state.max_random() {
        state.host_memory().charge_returned_value(len)?;
    }
    Ok((make(state)?,))
}

pub(super) fn link(linker: &mut Linker<StoreData>) -> wasmtime::Result<()> {
    let mut clock = linker.instance(&wasi("clocks/monotonic-clock"))?;
    clock.func_wrap("subscribe-instant", |mut store, (when,): (u64,)| {
        charge_new_handle(&mut store, |state| monotonic_clock::Host::subscribe_instant(&mut state.clocks(), when))
    })?;
    clock.func_wrap("subscribe-duration", |mut store, (time,): (u64,)| {
        charge_new_handle(&mut store, |state| monotonic_clock::Host::subscribe_duration(&mut state.clocks(), time))
    })?;
    linker.instance(&wasi("cli/stdin"))?.func_wrap("get-stdin", |mut store, (): ()| {
        charge_new_handle(&mut store, |state| stdin::Host::get_stdin(&mut state.cli()))
    })?;
    linker.instance(&wasi("cli/stdout"))?.func_wrap("get-stdout", |mut store, (): ()| {
        charge_new_handle(&mut store, |state| stdout::Host::get_stdout(&mut state.cli()))
    })?;
    linker.instance(&wasi("cli/stderr"))?.func_wrap("get-stderr", |mut store, (): ()| {
        charge_new_handle(&mut store, |state| stderr::Host::get_stderr(&mut state.cli()))
    })?;
    linker.instance(&wasi("sockets/instance-network"))?.func_wrap("instance-network", |mut store, (): ()| {
        charge_new_handle(&mut store, |state| instance_network::Host::instance_network(&mut state.sockets()))
    })?;
    linker.instance(&wasi("random/random"))?.func_wrap("get-random-bytes", |mut store, (len,): (u64,)| {
        charge_random_bytes(&mut store, len, |state| random::Host::get_random_bytes(state.random(), len))
    })?;
    linker.instance(&wasi("random/insecure"))?.func_wrap("get-insecure-random-bytes", |mut store, (len,): (u64,)| {
        charge_random_bytes(&mut store, len, |state| insecure::Host::get_insecure_random_bytes(state.random(), len))
    })
}
