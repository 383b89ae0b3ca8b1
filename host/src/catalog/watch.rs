//! Watches directories for changes with the kernel's inotify. Reports that something changed, without details: the
//! receiver scans again.
//!
//! Only changes are subscribed, so reading a directory, which guests do all the time, costs nothing here. Symbolic
//! links inside a directory are not followed. Everything that could hide a change is reported as one. This includes an
//! overflow of the queue, and a directory that was recreated, mounted over, or replaced by a link.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{pending, select_all};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader};
use rustix::io::Errno;
use tokio::sync::Notify;

use crate::grants::drive_timeout::{Stalled, run_with_timeout};

mod tree;

use tree::{DirectoryId, ScannedTree, WatchGap, identity, is_unchanged, scan_tree};
pub use tree::{MAX_DIRECTORIES, WatchDepth};

/// The time between two reads of the kernel's queue. The queue holds 16,384 events, so a burst overflows it and is
/// reported as one change.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// The time between two checks that each path still leads to the watched directory. The kernel does not report this.
const IDENTITY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The least time between two scans of a tree whose directories change.
const RESCAN_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes of events that one read takes.
const BUFFER_BYTES: usize = 64 << 10;

/// Events after which the tree may have other directories.
const STRUCTURE_CHANGES: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);

/// Events after which a directory is gone or elsewhere.
const ROOT_LOST: ReadFlags = ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT);

/// The reason why changes are not reported; for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The system provides no queue or no thread. Gives the reason and the cure.
    #[error("this system cannot watch directories: {0}")]
    System(String),
    /// Not all of a directory can be watched.
    #[error("\"{}\" cannot be watched: {why}", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The reason and the cure.
        why: String,
    },
    /// The first scan of a directory panicked.
    #[error("the scan of its directories panicked")]
    Panicked,
}

/// Watches directories. There is one for each process, because the kernel limits the number for each user.
///
/// Its thread never waits for a file system. A scan that may take long has its own thread, so that a drive that hangs
/// delays nothing else.
#[derive(Clone)]
pub struct Watcher(Arc<WatcherInner>);

struct WatcherInner {
    queue: OwnedFd,
    watches: Mutex<Watches>,
}

/// The watch of one directory. Dropping it ends the watch.
pub struct DirectoryWatch {
    watcher: Watcher,
    id: u64,
    changed: Arc<Notify>,
}

/// All watches.
#[derive(Default)]
struct Watches {
    next: u64,
    roots: HashMap<u64, WatchRoot>,
    /// The roots that use each kernel watch: roots may overlap and share it.
    users: HashMap<i32, Vec<u64>>,
    /// The number of scans that run now.
    scans: usize,
    /// While a scan runs: the kernel watches that reported an event and have no root. The scan may have just added them.
    early: HashSet<i32>,
}

/// The state of one [`DirectoryWatch`].
struct WatchRoot {
    path: PathBuf,
    depth: WatchDepth,
    changed: Arc<Notify>,
    /// The directory that the path led to at the last scan.
    identity: Option<DirectoryId>,
    watches: HashSet<i32>,
    /// True if its directories must be scanned again.
    is_stale: bool,
    /// True while a thread scans them. There is at most one at a time, however long it takes.
    is_scanning: bool,
    scanned_at: Instant,
    /// The part of its directories that is not watched.
    gap: Option<WatchGap>,
}

/// A scan that runs. It ends when this value is dropped: its result is stored then, or it has none.
struct RunningScan<'w>(&'w Mutex<Watches>);

impl<'w> RunningScan<'w> {
    fn begin(watches: &'w Mutex<Watches>) -> Self {
        lock(watches).scans += 1;
        Self(watches)
    }
}

impl Drop for RunningScan<'_> {
    fn drop(&mut self) {
        let mut watches = lock(self.0);
        watches.scans = watches.scans.saturating_sub(1);
        if watches.scans == 0 {
            watches.early.clear();
        }
    }
}

/// Waits until something changed in one of the directories. Waits for ever if there are none.
pub fn any_changed<'w>(watched: impl IntoIterator<Item = &'w DirectoryWatch>) -> impl Future<Output = ()> {
    let all: Vec<_> = watched.into_iter().map(|one| Box::pin(one.changed())).collect();
    async {
        match all.is_empty() {
            true => pending().await,
            false => drop(select_all(all).await),
        }
    }
}

