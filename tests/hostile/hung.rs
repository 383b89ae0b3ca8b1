//! A file system that never answers a read, as a network drive does whose server is gone: made by the test itself, where
//! the machine lets it mount one.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request,
};

/// What each of its files begins with; a number follows.
pub(crate) const FILE: &str = "stuck";

/// For how long the kernel believes what it was told of a file.
const KNOWN: Duration = Duration::from_secs(60);

/// One such file system, from when it is mounted until [`Hung::end`].
#[derive(Default)]
pub(crate) struct Hung {
    waiting: Arc<Mutex<Vec<ReplyData>>>,
    session: Mutex<Option<BackgroundSession>>,
}

/// Ends it when the row is over, however that ends.
pub(crate) struct Ending<'a>(pub(crate) &'a Hung);

struct NeverReads(Arc<Mutex<Vec<ReplyData>>>);

impl Hung {
    /// Why this machine can have none.
    pub(crate) fn is_impossible() -> Option<&'static str> {
        let root = rustix::process::geteuid().is_root();
        let device = Path::new("/dev/fuse").exists();
        (!(root && device)).then_some("a file system that hangs needs /dev/fuse and the right to mount (root)")
    }

    /// Mounts it at `directory`.
    pub(crate) fn mount(&self, directory: &Path) {
        let system = NeverReads(Arc::clone(&self.waiting));
        let session = fuser::spawn_mount(system, directory, &Config::default());
        let session = session.unwrap_or_else(|error| panic!("cannot mount at {}: {error}", directory.display()));
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// How many reads wait for an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Answers all that wait, with an error.
    pub(crate) fn release(&self) {
        for reply in self.waiting.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            reply.error(Errno::EIO);
        }
    }

    /// Answers all that wait, and unmounts.
    fn end(&self) {
        self.release();
        drop(self.session.lock().unwrap_or_else(PoisonError::into_inner).take());
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

impl Filesystem for NeverReads {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let number = name.to_str().and_then(|name| name.strip_prefix(FILE)?.parse::<u64>().ok());
        match number {
            Some(number) => reply.entry(&KNOWN, &about(INodeNo(2 + number)), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KNOWN, &about(ino));
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
    }
}
