//! Reads and writes the operator's files: the configuration and the lock. A write replaces the whole file by a rename:
//! after a crash of the process or the machine, either the old file or the new one exists. A lock admits one writer at
//! a time.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::grants::is_trusted_owner;
use crate::model::command;

/// How long to wait for another writer. A writer needs only the time of a few writes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the lock is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The exclusive right to write files, until it is dropped or the process ends. These are locks on directories
/// (`flock`), so no lock file is left behind.
pub(crate) struct WriteLock {
    _directories: Vec<File>,
}

/// Why a file of the operator's cannot be read or replaced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The directory cannot be opened or locked.
    #[error("cannot change files in \"{}\": {error}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another process holds the lock of this directory.
    #[error("another process has been changing files in \"{}\" for {LOCK_TIMEOUT:?}; end it, and try again", .0.display())]
    Busy(PathBuf),
    /// The target of a symbolic link does not exist.
    #[error("the link \"{}\" leads to no file: {error}", link.display())]
    Dangling {
        /// The link.
        link: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read \"{}\": {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Other users can change the file.
    #[error("other users can change \"{}\"; run: chmod go-w {}", .0.display(), command::shell_quoted(&.0.to_string_lossy()))]
    Writable(PathBuf),
    /// The file belongs to another user, who can change it.
    #[error("\"{}\" belongs to another user, who can change it; make it your own", .0.display())]
    Foreign(PathBuf),
    /// The file is larger than [`MAX_BYTES`].
    #[error("cannot read \"{}\": it is larger than {} MiB", .0.display(), MAX_BYTES >> 20)]
    TooLarge(PathBuf),
    /// The file cannot be written.
    #[error("cannot write \"{}\": {error}{}", path.display(), writable(error))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// The advice for a file that cannot be written. Empty for errors that permissions do not explain.
fn writable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; make its directory writable, or run this as a user who may write there"
        }
        _ => "",
    }
}

/// Locks the directories of these files for writing. Waits up to [`LOCK_TIMEOUT`] for other writers.
///
/// # Errors
/// Names the directory that cannot be locked.
pub(crate) fn lock_for_writing(files: &[&Path]) -> Result<WriteLock, FileError> {
    let targets = files.iter().map(|file| link_target(file)).collect::<Result<Vec<_>, _>>()?;
    // Sorted, so that no two writers wait for each other.
    let mut directories: Vec<&Path> = targets.iter().map(|file| directory_of(file)).collect();
    directories.sort_unstable();
    directories.dedup();
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let locked = directories.into_iter().map(|directory| lock_directory(directory, deadline));
    Ok(WriteLock { _directories: locked.collect::<Result<_, _>>()? })
}

fn lock_directory(directory: &Path, deadline: Instant) -> Result<File, FileError> {
    let fail = |error| FileError::Directory { directory: directory.to_owned(), error };
    let handle = open(directory, OpenOptions::new().read(true)).map_err(fail)?;
    loop {
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(handle),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(RETRY_INTERVAL),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(FileError::Busy(directory.to_owned()));
            }
            Err(errno) => return Err(fail(errno.into())),
        }
    }
}

/// The text of a file. `None` if the file does not exist.
///
/// # Errors
/// If the file cannot be read, is not UTF-8, or is larger than [`MAX_BYTES`].
pub(crate) fn read(path: &Path) -> Result<Option<String>, FileError> {
    read_if(path, |_| Ok(()))
}

/// The same for a file that decides who may do what: refuses it if other users can change it.
///
/// # Errors
/// As [`read`], and if another user than root and this one can change the file.
pub(crate) fn read_protected(path: &Path) -> Result<Option<String>, FileError> {
    read_if(path, |meta| match meta.mode() & 0o022 {
        _ if !is_trusted_owner(meta.uid()) => Err(FileError::Foreign(path.to_owned())),
        0 => Ok(()),
        _ => Err(FileError::Writable(path.to_owned())),
    })
}

/// True if every user may read the file. False if that is not known.
pub(crate) fn is_readable_by_all(path: &Path) -> bool {
    #[expect(clippy::disallowed_methods, reason = "only metadata of the operator's own file")]
    let meta = std::fs::metadata(path);
    meta.is_ok_and(|meta| meta.mode() & 0o004 != 0)
}

/// True if other users than the owner may read the file. False if that is not known.
pub(crate) fn is_readable_by_others(path: &Path) -> bool {
    #[expect(clippy::disallowed_methods, reason = "only metadata of the operator's own file")]
    let meta = std::fs::metadata(path);
    meta.is_ok_and(|meta| meta.mode() & 0o077 != 0)
}

/// Reads a file whose metadata passes `check`.
fn read_if(path: &Path, check: impl FnOnce(&Metadata) -> Result<(), FileError>) -> Result<Option<String>, FileError> {
    let fail = |error| FileError::Unreadable { path: path.to_owned(), error };
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(fail)?,
    };
    check(&file.metadata().map_err(fail)?)?;
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(fail)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    Ok(Some(text))
}

