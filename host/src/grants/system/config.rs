//! The configuration of the grant: `system = ["load", "memory"]`, `system = ["all", "command-lines"]`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::parts::SystemPart;
use crate::model::Guard;

/// The granted parts of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemConfig(pub(super) BTreeSet<SystemPart>);

impl SystemConfig {
    /// True if a part is granted. Command lines never come with `all`.
    pub(super) fn has(&self, part: SystemPart) -> bool {
        let by_all = part != SystemPart::CommandLines && self.0.contains(&SystemPart::All);
        self.0.contains(&part) || by_all || (!self.0.is_empty() && !Guard::SystemParts.is_on())
    }

    /// True if nothing is granted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for SystemConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        words.iter().map(|word| SystemPart::parse(word).map_err(D::Error::custom)).collect::<Result<_, _>>().map(Self)
    }
}

impl JsonSchema for SystemConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SystemGrant".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = SystemPart::WORDS.iter().map(|part| part.word()).collect();
        json_schema!({ "type": "array", "items": { "type": "string", "enum": words } })
    }
}
