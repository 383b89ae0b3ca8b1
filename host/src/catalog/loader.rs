//! Keeps the catalog in line with the plugin directory and the configuration, at the start and after every change.
//!
//! New mounts are built beside those that are served, and replace them in one swap. A mount that did not change stays
//! the same object. If a new version cannot be served, the old one stays, as far as the configuration still allows it.
//! A broken file therefore never takes down a mount. Mounts that take long to compile are added when they are ready.

mod build;
mod debounce;
mod error;
mod load;
mod log;
mod plan;
mod scan;
mod source;
mod state;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cap_std::fs::Dir;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::current::Catalog;
use super::mount::Mount;
use super::snapshot::Snapshot;
use super::unserved::{RefusedMount, UnservedMount, UnservedReason};
use crate::config::Config;
use crate::model::{Digest, MountName, bounds};
use crate::sandbox::{LoadedMount, Sandbox};
pub use build::LandlockScope;
use build::{Builder, PreviousState};
pub use debounce::Debounce;
use error::BuildError;
use load::{ComponentBytes, MAX_PARALLEL_LOADS};
pub use plan::{MountComponent, read_components};
use plan::{component_files, plan_mounts};
use scan::{ScanSource, ScannedFile};
use source::ComponentStamp;
pub use source::{ComponentSource, ComponentSourceError};
use state::{FailedLoad, FoundComponent, LoadState, PendingCompile, PlannedFile, SeenFile};

/// The time between two snapshots while components are loaded.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);

/// The wait before retrying failures that may pass, such as a missing granted directory or a killed compiler. It
/// doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(5);

/// The longest wait between two attempts.
const MAX_RETRY: Duration = Duration::from_secs(120);

/// Loads mounts, and remembers the files that it has read.
pub struct Loader {
    dir: Arc<Dir>,
    sandbox: Arc<Sandbox>,
    catalog: Arc<Catalog>,
    config: Arc<Config>,
    /// How many times the configuration was read.
    config_version: u64,
    /// The only file that is loaded. `None` for all files.
    only: Option<String>,
    /// `None` if landlock does not restrict this process.
    scope: Option<LandlockScope>,
    /// By file name.
    seen: HashMap<String, SeenFile>,
    state: LoadState,
    failed: HashMap<Digest, FailedLoad>,
    work: JoinSet<(Digest, CompileOutcome)>,
    running: HashMap<Digest, AbortHandle>,
    /// True if everything that was present at the start is served or refused.
    is_first_load_done: bool,
    published: Instant,
    is_published: bool,
    retry: Option<Instant>,
    retry_wait: Duration,
}

/// The next action after a [`Loader::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// Another step.
    Step,
    /// A scan.
    Scan,
}

/// The result of compiling a component.
enum CompileOutcome {
    /// Not compiled: the file has other bytes by now.
    FileChanged,
    /// The component is loaded, or cannot be loaded.
    Ended(Result<LoadedMount, BuildError>),
}

impl Loader {
    /// A loader that has loaded nothing yet.
    pub fn new(
        dir: Dir,
        config: Arc<Config>,
        scope: Option<LandlockScope>,
        sandbox: Arc<Sandbox>,
        catalog: Arc<Catalog>,
    ) -> Self {
        Self {
            dir: Arc::new(dir),
            sandbox,
            catalog,
            config,
            config_version: 0,
            only: None,
            scope,
            seen: HashMap::new(),
            state: LoadState::default(),
            failed: HashMap::new(),
            work: JoinSet::new(),
            running: HashMap::new(),
            is_first_load_done: false,
            published: Instant::now(),
            is_published: true,
            retry: None,
            retry_wait: FIRST_RETRY,
        }
    }

    /// The same, restricted to one file.
    #[must_use]
    pub fn only(self, file: String) -> Self {
        Self { only: Some(file), ..self }
    }

