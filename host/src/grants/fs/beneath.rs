//! Opening a path below a directory: resolved by the kernel, looked at before it is opened.

use std::fs::File;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::model::Guard;

/// What was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
}

/// Why nothing was opened.
#[derive(Debug)]
pub(super) enum Refused {
    /// The path leads out of the directory.
    Outside,
    /// Neither a regular file nor a directory.
    Special,
    /// The file system says no; not a decision of ours.
    Failed(ErrorCode),
}

/// How often a resolution is tried again that raced with a rename somewhere (`EAGAIN`).
const TRIES: usize = 16;

fn resolve(dir: &File, path: &str, flags: OFlags, resolve: ResolveFlags) -> Result<File, Refused> {
    for _ in 0..TRIES {
        match openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(fd) => return Ok(fd.into()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::XDEV) => return Err(Refused::Outside),
            Err(errno) => return Err(Refused::Failed(code(errno))),
        }
    }
    Err(Refused::Failed(ErrorCode::Busy))
}

/// Opens `path` below `dir` for reading. `follow`: whether a symbolic link at its end is followed (those on the way
/// are, as long as they stay below `dir`). `cross_mounts`: whether other mounts below `dir` may be entered.
pub(super) fn open(
    dir: &File,
    path: &str,
    follow: bool,
    want_dir: bool,
    cross_mounts: bool,
) -> Result<(File, Kind), Refused> {
    let mut flags = OFlags::empty();
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    if want_dir {
        flags |= OFlags::DIRECTORY;
    }
    let mut beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if !cross_mounts {
        beneath |= ResolveFlags::NO_XDEV;
    }
    if !Guard::Beneath.is_on() {
        beneath = ResolveFlags::empty();
    }
    // A look that opens nothing: an O_PATH handle has no effect on what it names.
    kind(&resolve(dir, path, flags | OFlags::PATH, beneath)?)?;
    // Between the look and this, somebody may have put a FIFO there: O_NONBLOCK keeps that from hanging us, O_NOCTTY
    // from getting a terminal, and the second look refuses it.
    let waits = if Guard::Special.is_on() { OFlags::NONBLOCK } else { OFlags::empty() };
    let file = resolve(dir, path, flags | OFlags::RDONLY | waits | OFlags::NOCTTY, beneath)?;
    let kind = kind(&file)?;
    Ok((file, kind))
}

fn kind(file: &File) -> Result<Kind, Refused> {
    let stat = fstat(file).map_err(|errno| Refused::Failed(code(errno)))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Kind::File),
        FileType::Directory => Ok(Kind::Directory),
        // Only when the last component is a link that was not to be followed.
        FileType::Symlink => Err(Refused::Failed(ErrorCode::Loop)),
        _ if Guard::Special.is_on() => Err(Refused::Special),
        _ => Ok(Kind::File),
    }
}

/// Opens the directory at an absolute path that holds no symbolic link.
pub(super) fn open_canonical(path: &std::path::Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map(Into::into)
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
