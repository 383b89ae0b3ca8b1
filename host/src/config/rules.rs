//! `[[allow]]`, `[[deny]]` and `[auth.scopes]`: the rules of the policy.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use toml::de::{DeTable, DeValue};

use super::error::{self, Problem};
use super::one_or_more::{ListItem, OneOrMore};
use super::value::KIND;
use crate::model::{MountName, text};
use crate::policy::{
    Action, ActionSet, RateRule, Rule, RuleNumber, RuleOrigin, RuleResources, Schedule, ScopeSet, UriPattern, Who,
};

/// The examples of `who`.
const ONCALL: [(&str, &str); 1] = [("group", "oncall")];

/// The examples of `do`.
const READ: [&str; 2] = ["list", "read"];

/// The example of `mounts`.
const NOTES: [&str; 1] = ["notes"];

/// One `[[allow]]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct AllowTable {
    /// The principals: "anyone", or a table with one or more of the keys user, issuer, group, scope and key. All of these
    /// keys must hold; of an array, one entry must. `user = "local"` is the operating system's user, `user = "anonymous"` is
    /// HTTP without authentication, any other user is the subject of a token. Scopes that are needed together are separated
    /// by a space.
    #[schemars(extend("examples" = ["anyone", BTreeMap::from(ONCALL)]))]
    who: WhoValue,
    /// The resources: patterns of their absolute URIs. `*` is any text without "/", `**` is any text. A resource must match
    /// as it is written, and with escapes decoded and repeated slashes reduced to one.
    #[schemars(example = "belljar://logs/**", extend("x-taplo" = { "docs": { "defaultValue": "every resource" } }))]
    what: Option<OneOrMore<UriPattern>>,
    /// The actions: list, read, search, complete, subscribe, call, prompt.
    #[serde(rename = "do")]
    #[schemars(example = READ, extend("x-taplo" = { "docs": { "defaultValue": "all actions" } }))]
    actions: Option<OneOrMore<Action>>,
    /// When the rule applies: days, hours and a time zone. Without a time zone: UTC. Hours may go over midnight; they belong
    /// to the day on which they begin. Several parts are separated by ";".
    #[schemars(example = "Mon-Fri 08:00-18:00 Europe/Berlin", extend("x-taplo" = { "docs": { "defaultValue": "always" } }))]
    when: Option<ScheduleText>,
    /// How many requests or bytes each principal gets: a number or a size, a period (s, min, h or day) and "per caller". Does
    /// not bind a request that another rule without a rate allows.
    #[schemars(example = "60/min per caller", example = "50MiB/day per caller")]
    rate: Option<OneOrMore<RateRule>>,
}

/// One `[[deny]]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct DenyTable {
    /// The principals, as in [[allow]].
    #[schemars(extend("examples" = ["anyone", BTreeMap::from(ONCALL)]))]
    who: WhoValue,
    /// The resources, as in [[allow]]. A resource is denied in any spelling: as it is written, with escapes decoded and
    /// repeated slashes reduced to one, with a query, and with or without a slash at its end: a pattern for everything in a
    /// folder denies the folder too.
    #[schemars(example = "belljar://logs/secret/**", extend("x-taplo" = { "docs": { "defaultValue": "every resource" } }))]
    what: Option<OneOrMore<UriPattern>>,
    /// The actions: list, read, search, complete, subscribe, call, prompt.
    #[serde(rename = "do")]
    #[schemars(example = READ, extend("x-taplo" = { "docs": { "defaultValue": "all actions" } }))]
    actions: Option<OneOrMore<Action>>,
    /// When the rule applies, as in [[allow]].
    #[schemars(example = "Sat,Sun", extend("x-taplo" = { "docs": { "defaultValue": "always" } }))]
    when: Option<ScheduleText>,
}

/// One entry of `[auth.scopes]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { mounts = [\"notes\"], do = [\"read\"] }")]
pub(super) struct ScopeTable {
    /// The mounts that the holders of the scope may use.
    #[schemars(example = NOTES, extend("x-taplo" = { "docs": { "defaultValue": "every mount" } }))]
    mounts: Option<OneOrMore<MountName>>,
    /// The actions: list, read, search, complete, subscribe, call, prompt.
    #[serde(rename = "do")]
    #[schemars(example = READ, extend("x-taplo" = { "docs": { "defaultValue": "all actions" } }))]
    actions: Option<OneOrMore<Action>>,
}

/// The tables of all rules.
pub(super) struct RuleTables {
    pub(super) allow: Vec<AllowTable>,
    pub(super) deny: Vec<DenyTable>,
    pub(super) scopes: BTreeMap<String, ScopeTable>,
}

