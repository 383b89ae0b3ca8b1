//! A file system that never answers, as a network drive does whose server is gone: made by the test itself, where the
//! machine lets it mount one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};

/// What each of its files begins with; a number follows.
pub(crate) const FILE: &str = "stuck";

/// For how long the kernel believes what it was told of a file.
const KNOWN: Duration = Duration::from_secs(60);

/// One such file system, from when it is mounted until [`Hung::end`].
#[derive(Default)]
pub(crate) struct Hung {
    waiting: Arc<Waiting>,
    session: Mutex<Option<(PathBuf, BackgroundSession)>>,
}

/// Ends it when the row is over, however that ends.
pub(crate) struct Ending<'a>(pub(crate) &'a Hung);

/// What it never answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stalls {
    /// Reads of files; what there is, it says.
    Reads,
    /// Anything.
    Everything,
}

struct NeverAnswers(Arc<Waiting>, Stalls);

/// Gives an error to what waits for an answer.
type Release = Box<dyn FnOnce() + Send>;

/// Requests without an answer.
#[derive(Default)]
struct Waiting {
    replies: Mutex<Vec<Release>>,
    /// How often it was asked to write to its disk what nobody changed.
    flushes: AtomicUsize,
    /// From here on each gets an error: a process that is killed cannot end while a request of it hangs.
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
    /// Why this machine can have none.
    pub(crate) fn is_impossible() -> Option<&'static str> {
        let root = rustix::process::geteuid().is_root();
        let device = Path::new("/dev/fuse").exists();
        (!(root && device)).then_some("a file system that hangs needs /dev/fuse and the right to mount (root)")
    }

    /// Mounts it at `directory`.
    pub(crate) fn mount(&self, directory: &Path, stalls: Stalls) {
        let system = NeverAnswers(Arc::clone(&self.waiting), stalls);
        self.waiting.is_over.store(false, Ordering::Relaxed);
        let session = fuser::spawn_mount(system, directory, &Config::default());
        let session = session.unwrap_or_else(|error| panic!("cannot mount at {}: {error}", directory.display()));
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some((directory.to_owned(), session));
    }

    /// How often it was asked to write to its disk.
    pub(crate) fn flushes(&self) -> usize {
        self.waiting.flushes.load(Ordering::Relaxed)
    }

    /// How many requests wait for an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Answers all that wait, with an error.
    pub(crate) fn release(&self) {
        for release in self.waiting.lock().drain(..) {
            release();
        }
    }

    /// From here on it answers everything, with an error.
    pub(crate) fn give_up(&self) {
        self.waiting.is_over.store(true, Ordering::Relaxed);
        self.release();
    }

    /// Answers all that wait, and unmounts.
    fn end(&self) {
        self.give_up();
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((directory, session)) = session {
            // belljar may still have it open: it goes from sight now, and is gone when belljar is.
            rustix::mount::unmount(&directory, rustix::mount::UnmountFlags::DETACH).ok();
            drop(session);
        }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn about(ino: INodeNo) -> FileAttr {
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
            Some(number) => reply.entry(&KNOWN, &about(INodeNo(2 + number)), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.1 {
            Stalls::Everything => self.0.wait(move || reply.error(Errno::EIO)),
            Stalls::Reads => reply.attr(&KNOWN, &about(ino)),
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
