//! Keeps the catalog as the plugin directory and the configuration say: at the start, and whenever one of them changed.
//!
//! Whatever can be served is made beside what is served, and takes its place in one swap. What is the same stays the very
//! same mount. Where something cannot be served, what was served goes on, as far as the configuration still allows it: a
//! broken file takes nothing down. What takes long to compile is swapped in when it is ready.

mod looking;
mod making;
mod pace;
mod told;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cap_std::fs::Dir;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::mount::{Stamp, Unread};
use super::plan::{Plan, files, plan};
use super::unserved::{Cause, Unserved};
use super::{Catalog, Compiling, Mount, Quarantined, Refused, Snapshot, Source};
use crate::config::Config;
use crate::grants::needs::Needs;
use crate::model::{Digest, MountName};
use crate::sandbox::{Loaded, Sandbox};
use looking::{Looked, Looking};
pub use making::Within;
use making::load_bare;
pub use pace::Pace;
use told::tell;

/// Components that are loaded at once. Compiling takes a core each.
const LOADING: usize = 2;

/// Bytes of components that are kept while they wait for being compiled.
const KEPT: usize = 64 << 20;

/// How often the snapshot is renewed while components are loaded.
const RENEW: Duration = Duration::from_millis(100);

/// When that is tried again which may be another time: a granted directory that is not there, a compiler that was killed.
/// Each time in vain doubles it.
const RETRY: Duration = Duration::from_secs(5);

/// The longest time between two tries.
const RETRY_MOST: Duration = Duration::from_secs(120);

/// What loads mounts, and remembers what it has seen.
pub struct Loader {
    dir: Arc<Dir>,
    sandbox: Arc<Sandbox>,
    catalog: Arc<Catalog>,
    config: Arc<Config>,
    /// How often the configuration was read.
    read: u64,
    /// The only file that is looked at; none: all are.
    only: Option<String>,
    /// None: everything can be opened.
    within: Option<Within>,
    seen: HashMap<String, Seen>,
    state: State,
    /// What does not compile, and until when that is believed; for good where it has no end.
    failed: HashMap<Digest, (String, Option<Instant>)>,
    work: JoinSet<(Digest, Worked)>,
    running: HashMap<Digest, AbortHandle>,
    /// Whether everything that lay there at the start is served or refused.
    is_settled: bool,
    published: Instant,
    is_published: bool,
    retry: Option<Instant>,
    patience: Duration,
}

/// What is to be done after a [`Loader::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another step.
    Step,
    /// A scan.
    Scan,
}

/// Everything that is served or will be, and what is not.
#[derive(Default)]
struct State {
    served: BTreeMap<MountName, Arc<Mount>>,
    refused: Vec<Refused>,
    /// What clients are told of those among them that are mounts.
    unserved: Vec<Unserved>,
    quarantined: Vec<Quarantined>,
    /// What has to be compiled first.
    waiting: Vec<Waiting>,
    /// Whether something may be another time that was not this time.
    may_change: bool,
}

/// What is known of a component.
#[derive(Clone)]
struct Facts {
    digest: Digest,
    uses: Vec<&'static str>,
    needs: Arc<Needs>,
    completes: bool,
    revises: bool,
    warning: Option<&'static str>,
}

/// What waits for being compiled.
struct Waiting {
    plan: Plan,
    facts: Facts,
    /// The bytes that were judged, where there is room for them; otherwise they are read and compared again.
    bytes: Option<Arc<[u8]>>,
}

/// A file that was read.
struct Seen {
    stamp: Stamp,
    /// How large it might have been.
    cap: u64,
    facts: Result<Facts, Unread>,
}

/// What was found in a file, with the bytes where it was just read.
type Found = Result<(Facts, Option<Vec<u8>>), Unread>;

/// What came of compiling: nothing, when the file is another one by now.
type Worked = Option<Result<Loaded, String>>;

