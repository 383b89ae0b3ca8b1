//! The operator's files that belljar writes: the configuration and the lock. Each is replaced whole, so that whenever the
//! process or the machine ends there is the old one or the new one; and one writer at a time has its turn.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// How long another writer is waited for. None takes longer than a few writes do.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether it has finished.
const GLANCE: Duration = Duration::from_millis(10);

/// More than any file of the operator's has.
const MOST: u64 = 16 << 20;

/// The turn of one writer, until it is dropped or the process ends. Nothing is left behind: these are locks on directories.
pub(super) struct Turn {
    _directories: Vec<File>,
}

/// Waits for the turn to change files that lie where these do.
///
/// # Errors
/// Names the directory.
pub(super) fn turn(files: &[&Path]) -> Result<Turn, String> {
    let behind = files.iter().map(|file| behind(file)).collect::<Result<Vec<_>, _>>()?;
    // Always in the same order, so that no two writers wait for each other.
    let mut directories: Vec<&Path> = behind.iter().map(|file| directory_of(file)).collect();
    directories.sort_unstable();
    directories.dedup();
    let by = Instant::now() + PATIENCE;
    Ok(Turn { _directories: directories.into_iter().map(|directory| wait(directory, by)).collect::<Result<_, _>>()? })
}

fn wait(directory: &Path, by: Instant) -> Result<File, String> {
    let fail = |error: io::Error| format!("cannot change files in \"{}\": {error}", directory.display());
    let handle = open(directory, OpenOptions::new().read(true)).map_err(fail)?;
    loop {
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(handle),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < by => std::thread::sleep(GLANCE),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(format!(
                    "another process has been changing files in \"{}\" for {PATIENCE:?}; end it, and try again",
                    directory.display()
                ));
            }
            Err(errno) => return Err(fail(errno.into())),
        }
    }
}

/// The text of a file; none when there is no such file.
///
/// # Errors
/// Names the file.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    let fail = |error: &dyn std::fmt::Display| format!("cannot read \"{}\": {error}", path.display());
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| fail(&error))?,
    };
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text).map_err(|error| fail(&error))?;
    if text.len() as u64 > MOST {
        return Err(fail(&format_args!("it has more than {} MiB", MOST >> 20)));
    }
    Ok(Some(text))
}

/// Replaces what is in `path` by `text`, for whoever has the turn. Its permissions and its owner stay; a link stays a link,
/// and what it leads to is replaced. `mode`: the permissions of a file that was not there.
///
/// # Errors
/// Names the file; it is as it was then.
pub(super) fn replace(_: &Turn, path: &Path, text: impl AsRef<[u8]>, mode: u32) -> Result<(), String> {
    let target = behind(path)?;
    write(&target, text.as_ref(), mode).map_err(|error| {
        let cure = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; make its directory writable, or run this as a user who may write there"
            }
            _ => "",
        };
        format!("cannot write \"{}\": {error}{cure}", path.display())
    })
}

fn write(target: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let directory = directory_of(target);
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    sweep(directory, &name);
    #[expect(clippy::disallowed_methods, reason = "the operator's file that is replaced")]
    let old = std::fs::metadata(target).ok();
    let temporary = directory.join(format!("{}{}.tmp", prefix(&name), std::process::id()));
    let written = (|| {
        let mut file = open(&temporary, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
        file.write_all(text)?;
        if let Some(old) = &old {
            // Another's file is given back to its owner, by whoever may do that.
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

/// How the names begin under which `name` is written before it is renamed.
fn prefix(name: &str) -> String {
    format!(".{name}.")
}

/// Removes what writers left behind that were killed: whoever has the turn is the only one who writes.
fn sweep(directory: &Path, name: &str) {
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

/// The file that `path` leads to, when it is a link, under the one name of its directory that has no links in it.
fn behind(path: &Path) -> Result<PathBuf, String> {
    #[expect(clippy::disallowed_methods, reason = "the operator's file, behind the operator's links")]
    let real = |path: &Path| std::fs::canonicalize(path);
    if path.is_symlink() {
        return real(path).map_err(|error| format!("the link \"{}\" leads to no file: {error}", path.display()));
    }
    let directory = directory_of(path);
    let directory =
        real(directory).map_err(|error| format!("cannot change files in \"{}\": {error}", directory.display()))?;
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
    fn a_file_is_replaced_and_stays_what_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.toml");
        let set = |text: &str| replace(&turn(&[&file]).unwrap(), &file, text, 0o640);
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
    fn a_link_stays_a_link() {
        let temp = tempfile::tempdir().unwrap();
        let (real, link) = (temp.path().join("real"), temp.path().join("below/link"));
        std::fs::create_dir(temp.path().join("below")).unwrap();
        std::os::unix::fs::symlink("../real", &link).unwrap();
        assert!(turn(&[&link]).err().unwrap().contains("leads to no file"));
        std::fs::write(&real, "one").unwrap();
        replace(&turn(&[&link]).unwrap(), &link, "two", 0o600).unwrap();
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
                        let turn = turn(&[&file]).unwrap();
                        let n: u32 = read(&file).unwrap().unwrap().parse().unwrap();
                        replace(&turn, &file, (n + 1).to_string(), 0o600).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&file).unwrap().as_deref(), Some("160"));
    }
}
