//! The tables and keys of `belljar.toml`, as they are deserialized. The JSON schema and the reference of the configuration
//! are made from these structs: their doc comments are written for operators.
//!
//! A key that is missing is `None`; `config.rs` sets its default. The schema shows the defaults of `documented`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::admin::AdminTable;
use super::audit::AuditSetting;
use super::auth::AuthTable;
use super::callers::CallersTable;
use super::limits_table::LimitsTable;
use super::live::{CacheSettings, Watch};
use super::network::NetworkTable;
use super::replicas::ReplicasTable;
use super::rules::{AllowTable, DenyTable};
use super::search::SearchTable;
use super::serve::ServeTable;
use super::settings::{Ask, CALLS, Isolation, LIST_TIME, MAX_CALLS, TOTAL_MEMORY, Wall};
use super::trace::TraceTable;
use super::trust::TrustTable;
use super::value::{BaseUri, ComponentFile, Count, Freshness, Size, Time, ToolPrefix};
use crate::grants::secrets::SecretSource;
use crate::grants::{GrantConfig, GrantKind};

/// The longest interval of `[watch]`, and the longest time that an answer is served again: 24 hours. More is as good as never.
const DAY: u64 = 24 * 3600 * 1000;

/// An interval of `[watch]`. Less than 100 ms would keep a processor busy.
type Interval = Time<100, DAY>;

/// A size without bounds of its own.
type AnySize = Size<0, { u64::MAX }>;

/// A time without bounds of its own.
type AnyTime = Time<0, { u64::MAX }>;

/// The configuration of belljar. Every key is optional.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(default = "File::documented")]
pub(super) struct File {
    /// The directory whose `*.wasm` files become mounts. `--plugins` on the command line takes precedence. A relative path
    /// starts at the directory of this file; `~/` is your home directory.
    #[schemars(example = "~/plugins", extend("x-taplo" = { "docs": { "defaultValue": "\"plugins\", beside this file" } }))]
    pub(super) plugins: Option<PathBuf>,
    /// The directory for compiled components. It can be deleted at any time.
    #[schemars(example = "/var/cache/belljar")]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "$XDG_CACHE_HOME/belljar" } }))]
    pub(super) cache: Option<PathBuf>,
    /// The directory for belljar's own keys and for the record of calls.
    #[schemars(example = "/var/lib/belljar")]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "$XDG_STATE_HOME/belljar" } }))]
    pub(super) state: Option<PathBuf>,
    /// Where the record of calls goes: "stderr", "off", or a file that lines are appended to.
    #[schemars(example = "audit.jsonl", example = &"stderr")]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "record/audit.jsonl in the state directory" } }))]
    pub(super) audit: Option<AuditSetting>,
    /// Whether the process gives up the rights that it does not need before a provider runs. "best-effort": as many as the
    /// kernel can take. "require": belljar does not start unless the kernel can take all of them. "off": none.
    #[schemars(example = &"require")]
    pub(super) wall: Option<Wall>,
    /// In which process the calls of a mount run. "shared": mounts with grants have a worker process each, which
    /// reaches only what the mount was granted, and mounts without grants share one. "mount": all mounts have one each.
    /// "call": each call has one. "none": in belljar's own.
    #[schemars(example = &"mount")]
    pub(super) isolation: Option<Isolation>,
    /// Calls that run at once, over all mounts. One mount gets at most half of them.
    #[schemars(example = 64)]
    pub(super) calls: Option<Count<1, MAX_CALLS>>,
    /// Memory of all calls and all waiting answers together. At least twice the largest `memory` of any mount. Without this
    /// key it grows with that limit.
    #[schemars(example = "1GiB")]
    pub(super) total_memory: Option<AnySize>,
    /// How long one listing over all mounts may take.
    #[schemars(example = "5s")]
    pub(super) list_time: Option<AnyTime>,
    /// Whether clients get tools that list, read and search resources.
    #[schemars(example = false)]
    pub(super) tools: Option<bool>,
    /// Limits of every mount. A mount's own [mounts.NAME.limits] replaces single values.
    pub(super) limits: Option<LimitsTable>,
    /// How belljar follows changes of components, of this file and of resources.
    pub(super) watch: Option<WatchTable>,
    /// How often one client may call tools and ask for completions, and how many calls of one principal run at once.
    pub(super) callers: Option<CallersTable>,
    /// Name servers and certificates for the requests of providers.
    pub(super) network: Option<NetworkTable>,
    /// How `belljar serve` serves HTTP: address, public URL, TLS, and the names and pages that may use it.
    pub(super) serve: Option<ServeTable>,
    /// The operator's own endpoint: metrics and health.
    pub(super) admin: Option<AdminTable>,
    /// Traces of requests (OpenTelemetry).
    pub(super) trace: Option<TraceTable>,
    /// Who may sign the components that `belljar add` fetches.
    pub(super) trust: Option<TrustTable>,
    /// Where `belljar search` looks for components.
    pub(super) search: Option<SearchTable>,
    /// Several belljars behind one address, and the store that they share.
    pub(super) replicas: Option<ReplicasTable>,
    /// Credentials of HTTP requests. With this table, each HTTP request needs a valid key or token.
    pub(super) auth: Option<AuthTable>,
    /// A file of policies in the language Cedar, which add to the rules. Without this key: "policy.cedar" beside this file,
    /// if there is one.
    #[schemars(example = "policy.cedar")]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "\"policy.cedar\", beside this file" } }))]
    pub(super) policy: Option<PathBuf>,
    /// Rules that allow. Without any rule and any scope in [auth.scopes], everybody may do everything. With one, a request
    /// needs a rule that allows it.
    #[serde(default)]
    pub(super) allow: Vec<AllowTable>,
    /// Rules that deny. They win over all rules that allow.
    #[serde(default)]
    pub(super) deny: Vec<DenyTable>,
    /// Secrets by name. A name has letters, digits, "-" and "_". The secret itself is never written into this file.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9_-]+$" }))]
    pub(super) secrets: BTreeMap<String, SecretSource>,
    /// Mounts by name. A name has a-z, 0-9 and "-", begins with a letter or digit, and has at most 64 characters.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": "^[a-z0-9][a-z0-9-]{0,63}$" }))]
    pub(super) mounts: BTreeMap<String, MountTable>,
}

