//! The host functions of `wasi:sockets`. They replace those of wasmtime-wasi, which would open sockets of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::bindings::sockets::tcp::ShutdownType;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, Network, Pollable, UdpSocket, subscribe};

use super::call_state::SocketsCallState;
use super::socket::{SocketState, TcpSocket};
use super::streams::{BUFFER, GuestConnection, Input, Output};
use crate::grants::grant::GrantView;
use crate::grants::wasi::wasi;

/// A store with the sockets of a call.
pub(in crate::grants) trait HasSockets: GrantView {
    fn sockets(&mut self) -> &mut SocketsCallState;
}

/// The result of a name lookup: the only address, until the guest has taken it.
struct FoundAddress(Option<IpAddr>);

#[wasmtime_wasi::async_trait]
impl Pollable for FoundAddress {
    async fn ready(&mut self) {}
}

type Store<'a, T> = StoreContextMut<'a, T>;

/// The result of a host function: its own error, or the guest's value.
type Answer<T> = wasmtime::Result<(Result<T, ErrorCode>,)>;

/// Adds the functions.
///
/// # Errors
/// When the linker refuses a definition.
pub(in crate::grants) fn link<T: HasSockets>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.instance(&wasi("sockets/udp-create-socket"))?.func_wrap(
        "create-udp-socket",
        |mut store: Store<'_, T>, (_,): (IpAddressFamily,)| {
            store.data_mut().sockets().refuse("UDP socket");
            Ok((Err::<Resource<UdpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    link_lookup(&mut linker.instance(&wasi("sockets/ip-name-lookup"))?)?;
    linker.instance(&wasi("sockets/tcp-create-socket"))?.func_wrap(
        "create-tcp-socket",
        |mut store: Store<'_, T>, (family,): (IpAddressFamily,)| {
            let state = store.data_mut();
            let socket = state.ctx().table.push(TcpSocket::new(family))?;
            state.charge_handle(socket.rep(), 0)?;
            Ok((Ok::<_, ErrorCode>(socket),))
        },
    )?;
    let mut tcp = linker.instance(&wasi("sockets/tcp"))?;
    link_tcp(&mut tcp)?;
    link_options(&mut tcp)
}

fn link_lookup<T: HasSockets>(lookup: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    lookup.resource("resolve-address-stream", ResourceType::host::<FoundAddress>(), |mut store, rep| {
        let state = store.data_mut();
        state.ctx().table.delete(Resource::<FoundAddress>::new_own(rep))?;
        state.release_handle(rep);
        Ok(())
    })?;
    lookup.func_wrap(
        "resolve-addresses",
        |mut store: Store<'_, T>, (_, name): (Resource<Network>, String)| -> Answer<Resource<FoundAddress>> {
            let state = store.data_mut();
            match state.sockets().resolve(&name) {
                Ok(address) => {
                    let found = state.ctx().table.push(FoundAddress(Some(address)))?;
                    state.charge_handle(found.rep(), 0)?;
                    Ok((Ok(found),))
                }
                Err(code) => Ok((Err(code),)),
            }
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.resolve-next-address",
        |mut store: Store<'_, T>, (found,): (Resource<FoundAddress>,)| -> Answer<Option<IpAddress>> {
            let next = store.data_mut().ctx().table.get_mut(&found)?.0.take();
            Ok((Ok(next.map(IpAddress::from)),))
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.subscribe",
        |mut store: Store<'_, T>, (found,): (Resource<FoundAddress>,)| subscribe_to(store.data_mut(), found),
    )
}

/// Creates a pollable, and charges it.
fn subscribe_to<T: GrantView, P: Pollable>(
    state: &mut T,
    handle: Resource<P>,
) -> wasmtime::Result<(Resource<DynPollable>,)> {
    let pollable = subscribe(state.ctx().table, handle)?;
    state.charge_handle(pollable.rep(), 0)?;
    Ok((pollable,))
}

fn link_tcp<T: HasSockets>(tcp: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    tcp.resource("tcp-socket", ResourceType::host::<TcpSocket>(), |mut store, rep| {
        let state = store.data_mut();
        state.ctx().table.delete(Resource::<TcpSocket>::new_own(rep))?;
        state.release_handle(rep);
        Ok(())
    })?;
    tcp.func_wrap(
        "[method]tcp-socket.start-bind",
        |mut store: Store<'_, T>,
         (_, _, address): (Resource<TcpSocket>, Resource<Network>, IpSocketAddress)|
         -> Answer<()> {
            let address = SocketAddr::from(address);
            store.data_mut().sockets().refuse(&format!("bind to {address}"));
            Ok((Err(ErrorCode::AccessDenied),))
        },
    )?;
    for name in ["[method]tcp-socket.finish-bind", "[method]tcp-socket.finish-listen"] {
        tcp.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<TcpSocket>,)| -> Answer<()> {
            Ok((Err(ErrorCode::NotInProgress),))
        })?;
    }
    tcp.func_wrap(
        "[method]tcp-socket.start-listen",
        |mut store: Store<'_, T>, (_,): (Resource<TcpSocket>,)| -> Answer<()> {
            store.data_mut().sockets().refuse("listen");
            Ok((Err(ErrorCode::AccessDenied),))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.accept",
        |_: Store<'_, T>,
         (_,): (Resource<TcpSocket>,)|
         -> Answer<(Resource<TcpSocket>, Resource<DynInputStream>, Resource<DynOutputStream>)> {
            Ok((Err(ErrorCode::InvalidState),))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.start-connect",
        |mut store: Store<'_, T>, (socket, _, address): (Resource<TcpSocket>, Resource<Network>, IpSocketAddress)| {
            Ok((start_connect(store.data_mut(), &socket, address)?,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.finish-connect",
        |mut store: Store<'_, T>, (socket,): (Resource<TcpSocket>,)| finish_connect(store.data_mut(), &socket),
    )?;
    tcp.func_wrap("[method]tcp-socket.subscribe", |mut store: Store<'_, T>, (socket,): (Resource<TcpSocket>,)| {
        subscribe_to(store.data_mut(), socket)
    })?;
    tcp.func_wrap(
        "[method]tcp-socket.shutdown",
        |mut store: Store<'_, T>, (socket, how): (Resource<TcpSocket>, ShutdownType)| -> Answer<()> {
            let socket = store.data_mut().ctx().table.get(&socket)?;
            let SocketState::Connected(connection) = &socket.state else {
                return Ok((Err(ErrorCode::InvalidState),));
            };
            if !matches!(how, ShutdownType::Send) {
                connection.end_reading();
            }
            if !matches!(how, ShutdownType::Receive) {
                connection.end_writing();
            }
            Ok((Ok(()),))
        },
    )
}