impl RuleTables {
    /// The rules: those of `[[allow]]`, of `[[deny]]` and of `[auth.scopes]`, each in their order. `source`: the file.
    ///
    /// # Errors
    /// A name in `[auth.scopes]` that no scope can have.
    pub(super) fn rules(self, source: &str) -> Result<Vec<Rule>, Problem> {
        let Self { allow, deny, scopes } = self;
        let resources = |what: Option<OneOrMore<UriPattern>>| {
            what.map_or(RuleResources::All, |what| RuleResources::Patterns(what.0))
        };
        let actions = |actions: Option<OneOrMore<Action>>| {
            actions.map_or(ActionSet::ALL, |actions| actions.0.into_iter().collect())
        };
        let number = |lines: &[u32], at: usize| RuleNumber { number: at + 1, line: lines.get(at).copied() };
        let lines = if allow.is_empty() && deny.is_empty() { RuleLines::default() } else { RuleLines::find(source) };
        let mut rules: Vec<Rule> = Vec::new();
        rules.extend(allow.into_iter().enumerate().map(|(at, table)| Rule {
            origin: RuleOrigin::Allow(number(&lines.allow, at)),
            who: table.who.0,
            resources: resources(table.what),
            actions: actions(table.actions),
            schedule: table.when.map(|when| when.0),
            rates: table.rate.map(|rate| rate.0).unwrap_or_default(),
        }));
        rules.extend(deny.into_iter().enumerate().map(|(at, table)| Rule {
            origin: RuleOrigin::Deny(number(&lines.deny, at)),
            who: table.who.0,
            resources: resources(table.what),
            actions: actions(table.actions),
            schedule: table.when.map(|when| when.0),
            rates: Vec::new(),
        }));
        for (scope, table) in scopes {
            let set = ScopeSet::new(&scope).ok().filter(|set| set.scopes().len() == 1);
            let set = set.ok_or_else(|| Problem::ScopeName(text::excerpt(&scope, 80)))?;
            rules.push(Rule {
                origin: RuleOrigin::Scope(scope),
                who: Who { scopes: vec![set], ..Who::default() },
                resources: table.mounts.map_or(RuleResources::All, |mounts| RuleResources::Mounts(mounts.0)),
                actions: actions(table.actions),
                schedule: None,
                rates: Vec::new(),
            });
        }
        Ok(rules)
    }
}

/// The lines at which rules begin.
#[derive(Default)]
struct RuleLines {
    allow: Vec<u32>,
    deny: Vec<u32>,
}

impl RuleLines {
    /// Finds them in a file that was parsed before.
    fn find(source: &str) -> Self {
        let table = DeTable::parse(source).map(toml::Spanned::into_inner).unwrap_or_default();
        let lines =
            |name: &str| match table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value.get_ref()) {
                Some(DeValue::Array(rules)) => {
                    rules.iter().map(|rule| error::position(source, rule.span().start).line).collect()
                }
                _ => Vec::new(),
            };
        Self { allow: lines("allow"), deny: lines("deny") }
    }
}

/// `who`.
#[derive(Debug)]
struct WhoValue(Who);

/// The keys of `who`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct WhoTable {
    user: Option<OneOrMore<String>>,
    issuer: Option<OneOrMore<String>>,
    group: Option<OneOrMore<String>>,
    scope: Option<OneOrMore<ScopeSet>>,
    key: Option<OneOrMore<String>>,
}

impl WhoValue {
    const EXPECTED: &str = "\"anyone\" or a table such as { group = \"oncall\" }";
}

impl<'de> Deserialize<'de> for WhoValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Conditions;

        impl<'de> Visitor<'de> for Conditions {
            type Value = Who;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(WhoValue::EXPECTED)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Who, E> {
                match word {
                    "anyone" => Ok(Who::default()),
                    _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Who, A::Error> {
                let table = WhoTable::deserialize(MapAccessDeserializer::new(map))?;
                let list = |value: Option<OneOrMore<String>>| value.map(|list| list.0).unwrap_or_default();
                let who = Who {
                    users: list(table.user),
                    issuers: list(table.issuer),
                    groups: list(table.group),
                    scopes: table.scope.map(|list| list.0).unwrap_or_default(),
                    keys: list(table.key),
                };
                if who == Who::default() {
                    return Err(A::Error::invalid_value(Unexpected::Other("the table is empty"), &self));
                }
                who.check().map_err(A::Error::custom)?;
                Ok(who)
            }
        }

        deserializer.deserialize_any(Conditions).map(Self)
    }
}

impl JsonSchema for WhoValue {
    fn schema_name() -> Cow<'static, str> {
        "Who".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = <OneOrMore<String>>::json_schema(generator);
        let key = |description: &str| {
            let mut schema = list.clone();
            schema.insert("description".to_owned(), description.into());
            schema
        };
        json_schema!({
            "anyOf": [
                { "const": "anyone" },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "minProperties": 1,
                    "properties": {
                        "user": key("\"local\", \"anonymous\", or subjects of tokens."),
                        "issuer": key("Issuers of tokens."),
                        "group": key("Groups of a key or a token."),
                        "scope": key("Scopes of a key or a token. Scopes that are needed together are separated by a space."),
                        "key": key("Names of API keys."),
                    },
                },
            ],
            KIND: "`\"anyone\"` or a table",
        })
    }
}

/// `when`.
#[derive(Debug)]
struct ScheduleText(Schedule);

impl<'de> Deserialize<'de> for ScheduleText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for ScheduleText {
    fn schema_name() -> Cow<'static, str> {
        "Schedule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}

impl ListItem for UriPattern {
    const EXPECTED: &str = "a pattern such as \"belljar://logs/**\", or an array of patterns";

    fn parse(text: &str) -> Result<Self, impl fmt::Display> {
        text.parse::<Self>()
    }
}

impl ListItem for Action {
    const EXPECTED: &str = "an action or an array of actions, such as \"read\" or [\"list\", \"read\"]";

    fn parse(text: &str) -> Result<Self, impl fmt::Display> {
        text.parse::<Self>()
    }
}

impl ListItem for RateRule {
    const EXPECTED: &str = "a rate such as \"60/min per caller\", or an array of rates";

    fn parse(text: &str) -> Result<Self, impl fmt::Display> {
        text.parse::<Self>()
    }
}

impl ListItem for ScopeSet {
    const EXPECTED: &str = "a scope or an array of scopes, such as \"notes:read\"";

    fn parse(text: &str) -> Result<Self, impl fmt::Display> {
        Self::new(text)
    }
}

impl ListItem for MountName {
    const EXPECTED: &str = "the name of a mount or an array of names, such as \"notes\" or [\"notes\", \"logs\"]";

    fn parse(text: &str) -> Result<Self, impl fmt::Display> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests;
