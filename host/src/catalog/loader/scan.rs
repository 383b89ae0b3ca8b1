//! Reads many component files concurrently, on threads that may block on a disk. If a component's compiled code is
//! cached, loads it too.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;
use std::vec;

use cap_std::fs::Dir;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;

use super::load::{MAX_PARALLEL_LOADS, load_cached};
use super::plan::LoadPlan;
use super::source::{ComponentSourceError, ComponentStamp, read_provider};
use super::state::{CachedCode, ComponentFacts, FileContents, FoundComponent, PlannedFile};
use crate::config::Config;
use crate::limits::processors;
use crate::model::{Digest, MountName};
use crate::sandbox::Sandbox;

/// The most files that are read at the same time.
const MAX_THREADS: usize = 8;

/// The result of reading the file of one plan.
pub(super) struct ScannedFile {
    pub(super) file: PlannedFile,
    /// Identifies the version of the file. `None` if the file may be changing.
    pub(super) stamp: Option<ComponentStamp>,
}

/// The sources of a scan.
pub(super) struct ScanSource {
    /// The plugin directory.
    pub(super) dir: Arc<Dir>,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) config: Arc<Config>,
    /// Components that are already loaded, or known to fail.
    pub(super) skip_loading: HashSet<Digest>,
}

/// A running scan.
struct Scan {
    source: ScanSource,
    plans: Mutex<vec::IntoIter<LoadPlan>>,
    /// A component with several mounts is loaded once.
    loads: Mutex<HashMap<Digest, Arc<OnceLock<CachedCode>>>>,
}

/// Reads the files of all `plans`, and sends the results in no particular order. Ends early when the receiver is
/// dropped.
///
/// `is_first`: no mounts are served yet, so the scan may use all processors.
pub(super) fn start(source: ScanSource, plans: Vec<LoadPlan>, is_first: bool) -> Receiver<ScannedFile> {
    let threads = if is_first { processors().min(MAX_THREADS) } else { MAX_PARALLEL_LOADS };
    // The capacity bounds the results, and so the bytes, that wait in memory.
    let (found, all) = channel(threads);
    let files = plans.len();
    let scan = Arc::new(Scan { source, plans: Mutex::new(plans.into_iter()), loads: Mutex::default() });
    for _ in 0..threads.min(files) {
        let (scan, found) = (Arc::clone(&scan), found.clone());
        spawn_blocking(move || scan.run(&found));
    }
    all
}

impl Scan {
    fn run(&self, found: &Sender<ScannedFile>) {
        loop {
            let next = self.plans.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(plan) = next else { return };
            let scanned = catch_unwind(AssertUnwindSafe(|| self.scan(&plan)));
            let (stamp, contents, code) = scanned.unwrap_or_else(|_| {
                (None, Err(ComponentSourceError::Unusable("belljar panicked while reading it".to_owned())), None)
            });
            if found.blocking_send(ScannedFile { file: PlannedFile { plan, contents, code }, stamp }).is_err() {
                return;
            }
        }
    }

    fn scan(&self, plan: &LoadPlan) -> (Option<ComponentStamp>, FileContents, CachedCode) {
        let (stamp, mut contents) = read(&self.source.dir, &plan.file, plan.limits.component);
        // Load only after checking that this component may use the mount's grants.
        let code = match &contents {
            Ok(found) if self.may_load(plan, &found.facts.digest) => self.load(&plan.name, &found.facts.digest),
            _ => None,
        };
        if let (Ok(found), Some(_)) = (&mut contents, &code) {
            // The bytes are needed only for compiling.
            found.bytes = None;
        }
        (stamp, contents, code)
    }

    /// True if the component may be loaded for `plan`, and is not loaded yet.
    fn may_load(&self, plan: &LoadPlan, digest: &Digest) -> bool {
        !self.source.skip_loading.contains(digest) && plan.quarantine(digest, &self.source.config).is_none()
    }

    fn load(&self, name: &MountName, digest: &Digest) -> CachedCode {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let load = Arc::clone(loads.entry(*digest).or_default());
        drop(loads);
        let load = load.get_or_init(|| {
            let loaded = load_cached(&self.source.sandbox, &self.source.config.ambient, name, digest);
            loaded.map(|loaded| loaded.map(Arc::new)).transpose()
        });
        load.clone()
    }
}

/// Reads a file. Gives its stamp unless the file may be changing at the moment.
fn read(dir: &Dir, file: &str, cap: u64) -> (Option<ComponentStamp>, FileContents) {
    let (at, before) = (SystemTime::now(), ComponentStamp::read(dir, file));
    let read = read_provider(dir, file, cap);
    let is_same = read.as_ref().map_or(true, |(source, _)| Some(source.stamp) == before);
    let stamp = before.filter(|stamp| is_same && stamp.is_stable(at));
    let contents = read.map(|(source, profile)| FoundComponent {
        facts: ComponentFacts {
            digest: source.digest,
            usable_kinds: profile.kinds(),
            interfaces: profile.interfaces(),
            needs: Arc::new(profile.needs),
            warning: source.warning,
        },
        bytes: Some(source.bytes),
    });
    (stamp, contents)
}