/// Replaces the contents of `path` by `text`. The permissions and the owner stay. If `path` is a symbolic link, its
/// target is replaced. `mode`: the permissions of a new file.
///
/// # Errors
/// If the file cannot be written; it is unchanged then.
pub(crate) fn replace(_: &WriteLock, path: &Path, text: impl AsRef<[u8]>, mode: u32) -> Result<(), FileError> {
    let target = link_target(path)?;
    write(&target, text.as_ref(), mode).map_err(|error| FileError::Unwritable { path: path.to_owned(), error })
}

fn write(target: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let directory = directory_of(target);
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    remove_leftovers(directory, &name);
    #[expect(clippy::disallowed_methods, reason = "the operator's file that is replaced")]
    let old = std::fs::metadata(target).ok();
    let temporary = directory.join(format!("{}{}.tmp", prefix(&name), std::process::id()));
    let written = (|| {
        let mut file = open(&temporary, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
        file.write_all(text)?;
        if let Some(old) = &old {
            // Keeps the owner of the old file. Fails without the privilege to do so, and then the file gets a new
            // owner.
            let (user, group) = (rustix::fs::Uid::from_raw(old.uid()), rustix::fs::Gid::from_raw(old.gid()));
            let _ = rustix::fs::fchown(&file, Some(user), Some(group));
        }
        let mode = old.as_ref().map_or(mode, |old| old.mode() & 0o7777);
        file.set_permissions(PermissionsExt::from_mode(mode))?;
        file.sync_all()?;
        std::fs::rename(&temporary, target)
    })();
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    open(directory, OpenOptions::new().read(true))?.sync_all()
}

/// The prefix of the temporary files of `name`; the process id and ".tmp" follow.
fn prefix(name: &str) -> String {
    format!(".{name}.")
}

/// Removes the temporary files of killed writers. The caller holds the lock, so no other writer is active.
fn remove_leftovers(directory: &Path, name: &str) {
    let prefix = prefix(name);
    #[expect(clippy::disallowed_methods, reason = "the directory of the operator's file")]
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(".tmp"));
        if ours.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The target of `path` if it is a symbolic link, otherwise `path`; in both cases with its canonical directory.
fn link_target(path: &Path) -> Result<PathBuf, FileError> {
    #[expect(clippy::disallowed_methods, reason = "the operator's file, behind the operator's links")]
    let real = |path: &Path| std::fs::canonicalize(path);
    if path.is_symlink() {
        return real(path).map_err(|error| FileError::Dangling { link: path.to_owned(), error });
    }
    let directory = directory_of(path);
    let fail = |error| FileError::Directory { directory: directory.to_owned(), error };
    let directory = real(directory).map_err(fail)?;
    Ok(directory.join(path.file_name().unwrap_or_default()))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the operator's files, as the command line and the configuration name them"
)]
fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_a_file_keeps_its_permissions() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.toml");
        let set = |text: &str| replace(&lock_for_writing(&[&file]).unwrap(), &file, text, 0o640);
        set("one").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o604)).unwrap();
        std::fs::write(temp.path().join(".a.toml.123.tmp"), "left behind").unwrap();
        std::fs::write(temp.path().join(".a.toml.mine.tmp"), "not ours").unwrap();
        set("two").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o604);
        assert_eq!(read(&file).unwrap().as_deref(), Some("two"));
        let mut names: Vec<_> = std::fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".a.toml.mine.tmp", "a.toml"]);
        assert_eq!(read(&temp.path().join("absent")).unwrap(), None);
    }

    #[test]
    fn a_protected_file_cannot_be_changed_by_others() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("keys.toml");
        assert_eq!(read_protected(&file).unwrap(), None);
        std::fs::write(&file, "text").unwrap();
        for (mode, is_refused) in [(0o600, false), (0o644, false), (0o400, false), (0o620, true), (0o602, true)] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            match read_protected(&file) {
                Err(error) => assert!(is_refused && error.to_string().contains("run: chmod go-w"), "{mode:o}: {error}"),
                Ok(text) => assert!(!is_refused && text.as_deref() == Some("text"), "{mode:o}"),
            }
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let temp = tempfile::tempdir().unwrap();
        let (real, link) = (temp.path().join("real"), temp.path().join("below/link"));
        std::fs::create_dir(temp.path().join("below")).unwrap();
        std::os::unix::fs::symlink("../real", &link).unwrap();
        assert!(lock_for_writing(&[&link]).err().unwrap().to_string().contains("leads to no file"));
        std::fs::write(&real, "one").unwrap();
        replace(&lock_for_writing(&[&link]).unwrap(), &link, "two", 0o600).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "two");
    }

    #[test]
    fn one_writer_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("n");
        std::fs::write(&file, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let lock = lock_for_writing(&[&file]).unwrap();
                        let n: u32 = read(&file).unwrap().unwrap().parse().unwrap();
                        replace(&lock, &file, (n + 1).to_string(), 0o600).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&file).unwrap().as_deref(), Some("160"));
    }
}
