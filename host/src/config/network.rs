//! `[network]`: name servers and certificates for the requests of providers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::model::text;

/// The example of `dns`.
const NAME_SERVERS: [&str; 2] = ["9.9.9.9", "127.0.0.1:5353"];

/// `[network]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct NetworkTable {
    /// Addresses of name servers that are asked in place of the system's. Without a port: 53.
    #[serde(default)]
    #[schemars(example = NAME_SERVERS)]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "the system's" } }))]
    pub(super) dns: Vec<NameServer>,
    /// A file of certificates in PEM that are trusted beside the system's.
    #[schemars(example = "~/company-ca.pem")]
    pub(super) ca: Option<PathBuf>,
}

/// The address of a name server, with its port.
#[derive(Clone, Copy)]
pub(super) struct NameServer(pub(super) SocketAddr);

impl<'de> Deserialize<'de> for NameServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let server = String::deserialize(deserializer)?;
        let address = server.parse().or_else(|_| server.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
        address.map(Self).map_err(|_| {
            let server = text::excerpt(&server, 80);
            D::Error::custom(format!(
                "\"{server}\" is not the address of a name server; write an address such as \"9.9.9.9\" or \"127.0.0.1:5353\""
            ))
        })
    }
}

impl JsonSchema for NameServer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NameServer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9A-Fa-f.:\\[\\]]+$" })
    }
}
