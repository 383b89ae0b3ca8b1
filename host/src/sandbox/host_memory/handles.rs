//! Handles of the other interfaces: timers, standard streams, networks. And random bytes. The handles of files are paid for
//! where they are made, in [`crate::grants::fs`].

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

use super::State;
use crate::grants::wasi;

type Store<'a> = StoreContextMut<'a, State>;

/// Pays for a handle that `make` makes.
fn made<T: 'static>(
    store: &mut Store<'_>,
    make: impl FnOnce(&mut State) -> wasmtime::Result<Resource<T>>,
) -> wasmtime::Result<(Resource<T>,)> {
    let state = store.data_mut();
    let handle = make(state)?;
    Ok((state.host_memory.made(handle)?,))
}

/// Charges random bytes before they are made.
fn random_bytes(
    store: &mut Store<'_>,
    len: u64,
    make: impl FnOnce(&mut State) -> wasmtime::Result<Vec<u8>>,
) -> wasmtime::Result<(Vec<u8>,)> {
    let state = store.data_mut();
    // More than the limit for one request is refused as that, by the library.
    if len <= state.most_random {
        state.host_memory.giving(len)?;
    }
    Ok((make(state)?,))
}

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut clock = linker.instance(&wasi("clocks/monotonic-clock"))?;
    clock.func_wrap("subscribe-instant", |mut store, (when,): (u64,)| {
        made(&mut store, |state| monotonic_clock::Host::subscribe_instant(&mut state.clocks(), when))
    })?;
    clock.func_wrap("subscribe-duration", |mut store, (time,): (u64,)| {
        made(&mut store, |state| monotonic_clock::Host::subscribe_duration(&mut state.clocks(), time))
    })?;
    linker.instance(&wasi("cli/stdin"))?.func_wrap("get-stdin", |mut store, (): ()| {
        made(&mut store, |state| stdin::Host::get_stdin(&mut state.cli()))
    })?;
    linker.instance(&wasi("cli/stdout"))?.func_wrap("get-stdout", |mut store, (): ()| {
        made(&mut store, |state| stdout::Host::get_stdout(&mut state.cli()))
    })?;
    linker.instance(&wasi("cli/stderr"))?.func_wrap("get-stderr", |mut store, (): ()| {
        made(&mut store, |state| stderr::Host::get_stderr(&mut state.cli()))
    })?;
    linker.instance(&wasi("sockets/instance-network"))?.func_wrap("instance-network", |mut store, (): ()| {
        made(&mut store, |state| instance_network::Host::instance_network(&mut state.sockets()))
    })?;
    linker.instance(&wasi("random/random"))?.func_wrap("get-random-bytes", |mut store, (len,): (u64,)| {
        random_bytes(&mut store, len, |state| random::Host::get_random_bytes(state.random(), len))
    })?;
    linker.instance(&wasi("random/insecure"))?.func_wrap("get-insecure-random-bytes", |mut store, (len,): (u64,)| {
        random_bytes(&mut store, len, |state| insecure::Host::get_insecure_random_bytes(state.random(), len))
    })
}
