//! Resolves guest paths below a granted directory. The kernel resolves them (`openat2`). Every host function that takes
//! a path uses this module.
//!
//! A path that stays on the file system of the granted directory is resolved on the current thread. A path that may
//! enter another mount is resolved on a dedicated thread only, because that mount may never answer. Therefore
//! [`PathResolver::lookup`] and [`PathResolver::open`] return [`ResolveError::NeedsThread`] before the kernel touches a
//! file system that is not known to be local.

use std::fs::File;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::root::OpenRoot;
use crate::grants::mountinfo::{self, FileIdentity};
use crate::model::Guard;

/// The kind of an opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Directory,
    File,
}

/// Why a path was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResolveError {
    /// The path leads out of the granted directory.
    Outside,
    /// The path leads into a file system that exposes the kernel's state, such as `/proc`.
    Kernel,
    /// The path names neither a regular file nor a directory.
    Special,
    /// The user that runs belljar lacks the permission.
    NoPermission,
    /// The path may enter another mount, which may stall. The caller has to try again on a dedicated thread.
    NeedsThread,
    /// The file system reports an error. This is not a decision of belljar.
    Failed(ErrorCode),
}

impl ResolveError {
    /// The WASI error for the guest.
    pub(super) fn code(self) -> ErrorCode {
        match self {
            Self::Outside | Self::Kernel | Self::Special => ErrorCode::NotPermitted,
            Self::NoPermission => ErrorCode::Access,
            Self::NeedsThread => ErrorCode::Busy,
            Self::Failed(code) => code,
        }
    }
}

impl From<Errno> for ResolveError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Outside,
            Errno::ACCESS | Errno::PERM => Self::NoPermission,
            errno => Self::Failed(error_code(errno)),
        }
    }
}

/// The most attempts of a resolution that races with a rename (`EAGAIN`).
const MAX_ATTEMPTS: usize = 16;

/// Resolves paths below one open directory, for one call.
#[derive(Clone, Copy)]
pub(super) struct PathResolver<'a> {
    /// The granted directory.
    pub(super) root: &'a OpenRoot,
    /// The directory, at or below `root`, from which paths start and which they must not leave.
    pub(super) base: &'a File,
    /// True if this thread may wait for a drive, because it is dedicated to the call.
    pub(super) may_block: bool,
}