impl Watcher {
    /// A watcher without watches.
    ///
    /// # Errors
    /// When the system provides no queue or no thread. Gives the cure.
    pub fn start() -> Result<Self, WatchError> {
        let fail = |why: &dyn fmt::Display| WatchError::System(why.to_string());
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|error| match error {
            Errno::MFILE => {
                fail(&"this user has too many inotify instances; raise fs.inotify.max_user_instances (sysctl)")
            }
            _ => fail(&error),
        })?;
        let inner = Arc::new(WatcherInner { queue, watches: Mutex::default() });
        let weak = Arc::downgrade(&inner);
        let thread = std::thread::Builder::new().name("belljar-watch".to_owned());
        thread.spawn(move || run_watcher(&weak)).map_err(|error| fail(&error))?;
        Ok(Self(inner))
    }

    /// Watches `dir`, which may be a symbolic link; links inside are not followed.
    ///
    /// Scans all directories that are to be watched, and blocks until the file system answers. Gives up soon if it does
    /// not answer.
    ///
    /// # Errors
    /// When `dir` is not a readable directory, or contains too many directories. Then the caller has to poll for
    /// changes.
    pub fn watch(&self, dir: &Path, reach: WatchDepth) -> Result<DirectoryWatch, WatchError> {
        let fail = |why: &dyn fmt::Display| WatchError::Directory { dir: dir.to_owned(), why: why.to_string() };
        let (own, path) = (self.clone(), dir.to_owned());
        let _scan = RunningScan::begin(&self.0.watches);
        let scanned = run_with_timeout(dir, move || scan_tree(&own.0.queue, &path, reach));
        let scanned = scanned.map_err(|Stalled| fail(&Stalled::MESSAGE))?.map_err(|why| fail(&why))?;
        let changed = Arc::<Notify>::default();
        let mut watches = lock(&self.0.watches);
        let id = watches.next;
        watches.next += 1;
        let gap = scanned.gap;
        let root = WatchRoot {
            path: dir.to_owned(),
            depth: reach,
            changed: Arc::clone(&changed),
            identity: None,
            watches: HashSet::new(),
            is_stale: false,
            is_scanning: false,
            scanned_at: Instant::now(),
            gap,
        };
        watches.roots.insert(id, root);
        watches.set_scanned(&self.0.queue, id, Some(scanned));
        drop(watches);
        // If the watch is incomplete, dropping it removes the kernel watches.
        let watched = DirectoryWatch { watcher: self.clone(), id, changed };
        match gap {
            None => Ok(watched),
            Some(gap) => Err(fail(&gap)),
        }
    }
}

impl DirectoryWatch {
    /// Waits for a change. All changes since the last return are reported as one.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// True if everything is watched. A tree may grow beyond [`MAX_DIRECTORIES`] while it is watched.
    pub fn is_complete(&self) -> bool {
        lock(&self.watcher.0.watches).roots.get(&self.id).is_some_and(|root| root.gap.is_none())
    }
}

impl Drop for DirectoryWatch {
    fn drop(&mut self) {
        let mut watches = lock(&self.watcher.0.watches);
        watches.set_scanned(&self.watcher.0.queue, self.id, None);
        watches.roots.remove(&self.id);
    }
}

impl Watches {
    /// Stores the result of scanning a root, or `None` if it is gone. Removes the kernel watches that no root uses any
    /// more.
    fn set_scanned(&mut self, queue: &OwnedFd, id: u64, scanned: Option<ScannedTree>) {
        let new = scanned.as_ref().map(|scanned| scanned.watches.clone()).unwrap_or_default();
        let Some(root) = self.roots.get_mut(&id) else {
            // The root was dropped meanwhile: remove the kernel watches that only it used.
            for watch in new.iter().filter(|watch| !self.users.contains_key(watch)) {
                let _ = inotify::remove_watch(queue, *watch);
            }
            return;
        };
        root.gap = scanned.as_ref().and_then(|scanned| scanned.gap);
        root.identity = scanned.map(|scanned| scanned.identity);
        let old = std::mem::replace(&mut root.watches, new.clone());
        for watch in new.difference(&old) {
            self.users.entry(*watch).or_default().push(id);
            // Something changed between the scan of this directory and now: it may have a new subdirectory.
            root.is_stale |= self.early.contains(watch);
        }
        for watch in old.difference(&new) {
            let Some(users) = self.users.get_mut(watch) else { continue };
            users.retain(|user| *user != id);
            if users.is_empty() {
                self.users.remove(watch);
                let _ = inotify::remove_watch(queue, *watch);
            }
        }
    }

    /// Handles one event of a kernel watch.
    fn handle_event(&mut self, watch: i32, event: ReadFlags) {
        if event.contains(ReadFlags::QUEUE_OVERFLOW) {
            for root in self.roots.values_mut() {
                root.is_stale = true;
                root.changed.notify_one();
            }
            return;
        }
        let Some(users) = self.users.get(&watch) else {
            // A watch that was just removed, or one that a scan has just added.
            if self.scans > 0 {
                self.early.insert(watch);
            }
            return;
        };
        let is_restructured = event.contains(ReadFlags::ISDIR) && event.intersects(STRUCTURE_CHANGES);
        for id in users {
            let Some(root) = self.roots.get_mut(id) else { continue };
            root.is_stale |= event.intersects(ROOT_LOST) || (is_restructured && root.depth == WatchDepth::Deep);
            root.changed.notify_one();
        }
        // The kernel removed the watch itself: its directory is gone.
        if event.contains(ReadFlags::IGNORED) {
            for id in self.users.remove(&watch).unwrap_or_default() {
                if let Some(root) = self.roots.get_mut(&id) {
                    root.watches.remove(&watch);
                    root.is_stale = true;
                }
            }
        }
    }