/// Begins to connect. The outer error ends the call.
fn start_connect<T: HasSockets>(
    state: &mut T,
    handle: &Resource<TcpSocket>,
    address: IpSocketAddress,
) -> wasmtime::Result<Result<(), ErrorCode>> {
    let address = SocketAddr::from(address);
    let socket = state.ctx().table.get(handle)?;
    match &socket.state {
        SocketState::New => {}
        SocketState::Connecting(_) | SocketState::Opened(_) => return Ok(Err(ErrorCode::ConcurrencyConflict)),
        SocketState::Connected(_) | SocketState::Failed => return Ok(Err(ErrorCode::InvalidState)),
    }
    let is_v4 = matches!(socket.family, IpAddressFamily::Ipv4);
    // A zone names a network interface of this machine.
    let has_zone = matches!(address, SocketAddr::V6(v6) if v6.scope_id() != 0);
    if is_v4 != address.is_ipv4() || has_zone || address.port() == 0 {
        return Ok(Err(ErrorCode::InvalidArgument));
    }
    let (opening, host_memory) = match state.sockets().connect(address) {
        Ok(opening) => opening,
        Err(code) => return Ok(Err(code)),
    };
    let socket = state.ctx().table.get_mut(handle)?;
    (socket.remote, socket.host_memory) = (Some(address), host_memory);
    socket.state = SocketState::Connecting(opening);
    Ok(Ok(()))
}