impl PathResolver<'_> {
    /// An `O_PATH` handle of the file at `path`, and its metadata. Opens nothing: such a handle has no effect on a
    /// FIFO, device or file. `follow`: follow a symbolic link in the last component. Links in other components are
    /// followed as long as they stay below the directory.
    pub(super) fn lookup(self, path: &str, follow: bool, want_dir: bool) -> Result<(File, Stat), ResolveError> {
        let mut flags = OFlags::PATH;
        flags.set(OFlags::NOFOLLOW, !follow);
        flags.set(OFlags::DIRECTORY, want_dir);
        let file = self.resolve(path, flags)?;
        self.check_mount(&file)?;
        let stat = fstat(&file)?;
        Ok((file, stat))
    }

    /// Opens a regular file or a directory for reading.
    pub(super) fn open(self, path: &str, follow: bool, want_dir: bool) -> Result<(File, FileKind), ResolveError> {
        let (handle, stat) = self.lookup(path, follow, want_dir)?;
        let mut flags = OFlags::RDONLY;
        // Keep the access time unchanged. The kernel allows this flag to the owner of the file only.
        flags.set(OFlags::NOATIME, stat.st_uid == self.root.user());
        if file_kind(&stat)? == FileKind::Directory {
            // Open the same directory that `lookup` returned.
            let open = |flags| openat(&handle, c".", flags | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            let dir = open(flags).or_else(|errno| retry_without_noatime(errno, flags, open))?;
            return Ok((dir.into(), FileKind::Directory));
        }
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        // Another process may have put a FIFO there in the meantime. `O_NONBLOCK` prevents blocking on it, `O_NOCTTY`
        // prevents taking over a terminal, and the second check refuses it.
        flags.set(OFlags::NONBLOCK, refuses_special_files());
        let open = |flags| self.resolve(path, flags | OFlags::NOCTTY);
        let file = match open(flags) {
            Err(ResolveError::NoPermission) if flags.contains(OFlags::NOATIME) => {
                open(flags.difference(OFlags::NOATIME))?
            }
            opened => opened?,
        };
        self.check_mount(&file)?;
        let kind = file_kind(&fstat(&file)?)?;
        Ok((file, kind))
    }

    /// Lets the kernel resolve `path`, as far as this thread may block.
    fn resolve(self, path: &str, flags: OFlags) -> Result<File, ResolveError> {
        if !Guard::Beneath.is_on() {
            return Ok(openat2(self.base, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty())?.into());
        }
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if self.may_block {
            return self.openat2_with_retries(path, flags, beneath).map_err(ResolveError::from);
        }
        let on_one_mount = beneath | ResolveFlags::NO_XDEV;
        // Use only the kernel's cache. This never blocks, whatever is mounted on the way.
        let resolved = match self.openat2_once(path, flags, on_one_mount | ResolveFlags::CACHED) {
            // The path is not in the cache, or the kernel is older than 5.12 and does not know the flag.
            Err(Errno::AGAIN | Errno::INVAL) => {
                // Resolving could trigger an automount and wait for it, before the kernel refuses to enter the mount.
                if !mountinfo::stalling_mounts_below(self.root.host()).is_empty() {
                    return Err(ResolveError::NeedsThread);
                }
                self.openat2_with_retries(path, flags, on_one_mount)
            }
            resolved => resolved,
        };
        match resolved {
            // The path leaves the directory, or enters a mount below it.
            Err(Errno::XDEV) if mountinfo::has_mount_below(self.root.host()) => Err(ResolveError::NeedsThread),
            resolved => resolved.map_err(ResolveError::from),
        }
    }

    fn openat2_with_retries(self, path: &str, flags: OFlags, how: ResolveFlags) -> Result<File, Errno> {
        for _ in 0..MAX_ATTEMPTS {
            match self.openat2_once(path, flags, how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                resolved => return resolved,
            }
        }
        Err(Errno::BUSY)
    }

    fn openat2_once(self, path: &str, flags: OFlags, how: ResolveFlags) -> Result<File, Errno> {
        openat2(self.base, path, flags | OFlags::CLOEXEC, Mode::empty(), how).map(Into::into)
    }

    /// Refuses a file on another mount whose file system exposes the kernel's state.
    fn check_mount(self, file: &File) -> Result<(), ResolveError> {
        // Without a dedicated thread, no other mount is entered.
        if !self.may_block {
            return Ok(());
        }
        let found = FileIdentity::of(file)?;
        if !found.shares_mount(&self.root.identity()) && found.kind().is_forbidden() {
            return Err(ResolveError::Kernel);
        }
        Ok(())
    }
}

/// Opens again without `O_NOATIME` if the kernel refused this flag.
fn retry_without_noatime<F>(
    errno: Errno,
    flags: OFlags,
    open: impl FnOnce(OFlags) -> Result<F, Errno>,
) -> Result<F, Errno> {
    match errno {
        Errno::PERM if flags.contains(OFlags::NOATIME) => open(flags.difference(OFlags::NOATIME)),
        errno => Err(errno),
    }
}

/// True if belljar refuses FIFOs, sockets and devices, and opens files with `O_NONBLOCK`.
fn refuses_special_files() -> bool {
    Guard::Special.is_on()
}

fn file_kind(stat: &Stat) -> Result<FileKind, ResolveError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(FileKind::File),
        FileType::Directory => Ok(FileKind::Directory),
        // The last component is a link, and the caller did not want to follow it.
        FileType::Symlink => Err(ResolveError::Failed(ErrorCode::Loop)),
        _ if refuses_special_files() => Err(ResolveError::Special),
        _ => Ok(FileKind::File),
    }
}

pub(super) fn error_code(errno: Errno) -> ErrorCode {
    match errno {
        Errno::ACCESS => ErrorCode::Access,
        Errno::PERM => ErrorCode::NotPermitted,
        Errno::NOENT => ErrorCode::NoEntry,
        Errno::NOTDIR => ErrorCode::NotDirectory,
        Errno::ISDIR => ErrorCode::IsDirectory,
        Errno::LOOP => ErrorCode::Loop,
        Errno::NAMETOOLONG => ErrorCode::NameTooLong,
        Errno::INVAL => ErrorCode::Invalid,
        Errno::ILSEQ => ErrorCode::IllegalByteSequence,
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => ErrorCode::InsufficientMemory,
        Errno::BUSY | Errno::AGAIN => ErrorCode::Busy,
        Errno::OVERFLOW => ErrorCode::Overflow,
        _ => ErrorCode::Io,
    }
}
