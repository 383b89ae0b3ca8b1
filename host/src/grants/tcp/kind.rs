//! The run-time part of the grant `tcp`.

use std::sync::Arc;

use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;

use super::config::TcpGrantConfig;
use super::connector::TcpConnector;
use super::name::{NAME, Tcp};
use crate::grants::ambient::Ambient;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::grants::network::ResolverError;
use crate::grants::network::endpoint::TcpEndpoint;
use crate::grants::network::host::{Host, HostError, parse_host_and_port};
use crate::grants::network::route::Route;
use crate::model::text;

/// Why a `tcp` grant cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// The destination is malformed.
    #[error("\"{written}\": {error}")]
    Destination {
        /// The configured text, shortened for display.
        written: String,
        /// The problem.
        error: HostError,
    },
    /// The port is missing. Holds the configured text, shortened for display.
    #[error("\"{0}\" has no port; write the port of the server after it, as in \"db.internal:5432\"")]
    NoPort(String),
    /// Two grants name the same destination. Holds it.
    #[error("\"{0}\" is granted twice; remove one of the grants")]
    Twice(String),
    /// belljar cannot make a resolver.
    #[error(transparent)]
    Resolver(#[from] ResolverError),
}

/// Parses the destination of a grant.
pub(super) fn parse(at: &str) -> Result<(Host, u16), TcpError> {
    let shown = || text::excerpt(at, 200);
    let (host, port) = parse_host_and_port(at).map_err(|error| TcpError::Destination { written: shown(), error })?;
    Ok((host, port.ok_or_else(|| TcpError::NoPort(shown()))?))
}

impl Grant for Tcp {
    const NAME: &'static str = NAME;
    const IMPORTS: &'static [&'static str] = &["wasi:sockets/"];
    type Config = Vec<TcpGrantConfig>;
    type MountState = Vec<TcpEndpoint>;
    type CallState = ();
    type Error = TcpError;

    fn link<T: HasCallState<Self>>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &Vec<TcpGrantConfig>, ambient: &Ambient) -> Result<Vec<TcpEndpoint>, TcpError> {
        let mut endpoints: Vec<TcpEndpoint> = Vec::new();
        let destinations = config.iter().map(|written| parse(&written.at)).collect::<Result<Vec<_>, _>>()?;
        // Without a network, no mount is called: `belljar check` reads a configuration only.
        let Some(network) = ambient.network.as_ref().filter(|_| !config.is_empty()) else { return Ok(endpoints) };
        let resolver = Arc::new(network.resolver()?);
        for (written, (host, port)) in config.iter().zip(destinations) {
            if endpoints.iter().any(|own| own.host == host && own.port == port) {
                return Err(TcpError::Twice(text::excerpt(&written.at, 200)));
            }
            let route = Route {
                host: host.clone(),
                port,
                networks: written.networks.clone(),
                network: Arc::clone(network),
                resolver: Arc::clone(&resolver),
                flags: [format!("--{NAME}"), format!("{host}:{port}")],
            };
            let connector = Arc::new(TcpConnector { route, tls: written.tls.then(|| network.tls(&[])) });
            endpoints.push(TcpEndpoint { kind: NAME, host, port, connector, host_memory: 0 });
        }
        Ok(endpoints)
    }

    fn endpoints(mount: &Vec<TcpEndpoint>) -> Vec<TcpEndpoint> {
        mount.clone()
    }

    fn ports(config: &Vec<TcpGrantConfig>) -> Vec<u16> {
        config.iter().filter_map(|written| Some(parse(&written.at).ok()?.1)).collect()
    }

    /// The protocol is unknown, so a connection can do anything.
    fn powers(config: &Vec<TcpGrantConfig>) -> Powers {
        Powers { can_change: !config.is_empty(), can_reach_out: !config.is_empty() }
    }

    fn is_granted(mount: &Vec<TcpEndpoint>) -> bool {
        !mount.is_empty()
    }

    fn open(_: &Vec<TcpEndpoint>, _: &mut WasiCtxBuilder, _: &CallScope<'_>) {}
}
