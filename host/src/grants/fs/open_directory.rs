//! Opens directories of the host by their absolute paths.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::grants::mountinfo::FileIdentity;

/// An `O_PATH` handle of the directory at an absolute path. Refuses symbolic links. May wait for the drive.
pub(super) fn open_canonical(path: &Path) -> Result<File, Errno> {
    openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map(Into::into)
}

/// Like [`open_canonical`], but uses only the kernel's cache and never waits. `EAGAIN` if the cache does not suffice.
pub(super) fn open_canonical_cached(path: &Path) -> Result<File, Errno> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::CACHED;
    openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), how).map(Into::into)
}

/// Opens the directory of an `O_PATH` handle for reading.
pub(super) fn reopen_for_reading(handle: &File) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(handle, c".", flags, Mode::empty()).map(Into::into)
}

/// Opens the directory at an absolute path without symbolic links for reading. Refuses file systems of the kernel. May
/// wait for the drive.
///
/// # Errors
/// If there is no such directory, or the system refuses it.
pub fn open_for_reading(path: &Path) -> Result<OwnedFd, Errno> {
    let handle = open_canonical(path)?;
    if FileIdentity::of(&handle)?.kind().is_forbidden() {
        return Err(Errno::ACCESS);
    }
    reopen_for_reading(&handle).map(Into::into)
}

/// True if the system call `openat2` itself fails with `errno`, even for a path that needs no permission.
pub(super) fn is_openat2_blocked(errno: Errno) -> bool {
    let probe = || openat2(CWD, c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty());
    matches!(errno, Errno::NOSYS | Errno::PERM) && probe().err() == Some(errno)
}