impl State {
    /// What is not served, because it has to be compiled first.
    fn compiling(&self) -> Vec<Compiling> {
        let is_shown =
            |name: &MountName| self.served.contains_key(name) || self.quarantined.iter().any(|one| one.name == *name);
        let waiting = self.waiting.iter().map(|one| &one.plan).filter(|plan| !is_shown(&plan.name));
        waiting.map(|plan| Compiling { name: plan.name.clone(), base: plan.base.clone() }).collect()
    }

    fn refuse(&mut self, plan: &Plan, cause: Cause, why: impl Into<Why>) {
        let Why { reason, needs_restart } = why.into();
        let base = Some(plan.base.clone());
        self.refused.push(Refused { name: plan.name.to_string(), reason, base, needs_restart });
        self.unserved.push(Unserved { name: plan.name.clone(), base: plan.base.clone(), cause });
    }
}

/// Why something cannot be served.
struct Why {
    reason: String,
    /// Whether a restart of belljar is the cure.
    needs_restart: bool,
}

impl From<String> for Why {
    fn from(reason: String) -> Self {
        Self { reason, needs_restart: false }
    }
}

impl Facts {
    fn of(mount: &Mount) -> Self {
        let Mount { digest, completes, revises, warning, .. } = *mount;
        Self { digest, uses: mount.uses.clone(), needs: Arc::clone(&mount.needs), completes, revises, warning }
    }
}

impl Loader {
    /// One that has loaded nothing yet.
    pub fn new(
        dir: Dir,
        config: Arc<Config>,
        within: Option<Within>,
        sandbox: Arc<Sandbox>,
        catalog: Arc<Catalog>,
    ) -> Self {
        Self {
            dir: Arc::new(dir),
            sandbox,
            catalog,
            config,
            read: 0,
            only: None,
            within,
            seen: HashMap::new(),
            state: State::default(),
            failed: HashMap::new(),
            work: JoinSet::new(),
            running: HashMap::new(),
            is_settled: false,
            published: Instant::now(),
            is_published: true,
            retry: None,
            patience: RETRY,
        }
    }

    /// The same, that looks at no other file than this.
    #[must_use]
    pub fn only(self, file: String) -> Self {
        Self { only: Some(file), ..self }
    }

    /// What is served now was made by this.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// From the next scan on, this is what the operator wants.
    pub fn set_config(&mut self, config: Arc<Config>) {
        self.config = config;
        self.read += 1;
        self.patience = RETRY;
    }

    /// From the next scan on, this is the plugin directory.
    pub fn set_dir(&mut self, dir: Dir) {
        self.dir = Arc::new(dir);
        self.seen.clear();
    }

    /// The mounts that are held back because no lock says which bytes may use their grants, with their bytes.
    pub fn lacks_pin(&self) -> Vec<(MountName, Digest)> {
        let lacks = self.state.quarantined.iter().filter(|one| one.pinned().is_none());
        lacks.map(|one| (one.name.clone(), one.found)).collect()
    }

    /// What is not served as it is written, and why.
    pub fn refused(&self) -> &[Refused] {
        &self.state.refused
    }

    /// Whether everything that the last scan found is served or refused.
    pub fn is_done(&self) -> bool {
        self.state.waiting.is_empty() && self.is_published
    }

    /// Loads everything, and returns when that is done.
    pub async fn load(&mut self) {
        self.scan().await;
        while !self.is_settled {
            if self.step().await == Next::Scan {
                self.scan().await;
            }
        }
    }

