//! Tells that something changed in a directory, by the kernel's inotify. It does not say what: whoever is told looks again.
//!
//! Only changes are asked for, so that what reads a directory (the guests do, all the time) costs nothing here. Symbolic
//! links inside a directory are not followed. Whatever could be missed is told as a change: a queue that overflowed, a
//! directory that was removed and made anew, mounted over, or exchanged by a link.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{pending, select_all};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, makedev, openat2, statx};
use rustix::io::Errno;
use tokio::sync::Notify;

use crate::grants::fs::{Stalled, stalling_below, within};

/// Directories that one deep watch may have. Each costs about a kilobyte of the kernel's memory, and the first look at all of
/// them some ten milliseconds.
pub const DIRECTORIES: usize = 4096;

/// How often the kernel's queue is emptied at the most. It holds 16,384 events, so that a storm fills it and is told as one.
const PAUSE: Duration = Duration::from_millis(20);

/// How often it is looked whether a path still leads to the directory that is watched. The kernel does not say it.
const SWEEP: Duration = Duration::from_secs(1);

/// How often a tree whose directories change is walked anew at the most.
const WALK: Duration = Duration::from_millis(250);

/// Bytes of events that are read at once.
const BUFFER: usize = 64 << 10;

/// What counts as a change. Opening and reading does not.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// After these the directories are not those that they were.
const RESHAPED: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);

/// After these a directory is gone, or no longer where it was.
const LOST: ReadFlags = ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT);

/// How much of a directory is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// What lies in it.
    Flat,
    /// What lies in it and in every directory below, [`DIRECTORIES`] at most.
    Deep,
}

/// Watches directories. One for a process: the kernel gives each user only so many. Its thread waits for no file system: a
/// look at a directory that may take its time has a thread of its own, so that a drive that hangs holds up nothing else.
#[derive(Clone)]
pub struct Watcher(Arc<Inner>);

struct Inner {
    queue: OwnedFd,
    watches: Mutex<Watches>,
}

/// A directory that is watched, until this is dropped.
pub struct Watched {
    watcher: Watcher,
    id: u64,
    changed: Arc<Notify>,
}

/// All that is watched.
#[derive(Default)]
struct Watches {
    next: u64,
    roots: HashMap<u64, Root>,
    /// Whose a watch of the kernel is: roots may overlap, and share it.
    users: HashMap<i32, Vec<u64>>,
}

/// What one [`Watched`] is about.
struct Root {
    path: PathBuf,
    reach: Reach,
    changed: Arc<Notify>,
    /// What the path led to when it was looked at last.
    identity: Option<Identity>,
    watches: HashSet<i32>,
    /// Whether its directories have to be looked at again.
    is_stale: bool,
    /// Whether a thread looks at them now. There is one at a time, however long it takes.
    is_looked_at: bool,
    walked: Instant,
    /// Why not all its directories are watched.
    gap: Option<Gap>,
}

/// What is not watched of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    /// There are more than [`DIRECTORIES`].
    TooMany,
    /// A drive that may stall is mounted there.
    Drive,
    /// The kernel lets something not be watched.
    Refused,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "there are more than {DIRECTORIES} directories in it"),
            Self::Drive => f.write_str("a drive that may not answer is mounted in it"),
            Self::Refused => f.write_str("some directories in it cannot be watched"),
        }
    }
}

/// A directory, whatever its name: device and inode.
type Identity = (u64, u64);

/// What a look at a tree has found.
struct Walked {
    identity: Identity,
    watches: HashSet<i32>,
    gap: Option<Gap>,
}

/// Waits until something changed in one of these; for ever, where there are none.
pub fn any_changed<'w>(watched: impl IntoIterator<Item = &'w Watched>) -> impl Future<Output = ()> {
    let all: Vec<_> = watched.into_iter().map(|one| Box::pin(one.changed())).collect();
    async {
        match all.is_empty() {
            true => pending().await,
            false => drop(select_all(all).await),
        }
    }
}

