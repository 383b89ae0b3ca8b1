//! `belljar.toml`: deserialized, checked whole before anything starts, and filled up with defaults.
//!
//! `file.rs` declares the tables and keys. The JSON schema (`schema.rs`) and the reference are made from it. Every error names
//! the line and the path of the key, what was expected, and the nearest valid key for a misspelt one. Only people write the
//! file; nothing that a provider does changes it.

mod address;
mod admin;
mod audit;
mod auth;
mod callers;
mod deserializer;
mod editable;
mod error;
mod file;
pub mod fingerprint;
mod issuer;
mod limits_table;
mod live;
pub mod lock;
mod network;
mod one_or_more;
mod replicas;
mod rules;
pub mod schema;
mod search;
pub mod serve;
mod settings;
mod trace;
mod trust;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::grants::secrets::{PrincipalPath, SecretSource};
use crate::grants::{Ambient, GrantConfig};
use crate::limits::CallerLimits;
use crate::model::{Limits, MountName, bounds, text};
use crate::policy::cedar::CedarPolicies;
use crate::policy::{Decider, Rule, RuleSet};
pub use address::{AddressError, listen_address};
pub use admin::{AdminConfig, AdminProblem};
pub use audit::{Audit, WhenFull};
pub use auth::{AuthConfig, KeySetFiles};
use callers::CallersTable;
pub use editable::EditableToml;
pub(crate) use error::parse;
pub use error::{ConfigKey, Error, FilePosition, KeyCure, Problem};
use file::{CacheScope, File, MountTable, WatchTable};
pub use fingerprint::ConfigFingerprint;
pub use issuer::{
    IntrospectionConfig, IssuerConfig, IssuerProblem, IssuerUrl, IssuerUrlError, KeySetSource, TokenAlgorithm,
};
use limits_table::LimitsTable;
pub use live::{CacheSettings, Watch};
use lock::Pins;
use network::NetworkTable;
use replicas::ReplicasTable;
pub use replicas::{ReplicasConfig, ReplicasProblem, StoreConfig, StoreUrl, StoreUrlError};
use rules::RuleTables;
pub use search::{IndexConfig, IndexProblem};
use serve::ServeConfig;
pub use settings::{Ask, Isolation, Wall};
use settings::{CALLS, LIST_TIME, TOTAL_MEMORY};
pub use trace::TraceConfig;
use trace::TraceTable;
pub use trust::{OnRevoked, SignerConfig, SignerProblem, TrustConfig, TrustedSigner};

/// The file name that belljar looks for in the working directory.
pub const FILE: &str = belljar_join::FILE;

/// The name of the file of policies beside the configuration.
const POLICY_FILE: &str = "policy.cedar";

