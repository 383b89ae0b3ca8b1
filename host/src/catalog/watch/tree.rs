//! The directories of one watch: scans a tree, and adds a kernel watch to each of its directories.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, makedev, openat2, statx};
use rustix::io::Errno;

use crate::grants::mountinfo::stalling_mounts_below;

/// The most directories of one deep watch. Each costs about one kilobyte of kernel memory. The first scan of all of
/// them takes about ten milliseconds.
pub const MAX_DIRECTORIES: usize = 4096;

/// The events that count as changes. Opening and reading do not.
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

/// The extent of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchDepth {
    /// The entries of the directory.
    Flat,
    /// The entries of the directory and of all directories below, at most [`MAX_DIRECTORIES`].
    Deep,
}

/// The reason why a part of a tree is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchGap {
    /// It has more than [`MAX_DIRECTORIES`].
    TooMany,
    /// A drive that may hang is mounted in it.
    Drive,
    /// The kernel refuses to watch some of it.
    Refused,
}

impl fmt::Display for WatchGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "there are more than {MAX_DIRECTORIES} directories in it"),
            Self::Drive => f.write_str("a drive that may not answer is mounted in it"),
            Self::Refused => f.write_str("some directories in it cannot be watched"),
        }
    }
}

/// The identity of a directory, whatever its path: device and inode.
pub(super) type DirectoryId = (u64, u64);

/// The result of scanning a tree.
pub(super) struct ScannedTree {
    pub(super) identity: DirectoryId,
    /// The kernel watches of its directories.
    pub(super) watches: HashSet<i32>,
    pub(super) gap: Option<WatchGap>,
}

/// True if `path` leads to the same directory as before, as far as the kernel's cache knows. Never waits for a file
/// system.
pub(super) fn is_unchanged(path: &Path, old: Option<DirectoryId>) -> bool {
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

/// Device and inode of the directory at `dir`. May wait for a file system.
pub(super) fn identity(dir: &Path) -> io::Result<DirectoryId> {
    #[expect(clippy::disallowed_methods, reason = "a directory of the operator's that is watched")]
    std::fs::metadata(dir).map(|meta| (meta.dev(), meta.ino()))
}

/// The reason why a tree cannot be scanned; for the operator.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    /// The kernel refuses another watch to this user.
    #[error("this user watches too many directories; raise fs.inotify.max_user_watches (sysctl)")]
    TooManyWatches,
    /// The directory cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Watches `dir`, and with [`WatchDepth::Deep`] all directories below. Existing kernel watches stay.
pub(super) fn scan_tree(queue: &OwnedFd, dir: &Path, reach: WatchDepth) -> Result<ScannedTree, ScanError> {
    let add = |path: &Path, flags| {
        inotify::add_watch(queue, path, flags).map_err(|error| match error {
            Errno::NOSPC => ScanError::TooManyWatches,
            _ => ScanError::Io(error.into()),
        })
    };
    let identity = identity(dir)?;
    let mut watches = HashSet::from([add(dir, CHANGES)?]);
    let (mut waiting, mut gap, mut root) = (Vec::new(), None, PathBuf::new());
    let mut drives = Vec::new();
    if reach == WatchDepth::Deep {
        #[expect(clippy::disallowed_methods, reason = "a directory of the operator's that is watched")]
        let dir = std::fs::canonicalize(dir)?;
        drives = stalling_mounts_below(&dir);
        root.clone_from(&dir);
        waiting.push(dir);
    }
    while let Some(parent) = waiting.pop() {
        #[expect(clippy::disallowed_methods, reason = "a directory of the operator's that is watched")]
        let Ok(entries) = std::fs::read_dir(&parent) else {
            // A call can read it, but the second wall hides it from this process.
            if parent == root {
                gap = Some(WatchGap::Refused);
            }
            continue;
        };
        let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        for entry in entries.flatten().filter(is_dir) {
            if watches.len() >= MAX_DIRECTORIES {
                return Ok(ScannedTree { identity, watches, gap: Some(WatchGap::TooMany) });
            }
            let path = entry.path();
            if drives.contains(&path) {
                gap = gap.or(Some(WatchGap::Drive));
                continue;
            }
            // Add the watch before reading the directory. The scan then finds earlier entries, and the watch reports
            // later ones.
            match add(&path, CHANGES | WatchFlags::DONT_FOLLOW) {
                // A file system that contains itself (a bind mount) is scanned once.
                Ok(watch) => {
                    if watches.insert(watch) {
                        waiting.push(path);
                    }
                }
                // If the directory is gone by now, the watch of its parent reports that.
                Err(_) if path.is_dir() => gap = gap.or(Some(WatchGap::Refused)),
                Err(_) => {}
            }
        }
    }
    Ok(ScannedTree { identity, watches, gap })
}