    /// The earliest time at which a stale root may be scanned again.
    fn next_rescan(&self) -> Option<Instant> {
        self.roots
            .values()
            .filter(|root| root.is_stale && !root.is_scanning)
            .map(|root| root.scanned_at + RESCAN_INTERVAL)
            .min()
    }
}

fn lock(watches: &Mutex<Watches>) -> MutexGuard<'_, Watches> {
    watches.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the queue while the [`Watcher`] exists.
fn run_watcher(watcher: &Weak<WatcherInner>) {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    let mut identity_check = Instant::now() + IDENTITY_CHECK_INTERVAL;
    while let Some(inner) = watcher.upgrade() {
        let due = lock(&inner.watches).next_rescan().map_or(identity_check, |due| due.min(identity_check));
        if due <= Instant::now() {
            let is_all = identity_check <= due;
            rescan_due(&inner, is_all);
            if is_all {
                identity_check = Instant::now() + IDENTITY_CHECK_INTERVAL;
            }
            continue;
        }
        let wait = due.duration_since(Instant::now()).try_into().ok();
        match poll(&mut [PollFd::new(&inner.queue, PollFlags::IN)], wait.as_ref()) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            // Polling fails. Stop, because trying again would loop without end.
            Err(error) => {
                tracing::error!("changes of files are no longer detected: {error}");
                return;
            }
        }
        // Collect related events, to report them as one change.
        std::thread::sleep(DRAIN_INTERVAL);
        drain_queue(&inner, &mut buffer);
    }
}

/// Reads one buffer of the queue. The rest follows after the next pause.
fn drain_queue(inner: &WatcherInner, buffer: &mut [MaybeUninit<u8>]) {
    let mut events = Reader::new(&inner.queue, buffer);
    let mut watches = lock(&inner.watches);
    while let Ok(event) = events.next() {
        watches.handle_event(event.wd(), event.events());
        if events.is_buffer_empty() {
            break;
        }
    }
}

/// Scans the roots that changed. If `is_all`, also checks that every other path still leads to the same directory.
fn rescan_due(inner: &Arc<WatcherInner>, is_all: bool) {
    let now = Instant::now();
    let of = |(id, root): (&u64, &WatchRoot)| (*id, root.path.clone(), root.identity, root.is_stale);
    let is_due = |root: &WatchRoot| if root.is_stale { root.scanned_at + RESCAN_INTERVAL <= now } else { is_all };
    let is_due = |root: &WatchRoot| !root.is_scanning && is_due(root);
    let roots: Vec<_> = lock(&inner.watches).roots.iter().filter(|(_, root)| is_due(root)).map(of).collect();
    for (id, path, old, is_stale) in roots {
        if !is_stale && is_unchanged(&path, old) {
            continue;
        }
        if let Some(root) = lock(&inner.watches).roots.get_mut(&id) {
            root.is_scanning = true;
        }
        let own = Arc::clone(inner);
        let spawned = std::thread::Builder::new().name("belljar-scan".to_owned()).spawn(move || rescan(&own, id));
        if let Err(error) = spawned {
            tracing::warn!("cannot start a thread to scan a directory: {error}");
            if let Some(root) = lock(&inner.watches).roots.get_mut(&id) {
                root.is_scanning = false;
            }
        }
    }
}

/// Scans one root, however long that takes.
fn rescan(WatcherInner { queue, watches }: &WatcherInner, id: u64) {
    let of = |root: &mut WatchRoot| (root.path.clone(), root.depth, root.identity, std::mem::take(&mut root.is_stale));
    let Some((path, reach, old, is_stale)) = lock(watches).roots.get_mut(&id).map(of) else { return };
    // Declared before the lock below, which is then released first.
    let _scan = RunningScan::begin(watches);
    let is_same = !is_stale && identity(&path).ok() == old;
    let scanned = if is_same { None } else { Some(scan_tree(queue, &path, reach).ok()) };
    let mut watches = lock(watches);
    if let Some(root) = watches.roots.get_mut(&id) {
        root.is_scanning = false;
        if let Some(scanned) = &scanned {
            let gap = scanned.as_ref().and_then(|scanned| scanned.gap);
            if let Some(gap) = gap.filter(|_| root.gap.is_none()) {
                tracing::warn!("not all of \"{}\" is watched: {gap}", path.display());
            }
            root.scanned_at = Instant::now();
            // Report changes that happened before the new kernel watches existed. Report only once that a root is gone.
            if scanned.is_some() || old.is_some() {
                root.changed.notify_one();
            }
        }
    }
    if let Some(scanned) = scanned {
        watches.set_scanned(queue, id, scanned);
    }
}

#[cfg(test)]
mod tests;