impl File {
    /// The defaults that the schema shows.
    fn documented() -> Self {
        Self {
            wall: Some(Wall::default()),
            isolation: Some(Isolation::default()),
            calls: Some(Count(CALLS.into())),
            total_memory: Some(Size(TOTAL_MEMORY)),
            list_time: Some(Time(LIST_TIME)),
            tools: Some(true),
            ..Self::default()
        }
    }
}

/// `[watch]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(default = "WatchTable::documented")]
pub(super) struct WatchTable {
    /// Whether belljar reads components and this file again when they change.
    #[schemars(example = false)]
    reload: Option<bool>,
    /// How often belljar asks a provider for the revisions of the resources that clients watch. For providers that export
    /// `revisions`.
    #[schemars(example = "10s")]
    poll: Option<Interval>,
    /// How often belljar reads the resources that clients watch, and compares them. For providers without `revisions`.
    #[schemars(example = "5m")]
    reread: Option<Interval>,
    /// How often belljar looks for changes of a list while a client waits for them. Also the longest time that a kept list
    /// is served.
    #[schemars(example = "5m")]
    lists: Option<Interval>,
}

impl WatchTable {
    /// The defaults that the schema shows.
    fn documented() -> Self {
        let Watch { reload, poll, reread, lists } = Watch::default();
        Self { reload: Some(reload), poll: Some(Time(poll)), reread: Some(Time(reread)), lists: Some(Time(lists)) }
    }

    /// The settings, with the defaults of missing values.
    pub(super) fn settings(self) -> Watch {
        let default = Watch::default();
        Watch {
            reload: self.reload.unwrap_or(default.reload),
            poll: self.poll.map_or(default.poll, |time| time.0),
            reread: self.reread.map_or(default.reread, |time| time.0),
            lists: self.lists.map_or(default.lists, |time| time.0),
        }
    }
}

/// One `[mounts.NAME]`: its own keys, and one key for each kind of grant.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct MountTable {
    #[schemars(flatten)]
    pub(super) keys: MountKeys,
    #[schemars(flatten)]
    pub(super) grants: GrantConfig,
}

