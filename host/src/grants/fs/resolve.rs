//! Resolves a guest's path below a granted directory. The kernel does it (`openat2`), and every function that takes a path
//! comes through here.
//!
//! A path that stays on the directory's own file system is resolved where the call runs. One that may enter another mount is
//! resolved on a thread of the call's own only: what is mounted there may never answer. So [`Resolver::open`] and
//! [`Resolver::look`] answer [`Refused::NeedsThread`] before the kernel touches a file system that is not known to be local.

use std::fs::File;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::mounts::{self, Identity, Kind as FileSystem};
use super::place::Root;
use crate::model::Guard;

/// What was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
}

/// Why nothing was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The path leads out of the directory.
    Outside,
    /// The path leads into a file system of the kernel's, such as `/proc`.
    Kernel,
    /// Neither a regular file nor a directory.
    Special,
    /// The host lets this user not open it.
    NoPermission,
    /// The path may enter another mount, which may stall: this has to be tried again on a thread of the call's own.
    NeedsThread,
    /// The file system says no; not a decision of ours.
    Failed(ErrorCode),
}

impl Refused {
    /// What the guest is told.
    pub(super) fn code(self) -> ErrorCode {
        match self {
            Self::Outside | Self::Kernel | Self::Special => ErrorCode::NotPermitted,
            Self::NoPermission => ErrorCode::Access,
            Self::NeedsThread => ErrorCode::Busy,
            Self::Failed(code) => code,
        }
    }
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Outside,
            Errno::ACCESS | Errno::PERM => Self::NoPermission,
            errno => Self::Failed(code(errno)),
        }
    }
}

/// How often a resolution is tried again that raced with a rename somewhere (`EAGAIN`).
const TRIES: usize = 16;

/// Resolves paths below one directory, for one call.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    /// The granted directory.
    pub(super) root: &'a Root,
    /// The directory below it that paths start from, and do not leave.
    pub(super) base: &'a File,
    /// Whether this thread may wait for a drive: it is the call's own.
    pub(super) may_wait: bool,
}

