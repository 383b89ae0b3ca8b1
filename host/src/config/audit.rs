//! `audit`: where the record of calls goes, and what happens when it cannot be written.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Where the record of calls goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// To a file in the state directory. belljar rotates it and bounds its size.
    #[default]
    State,
    /// To the standard error stream, between the lines of the log.
    Stderr,
    /// Nowhere.
    Off,
    /// To a file, appended.
    File(PathBuf),
}

/// What happens to requests while the record cannot be written, and no more events fit into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// They are served. The record says how many are missing.
    #[default]
    Drop,
    /// They are refused until the record can be written.
    Refuse,
}

/// The value of `audit`: a word or a file, or a table with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuditSetting {
    to: Option<PathBuf>,
    when_full: WhenFull,
}

// The long form of `AuditSetting`: a comment, because a doc comment would be part of the JSON schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table such as { when-full = \"refuse\" }")]
struct AuditTable {
    /// "stderr", "off", or a file that lines are appended to.
    #[schemars(example = "audit.jsonl", extend("x-taplo" = { "docs": { "defaultValue": "record/audit.jsonl in the state directory" } }))]
    to: Option<PathBuf>,
    /// What happens to requests while the record cannot be written. "drop": they are served, and the record says how many
    /// are missing. "refuse": they are refused.
    #[serde(default)]
    #[schemars(example = &"refuse")]
    when_full: WhenFull,
}

impl AuditSetting {
    /// The setting in force. `place` makes a path absolute.
    pub(super) fn checked(self, place: impl Fn(PathBuf) -> PathBuf) -> (Audit, WhenFull) {
        let to = match self.to.as_deref().map(Path::to_str) {
            None => Audit::State,
            Some(Some("stderr")) => Audit::Stderr,
            Some(Some("off")) => Audit::Off,
            Some(_) => self.to.map_or(Audit::State, |path| Audit::File(place(path))),
        };
        (to, self.when_full)
    }
}

impl JsonSchema for AuditSetting {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Audit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<AuditTable>()] })
    }
}

impl<'de> Deserialize<'de> for AuditSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;

        impl<'de> Visitor<'de> for TextOrTable {
            type Value = AuditSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"stderr\", \"off\", a file, or { to = \"FILE\", when-full = \"refuse\" }")
            }

            fn visit_str<E: Error>(self, to: &str) -> Result<AuditSetting, E> {
                Ok(AuditSetting { to: Some(to.into()), when_full: WhenFull::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AuditSetting, A::Error> {
                let AuditTable { to, when_full } = AuditTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(AuditSetting { to, when_full })
            }
        }

        deserializer.deserialize_any(TextOrTable)
    }
}