impl Watcher {
    /// Starts watching nothing yet.
    ///
    /// # Errors
    /// When the system gives no queue or no thread; says the cure.
    pub fn start() -> Result<Self, String> {
        let fail = |why: &dyn fmt::Display| format!("the system lets nothing be watched: {why}");
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|error| match error {
            Errno::MFILE => {
                fail(&"this user watches with too many processes; raise fs.inotify.max_user_instances (sysctl)")
            }
            _ => fail(&error),
        })?;
        let inner = Arc::new(Inner { queue, watches: Mutex::default() });
        let weak = Arc::downgrade(&inner);
        let thread = std::thread::Builder::new().name("belljar-watch".to_owned());
        thread.spawn(move || run(&weak)).map_err(|error| fail(&error))?;
        Ok(Self(inner))
    }

    /// Watches `dir`. It may be a link; links inside are not followed. Looks at every directory that is to be watched, so
    /// it blocks for as long as the file system takes, but not for long where that does not answer.
    ///
    /// # Errors
    /// When it is no directory that can be read, or there are more directories than may be watched: whoever wants to know
    /// of changes has to look from time to time.
    pub fn watch(&self, dir: &Path, reach: Reach) -> Result<Watched, String> {
        let fail = |why: &dyn fmt::Display| format!("\"{}\" cannot be watched: {why}", dir.display());
        let (own, path) = (self.clone(), dir.to_owned());
        let walked = within(dir, move || walk(&own.0.queue, &path, reach));
        let walked = walked.map_err(|Stalled| fail(&Stalled::WHY))?.map_err(|why| fail(&why))?;
        let changed = Arc::<Notify>::default();
        let mut watches = lock(&self.0.watches);
        let id = watches.next;
        watches.next += 1;
        let gap = walked.gap;
        let root = Root {
            path: dir.to_owned(),
            reach,
            changed: Arc::clone(&changed),
            identity: None,
            watches: HashSet::new(),
            is_stale: false,
            is_looked_at: false,
            walked: Instant::now(),
            gap,
        };
        watches.roots.insert(id, root);
        watches.put(&self.0.queue, id, Some(walked));
        drop(watches);
        // Dropped, it takes back what was watched in vain.
        let watched = Watched { watcher: self.clone(), id, changed };
        match gap {
            None => Ok(watched),
            Some(gap) => Err(fail(&gap)),
        }
    }
}

impl Watched {
    /// Waits for a change. Everything that changed since this came back last is told once.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether all of it is watched. A tree may grow beyond [`DIRECTORIES`] while it is watched.
    pub fn is_whole(&self) -> bool {
        lock(&self.watcher.0.watches).roots.get(&self.id).is_some_and(|root| root.gap.is_none())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watches = lock(&self.watcher.0.watches);
        watches.put(&self.watcher.0.queue, self.id, None);
        watches.roots.remove(&self.id);
    }
}

impl Watches {
    /// Takes over what a look at a root has found, or that it found nothing, and gives back what nobody watches any more.
    fn put(&mut self, queue: &OwnedFd, id: u64, walked: Option<Walked>) {
        let new = walked.as_ref().map(|walked| walked.watches.clone()).unwrap_or_default();
        let Some(root) = self.roots.get_mut(&id) else {
            // Dropped meanwhile; what is only its own goes.
            for watch in new.iter().filter(|watch| !self.users.contains_key(watch)) {
                let _ = inotify::remove_watch(queue, *watch);
            }
            return;
        };
        root.gap = walked.as_ref().and_then(|walked| walked.gap);
        root.identity = walked.map(|walked| walked.identity);
        let old = std::mem::replace(&mut root.watches, new.clone());
        for watch in new.difference(&old) {
            self.users.entry(*watch).or_default().push(id);
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

    /// Something happened to one of the directories.
    fn take(&mut self, watch: i32, what: ReadFlags) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            for root in self.roots.values_mut() {
                root.is_stale = true;
                root.changed.notify_one();
            }
            return;
        }
        // Of a watch that was just taken back.
        let Some(users) = self.users.get(&watch) else { return };
        let is_reshaped = what.contains(ReadFlags::ISDIR) && what.intersects(RESHAPED);
        for id in users {
            let Some(root) = self.roots.get_mut(id) else { continue };
            root.is_stale |= what.intersects(LOST) || (is_reshaped && root.reach == Reach::Deep);
            root.changed.notify_one();
        }
        // The kernel has taken it back itself: its directory is gone.
        if what.contains(ReadFlags::IGNORED) {
            for id in self.users.remove(&watch).unwrap_or_default() {
                if let Some(root) = self.roots.get_mut(&id) {
                    root.watches.remove(&watch);
                    root.is_stale = true;
                }
            }
        }
    }

