//! `[admin]`: the addresses of the operator's own endpoint.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::serve::ListenAddress;

/// `[admin]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(super) struct AdminTable {
    /// The address of the console, `/metrics`, `/livez` and `/readyz`. A loopback address: the endpoint asks for no
    /// credential.
    #[schemars(example = "127.0.0.1:8809")]
    listen: Option<ListenAddress>,
    /// An address of `/livez` and `/readyz` for the machines that watch this one, such as a load balancer. Any address.
    #[schemars(example = "0.0.0.0:8810")]
    probes: Option<ListenAddress>,
    /// A file with a token of at least 32 characters. With it, `probes` serves `/metrics` too, to requests with the header
    /// `Authorization: Bearer TOKEN`.
    #[schemars(example = "metrics.token")]
    metrics_token: Option<PathBuf>,
}

/// The checked `[admin]`. The default is a missing table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminConfig {
    /// The address to listen on. None: there is no such endpoint.
    pub listen: Option<SocketAddr>,
    /// The address of the probes. None: only `listen` has them.
    pub probes: Option<SocketAddr>,
    /// The file of the token for metrics.
    pub metrics_token: Option<PathBuf>,
}

/// The keys of `[admin]` do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminProblem {
    /// The address is not one of this machine.
    #[error(
        "admin.listen = \"{0}\": anyone who reaches this address could see who reads what; expected a loopback address, such as \"127.0.0.1:8809\"; for health checks from other machines, add  probes = \"{0}\"  to [admin]"
    )]
    NotLoopback(SocketAddr),
    /// Nothing serves metrics for the token.
    #[error(
        "admin.metrics-token: only the address of  probes  asks for a token; add  probes = \"0.0.0.0:8810\"  to [admin], or remove  metrics-token"
    )]
    NoProbes,
    /// Both addresses are the same.
    #[error("admin.probes = \"{0}\": this is the address of  listen, which has /livez and /readyz too; remove  probes")]
    Twice(SocketAddr),
}

impl AdminTable {
    /// The checked table. `place` makes a path absolute.
    ///
    /// # Errors
    /// The keys do not fit.
    pub(super) fn checked(self, place: impl Fn(PathBuf) -> PathBuf) -> Result<AdminConfig, AdminProblem> {
        let [listen, probes] = [self.listen, self.probes].map(|address| address.map(|address| address.0));
        if let Some(address) = listen.filter(|address| !address.ip().is_loopback()) {
            return Err(AdminProblem::NotLoopback(address));
        }
        if let Some(address) = probes.filter(|address| Some(*address) == listen && address.port() != 0) {
            return Err(AdminProblem::Twice(address));
        }
        if self.metrics_token.is_some() && probes.is_none() {
            return Err(AdminProblem::NoProbes);
        }
        Ok(AdminConfig { listen, probes, metrics_token: self.metrics_token.map(place) })
    }
}
