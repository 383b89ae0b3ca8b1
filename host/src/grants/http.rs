//! `http`: no network in this version. Every way out is linked, refuses, and puts the refusal on the trail.

mod edit;

use serde::Deserialize;
use toml_edit::TableLike;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::{Network, TcpSocket, UdpSocket};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use super::edit::{Flag, Gift, Here};
use super::{Ambient, Grant, Scope, SharedTrail, View, wasi};
use crate::model::{MountName, Verdict};

/// The kind.
pub struct Http;

/// The key's value. There is none that this version accepts.
#[derive(Default, Deserialize)]
#[serde(untagged)]
pub enum Config {
    /// The key is absent.
    #[default]
    Absent,
    /// The key is there, with whatever value.
    Present(toml::Value),
}

/// What a call holds: hooks that refuse.
pub struct Refusal {
    mount: MountName,
    trail: SharedTrail,
}

fn cure(mount: &MountName) -> Option<String> {
    Some(format!(
        "nothing allows this yet: this version of belljar gives no network access to \"{mount}\" or any other mount"
    ))
}

impl Grant for Http {
    const NAME: &'static str = "http";
    const IMPORTS: &'static [&'static str] = &["wasi:http/", "wasi:sockets/"];
    const EXAMPLE: &'static str = "(network access cannot be granted in this version)";
    const GIVE: Flag = edit::GIVE;
    const MORE: &'static [Flag] = edit::MORE;
    const TAKE: &'static str = "ORIGIN";
    const TYPED: &'static str = "--http https://api.example";
    type Config = Config;
    type Mount = ();
    type Call = Refusal;

    fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        // Raw sockets are refused by wasmtime-wasi as well (no address check is installed); these definitions stand in
        // front of it so that the refusal is on record.
        let refuse = |mut store: StoreContextMut<'_, T>, what: &str| {
            let call = &store.data_mut().opened().http;
            call.trail.add(Self::NAME, what, Verdict::Denied, || cure(&call.mount));
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

    fn configure(config: &Config, _: &Ambient) -> Result<(), String> {
        match config {
            Config::Absent => Ok(()),
            Config::Present(_) => Err("this version of belljar has no HTTP grants; remove the key".to_owned()),
        }
    }

    fn is_held((): &()) -> bool {
        false
    }

    fn describe(_: &Config) -> Vec<String> {
        Vec::new()
    }

    fn in_words(_: &Config) -> Vec<String> {
        Vec::new()
    }

    fn give(mount: &mut dyn TableLike, gift: &Gift, _: &Here) -> Result<(), String> {
        edit::give(mount, gift)
    }

    fn advise(gift: &Gift) -> Vec<String> {
        edit::advise(gift)
    }

    fn take(mount: &mut dyn TableLike, what: &str) -> Result<(), String> {
        edit::take(mount, what)
    }

    fn open((): &(), _: &mut WasiCtxBuilder, scope: &Scope<'_>) -> Refusal {
        Refusal { mount: scope.mount.clone(), trail: scope.trail.clone() }
    }
}

/// What `wasi:http` waits for after a request was sent: the exchange's own work.
type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Refusal {
    fn send_request(
        &mut self,
        request: ::http::Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Io,
    ) -> Box<dyn Future<Output = Result<(::http::Response<WasiBody>, Io), Error>> + Send> {
        let uri = request.uri();
        // Scheme and authority only: a path or query may carry what the guest read.
        let what = format!(
            "{} {}://{}",
            request.method(),
            uri.scheme_str().unwrap_or("?"),
            uri.authority().map_or("?", |a| a.host())
        );
        self.trail.add(Http::NAME, &what, Verdict::Denied, || cure(&self.mount));
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }
}
