//! What the operator writes: `fs = { "/notes" = "~/notes", "/mail" = { path = "~/mail", ask = true } }`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// Guest path to what is granted there.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Config(pub(super) BTreeMap<String, Granted>);

/// One granted directory.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    /// On the host.
    pub(super) path: PathBuf,
    /// Whether a person is asked before a call gets it.
    pub(super) ask: bool,
}

/// The long form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { path = \"DIR\", ask = true }")]
struct Table {
    path: PathBuf,
    #[serde(default)]
    ask: bool,
}

impl<'de> Deserialize<'de> for Granted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Granted;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a directory, or { path = \"DIR\", ask = true }")
            }

            fn visit_str<E: Error>(self, path: &str) -> Result<Granted, E> {
                Ok(Granted { path: path.into(), ask: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Granted, A::Error> {
                let Table { path, ask } = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Granted { path, ask })
            }
        }

        deserializer.deserialize_any(Either)
    }
}
