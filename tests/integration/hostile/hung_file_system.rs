//! A FUSE file system that never answers requests, like a network drive whose server is gone. Only a machine that allows
//! mounts can run the rows that use it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};

/// The prefix of each file name; a number follows.
pub(crate) const FILE: &str = "stuck";

/// How long the kernel caches the attributes of a file.
const CACHE_TIME: Duration = Duration::from_secs(60);

/// A file system that never answers. [`Hung::mount`] mounts it, and [`UnmountOnDrop`] unmounts it.
#[derive(Default)]
pub(crate) struct Hung {
    waiting: Arc<Waiting>,
    session: Mutex<Option<(PathBuf, BackgroundSession)>>,
}

/// Unmounts the file system when it is dropped, also during a panic.
pub(crate) struct UnmountOnDrop<'a>(pub(crate) &'a Hung);

/// Which requests the file system never answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stalls {
    /// Only reads of files and directories hang. Requests for names and attributes are answered.
    Reads,
    /// Every request hangs.
    Everything,
}

struct NeverAnswers(Arc<Waiting>, Stalls);

/// Answers a waiting request with an error.
type Release = Box<dyn FnOnce() + Send>;

/// Requests without an answer.
#[derive(Default)]
struct Waiting {
    replies: Mutex<Vec<Release>>,
    /// The number of `fsync` requests.
    flushes: AtomicUsize,
    /// True if every request gets an error at once. A killed process cannot end while one of its requests hangs, so the
    /// end of a test sets this flag.
    is_over: AtomicBool,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Vec<Release>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, release: impl FnOnce() + Send + 'static) {
        let mut waiting = self.lock();
        if self.is_over.load(Ordering::Relaxed) {
            release();
        } else {
            waiting.push(Box::new(release));
        }
    }
}

impl Hung {
    /// Returns the reason if this machine cannot mount such a file system.
    pub(crate) fn unsupported_reason() -> Option<&'static str> {
        let root = rustix::process::geteuid().is_root();
        let device = Path::new("/dev/fuse").exists();
        (!(root && device)).then_some("a file system that hangs needs /dev/fuse and the right to mount (root)")
    }

    /// Mounts the file system at `directory`.
    pub(crate) fn mount(&self, directory: &Path, stalls: Stalls) {
        let system = NeverAnswers(Arc::clone(&self.waiting), stalls);
        self.waiting.is_over.store(false, Ordering::Relaxed);
        let session = fuser::spawn_mount(system, directory, &Config::default());
        let session = session.unwrap_or_else(|error| panic!("cannot mount at {}: {error}", directory.display()));
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some((directory.to_owned(), session));
    }

    /// The number of `fsync` requests.
    pub(crate) fn flushes(&self) -> usize {
        self.waiting.flushes.load(Ordering::Relaxed)
    }

    /// The number of requests that wait for an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Answers all waiting requests with an error.
    pub(crate) fn release(&self) {
        for release in self.waiting.lock().drain(..) {
            release();
        }
    }

    /// Answers all waiting and all further requests with an error.
    pub(crate) fn give_up(&self) {
        self.waiting.is_over.store(true, Ordering::Relaxed);
        self.release();
    }

    /// Answers all waiting requests with an error, and unmounts the file system.
    fn end(&self) {
        self.give_up();
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((directory, session)) = session {
            // belljar may still have files of this file system open. `DETACH` hides the file system now. The kernel
            // removes it when belljar ends.
            rustix::mount::unmount(&directory, rustix::mount::UnmountFlags::DETACH).ok();
            drop(session);
        }
    }
}

impl Drop for UnmountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn attributes(ino: INodeNo) -> FileAttr {
    let (kind, perm, size) =
        if ino == INodeNo::ROOT { (FileType::Directory, 0o755, 0) } else { (FileType::RegularFile, 0o644, 1000) };
    FileAttr {
        ino,
        size,
        blocks: 1,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        flags: 0,
        blksize: 512,
    }
}

impl Filesystem for NeverAnswers {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if self.1 == Stalls::Everything {
            return self.0.wait(move || reply.error(Errno::EIO));
        }
        let number = name.to_str().and_then(|name| name.strip_prefix(FILE)?.parse::<u64>().ok());
        match number {
            Some(number) => reply.entry(&CACHE_TIME, &attributes(INodeNo(2 + number)), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.1 {
            Stalls::Everything => self.0.wait(move || reply.error(Errno::EIO)),
            Stalls::Reads => reply.attr(&CACHE_TIME, &attributes(ino)),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.1 {
            Stalls::Everything => self.0.wait(move || reply.error(Errno::EIO)),
            Stalls::Reads => reply.opened(FileHandle(0), fuser::FopenFlags::empty()),
        }
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.1 {
            Stalls::Everything => self.0.wait(move || reply.error(Errno::EIO)),
            Stalls::Reads => reply.opened(FileHandle(0), fuser::FopenFlags::empty()),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, reply: ReplyDirectory) {
        self.0.wait(move || reply.error(Errno::EIO));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.1 {
            Stalls::Everything => self.0.wait(move || reply.error(Errno::EIO)),
            Stalls::Reads => reply.statfs(0, 0, 0, 0, 0, 512, 255, 0),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: fuser::ReplyEmpty) {
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.wait(move || reply.error(Errno::EIO));
    }
}
