//! Looks at many files at once, on threads that may wait for a disk: what is in each of them, and, where its compiled code
//! is in the cache, that code, loaded.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;
use std::vec;

use cap_std::fs::Dir;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;

use super::making::nothing;
use super::{Facts, Found};
use crate::catalog::mount::{Stamp, look};
use crate::catalog::plan::Plan;
use crate::catalog::quarantine;
use crate::config::Config;
use crate::model::{Digest, MountName};
use crate::sandbox::{Loaded, Sandbox};

/// Files that are looked at at once, at the most.
const MOST: usize = 8;

/// What a look at the file of one plan has found.
pub(super) struct Looked {
    pub(super) plan: Plan,
    /// By what the file is known again; none while it may be changing.
    pub(super) stamp: Option<Stamp>,
    pub(super) found: Found,
    pub(super) cached: Cached,
}

/// What came of the cache: its code, loaded for nobody in particular; or why it is not served; or nothing, where it has to
/// be compiled, or is not to be loaded.
pub(super) type Cached = Option<Result<Arc<Loaded>, String>>;

/// What is being looked at.
pub(super) struct Looking {
    dir: Arc<Dir>,
    sandbox: Arc<Sandbox>,
    config: Arc<Config>,
    /// What is loaded already, or is known not to load.
    settled: HashSet<Digest>,
    plans: Mutex<vec::IntoIter<Plan>>,
    /// A component that is mounted more than once is loaded once.
    loads: Mutex<HashMap<Digest, Arc<OnceLock<Cached>>>>,
}

impl Looking {
    pub(super) fn new(
        (dir, sandbox, config): (&Arc<Dir>, &Arc<Sandbox>, &Arc<Config>),
        settled: HashSet<Digest>,
        plans: Vec<Plan>,
    ) -> Self {
        let (dir, sandbox, config) = (Arc::clone(dir), Arc::clone(sandbox), Arc::clone(config));
        Self { dir, sandbox, config, settled, plans: Mutex::new(plans.into_iter()), loads: Mutex::default() }
    }

    /// Looks at everything, in no order. When nobody waits for what is found any more, it ends.
    ///
    /// `is_first`: nothing is served yet that this would take processors from.
    pub(super) fn start(self, is_first: bool) -> Receiver<Looked> {
        let threads = if is_first { Handle::current().metrics().num_workers().min(MOST) } else { super::LOADING };
        // What is found waits here for its turn, with its bytes.
        let (found, all) = channel(threads);
        let files = self.plans.lock().unwrap_or_else(PoisonError::into_inner).len();
        let own = Arc::new(self);
        for _ in 0..threads.min(files) {
            let (own, found) = (Arc::clone(&own), found.clone());
            spawn_blocking(move || own.work(&found));
        }
        all
    }

    fn work(&self, found: &Sender<Looked>) {
        loop {
            let next = self.plans.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(plan) = next else { return };
            let looked = catch_unwind(AssertUnwindSafe(|| self.look(&plan)));
            let (stamp, given, cached) =
                looked.unwrap_or_else(|_| (None, Err("belljar failed at reading it".to_owned().into()), None));
            if found.blocking_send(Looked { plan, stamp, found: given, cached }).is_err() {
                return;
            }
        }
    }

    fn look(&self, plan: &Plan) -> (Option<Stamp>, Found, Cached) {
        let (stamp, found) = read(&self.dir, &plan.file, plan.limits.component);
        // Not before it is known that these are the bytes which may use the mount's grants.
        let cached = match &found {
            Ok((facts, _)) if self.may_load(plan, &facts.digest) => self.load(&plan.name, &facts.digest),
            _ => None,
        };
        // Bytes are kept for being compiled.
        let found = found.map(|(facts, bytes)| (facts, bytes.filter(|_| cached.is_none())));
        (stamp, found, cached)
    }

    /// Whether the bytes are those that may be loaded for `plan`, and are not loaded yet.
    fn may_load(&self, plan: &Plan, digest: &Digest) -> bool {
        !self.settled.contains(digest)
            && (!plan.needs_pin || quarantine::judge(plan, digest, &self.config.pins).is_none())
    }

    fn load(&self, name: &MountName, digest: &Digest) -> Cached {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let load = Arc::clone(loads.entry(*digest).or_default());
        drop(loads);
        let load = load.get_or_init(|| {
            let loaded = nothing(&self.config.ambient).and_then(|held| self.sandbox.load_cached(name, digest, held));
            loaded.map(|loaded| loaded.map(Arc::new)).transpose()
        });
        load.clone()
    }
}

/// Reads a file; what was read is known by its stamp, unless it may be changing at this very time.
fn read(dir: &Dir, file: &str, cap: u64) -> (Option<Stamp>, Found) {
    let (at, before) = (SystemTime::now(), Stamp::read(dir, file));
    let found = look(dir, file, cap).map(|(source, profile)| {
        let facts = Facts {
            digest: source.digest,
            uses: profile.kinds(),
            completes: profile.optional().contains(&"completion"),
            revises: profile.optional().contains(&"revisions"),
            needs: Arc::new(profile.needs),
            warning: source.warning,
        };
        (source.stamp(), facts, source.bytes)
    });
    let is_same = found.as_ref().map_or(true, |(stamp, ..)| Some(*stamp) == before);
    let stamp = before.filter(|stamp| is_same && stamp.is_settled(at));
    (stamp, found.map(|(_, facts, bytes)| (facts, Some(bytes))))
}