/// The keys of `[mounts.NAME]` that are no grants.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(default = "MountKeys::documented")]
pub(super) struct MountKeys {
    /// The component's file name in the plugin directory.
    #[schemars(example = "files.wasm", extend("x-taplo" = { "docs": { "defaultValue": "NAME.wasm" } }))]
    pub(super) component: Option<ComponentFile>,
    /// The base URI of the mount's resources. It ends in "/".
    #[schemars(example = "notes:///", extend("x-taplo" = { "docs": { "defaultValue": "belljar://NAME/" } }))]
    pub(super) uri: Option<BaseUri>,
    /// Whether belljar asks a person when a call needs a file or a host that is not granted. true: the answer is for this
    /// call. "persist": the person may also have it written into this file.
    #[schemars(example = true, example = &"persist")]
    pub(super) ask: Option<Ask>,
    /// The longest time that an answer is served again without asking the provider: "off", or a time.
    #[schemars(example = "10m", example = &"off")]
    pub(super) cache: Option<Freshness<DAY>>,
    /// The `cacheScope` of answers, for caches outside belljar. "private": the cache of one client. "public": also a cache
    /// that several clients share. Not with `ask`.
    #[schemars(example = &"public")]
    pub(super) cache_scope: Option<CacheScope>,
    /// The first part of the names of the mount's tools and prompts: letters, digits and "-". An "_" follows it, unless it is
    /// empty. Names without a first part can be taken: then the tool of the later mount is left out.
    #[schemars(example = &"n", extend("x-taplo" = { "docs": { "defaultValue": "NAME" } }))]
    pub(super) tool_prefix: Option<ToolPrefix>,
    /// Whether a search also reads the contents of resources. Otherwise it reads names and descriptions only.
    #[schemars(example = true)]
    pub(super) search: Option<bool>,
    /// Whether each listed directory with a file `SKILL.md` is a skill. A component that exports `skill-provider` names its
    /// skills itself.
    #[schemars(example = true)]
    pub(super) skills: Option<bool>,
    /// In which process the calls of this mount run. A missing value is that of `isolation` at the top.
    #[schemars(example = &"mount")]
    pub(super) isolation: Option<Isolation>,
    /// Limits of this mount. A missing value is that of [limits].
    pub(super) limits: Option<LimitsTable>,
}

impl MountKeys {
    /// The defaults that the schema shows.
    fn documented() -> Self {
        Self {
            ask: Some(Ask::default()),
            cache: Some(Freshness(CacheSettings::default().max_age)),
            cache_scope: Some(CacheScope::Private),
            search: Some(false),
            skills: Some(false),
            ..Self::default()
        }
    }
}

/// `cache-scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"private\" or \"public\"")]
#[schemars(inline)]
pub(super) enum CacheScope {
    Private,
    Public,
}

impl<'de> Deserialize<'de> for MountTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = MountTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MountTable, A::Error> {
                let mut grants = GrantConfig::default();
                let keys =
                    MountKeys::deserialize(MapAccessDeserializer::new(GrantFilter { map, grants: &mut grants }))?;
                Ok(MountTable { keys, grants })
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// A table that reads the grants itself and passes the other keys on.
struct GrantFilter<'a, A> {
    map: A,
    grants: &'a mut GrantConfig,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for GrantFilter<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = MountKeySeed { inner: Some(seed) };
        loop {
            match self.map.next_key_seed(&mut seed)? {
                None => return Ok(None),
                Some(MountKey::Own(key)) => return Ok(Some(key)),
                Some(MountKey::Grant(kind)) => self.map.next_value_seed(GrantSeed { grants: self.grants, kind })?,
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key of a mount's table.
enum MountKey<K> {
    /// One of [`MountKeys`].
    Own(K),
    /// A kind of grant, by its name.
    Grant(&'static str),
}

/// Reads a key: the name of a kind of grant, or a key for `inner`. `inner` is taken with the first key that is no grant.
struct MountKeySeed<S> {
    inner: Option<S>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for &mut MountKeySeed<S> {
    type Value = MountKey<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if let Some(kind) = GrantKind::find(&name) {
            return Ok(MountKey::Grant(kind.name));
        }
        let inner = self.inner.take().ok_or_else(|| D::Error::custom("a key was read twice"))?;
        inner.deserialize(name.into_deserializer()).map(MountKey::Own)
    }
}

/// Reads the grants of one kind.
struct GrantSeed<'a> {
    grants: &'a mut GrantConfig,
    kind: &'static str,
}

impl<'de> DeserializeSeed<'de> for GrantSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.grants.set(self.kind, deserializer).unwrap_or(Ok(()))
    }
}
