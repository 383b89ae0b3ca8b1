//! Raw sockets and name lookups: refused, whatever is granted. What reaches the network does so by HTTP.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::{Network, TcpSocket, UdpSocket};

use crate::grants::{View, wasi};

/// Puts refusals in front of wasmtime-wasi's own functions, which refuse as well (no address check is installed), so that
/// each is on record.
pub(super) fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let refuse = |mut store: StoreContextMut<'_, T>, what: &str| store.data_mut().opened().http.refuse_socket(what);
    linker.instance(&wasi("sockets/tcp-create-socket"))?.func_wrap(
        "create-tcp-socket",
        move |store, (_,): (IpAddressFamily,)| {
            refuse(store, "TCP socket");
            Ok((Err::<Resource<TcpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    linker.instance(&wasi("sockets/udp-create-socket"))?.func_wrap(
        "create-udp-socket",
        move |store, (_,): (IpAddressFamily,)| {
            refuse(store, "UDP socket");
            Ok((Err::<Resource<UdpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    linker.instance(&wasi("sockets/ip-name-lookup"))?.func_wrap(
        "resolve-addresses",
        move |store, (_, name): (Resource<Network>, String)| {
            refuse(store, &format!("name lookup of {name}"));
            Ok((Err::<Resource<ResolveAddressStream>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    Ok(())
}
