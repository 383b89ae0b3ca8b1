//! Host functions that refuse raw sockets and name lookups, whatever is granted. A guest reaches the network by HTTP
//! only.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::{Network, TcpSocket, UdpSocket};

use super::grant::{Grant, GrantView};
use super::http::Http;
use super::wasi::wasi;
use crate::model::DecisionKind;

/// The name of the kind in the audit records of these refusals.
const KIND: &str = <Http as Grant>::NAME;

/// The cure in the audit records of these refusals.
const CURE: &str = "nothing allows this: providers reach the network by HTTP only";

/// Replaces functions of wasmtime-wasi. Those refuse too, because no address check is installed, but add nothing to the
/// call's record.
pub(super) fn link<T: GrantView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let refuse = |mut store: StoreContextMut<'_, T>, target: &str| {
        store.data_mut().record().add_decision(KIND, target, DecisionKind::Denied, || Some(CURE.to_owned()));
    };
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
