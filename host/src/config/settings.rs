//! The words and defaults of single keys. Knows no table.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Default of `calls`.
pub(super) const CALLS: u32 = 32;

/// The most calls at once: each has an address space of 32 GiB set aside.
pub(super) const MAX_CALLS: u64 = 1024;

/// Default of `total-memory`: eight of the largest calls that the default limits allow. The host fits into a container of
/// 1 GiB.
pub(super) const TOTAL_MEMORY: u64 = 512 << 20;

/// Default of `list-time`. Clients wait for the listing before they show anything.
pub(super) const LIST_TIME: Duration = Duration::from_secs(3);

/// Whether the process gives up the rights that it does not need, before any guest runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"best-effort\", \"require\" or \"off\"")]
#[schemars(inline)]
pub enum Wall {
    /// It gives up all rights that the kernel can take from it.
    #[default]
    BestEffort,
    /// It gives up all of them, or belljar does not start.
    Require,
    /// It keeps them.
    Off,
}

/// In which process the calls of a mount run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"none\", \"shared\", \"mount\" or \"call\"")]
#[schemars(inline)]
pub enum Isolation {
    /// In belljar's own process.
    None,
    /// In a worker process: a mount with grants has one of its own, and mounts without grants share one.
    #[default]
    Shared,
    /// In a worker process of the mount, behind a wall of its own.
    Mount,
    /// In a worker process for each call.
    Call,
}

impl Isolation {
    /// True if calls run in a worker process.
    pub fn has_worker(self) -> bool {
        self != Self::None
    }
}

/// The isolation without a key in the file. Tests of the build without guards may choose it.
pub(super) fn default_isolation() -> Isolation {
    #[cfg(feature = "unguarded")]
    {
        #[expect(clippy::disallowed_methods, reason = "the test that started this process chooses")]
        let chosen = std::env::var("BELLJAR_ISOLATION").unwrap_or_default();
        match chosen.as_str() {
            "mount" => return Isolation::Mount,
            "none" => return Isolation::None,
            "call" => return Isolation::Call,
            _ => {}
        }
    }
    Isolation::default()
}

/// Whether belljar asks a person to allow a call something that its mount was not granted. A later variant allows more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// belljar asks nobody.
    #[default]
    Never,
    /// The answer is for one call.
    Once,
    /// The person may have the answer written into the configuration.
    Persist,
}

impl Ask {
    /// The values of `ask`, for messages.
    const WORDS: &str = "true, false or \"persist\"";
}

impl<'de> Deserialize<'de> for Ask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl serde::de::Visitor<'_> for Words {
            type Value = Ask;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Ask::WORDS)
            }

            fn visit_bool<E: serde::de::Error>(self, asks: bool) -> Result<Ask, E> {
                Ok(if asks { Ask::Once } else { Ask::Never })
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Ask, E> {
                match word {
                    "persist" => Ok(Ask::Persist),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
                }
            }
        }

        deserializer.deserialize_any(Words)
    }
}

impl Serialize for Ask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_bool(false),
            Self::Once => serializer.serialize_bool(true),
            Self::Persist => serializer.serialize_str("persist"),
        }
    }
}

impl JsonSchema for Ask {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ask".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [true, false, "persist"] })
    }
}