    /// When a root that has to be looked at again may be.
    fn due(&self) -> Option<Instant> {
        self.roots.values().filter(|root| root.is_stale && !root.is_looked_at).map(|root| root.walked + WALK).min()
    }
}

fn lock(watches: &Mutex<Watches>) -> MutexGuard<'_, Watches> {
    watches.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the queue, for as long as there is a [`Watcher`].
fn run(watcher: &Weak<Inner>) {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
    let mut sweep = Instant::now() + SWEEP;
    while let Some(inner) = watcher.upgrade() {
        let due = lock(&inner.watches).due().map_or(sweep, |due| due.min(sweep));
        if due <= Instant::now() {
            let is_all = sweep <= due;
            look(&inner, is_all);
            if is_all {
                sweep = Instant::now() + SWEEP;
            }
            continue;
        }
        let wait = due.duration_since(Instant::now()).try_into().ok();
        match poll(&mut [PollFd::new(&inner.queue, PollFlags::IN)], wait.as_ref()) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            // Nothing can be waited for; that is told by nobody, so it is at least not tried without an end.
            Err(error) => {
                tracing::error!("changes of files are not seen any more: {error}");
                return;
            }
        }
        // What belongs together is told together.
        std::thread::sleep(PAUSE);
        drain(&inner, &mut buffer);
    }
}

/// Empties the queue as far as one buffer goes; the rest comes after the next pause.
fn drain(inner: &Inner, buffer: &mut [MaybeUninit<u8>]) {
    let mut events = Reader::new(&inner.queue, buffer);
    let mut watches = lock(&inner.watches);
    while let Ok(event) = events.next() {
        watches.take(event.wd(), event.events());
        if events.is_buffer_empty() {
            break;
        }
    }
}

/// Looks at the roots that changed, and where `is_all`, whether the others are still what they were.
fn look(inner: &Arc<Inner>, is_all: bool) {
    let now = Instant::now();
    let of = |(id, root): (&u64, &Root)| (*id, root.path.clone(), root.identity, root.is_stale);
    let is_due = |root: &Root| if root.is_stale { root.walked + WALK <= now } else { is_all };
    let is_due = |root: &Root| !root.is_looked_at && is_due(root);
    let roots: Vec<_> = lock(&inner.watches).roots.iter().filter(|(_, root)| is_due(root)).map(of).collect();
    for (id, path, old, is_stale) in roots {
        if !is_stale && is_known(&path, old) {
            continue;
        }
        if let Some(root) = lock(&inner.watches).roots.get_mut(&id) {
            root.is_looked_at = true;
        }
        let own = Arc::clone(inner);
        let looked = std::thread::Builder::new().name("belljar-look".to_owned()).spawn(move || look_at(&own, id));
        if let Err(error) = looked {
            tracing::warn!("cannot start a thread to look at a directory: {error}");
            if let Some(root) = lock(&inner.watches).roots.get_mut(&id) {
                root.is_looked_at = false;
            }
        }
    }
}

