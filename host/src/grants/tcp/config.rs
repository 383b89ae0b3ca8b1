//! The configuration of the grant: `tcp = ["db.internal:5432", { at = "mail.internal:993", tls = true }]`.

use std::fmt;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::grants::network::networks::networks;

/// The configuration of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpGrantConfig {
    /// Host and port, as the operator wrote them.
    pub(super) at: String,
    /// True if belljar speaks TLS with the server.
    pub(super) tls: bool,
    /// Addresses that are allowed although they are not public.
    pub(super) networks: Vec<IpNet>,
}

// The long form of `TcpGrantConfig`: a comment, because a doc comment would be part of the JSON schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"db.internal:5432\", tls = true }")]
struct TcpGrantTable {
    /// Host and port of the server: `db.internal:5432`, `[2001:db8::1]:993`.
    #[schemars(example = "db.internal:5432")]
    at: String,
    /// Whether belljar speaks TLS with the server and checks its certificate. The provider then sends and receives plain
    /// bytes.
    #[serde(default)]
    #[schemars(example = true)]
    tls: bool,
    /// Addresses and networks that the connections may lead to although they are not public.
    #[serde(default)]
    #[serde(deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = ["10.0.0.0/8"])]
    networks: Vec<IpNet>,
}

impl JsonSchema for TcpGrantConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TcpGrant".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<TcpGrantTable>()] })
    }
}

impl<'de> Deserialize<'de> for TcpGrantConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;

        impl<'de> Visitor<'de> for TextOrTable {
            type Value = TcpGrantConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("host and port such as \"db.internal:5432\", or { at = \"db.internal:5432\", tls = true }")
            }

            fn visit_str<E: Error>(self, at: &str) -> Result<TcpGrantConfig, E> {
                Ok(TcpGrantConfig { at: at.to_owned(), tls: false, networks: Vec::new() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TcpGrantConfig, A::Error> {
                let TcpGrantTable { at, tls, networks } = TcpGrantTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(TcpGrantConfig { at, tls, networks })
            }
        }

        deserializer.deserialize_any(TextOrTable)
    }
}
