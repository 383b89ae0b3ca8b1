//! The run-time part of the grant `postgres`.

use std::sync::Arc;

use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;
use zeroize::Zeroizing;

use super::config::{DatabaseAddress, DestinationError, PostgresGrantConfig};
use super::connector::PostgresConnector;
use super::login::DatabaseLogin;
use super::name::{NAME, Postgres};
use super::server::DatabaseServer;
use super::wire::MAX_MESSAGE;
use crate::grants::ambient::Ambient;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::grants::network::ResolverError;
use crate::grants::network::endpoint::TcpEndpoint;
use crate::grants::network::route::Route;
use crate::grants::secrets::{Secret, SecretError};
use crate::model::text;

/// Why a `postgres` grant cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The destination is malformed.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// Two grants name the same server. Holds the second one.
    #[error("\"{0}\": another grant names the same server; mount the provider twice, each with one of the databases")]
    Twice(String),
    /// The user is empty or not a name. Holds the destination.
    #[error("\"{0}\": user is not the name of a user")]
    User(String),
    /// The password is not a secret. Holds the destination.
    #[error(
        "\"{0}\": the password stands in the configuration; write password = \"${{secret:NAME}}\", and NAME under [secrets]"
    )]
    PlainPassword(String),
    /// The grant would use a password at another machine without TLS. Holds the destination.
    #[error("\"{0}\": tls = false is for a server on this machine only; remove it")]
    Unencrypted(String),
    /// The secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// belljar cannot make a resolver.
    #[error(transparent)]
    Resolver(#[from] ResolverError),
}

/// The databases of a mount. Empty in a worker process, where the front connects.
#[derive(Default)]
pub struct PostgresMountState {
    endpoints: Vec<TcpEndpoint>,
    secrets: Vec<Arc<Secret>>,
    /// Variables by which client libraries find the first database.
    variables: Vec<(&'static str, String)>,
}

impl Grant for Postgres {
    const NAME: &'static str = NAME;
    const IMPORTS: &'static [&'static str] = &["wasi:sockets/"];
    type Config = Vec<PostgresGrantConfig>;
    type MountState = PostgresMountState;
    type CallState = ();
    type Error = PostgresError;

    fn link<T: HasCallState<Self>>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &Vec<PostgresGrantConfig>, ambient: &Ambient) -> Result<PostgresMountState, PostgresError> {
        let mut state = PostgresMountState::default();
        let network = ambient.network.as_ref().filter(|_| !config.is_empty());
        let resolver = network.map(|network| network.resolver()).transpose()?.map(Arc::new);
        let mut known: Vec<DatabaseAddress> = Vec::new();
        for written in config {
            let address = DatabaseAddress::parse(&written.at)?;
            let shown = || text::excerpt(&written.at, 200);
            if known.iter().any(|own| (&own.host, own.port) == (&address.host, address.port)) {
                return Err(PostgresError::Twice(shown()));
            }
            if written.user.is_empty() || written.user.len() > 63 || written.user.chars().any(char::is_control) {
                return Err(PostgresError::User(shown()));
            }
            if !written.password.has_secrets() {
                return Err(PostgresError::PlainPassword(shown()));
            }
            if !written.tls && !address.host.is_this_machine() {
                return Err(PostgresError::Unencrypted(shown()));
            }
            let (password, secrets) = written.password.fill(&ambient.secrets)?;
            state.secrets.extend(secrets);
            if known.is_empty() {
                state.variables = vec![
                    ("PGHOST", address.host.to_string().trim_matches(['[', ']']).to_owned()),
                    ("PGPORT", address.port.to_string()),
                    ("PGDATABASE", address.database.clone()),
                    ("PGUSER", written.user.clone()),
                ];
            }
            known.push(address.clone());
            // Without a network, no mount is called: `belljar check` reads a configuration only.
            let (Some(network), Some(resolver)) = (network, &resolver) else { continue };
            let target = address.to_string();
            let DatabaseAddress { host, port, database } = address;
            let route = Route {
                host: host.clone(),
                port,
                networks: written.networks.clone(),
                network: Arc::clone(network),
                resolver: Arc::clone(resolver),
                flags: [format!("--{NAME}"), written.at.clone()],
            };
            let user = written.user.clone();
            let credentials = DatabaseLogin { user, database, password, is_read_only: written.read_only };
            let tls = written.tls.then(|| network.tls(&[]));
            let connector = Arc::new(PostgresConnector(Arc::new(DatabaseServer { route, tls, credentials, target })));
            // One message of each side may wait in belljar.
            let host_memory = 2 * MAX_MESSAGE as u64;
            state.endpoints.push(TcpEndpoint { kind: NAME, host, port, connector, host_memory });
        }
        Ok(state)
    }

    fn endpoints(mount: &PostgresMountState) -> Vec<TcpEndpoint> {
        mount.endpoints.clone()
    }

    fn ports(config: &Vec<PostgresGrantConfig>) -> Vec<u16> {
        config.iter().filter_map(|written| Some(DatabaseAddress::parse(&written.at).ok()?.port)).collect()
    }

    fn powers(config: &Vec<PostgresGrantConfig>) -> Powers {
        Powers { can_change: config.iter().any(|written| !written.read_only), can_reach_out: !config.is_empty() }
    }

    fn secrets(mount: &PostgresMountState) -> Vec<Arc<Secret>> {
        mount.secrets.clone()
    }

    fn variables(mount: &PostgresMountState) -> Vec<(String, Zeroizing<String>)> {
        let all = mount.variables.iter();
        all.map(|(name, value)| ((*name).to_owned(), Zeroizing::new(value.clone()))).collect()
    }

    fn is_granted(mount: &PostgresMountState) -> bool {
        !mount.endpoints.is_empty()
    }

    fn open(mount: &PostgresMountState, wasi: &mut WasiCtxBuilder, _: &CallScope<'_>) {
        for (name, value) in &mount.variables {
            wasi.env(name, value);
        }
    }
}
