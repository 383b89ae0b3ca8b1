//! Builds the gateway, the sandbox and the loader from a configuration, and starts loading the components.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::signal::unix::SignalKind;

use super::compiler_process::CompilerProcess;
use super::directories::open_plugins;
use super::failure::Failure;
use super::keys::{self, Keys};
use super::launcher::Launcher;
use super::open_files;
use super::worker_starter::WorkerProcesses;
use super::worker_wall::WorkerWall;
use crate::catalog::Catalog;
use crate::catalog::loader::{LandlockScope, Loader};
use crate::catalog::watch::Watcher;
use crate::config::{Config, Wall};
use crate::gateway::Gateway;
use crate::gateway::consent::{ConsentManager, ConsentWriter};
use crate::gateway::request_states::{RequestStates, SharedStates};
use crate::gateway::subscriptions::Subscriptions;
use crate::limits::memory_budget::MemoryBudget;
use crate::limits::{self, Admission};
use crate::policy::{Caller, Decider, Evidence, authenticate};
use crate::sandbox::{CodeCacheConfig, Executor, Sandbox, SandboxOptions, WorkerSettings};
use crate::store::{MemoryQuotas, QuotaStore, Replicas, SharedStore};
use crate::telemetry::Sink;

/// A running gateway, and its configuration.
pub(crate) struct StartedHost {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) config: Arc<Config>,
    /// Seals list cursors.
    pub(crate) cursor_key: [u8; 32],
    /// The store that replicas share.
    pub(crate) store: Option<Arc<SharedStore>>,
    /// The replicas that live.
    pub(crate) replicas: Arc<ArcSwap<Replicas>>,
}

/// The number of files that all calls together may hold open: three quarters of the limit of the process. The rest is
/// for connections, pipes and belljar's own files.
fn descriptors(calls: u32) -> usize {
    let limit = open_files::limit();
    let all = limit / 4 * 3;
    if all / u64::from(calls) < 64 {
        tracing::warn!(
            "up to {calls} concurrent calls share {all} open files; to allow more, {}",
            crate::model::error::OPEN_FILES_CURE
        );
    }
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// Creates the sandbox that `config` describes. `launcher` starts its worker processes; without one, this process does.
pub(crate) fn sandbox(
    config: &Config,
    cache: Option<CodeCacheConfig>,
    launcher: Option<Arc<Launcher>>,
) -> Result<Sandbox, Failure> {
    let calls = limits::sandbox_capacity(config.calls);
    let descriptors = descriptors(config.calls);
    let workers = config.has_workers().then(|| WorkerSettings {
        starter: Arc::new(WorkerProcesses::new(launcher, WorkerWall::of(config.wall))),
        total_memory: config.total_memory,
        needs_wall: config.wall == Wall::Require,
    });
    Ok(Sandbox::new(SandboxOptions { calls, cache, descriptors, compiler: Arc::new(CompilerProcess), workers })?)
}

/// Starts the host and loads all components in the background, for a short command that applies no changes. `audit`
/// takes the audit records. `consents` saves lasting consents.
pub(crate) fn start(
    config: Config,
    keys: Keys,
    audit: Sink,
    consents: Option<Arc<dyn ConsentWriter>>,
) -> Result<StartedHost, Failure> {
    let (host, mut loader) =
        assemble(Arc::new(config), keys, |_| Ok(audit), consents, WallAccess::default(), None, None)?;
    tokio::spawn(async move { loader.load().await });
    Ok(host)
}

/// Starts the host and loads only the mounts of one component file. Writes no audit records.
pub(crate) fn start_for_file(config: Config, keys: Keys, file: &str) -> Result<StartedHost, Failure> {
    let (host, loader) =
        assemble(Arc::new(config), keys, |_| Ok(Sink::off()), None, WallAccess::default(), None, None)?;
    // The rules of the configuration are about what is served. Nothing is served here.
    host.gateway.set_policy(Decider::default());
    let mut loader = loader.only(file.to_owned());
    tokio::spawn(async move { loader.load().await });
    Ok(host)
}

/// What the second wall leaves to this process.
#[derive(Clone, Default)]
pub(crate) struct WallAccess {
    /// The paths and ports that the second wall allows; `None` without a wall.
    pub(crate) scope: Option<LandlockScope>,
    /// Starts worker processes outside of the wall. `None`: this process starts them.
    pub(crate) launcher: Option<Arc<Launcher>>,
}

/// Builds the host and its loader, without loading. `audit` makes the receiver of audit records. `store`: what replicas share.
pub(crate) fn assemble(
    config: Arc<Config>,
    keys: Keys,
    audit: impl FnOnce(&Arc<Catalog>) -> Result<Sink, Failure>,
    consents: Option<Arc<dyn ConsentWriter>>,
    access: WallAccess,
    watcher: Option<Watcher>,
    store: Option<Arc<SharedStore>>,
) -> Result<(StartedHost, Loader), Failure> {
    // With a handler for SIGXFSZ, a write beyond the file size limit returns an error and does not end the process.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _ = tokio::signal::unix::signal(too_large);
    let dir = open_plugins(&config)?;
    let (cache, cursor_key) = keys.open(&config);
    let counts =
        store.as_ref().map_or_else(|| Arc::new(MemoryQuotas::default()) as Arc<dyn QuotaStore>, |store| store.quotas());
    let shared = store.as_ref().zip(config.replica_key.as_ref());
    let shared = shared.map(|(store, key)| SharedStates { key: **key, marks: store.spent_marks() });
    // Without a store, states are valid in this process alone, so a fresh key is enough.
    let states = RequestStates::new(&keys::fresh_key(), shared);
    let sandbox = Arc::new(sandbox(&config, cache, access.launcher)?);
    let budget = MemoryBudget::new(config.total_memory);
    let catalog = Arc::new(Catalog::new(Arc::clone(&budget)));
    let calls = usize::try_from(config.calls).unwrap_or(usize::MAX);
    let gateway = Gateway::new(
        Arc::clone(&catalog),
        Executor::Local(Arc::clone(&sandbox)),
        Admission::new(calls, budget).with_callers(config.callers, counts),
        audit(&catalog)?,
        ConsentManager::new(states, consents),
        Subscriptions::new(config.watch.clone(), watcher),
        config.list_time,
    );
    let is_replica = config.replicas.is_some();
    let gateway = Arc::new(if is_replica { gateway.as_replica(store.clone()) } else { gateway });
    gateway.set_policy(config.decider());
    gateway.set_configuration(config.fingerprint());
    gateway.follow_catalog();
    let loader = Loader::new(dir, Arc::clone(&config), access.scope, sandbox, catalog);
    Ok((StartedHost { gateway, config, cursor_key, store, replicas: Arc::default() }, loader))
}

/// The watcher of directories. If it cannot be started, belljar polls the directories.
pub(crate) fn watcher() -> Option<Watcher> {
    Watcher::start().inspect_err(|why| tracing::warn!("cannot watch directories; polling them instead: {why}")).ok()
}

/// The local user who runs this command.
pub(crate) fn caller() -> Caller {
    Caller::new(authenticate(Evidence::OwnUser), "cli")
}