    /// The configuration that the served mounts were made from.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Replaces the configuration, from the next scan on.
    pub fn set_config(&mut self, config: Arc<Config>) {
        self.config = config;
        self.config_version += 1;
        self.retry_wait = FIRST_RETRY;
    }

    /// Replaces the plugin directory, from the next scan on.
    pub fn set_dir(&mut self, dir: Dir) {
        self.dir = Arc::new(dir);
        self.seen.clear();
    }

    /// The mounts in quarantine whose component has no digest in the lock, with the digest of that component.
    pub fn unpinned(&self) -> Vec<(MountName, Digest)> {
        let lacks = self.state.quarantined.iter().filter(|one| one.pinned().is_none());
        lacks.map(|one| (one.name.clone(), one.found)).collect()
    }

    /// The mounts and files that are not served as configured, with the reasons.
    pub fn refused(&self) -> &[RefusedMount] {
        &self.state.refused
    }

    /// True if everything that the last scan found is served or refused.
    pub fn is_done(&self) -> bool {
        self.state.pending.is_empty() && self.is_published
    }

    /// Loads everything, and returns when that is done.
    pub async fn load(&mut self) {
        self.scan().await;
        while !self.is_first_load_done {
            if self.step().await == NextAction::Scan {
                self.scan().await;
            }
        }
    }