/// Gives the guest the streams of a connection.
fn finish_connect<T: HasSockets>(
    state: &mut T,
    handle: &Resource<TcpSocket>,
) -> Answer<(Resource<DynInputStream>, Resource<DynOutputStream>)> {
    let (stream, slot) = match state.ctx().table.get_mut(handle)?.take_opened() {
        Ok(opened) => opened,
        Err(code) => return Ok((Err(code),)),
    };
    let host_memory = state.ctx().table.get(handle)?.host_memory;
    let sockets = state.sockets();
    let connection = GuestConnection::new(stream, sockets.scope().record.clone(), sockets.traffic, slot);
    let table = state.ctx().table;
    table.get_mut(handle)?.state = SocketState::Connected(connection.clone());
    let input: DynInputStream = Box::new(Input::new(connection.clone()));
    let output: DynOutputStream = Box::new(Output::new(connection));
    let (input, output) = (table.push(input)?, table.push(output)?);
    state.charge_handle(input.rep(), BUFFER as u64 + host_memory)?;
    state.charge_handle(output.rep(), BUFFER as u64)?;
    Ok((Ok((input, output)),))
}

/// What a guest can ask of a socket and set on it. belljar makes the connections and keeps its own options, so that setting
/// one has no effect. Many libraries set some, and fail if they cannot.
fn link_options<T: HasSockets>(tcp: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    tcp.func_wrap(
        "[method]tcp-socket.local-address",
        |mut store: Store<'_, T>, (socket,): (Resource<TcpSocket>,)| -> Answer<IpSocketAddress> {
            let remote = store.data_mut().ctx().table.get(&socket)?.remote;
            let local = |remote: SocketAddr| match remote {
                SocketAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
                SocketAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
            };
            Ok((remote.map(|remote| local(remote).into()).ok_or(ErrorCode::InvalidState),))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.remote-address",
        |mut store: Store<'_, T>, (socket,): (Resource<TcpSocket>,)| -> Answer<IpSocketAddress> {
            let socket = store.data_mut().ctx().table.get(&socket)?;
            let remote = socket.remote.filter(|_| matches!(socket.state, SocketState::Connected(_)));
            Ok((remote.map(IpSocketAddress::from).ok_or(ErrorCode::InvalidState),))
        },
    )?;
    tcp.func_wrap("[method]tcp-socket.is-listening", |_: Store<'_, T>, (_,): (Resource<TcpSocket>,)| Ok((false,)))?;
    tcp.func_wrap(
        "[method]tcp-socket.address-family",
        |mut store: Store<'_, T>, (socket,): (Resource<TcpSocket>,)| {
            Ok((store.data_mut().ctx().table.get(&socket)?.family,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.keep-alive-enabled",
        |_: Store<'_, T>, (_,): (Resource<TcpSocket>,)| -> Answer<bool> { Ok((Ok(false),)) },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-keep-alive-enabled",
        |_: Store<'_, T>, (_, _): (Resource<TcpSocket>, bool)| -> Answer<()> { Ok((Ok(()),)) },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.keep-alive-count",
        |_: Store<'_, T>, (_,): (Resource<TcpSocket>,)| -> Answer<u32> { Ok((Ok(8),)) },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-keep-alive-count",
        |_: Store<'_, T>, (_, _): (Resource<TcpSocket>, u32)| -> Answer<()> { Ok((Ok(()),)) },
    )?;
    tcp.func_wrap("[method]tcp-socket.hop-limit", |_: Store<'_, T>, (_,): (Resource<TcpSocket>,)| -> Answer<u8> {
        Ok((Ok(64),))
    })?;
    tcp.func_wrap(
        "[method]tcp-socket.set-hop-limit",
        |_: Store<'_, T>, (_, _): (Resource<TcpSocket>, u8)| -> Answer<()> { Ok((Ok(()),)) },
    )?;
    for (option, value) in [
        ("keep-alive-idle-time", 7_200_000_000_000),
        ("keep-alive-interval", 75_000_000_000),
        ("receive-buffer-size", BUFFER as u64),
        ("send-buffer-size", BUFFER as u64),
    ] {
        tcp.func_wrap(
            &format!("[method]tcp-socket.{option}"),
            move |_: Store<'_, T>, (_,): (Resource<TcpSocket>,)| -> Answer<u64> { Ok((Ok(value),)) },
        )?;
    }
    for option in [
        "set-listen-backlog-size",
        "set-keep-alive-idle-time",
        "set-keep-alive-interval",
        "set-receive-buffer-size",
        "set-send-buffer-size",
    ] {
        tcp.func_wrap(
            &format!("[method]tcp-socket.{option}"),
            |_: Store<'_, T>, (_, _): (Resource<TcpSocket>, u64)| -> Answer<()> { Ok((Ok(()),)) },
        )?;
    }
    Ok(())
}