/// The whole configuration. Every path is absolute, every default is set.
pub struct Config {
    /// The directory that is searched for `*.wasm`.
    pub plugins: PathBuf,
    /// The directory for compiled components.
    pub cache: PathBuf,
    /// The directory for belljar's keys and its record.
    pub state: PathBuf,
    /// Where the record of calls goes.
    pub audit: Audit,
    /// What happens to requests while the record cannot be written.
    pub when_full: WhenFull,
    /// Whether the process gives up rights.
    pub wall: Wall,
    /// In which process the calls of mounts run that the file does not name.
    pub isolation: Isolation,
    /// Calls that run at once, over all mounts.
    pub calls: u32,
    /// Bytes that all calls and all waiting answers may take together.
    pub total_memory: u64,
    /// How long one listing over all mounts may take.
    pub list_time: Duration,
    /// The rules of the policy.
    pub rules: Vec<Rule>,
    /// The file of policies. It may not exist unless `needs_policy_file`.
    pub policy_file: PathBuf,
    /// True if the configuration names the file of policies.
    pub needs_policy_file: bool,
    /// The policies in the file. `None` if there is no file, and until it is read.
    pub policies: Option<Arc<CedarPolicies>>,
    /// Where each secret is kept, by the secret's name.
    pub secrets: BTreeMap<String, SecretSource>,
    /// The contents of the key sets that `auth` names. Empty until they are read.
    pub key_sets: KeySetFiles,
    /// Name servers and certificates for the requests of providers.
    pub network: NetworkConfig,
    /// How belljar serves HTTP.
    pub serve: ServeConfig,
    /// The operator's own endpoint.
    pub admin: AdminConfig,
    /// Where the spans of requests go. None: no request is traced.
    pub trace: Option<TraceConfig>,
    /// Who may sign the components that are fetched.
    pub trust: TrustConfig,
    /// Where `belljar search` looks.
    pub search: Vec<IndexConfig>,
    /// Several belljars behind one address. None: this one is alone.
    pub replicas: Option<ReplicasConfig>,
    /// The key that all replicas have. `None` until its file is read.
    pub replica_key: Option<Zeroizing<[u8; 32]>>,
    /// A hash of what the file says, without what belongs to one machine. See [`fingerprint::settings_hash`].
    settings_hash: [u8; 32],
    /// How belljar follows changes.
    pub watch: Watch,
    /// Whether clients get tools that list, read and search.
    pub tools: bool,
    /// How often one client may call tools and ask for completions, and how many calls of one principal run at once.
    pub callers: CallerLimits,
    /// Which credentials HTTP requests may carry. `None`: requests are not authenticated.
    pub auth: Option<AuthConfig>,
    /// The path of the API keys. The file may not exist.
    pub api_keys: PathBuf,
    /// The limits of mounts that the file does not name.
    pub limits: Limits,
    /// The mounts that the file names.
    pub mounts: BTreeMap<MountName, MountConfig>,
    /// The configuration file. None if there is none.
    pub file: Option<PathBuf>,
    /// The path of `belljar.lock`.
    pub lock: PathBuf,
    /// The digests that may use each mount's grants. They come from the lock; until it is read, no component may use grants.
    pub pins: Pins,
    /// The paths and secrets that grants are configured with.
    pub ambient: Ambient,
}

/// `[network]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Name servers that are asked in place of the system's.
    pub dns: Vec<SocketAddr>,
    /// A file of certificates in PEM that are trusted beside the system's.
    pub ca: Option<PathBuf>,
}

/// One `[mounts.NAME]`.
pub struct MountConfig {
    /// The component's file name in the plugin directory. None: the mount's name with `.wasm`.
    pub component: Option<String>,
    /// The base URI. None: `belljar://NAME/`.
    pub uri: Option<String>,
    /// The grants.
    pub grants: GrantConfig,
    /// Whether belljar asks a person for access that is not granted.
    pub ask: Ask,
    /// How long an answer is served again, and to whom.
    pub cache: CacheSettings,
    /// True if a search reads contents; false if it reads names and descriptions only.
    pub search: bool,
    /// The first part of the public names of tools and prompts; may be empty.
    pub tool_prefix: String,
    /// True if each listed directory with a `SKILL.md` is a skill.
    pub skills: bool,
    /// In which process its calls run.
    pub isolation: Isolation,
    /// The limits.
    pub limits: Limits,
}

impl MountConfig {
    /// A hash of each grant.
    fn granted(&self) -> Vec<u64> {
        let granted = self.grants.describe();
        let granted = granted.iter().map(|(kind, grant)| fingerprint::hash(&[kind, grant]));
        let asks = [(Ask::Once, "once"), (Ask::Persist, "persist")];
        let asks = asks.into_iter().filter(|(ask, _)| self.ask >= *ask);
        granted.chain(asks.map(|(_, word)| fingerprint::hash(&["ask", word]))).collect()
    }

    /// True if the mount has grants. Only a component whose digest is in the lock may use them.
    pub fn needs_pin(&self) -> bool {
        !self.grants.is_empty()
    }

    /// The TCP ports that calls may connect to: those of the grants, and those that a person can allow if the mount asks.
    pub fn ports(&self) -> Vec<u16> {
        let asked = if self.ask == Ask::Never { Vec::new() } else { GrantConfig::consent_ports() };
        [self.grants.ports(), asked].concat()
    }
}

