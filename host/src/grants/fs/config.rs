//! The configuration of the grant: `fs = { "/notes" = "~/notes", "/mail" = { path = "~/mail", ask = true } }`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// The granted directories by guest path.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct FsConfig(pub(super) BTreeMap<String, DirectoryConfig>);

/// The configuration of one granted directory.
#[derive(Clone, Debug)]
pub(super) struct DirectoryConfig {
    /// The host path, as the operator wrote it.
    pub(super) path: PathBuf,
    /// True if a person must consent before a call gets the directory.
    pub(super) ask: bool,
}

// The long form of `DirectoryConfig`: a comment, because a doc comment would be part of the JSON schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { path = \"DIR\", ask = true }")]
struct DirectoryTable {
    /// The directory on this machine. A relative path starts at the directory of the configuration; `~/` is your home directory.
    #[schemars(example = "~/mail")]
    path: PathBuf,
    /// Whether belljar asks a person before a call reads the directory. Needs `ask` in the mount's table.
    #[serde(default)]
    #[schemars(example = true)]
    ask: bool,
}

impl JsonSchema for DirectoryConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GrantedDirectory".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<DirectoryTable>()] })
    }
}

impl<'de> Deserialize<'de> for DirectoryConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathOrTable;

        impl<'de> Visitor<'de> for PathOrTable {
            type Value = DirectoryConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a directory, or { path = \"DIR\", ask = true }")
            }

            fn visit_str<E: Error>(self, path: &str) -> Result<DirectoryConfig, E> {
                Ok(DirectoryConfig { path: path.into(), ask: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DirectoryConfig, A::Error> {
                let DirectoryTable { path, ask } = DirectoryTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(DirectoryConfig { path, ask })
            }
        }

        deserializer.deserialize_any(PathOrTable)
    }
}