    /// Scans the plugin directory and serves the components that are there. Components that need compiling are served
    /// later: see [`Loader::step`].
    ///
    /// If the directory cannot be read, the served mounts stay.
    pub async fn scan(&mut self) {
        self.retry = None;
        let dir = Arc::clone(&self.dir);
        let scanned_dir = spawn_blocking(move || {
            let mut bad_names = Vec::new();
            let files = component_files(&dir, &mut bad_names)?;
            let stamps: HashMap<String, ComponentStamp> =
                files.iter().filter_map(|file| Some((file.clone(), ComponentStamp::read(&dir, file)?))).collect();
            std::io::Result::Ok((files, bad_names, stamps))
        });
        let (files, mut bad_names, stamps) =
            match scanned_dir.await.map_err(std::io::Error::other).and_then(|scanned_dir| scanned_dir) {
                Ok(scanned_dir) => scanned_dir,
                Err(error) => {
                    let path = self.config.plugins.display();
                    tracing::error!("cannot read the plugin directory \"{path}\": {error}; the loaded mounts stay");
                    return self.finish_first_load();
                }
            };
        let config = Arc::clone(&self.config);
        let (mut plans, mut refused) = plan_mounts(files, &config);
        if let Some(only) = &self.only {
            plans.retain(|plan| plan.file == *only);
            refused.retain(|refused| refused.name == *only);
            bad_names.clear();
        }
        let unserved = refused.iter().filter_map(|refused| {
            let name = MountName::new(&refused.name).ok()?;
            let uri = config.mounts.get(&name)?.uri.clone();
            let base = uri.unwrap_or_else(|| format!("belljar://{name}/"));
            Some(UnservedMount { name, base, reason: UnservedReason::Configuration })
        });
        let unserved = unserved.collect();
        let mut next = LoadState { refused, unserved, ..LoadState::default() };
        next.refused.append(&mut bad_names);
        let loaded: HashMap<Digest, Arc<Mount>> =
            self.state.served.values().map(|mount| (mount.digest, Arc::clone(mount))).collect();

        // Files that did not change cost nothing, so they come first.
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for plan in plans {
            let stamp = stamps.get(&plan.file);
            let seen = self
                .seen
                .get(&plan.file)
                .filter(|seen| Some(&seen.stamp) == stamp && seen.cap == plan.limits.component);
            match seen {
                Some(seen) => {
                    let contents = seen.facts.clone().map(|facts| FoundComponent { facts, bytes: None });
                    known.push(PlannedFile { plan, contents, code: None });
                }
                None => others.push(plan),
            }
        }
        self.seen.retain(|file, _| stamps.contains_key(file));
        for file in known {
            self.builder().place_mount(PreviousState { state: &self.state, loaded: &loaded }, &mut next, file);
        }
        let failed = self.failed.iter().filter(|(_, failed)| failed.is_active()).map(|(digest, _)| digest);
        let skip_loading = loaded.keys().chain(failed).copied().collect();
        let (dir, sandbox) = (Arc::clone(&self.dir), Arc::clone(&self.sandbox));
        let source = ScanSource { dir, sandbox, config: Arc::clone(&config), skip_loading };
        let mut scanned = scan::start(source, others, !self.is_first_load_done);
        while let Some(ScannedFile { file, stamp }) = scanned.recv().await {
            if let Some(stamp) = stamp {
                let facts = file.contents.as_ref().map(|found| found.facts.clone()).map_err(Clone::clone);
                let seen = SeenFile { stamp, cap: file.plan.limits.component, facts };
                self.seen.insert(file.plan.file.clone(), seen);
            }
            self.builder().place_mount(PreviousState { state: &self.state, loaded: &loaded }, &mut next, file);
            // During the first load there are no served mounts to replace, so partial results are published. A second scan
            // during it may find some: a partial result would withdraw them.
            if !self.is_first_load_done && self.state.served.is_empty() && self.published.elapsed() >= PUBLISH_INTERVAL
            {
                self.publish_state(&next, false);
            }
        }
        self.failed.retain(|digest, _| {
            next.pending.iter().any(|one| one.facts.digest == *digest)
                || self.seen.values().any(|seen| seen.facts.as_ref().is_ok_and(|facts| facts.digest == *digest))
        });
        self.state = next;
        self.publish();
        self.catalog.set_config_version(self.config_version);
        if self.state.may_succeed_later {
            self.retry_later();
        }
        let wanted: Vec<Digest> = self.state.pending.iter().map(|one| one.facts.digest).collect();
        self.running.retain(|digest, task| {
            let is_wanted = wanted.contains(digest);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        self.start_compiling();
        self.finish_first_load();
    }

    /// Continues the pending compilations until one has ended. Cancellation-safe: dropping the future loses nothing.
    pub async fn step(&mut self) -> NextAction {
        let never = Instant::now() + Duration::from_secs(24 * 3600);
        let publish_at = if self.is_published { never } else { self.published + PUBLISH_INTERVAL };
        let retry = self.retry.unwrap_or(never);
        tokio::select! {
            Some(compiled) = self.work.join_next() => {
                match compiled {
                    Ok((digest, compiled)) => {
                        self.running.remove(&digest);
                        self.apply_compiled(&digest, compiled);
                    }
                    // A task that was aborted has already been removed from `running`.
                    Err(error) => {
                        let panicked = self.running.iter().find(|(_, task)| task.id() == error.id());
                        if let Some(digest) = panicked.map(|(digest, _)| *digest) {
                            self.running.remove(&digest);
                            self.apply_compiled(&digest, CompileOutcome::Ended(Err(BuildError::Panicked)));
                        }
                    }
                }
                self.start_compiling();
                if self.state.pending.is_empty() || self.published.elapsed() >= PUBLISH_INTERVAL {
                    self.publish();
                }
                self.finish_first_load();
                NextAction::Step
            }
            () = sleep_until(publish_at) => {
                self.publish();
                NextAction::Step
            }
            () = sleep_until(retry) => NextAction::Scan,
        }
    }

    fn builder(&self) -> Builder<'_> {
        Builder {
            config: &self.config,
            catalog: &self.catalog,
            sandbox: &self.sandbox,
            scope: self.scope.as_ref(),
            failed: &self.failed,
        }
    }

    fn retry_later(&mut self) {
        self.retry = Some(Instant::now() + self.retry_wait);
        self.retry_wait = (self.retry_wait * 2).min(MAX_RETRY);
    }

    /// Marks the first load as complete, once.
    fn finish_first_load(&mut self) {
        let is_scan_due = self.retry.is_some_and(|at| at <= Instant::now() + bounds::DEBOUNCE.get());
        if !self.is_first_load_done && self.state.pending.is_empty() && !is_scan_due {
            self.is_first_load_done = true;
            self.catalog.mark_loaded();
            // This examines every entry of the compile cache; nothing has to wait for it.
            let sandbox = Arc::clone(&self.sandbox);
            spawn_blocking(move || sandbox.remove_unused_code());
        }
    }

    /// Starts pending compilations, a few at a time.
    fn start_compiling(&mut self) {
        for PendingCompile { plan, facts, bytes } in &mut self.state.pending {
            if self.running.len() >= MAX_PARALLEL_LOADS {
                return;
            }
            if self.running.contains_key(&facts.digest) {
                continue;
            }
            let (dir, sandbox, plan, digest) =
                (Arc::clone(&self.dir), Arc::clone(&self.sandbox), plan.clone(), facts.digest);
            let (ambient, given) = (self.config.ambient.clone(), bytes.take());
            let task = self.work.spawn(async move {
                let name = plan.name.clone();
                let bytes = match given {
                    Some(bytes) => bytes,
                    None => {
                        let read =
                            spawn_blocking(move || ComponentSource::read(&dir, &plan.file, plan.limits.component));
                        match read.await {
                            Ok(Ok(source)) if source.digest == digest => source.bytes.into(),
                            _ => return (digest, CompileOutcome::FileChanged),
                        }
                    }
                };
                let loaded = load::load(&sandbox, &ambient, ComponentBytes { name, bytes, digest }).await;
                (digest, CompileOutcome::Ended(loaded))
            });
            self.running.insert(digest, task);
        }
    }

    /// Applies the result of a compilation.
    fn apply_compiled(&mut self, digest: &Digest, compiled: CompileOutcome) {
        let result = match compiled {
            CompileOutcome::Ended(result) => result,
            CompileOutcome::FileChanged => {
                self.state.pending.retain(|one| one.facts.digest != *digest);
                self.retry = Some(Instant::now() + bounds::DEBOUNCE.get());
                return;
            }
        };
        let mut state = std::mem::take(&mut self.state);
        let (ready, waiting): (Vec<_>, Vec<_>) = state.pending.into_iter().partition(|one| one.facts.digest == *digest);
        state.pending = waiting;
        for PendingCompile { plan, facts, .. } in ready {
            let old = state.served.remove(&plan.name);
            match &result {
                Ok(loaded) => self.builder().build(&mut state, old.as_ref(), &plan, &facts, loaded),
                Err(error) => self.builder().refuse(&mut state, old.as_ref(), &plan, error),
            }
        }
        self.state = state;
        if let Err(error) = result {
            let until = (!self.sandbox.has_cached(digest)).then(|| Instant::now() + self.retry_wait);
            if until.is_some() {
                self.retry_later();
            }
            self.failed.insert(*digest, FailedLoad { error, until });
        }
        self.is_published = false;
    }

    fn publish(&mut self) {
        let state = std::mem::take(&mut self.state);
        self.publish_state(&state, true);
        self.state = state;
        self.is_published = true;
    }

    /// Publishes a snapshot if it differs from the current one. `is_complete`: every file was examined for it.
    fn publish_state(&mut self, state: &LoadState, is_complete: bool) {
        self.published = Instant::now();
        let snapshot = Snapshot::new(state.served.values().cloned().collect(), state.refused.clone())
            .with_quarantined(state.quarantined.clone())
            .with_compiling(state.compiling())
            .with_unserved(state.unserved.clone());
        let snapshot = if is_complete { snapshot.complete() } else { snapshot };
        let old = self.catalog.snapshot();
        if snapshot.is_same(&old) {
            return;
        }
        log::log_changes(&old, &snapshot, self.is_first_load_done);
        // From here on, results of calls under revoked grants are discarded.
        snapshot.revoked_since(&old).for_each(|mount| mount.withdraw());
        self.catalog.publish(snapshot);
    }
}