/// Everything that the configuration is made from: the file, the command line and the environment.
#[derive(Clone, Debug, Default)]
pub struct ConfigInput {
    /// The configuration file and its text.
    pub file: Option<(PathBuf, String)>,
    /// The working directory.
    pub directory: PathBuf,
    /// `--plugins`.
    pub plugins: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// The default cache directory, from the environment.
    pub cache: PathBuf,
    /// The default state directory, from the environment.
    pub state: PathBuf,
}

impl Config {
    /// Reads and checks the file, and sets defaults for missing keys.
    ///
    /// # Errors
    /// The first thing that is wrong: the file, the place, the key's path and the cure.
    pub fn read(input: ConfigInput) -> Result<Self, Error> {
        let (file, text) = input.file.clone().unzip();
        Self::parse(text.unwrap_or_default(), &input).map_err(|problem| Error { file, problem: Box::new(problem) })
    }

    /// The TCP ports that calls of all mounts and belljar itself may connect to.
    pub fn ports(&self) -> Vec<u16> {
        let own = self.auth.iter().flat_map(AuthConfig::ports);
        let own = own.chain(self.trace.iter().map(|trace| trace.url.origin.port));
        let own = own.chain(self.store().map(|store| store.url.port));
        self.mounts.values().flat_map(MountConfig::ports).chain(own).collect()
    }

    /// The name of a mount's file in the plugin directory.
    pub fn component_file(&self, mount: &MountName) -> String {
        let named = self.mounts.get(mount).and_then(|own| own.component.clone());
        named.unwrap_or_else(|| format!("{mount}.wasm"))
    }

    /// The store that replicas share.
    pub fn store(&self) -> Option<&StoreConfig> {
        self.replicas.as_ref()?.store.as_ref()
    }

    /// True if any mount may have a worker process.
    pub fn has_workers(&self) -> bool {
        self.isolations().any(Isolation::has_worker)
    }

    /// True if the calls of any mount may run in belljar's own process.
    pub fn has_own_guests(&self) -> bool {
        self.isolations().any(|isolation| !isolation.has_worker())
    }

    fn isolations(&self) -> impl Iterator<Item = Isolation> {
        self.mounts.values().map(|mount| mount.isolation).chain([self.isolation])
    }

    /// What decides who may do what: the rules and the policies.
    pub fn decider(&self) -> Decider {
        Decider::new(RuleSet::new(self.rules.clone()), self.policies.clone())
    }