impl Resolver<'_> {
    /// A handle of what `path` names, with what is known of it. Nothing is opened: an `O_PATH` handle has no effect on a FIFO,
    /// device or file. `follow`: whether a symbolic link at its end is followed; those on the way are, as long as they stay
    /// below.
    pub(super) fn look(self, path: &str, follow: bool, want_dir: bool) -> Result<(File, Stat), Refused> {
        let mut flags = OFlags::PATH;
        flags.set(OFlags::NOFOLLOW, !follow);
        flags.set(OFlags::DIRECTORY, want_dir);
        let file = self.resolve(path, flags)?;
        self.check_mount(&file)?;
        let stat = fstat(&file)?;
        Ok((file, stat))
    }

    /// Opens a regular file or a directory for reading.
    pub(super) fn open(self, path: &str, follow: bool, want_dir: bool) -> Result<(File, Kind), Refused> {
        let (look, stat) = self.look(path, follow, want_dir)?;
        let mut flags = OFlags::RDONLY;
        // Reading leaves no trace, where the kernel allows that: it does to the owner only.
        flags.set(OFlags::NOATIME, stat.st_uid == self.root.user());
        if kind(&stat)? == Kind::Directory {
            // Of the very directory that was looked at.
            let open = |flags| openat(&look, c".", flags | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            let dir = open(flags).or_else(|errno| retry_plainly(errno, flags, open))?;
            return Ok((dir.into(), Kind::Directory));
        }
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        // Between the look and this, somebody may have put a FIFO there: O_NONBLOCK keeps that from hanging us, O_NOCTTY
        // from getting a terminal, and the second look refuses it.
        if Guard::Special.is_on() {
            flags |= OFlags::NONBLOCK;
        }
        let open = |flags| self.resolve(path, flags | OFlags::NOCTTY);
        let file = match open(flags) {
            Err(Refused::NoPermission) if flags.contains(OFlags::NOATIME) => open(flags.difference(OFlags::NOATIME))?,
            opened => opened?,
        };
        self.check_mount(&file)?;
        let kind = kind(&fstat(&file)?)?;
        Ok((file, kind))
    }

    /// Lets the kernel walk `path`, so far as this thread may follow.
    fn resolve(self, path: &str, flags: OFlags) -> Result<File, Refused> {
        if !Guard::Beneath.is_on() {
            return Ok(openat2(self.base, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty())?.into());
        }
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if self.may_wait {
            return self.walk(path, flags, beneath).map_err(Refused::from);
        }
        let on_one_mount = beneath | ResolveFlags::NO_XDEV;
        // From the kernel's own memory: that waits for nothing, whatever is mounted on the way.
        let walked = match self.walk_once(path, flags, on_one_mount | ResolveFlags::CACHED) {
            // Not in memory; or a kernel before 5.12, which knows no such flag.
            Err(Errno::AGAIN | Errno::INVAL) => {
                // To wait for an automatic mount is to wait for whatever is mounted; and a walk meets it before it is refused.
                if !mounts::stalling_below(self.root.host()).is_empty() {
                    return Err(Refused::NeedsThread);
                }
                self.walk(path, flags, on_one_mount)
            }
            walked => walked,
        };
        match walked {
            // Either it leaves the directory, or it enters a mount.
            Err(Errno::XDEV) if mounts::any_below(self.root.host()) => Err(Refused::NeedsThread),
            walked => walked.map_err(Refused::from),
        }
    }

    fn walk(self, path: &str, flags: OFlags, how: ResolveFlags) -> Result<File, Errno> {
        for _ in 0..TRIES {
            match self.walk_once(path, flags, how) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                walked => return walked,
            }
        }
        Err(Errno::BUSY)
    }

    fn walk_once(self, path: &str, flags: OFlags, how: ResolveFlags) -> Result<File, Errno> {
        openat2(self.base, path, flags | OFlags::CLOEXEC, Mode::empty(), how).map(Into::into)
    }

    /// Refuses what lies on another mount than the granted directory and holds no data.
    fn check_mount(self, file: &File) -> Result<(), Refused> {
        // Elsewhere no other mount is entered.
        if !self.may_wait || !Guard::Place.is_on() {
            return Ok(());
        }
        let found = Identity::of(file)?;
        if !found.shares_mount(&self.root.identity()) && found.kind() == FileSystem::Kernel {
            return Err(Refused::Kernel);
        }
        Ok(())
    }
}

/// Opens once more without `O_NOATIME`, where that was not permitted.
fn retry_plainly<F>(errno: Errno, flags: OFlags, open: impl FnOnce(OFlags) -> Result<F, Errno>) -> Result<F, Errno> {
    match errno {
        Errno::PERM if flags.contains(OFlags::NOATIME) => open(flags.difference(OFlags::NOATIME)),
        errno => Err(errno),
    }
}

fn kind(stat: &Stat) -> Result<Kind, Refused> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Kind::File),
        FileType::Directory => Ok(Kind::Directory),
        // Only when the last component is a link that was not to be followed.
        FileType::Symlink => Err(Refused::Failed(ErrorCode::Loop)),
        _ if Guard::Special.is_on() => Err(Refused::Special),
        _ => Ok(Kind::File),
    }
}

/// A handle of the directory at an absolute path that holds no symbolic link. Waits for the drive.
pub(super) fn canonical(path: &std::path::Path) -> Result<File, Errno> {
    openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map(Into::into)
}

/// The same from the kernel's memory: `EAGAIN` where that does not tell. Waits for nothing.
pub(super) fn canonical_cached(path: &std::path::Path) -> Result<File, Errno> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), how).map(Into::into)
}

/// Opens the directory that `look` is a handle of.
pub(super) fn read_dir(look: &File) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(look, c".", flags, Mode::empty()).map(Into::into)
}

/// Whether `openat2` itself is what fails: it is the same for what needs no permission.
pub(super) fn is_blocked(errno: Errno) -> bool {
    let probe = || openat2(CWD, c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty());
    matches!(errno, Errno::NOSYS | Errno::PERM) && probe().err() == Some(errno)
}

pub(super) fn code(errno: Errno) -> ErrorCode {
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
