//! The configuration of a grant: one entry of `[[mounts.NAME.postgres]]`.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::grants::network::host::{Host, HostError, parse_host_and_port};
use crate::grants::network::networks::networks;
use crate::grants::secrets::SecretTemplate;
use crate::model::text;

/// The port of a server when the configuration has none.
const DEFAULT_PORT: u16 = 5432;

/// The configuration of one database.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(
    expecting = "a table such as { at = \"db.internal:5432/shop\", user = \"reader\", password = \"${secret:shop}\" }"
)]
pub struct PostgresGrantConfig {
    /// Host, port and database: `db.internal:5432/shop`. Without a port: 5432.
    #[schemars(example = "db.internal:5432/shop")]
    pub at: String,
    /// The user as whom belljar logs in.
    #[schemars(example = &"reader")]
    pub user: String,
    /// The user's password: "${secret:NAME}". The provider never has it.
    #[schemars(example = "${secret:shop}")]
    pub password: SecretTemplate,
    /// Whether every transaction only reads. The server enforces it, and belljar ends a connection that would leave it.
    #[serde(default = "yes")]
    #[schemars(example = true)]
    pub read_only: bool,
    /// Whether belljar speaks TLS with the server and checks its certificate. `false` only for a server on this machine.
    #[serde(default = "yes")]
    #[schemars(example = true)]
    pub tls: bool,
    /// Addresses and networks that the server may have although they are not public.
    #[serde(default)]
    #[serde(deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = ["10.0.0.0/8"])]
    pub networks: Vec<IpNet>,
}

fn yes() -> bool {
    true
}

/// Why the text of a destination is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The server is malformed.
    #[error("at = \"{written}\": {error}")]
    Server {
        /// The configured text, shortened for display.
        written: String,
        /// The problem.
        error: HostError,
    },
    /// The database is missing or malformed. Holds the configured text, shortened for display.
    #[error("at = \"{0}\": expected a server and a database, as in \"db.internal:5432/shop\"")]
    Database(String),
}

/// A server and a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DatabaseAddress {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) database: String,
}

impl DatabaseAddress {
    /// Parses `db.internal:5432/shop`.
    pub(super) fn parse(at: &str) -> Result<Self, DestinationError> {
        let written = || text::excerpt(at, 200);
        let (server, database) = at.split_once('/').ok_or_else(|| DestinationError::Database(written()))?;
        let is_name = !database.is_empty() && database.len() < 64 && !database.contains(['/', '?', '\0']);
        if !is_name || database.chars().any(char::is_control) {
            return Err(DestinationError::Database(written()));
        }
        let (host, port) =
            parse_host_and_port(server).map_err(|error| DestinationError::Server { written: written(), error })?;
        Ok(Self { host, port: port.unwrap_or(DEFAULT_PORT), database: database.to_owned() })
    }
}

impl std::fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.host, self.port, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_has_a_server_and_a_database() {
        for (at, expected) in [
            ("db.internal:5432/shop", "db.internal:5432/shop"),
            ("DB.internal/Shop", "db.internal:5432/Shop"),
            ("[::1]:1/a b", "[::1]:1/a b"),
        ] {
            assert_eq!(DatabaseAddress::parse(at).unwrap().to_string(), expected);
        }
        for wrong in
            ["db.internal", "db.internal/", "/shop", "postgres://db.internal/shop", "a/b/c", "a/b?c", "a:0/b", "u@a/b"]
        {
            assert!(DatabaseAddress::parse(wrong).is_err(), "{wrong}");
        }
    }
}