    /// What replicas compare of a configuration.
    pub fn fingerprint(&self) -> ConfigFingerprint {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.settings_hash);
        self.policies.iter().for_each(|policies| {
            hasher.update(policies.source().as_bytes());
        });
        let settings = hasher.finalize().into();
        let mounts = self.mounts.iter().map(|(name, mount)| (fingerprint::hash(&[name.as_str()]), mount.granted()));
        ConfigFingerprint { settings, mounts: mounts.collect() }
    }

    fn parse(source: String, input: &ConfigInput) -> Result<Self, Problem> {
        let base = input
            .file
            .as_ref()
            .and_then(|(path, _)| path.parent())
            .map_or_else(|| input.directory.clone(), Path::to_owned);
        let file: File = error::parse(&source)?;
        let settings_hash = fingerprint::settings_hash(&source);
        let home = input.home.clone();
        let place = &|path: PathBuf| match (path.strip_prefix("~"), &home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => base.join(path),
        };
        let plugins = file.plugins.map(place);
        let cache = file.cache.map_or_else(|| input.cache.clone(), place);
        let state = file.state.map_or_else(|| input.state.clone(), place);
        let (audit, when_full) = file.audit.unwrap_or_default().checked(place);
        let wall = file.wall.unwrap_or_default();
        let isolation = file.isolation.unwrap_or_else(settings::default_isolation);
        let calls = file.calls.map_or(CALLS, |calls| u32::try_from(calls.0).unwrap_or(u32::MAX));
        let total_memory = file.total_memory.map(|size| size.0);
        let list_time = bounds::of_listing(file.list_time.map_or(LIST_TIME, |time| time.0));
        let limits = file.limits.map_or_else(Limits::default, |table| table.over(&Limits::default()));
        let watch = file.watch.map_or_else(Watch::default, WatchTable::settings);
        let callers = file.callers.map_or_else(CallerLimits::default, CallersTable::limits);
        let tools = file.tools.unwrap_or(true);
        let mut auth = file.auth;
        let scopes = auth.as_mut().map(|table| std::mem::take(&mut table.scopes)).unwrap_or_default();
        let secrets = check_secrets(file.secrets)?;
        let auth = auth.map(|table| table.checked(&secrets, place)).transpose().map_err(Problem::Issuer)?;
        let api_keys = auth.as_ref().and_then(|auth| auth.keys.clone()).unwrap_or_else(|| base.join(auth::KEYS_FILE));
        let NetworkTable { dns, ca } = file.network.unwrap_or_default();
        let network = NetworkConfig { dns: dns.into_iter().map(|server| server.0).collect(), ca: ca.map(place) };
        let rules = RuleTables { allow: file.allow, deny: file.deny, scopes }.rules(&source)?;
        let needs_policy_file = file.policy.is_some();
        let policy_file = file.policy.map_or_else(|| base.join(POLICY_FILE), place);
        let serve = file.serve.unwrap_or_default().checked(place)?;
        let admin = file.admin.unwrap_or_default().checked(place)?;
        let trace = file.trace.map(TraceTable::checked);
        let replicas = file.replicas.map(|table| ReplicasTable::checked(table, &secrets, place)).transpose()?;
        let trust = file.trust.unwrap_or_default().checked(place)?;
        let search = file.search.unwrap_or_default().checked(place)?;
        let mut mounts = BTreeMap::new();
        for (name, table) in file.mounts {
            let table_name = || text::excerpt(&name, 80);
            let name = MountName::new(&name).map_err(|error| Problem::MountName { table: table_name(), error })?;
            let mount = mount(&name, table, (isolation, &limits))?;
            mounts.insert(name, mount);
        }
        let total_memory = check_memory(total_memory, &limits, &mounts)?;
        // A mount gets at most half of all turns: no mount alone can keep the others waiting.
        let fair = usize::try_from(calls / 2).unwrap_or(usize::MAX).max(1);
        let in_force =
            |limits: Limits| bounds::of_calls(Limits { concurrency: limits.concurrency.min(fair), ..limits });
        let limits = in_force(limits);
        mounts.values_mut().for_each(|mount: &mut MountConfig| mount.limits = in_force(mount.limits.clone()));

        let plugins = input
            .plugins
            .as_ref()
            .map(|path| input.directory.join(path))
            .or(plugins)
            .unwrap_or_else(|| base.join("plugins"));
        let lock = base.join(lock::FILE);
        let mut reserved =
            vec![plugins.clone(), cache.clone(), state.clone(), lock.clone(), api_keys.clone(), policy_file.clone()];
        reserved.extend(input.file.as_ref().map(|(path, _)| path.clone()));
        if let Audit::File(path) = &audit {
            reserved.push(path.clone());
        }
        reserved.extend(replicas.iter().map(|replicas| replicas.key.clone()));
        reserved.extend(admin.metrics_token.clone());
        reserved.extend(auth.iter().flat_map(AuthConfig::key_set_files).cloned());
        reserved.extend(serve.tls.as_ref().map(|files| files.key.clone()));
        let mut ambient = Ambient { base, home, reserved, ..Ambient::default() };
        // No grant may cover the file of a secret.
        let files = secrets.values().filter_map(|source| match source {
            SecretSource::File(path) => ambient.absolute(path).ok().map(|path| secret_place(&path)),
            SecretSource::Env(_) => None,
        });
        let files: Vec<PathBuf> = files.collect();
        ambient.reserved.extend(files);
        let (pins, file) = (Pins::default(), input.file.as_ref().map(|(path, _)| path.clone()));
        Ok(Self {
            plugins,
            cache,
            state,
            audit,
            when_full,
            wall,
            isolation,
            calls,
            total_memory,
            list_time,
            rules,
            policy_file,
            needs_policy_file,
            policies: None,
            secrets,
            key_sets: KeySetFiles::new(),
            network,
            serve,
            admin,
            trace,
            trust,
            search,
            replicas,
            replica_key: None,
            settings_hash,
            watch,
            tools,
            callers,
            auth,
            api_keys,
            limits,
            mounts,
            file,
            lock,
            pins,
            ambient,
        })
    }
}

