//! Opens the plugin directory and belljar's own private directories.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

pub(crate) use belljar_join::real;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags};

use super::shipped;
use crate::config::Config;
use crate::grants::{is_trusted_owner, is_writable_by_others};
use crate::model::{Digest, command};

/// Why the plugin directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PluginsError {
    /// The directory does not exist.
    #[error("there is no plugin directory \"{}\"; create it, or name another with --plugins DIR", .0.display())]
    Absent(PathBuf),
    /// The operating system refuses access.
    #[error("cannot open the plugin directory \"{}\": {error}", path.display())]
    Unopened {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// Why a directory of belljar's own cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateDirError {
    /// The directory can be neither created nor opened.
    #[error("\"{}\": {error}", path.display())]
    Unopened {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The directory belongs to another user.
    #[error("\"{}\" belongs to another user; remove it, or name another directory", .0.display())]
    Foreign(PathBuf),
    /// Other users have access to the directory.
    #[error("other users have access to \"{}\"; run: chmod 700 {}", .0.display(), command::shell_quoted(&.0.to_string_lossy()))]
    Shared(PathBuf),
}

/// Opens a file or a directory as a handle, without access to its contents (open(2), `O_PATH`).
///
/// The standard library cannot: with musl, it takes this flag for an access mode and drops it.
///
/// # Errors
/// If it does not exist, or a directory above it cannot be searched.
pub(crate) fn handle(path: &Path) -> io::Result<File> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// Opens a directory as a handle: its entries can be opened, and need access rights of their own.
///
/// # Errors
/// If it is no directory, or as [`handle`].
pub(crate) fn open_dir(path: &Path) -> io::Result<Dir> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(rustix::fs::open(path, flags, Mode::empty())?.into()))
}

/// Opens the plugin directory. Warns if other users can write into it.
///
/// # Errors
/// If it does not exist, or cannot be opened.
pub(crate) fn open_plugins(config: &Config) -> Result<Dir, PluginsError> {
    let path = &config.plugins;
    let dir = open_dir(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => PluginsError::Absent(path.clone()),
        _ => PluginsError::Unopened { path: path.clone(), error },
    })?;
    #[expect(clippy::disallowed_methods, reason = "the operator's plugin directory")]
    if let Ok(meta) = std::fs::metadata(path) {
        if meta.mode() & 0o002 != 0 {
            tracing::warn!(
                "anyone on this machine can put components into \"{}\"; take away its write permission for others",
                path.display()
            );
        } else if !is_trusted_owner(meta.uid()) {
            tracing::warn!(
                "\"{}\" belongs to another user, who can put components into it; make it your own",
                path.display()
            );
        }
    }
    Ok(dir)
}

/// Opens a directory to which only this user has access. Creates it if it is missing.
///
/// # Errors
/// If it cannot be opened, or other users have access to it.
pub(crate) fn private_dir(path: &Path) -> Result<Dir, PrivateDirError> {
    let fail = |error| PrivateDirError::Unopened { path: path.to_owned(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
    let dir = open_dir(path).map_err(fail)?;
    let meta = cap_std::fs::MetadataExt::mode(&dir.dir_metadata().map_err(fail)?);
    let owner = cap_std::fs::MetadataExt::uid(&dir.dir_metadata().map_err(fail)?);
    if owner != rustix::process::geteuid().as_raw() {
        return Err(PrivateDirError::Foreign(path.to_owned()));
    }
    if meta & 0o077 != 0 {
        return Err(PrivateDirError::Shared(path.to_owned()));
    }
    Ok(dir)
}

/// Opens the directory of compiled code in belljar's package. `None` if there is none, or others can write it; then the
/// log has the reason.
pub(crate) fn installed_code() -> Option<Dir> {
    let path = shipped::compiled_code()?;
    let dir = open_dir(&path).ok()?;
    if is_writable_by_others(&dir.dir_metadata().ok()?) {
        tracing::warn!(
            "other users can write \"{}\", so the compiled code in it is not used; install belljar again",
            path.display()
        );
        return None;
    }
    Some(dir)
}

/// The directory of the logins that belong to the configuration `file`. Behind the second wall, no other configuration's
/// logins can be opened.
pub(crate) fn logins(state: &Path, file: &Path) -> PathBuf {
    let identity = Digest::of(real(file).as_os_str().as_encoded_bytes()).hex();
    state.join("logins").join(identity.chars().take(32).collect::<String>())
}