/// Looks at one root, for as long as that takes.
fn look_at(Inner { queue, watches }: &Inner, id: u64) {
    let of = |root: &mut Root| (root.path.clone(), root.reach, root.identity, std::mem::take(&mut root.is_stale));
    let Some((path, reach, old, is_stale)) = lock(watches).roots.get_mut(&id).map(of) else { return };
    let is_same = !is_stale && identity(&path).ok() == old;
    let walked = if is_same { None } else { Some(walk(queue, &path, reach).ok()) };
    let mut watches = lock(watches);
    if let Some(root) = watches.roots.get_mut(&id) {
        root.is_looked_at = false;
        if let Some(walked) = &walked {
            let gap = walked.as_ref().and_then(|walked| walked.gap);
            if let Some(gap) = gap.filter(|_| root.gap.is_none()) {
                tracing::warn!("not all of \"{}\" is watched: {gap}", path.display());
            }
            root.walked = Instant::now();
            // What happened before the new watches stood is told now. That it is still gone is told once.
            if walked.is_some() || old.is_some() {
                root.changed.notify_one();
            }
        }
    }
    if let Some(walked) = walked {
        watches.put(queue, id, walked);
    }
}

/// Whether the kernel knows from its own memory that `path` leads to what it led to. Waits for no file system.
fn is_known(path: &Path, old: Option<Identity>) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return old.is_none(),
        Err(_) => return false,
    };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let Ok(stat) = statx(&dir, c"", flags, StatxFlags::INO) else { return false };
    old == Some((makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino))
}

fn identity(dir: &Path) -> io::Result<Identity> {
    #[expect(clippy::disallowed_methods, reason = "a directory of the operator's that is watched")]
    std::fs::metadata(dir).map(|meta| (meta.dev(), meta.ino()))
}

/// Watches `dir`, and what is below where `reach` says so. What is watched already stays so.
fn walk(queue: &OwnedFd, dir: &Path, reach: Reach) -> Result<Walked, String> {
    let add = |path: &Path, flags| {
        inotify::add_watch(queue, path, flags).map_err(|error| match error {
            Errno::NOSPC => {
                "this user watches too many directories; raise fs.inotify.max_user_watches (sysctl)".to_owned()
            }
            _ => io::Error::from(error).to_string(),
        })
    };
    let identity = identity(dir).map_err(|error| error.to_string())?;
    let mut watches = HashSet::from([add(dir, CHANGES)?]);
    let (mut waiting, mut gap) = (Vec::new(), None);
    let mut drives = Vec::new();
    if reach == Reach::Deep {
        #[expect(clippy::disallowed_methods, reason = "a directory of the operator's that is watched")]
        let dir = std::fs::canonicalize(dir).map_err(|error| error.to_string())?;
        drives = stalling_below(&dir);
        waiting.push(dir);
    }
    while let Some(parent) = waiting.pop() {
        #[expect(clippy::disallowed_methods, reason = "a directory of the operator's that is watched")]
        let Ok(entries) = std::fs::read_dir(&parent) else { continue };
        let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        for entry in entries.flatten().filter(is_dir) {
            if watches.len() >= DIRECTORIES {
                return Ok(Walked { identity, watches, gap: Some(Gap::TooMany) });
            }
            let path = entry.path();
            if drives.contains(&path) {
                gap = gap.or(Some(Gap::Drive));
                continue;
            }
            // The watch first: what appears before the directory is read is found, and what appears after it is told.
            match add(&path, CHANGES | WatchFlags::DONT_FOLLOW) {
                // A file system that holds itself (a bind mount) is walked once.
                Ok(watch) => {
                    if watches.insert(watch) {
                        waiting.push(path);
                    }
                }
                // It may have gone meanwhile, and then that is told.
                Err(_) if path.is_dir() => gap = gap.or(Some(Gap::Refused)),
                Err(_) => {}
            }
        }
    }
    Ok(Walked { identity, watches, gap })
}

#[cfg(test)]
mod tests;