/// The memory of all calls: at least twice the largest `memory` of a mount. No mount alone can then keep the others waiting.
fn check_memory(
    total: Option<u64>,
    limits: &Limits,
    mounts: &BTreeMap<MountName, MountConfig>,
) -> Result<u64, Problem> {
    let memory = |table: String, limits: &Limits| {
        let of_tools = (format!("{table}.tools.memory"), limits.of_tools().memory);
        [of_tools, (format!("{table}.memory"), limits.memory)]
    };
    let named = mounts.iter().flat_map(|(name, mount)| memory(format!("mounts.{name}.limits"), &mount.limits));
    let all = named.chain(memory("limits".to_owned(), limits));
    let Some((limit, most)) = all.max_by_key(|(_, memory)| *memory) else { return Ok(total.unwrap_or(TOTAL_MEMORY)) };
    let needed = most.saturating_mul(2);
    match total {
        None => Ok(TOTAL_MEMORY.max(needed)),
        Some(total) if total >= needed => Ok(total),
        Some(total) => Err(Problem::TotalMemory { total, limit, most, needed }),
    }
}

/// The file of a secret, or the directory of all its files if each principal has one.
fn secret_place(path: &Path) -> PathBuf {
    match PrincipalPath::find(path) {
        Ok(Some(path)) => path.directory().to_owned(),
        Ok(None) | Err(_) => path.to_owned(),
    }
}

/// Checks the names of the secrets, and the paths of those that each principal has for itself.
fn check_secrets(secrets: BTreeMap<String, SecretSource>) -> Result<BTreeMap<String, SecretSource>, Problem> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if let Some(name) = secrets.keys().find(|name| !is_name(name)) {
        return Err(Problem::SecretName(text::excerpt(name, 80)));
    }
    for (name, source) in &secrets {
        if let SecretSource::File(path) = source {
            PrincipalPath::find(path).map_err(|error| Problem::SecretPath { name: name.clone(), error })?;
        }
    }
    Ok(secrets)
}

/// Checks the keys of one mount against each other.
fn mount(
    name: &MountName,
    table: MountTable,
    (isolation, defaults): (Isolation, &Limits),
) -> Result<MountConfig, Problem> {
    let MountTable { keys, grants } = table;
    let table = format!("mounts.{name}");
    let ask = keys.ask.unwrap_or_default();
    let default = CacheSettings::default();
    let cache = CacheSettings {
        max_age: keys.cache.map_or(default.max_age, |time| bounds::of_freshness(time.0)),
        public: keys.cache_scope == Some(CacheScope::Public),
    };
    if ask != Ask::Never && cache.public {
        return Err(Problem::PublicAnswers { table });
    }
    if let Some(uri) = &keys.uri
        && uri.0.starts_with("skill:")
        && uri.0 != format!("skill://{name}/")
    {
        return Err(Problem::SkillBase { table, name: name.clone() });
    }
    if let Some(kind) = grants.needs_consent().filter(|_| ask == Ask::Never) {
        return Err(Problem::NobodyIsAsked { table, kind });
    }
    Ok(MountConfig {
        component: keys.component.map(|file| file.0),
        uri: keys.uri.map(|uri| uri.0),
        grants,
        ask,
        cache,
        search: keys.search.unwrap_or(false),
        tool_prefix: keys.tool_prefix.map_or_else(|| name.to_string(), |prefix| prefix.0),
        skills: keys.skills.unwrap_or(false),
        isolation: keys.isolation.unwrap_or(isolation),
        limits: keys.limits.map_or_else(|| defaults.clone(), |own: LimitsTable| own.over(defaults)),
    })
}

#[cfg(test)]
mod tests;