    /// Looks at the directory, and serves what is there. What has to be compiled is served later: see [`Loader::step`].
    /// When the directory cannot be read, what is served goes on.
    pub async fn scan(&mut self) {
        self.retry = None;
        let dir = Arc::clone(&self.dir);
        let listed = spawn_blocking(move || {
            let mut unnamed = Vec::new();
            let files = files(&dir, &mut unnamed)?;
            let stamps: HashMap<String, Stamp> =
                files.iter().filter_map(|file| Some((file.clone(), Stamp::read(&dir, file)?))).collect();
            std::io::Result::Ok((files, unnamed, stamps))
        });
        let (files, mut unnamed, stamps) = match listed.await.map_err(std::io::Error::other).and_then(|listed| listed) {
            Ok(listed) => listed,
            Err(error) => {
                let path = self.config.plugins.display();
                tracing::error!("cannot read the plugin directory \"{path}\": {error}; what is loaded goes on");
                return self.settle();
            }
        };
        let config = Arc::clone(&self.config);
        let (mut plans, mut refused) = plan(files, &config);
        if let Some(only) = &self.only {
            plans.retain(|plan| plan.file == *only);
            refused.retain(|refused| refused.name == *only);
            unnamed.clear();
        }
        let unserved = refused.iter().filter_map(|refused| {
            let name = MountName::new(&refused.name).ok()?;
            let uri = config.mounts.get(&name)?.uri.clone();
            let base = uri.unwrap_or_else(|| format!("belljar://{name}/"));
            Some(Unserved { name, base, cause: Cause::Configuration })
        });
        let unserved = unserved.collect();
        let mut next = State { refused, unserved, ..State::default() };
        next.refused.append(&mut unnamed);
        let loaded: HashMap<Digest, Arc<Mount>> =
            self.state.served.values().map(|mount| (mount.digest, Arc::clone(mount))).collect();

        // What was seen before costs nothing, so it goes first.
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for plan in plans {
            let stamp = stamps.get(&plan.file);
            let seen = self
                .seen
                .get(&plan.file)
                .filter(|seen| Some(&seen.stamp) == stamp && seen.cap == plan.limits.component);
            match seen {
                Some(seen) => known.push((plan, seen.facts.clone().map(|facts| (facts, None)))),
                None => others.push(plan),
            }
        }
        self.seen.retain(|file, _| stamps.contains_key(file));
        for (plan, found) in known {
            self.place(&mut next, &loaded, plan, found, None);
        }
        let believed = self.failed.iter().filter(|(_, (_, until))| until.is_none_or(|until| until > Instant::now()));
        let settled = loaded.keys().chain(believed.map(|(digest, _)| digest)).copied().collect();
        let looking = Looking::new((&self.dir, &self.sandbox, &config), settled, others);
        let mut looking = looking.start(!self.is_settled);
        while let Some(Looked { plan, stamp, found, cached }) = looking.recv().await {
            if let Some(stamp) = stamp {
                let facts = found.as_ref().map(|(facts, _)| facts.clone()).map_err(Clone::clone);
                self.seen.insert(plan.file.clone(), Seen { stamp, cap: plan.limits.component, facts });
            }
            self.place(&mut next, &loaded, plan, found, cached);
            // At the start there is nothing yet that all this would take the place of.
            if !self.is_settled && self.published.elapsed() >= RENEW {
                self.show(&next, false);
            }
        }
        self.failed.retain(|digest, _| {
            next.waiting.iter().any(|one| one.facts.digest == *digest)
                || self.seen.values().any(|seen| seen.facts.as_ref().is_ok_and(|facts| facts.digest == *digest))
        });
        self.state = next;
        self.publish();
        self.catalog.adopt(self.read);
        if self.state.may_change {
            self.retry_later();
        }
        let wanted: Vec<Digest> = self.state.waiting.iter().map(|one| one.facts.digest).collect();
        self.running.retain(|digest, task| {
            let is_wanted = wanted.contains(digest);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        self.start();
        self.settle();
    }

    /// Goes on with what takes long, until something came of it. Nothing is lost when this is dropped.
    pub async fn step(&mut self) -> Next {
        let never = Instant::now() + Duration::from_secs(24 * 3600);
        let show = if self.is_published { never } else { self.published + RENEW };
        let retry = self.retry.unwrap_or(never);
        tokio::select! {
            Some(worked) = self.work.join_next() => {
                match worked {
                    Ok((digest, worked)) => {
                        self.running.remove(&digest);
                        self.worked(&digest, worked);
                    }
                    // One that was given up was forgotten before.
                    Err(error) => {
                        let broken = self.running.iter().find(|(_, task)| task.id() == error.id());
                        if let Some(digest) = broken.map(|(digest, _)| *digest) {
                            self.running.remove(&digest);
                            self.worked(&digest, Some(Err("belljar failed at loading it".to_owned())));
                        }
                    }
                }
                self.start();
                if self.state.waiting.is_empty() || self.published.elapsed() >= RENEW {
                    self.publish();
                }
                self.settle();
                Next::Step
            }
            () = sleep_until(show) => {
                self.publish();
                Next::Step
            }
            () = sleep_until(retry) => Next::Scan,
        }
    }

    fn retry_later(&mut self) {
        self.retry = Some(Instant::now() + self.patience);
        self.patience = (self.patience * 2).min(RETRY_MOST);
    }

    /// Says that everything is loaded, when it is, once.
    fn settle(&mut self) {
        let is_looked_at_again = self.retry.is_some_and(|at| at <= Instant::now() + pace::QUIET);
        if !self.is_settled && self.state.waiting.is_empty() && !is_looked_at_again {
            self.is_settled = true;
            self.catalog.settle();
            // It looks at every entry of the cache; nobody has to wait for that.
            let sandbox = Arc::clone(&self.sandbox);
            spawn_blocking(move || sandbox.tidy());
        }
    }

    /// Starts compiling what waits for it, a few at once.
    fn start(&mut self) {
        for Waiting { plan, facts, bytes } in &mut self.state.waiting {
            if self.running.len() >= LOADING {
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
                        let read = spawn_blocking(move || Source::read(&dir, &plan.file, plan.limits.component));
                        match read.await {
                            Ok(Ok(source)) if source.digest == digest => source.bytes.into(),
                            _ => return (digest, None),
                        }
                    }
                };
                (digest, Some(load_bare(&sandbox, &ambient, (&name, bytes, &digest)).await))
            });
            self.running.insert(digest, task);
        }
    }

    /// Takes over what came of compiling.
    fn worked(&mut self, digest: &Digest, worked: Worked) {
        let Some(result) = worked else {
            self.state.waiting.retain(|one| one.facts.digest != *digest);
            self.retry = Some(Instant::now() + pace::QUIET);
            return;
        };
        let mut state = std::mem::take(&mut self.state);
        let (ready, waiting): (Vec<_>, Vec<_>) = state.waiting.into_iter().partition(|one| one.facts.digest == *digest);
        state.waiting = waiting;
        for Waiting { plan, facts, .. } in ready {
            let old = state.served.remove(&plan.name);
            state.quarantined.retain(|one| one.name != plan.name);
            match &result {
                Ok(loaded) => self.make(&mut state, old.as_ref(), &plan, &facts, loaded),
                Err(why) => self.refuse(&mut state, old.as_ref(), &plan, why),
            }
        }
        self.state = state;
        if let Err(why) = result {
            let until = (!self.sandbox.knows(digest)).then(|| Instant::now() + self.patience);
            if until.is_some() {
                self.retry_later();
            }
            self.failed.insert(*digest, (why, until));
        }
        self.is_published = false;
    }

    fn publish(&mut self) {
        let state = std::mem::take(&mut self.state);
        self.show(&state, true);
        self.state = state;
        self.is_published = true;
    }

    /// Puts a snapshot in place, if it is another one than that which is there. `is_whole`: every file was looked at for it.
    fn show(&mut self, state: &State, is_whole: bool) {
        self.published = Instant::now();
        let snapshot = Snapshot::new(state.served.values().cloned().collect(), state.refused.clone())
            .with_quarantined(state.quarantined.clone())
            .with_compiling(state.compiling())
            .with_unserved(state.unserved.clone());
        let snapshot = if is_whole { snapshot.whole() } else { snapshot };
        let old = self.catalog.snapshot();
        if snapshot.is_same(&old) {
            return;
        }
        tell(&old, &snapshot, self.is_settled);
        // From here on, what calls under these grants give is not given on.
        snapshot.takes_back(&old).for_each(|mount| mount.withdraw());
        self.catalog.publish(snapshot);
    }
}
