//! `[admin]`: the address of the operator's own endpoint.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::serve::ListenAddress;

/// `[admin]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct AdminTable {
    /// The address of `/metrics`, `/livez` and `/readyz`. A loopback address: the endpoint asks for no credential.
    #[schemars(example = "127.0.0.1:8809")]
    listen: Option<ListenAddress>,
}

/// The checked `[admin]`. The default is a missing table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminConfig {
    /// The address to listen on. None: there is no such endpoint.
    pub listen: Option<SocketAddr>,
}

/// The address of `[admin]` is not one of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "admin.listen = \"{0}\": anyone who reaches this address could see who reads what; expected a loopback address, such as \"127.0.0.1:8809\""
)]
pub struct AdminProblem(SocketAddr);

impl AdminTable {
    /// The checked table.
    ///
    /// # Errors
    /// The address is not a loopback address.
    pub(super) fn checked(self) -> Result<AdminConfig, AdminProblem> {
        match self.listen.map(|listen| listen.0) {
            Some(address) if !address.ip().is_loopback() => Err(AdminProblem(address)),
            listen => Ok(AdminConfig { listen }),
        }
    }
}
