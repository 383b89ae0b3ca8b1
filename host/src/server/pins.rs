//! Binds the grants of mounts to the digests of their components: writes the missing pins into `belljar.lock`. Runs
//! before the second wall is raised and before any component is loaded. The loader compares every component with its
//! pin.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::directories::{self, PluginsError};
use super::files::{self, FileError};
use super::log;
use crate::catalog::{self, MountComponent};
use crate::config::Config;
use crate::config::lock::{Lock, LockError, Pin, Pins};
use crate::model::{MountName, command};

/// How a command uses the pins in `belljar.lock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pinning {
    /// Writes missing pins with the current digests. For commands that run components.
    WriteMissing,
    /// Reads the pins and writes none. For commands that run no component.
    ReadOnly,
    /// Ignores the pins and prints a warning: `--dev`.
    Off,
    /// Ignores the pins without a warning: the user is the author of the component.
    OffForAuthor,
}

impl Pinning {
    /// [`Self::Off`] with the flag `--dev`, or else `otherwise`.
    pub(crate) fn unless_dev(dev: bool, otherwise: Self) -> Self {
        if dev { Self::Off } else { otherwise }
    }
}

/// Why the lock cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockFileError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is damaged.
    #[error(
        "\"{}\": {error}; restore a copy of it, or, if you trust every component in the plugin directory, remove it: the next start writes a new one",
        path.display()
    )]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The error of the parser.
        error: LockError,
    },
}

/// Why missing pins cannot be written.
#[derive(Debug, thiserror::Error)]
enum PinError {
    /// The plugin directory cannot be opened.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The plugin directory cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// The lock cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The warning of a run without pins.
pub(crate) const DEV_WARNING: &str = "--dev: no component is compared with belljar.lock; every component in the plugin directory can use the grants of its mount";

/// Sets `config.pins`: which digest may use the grants of which mount.
pub(crate) fn apply(config: &mut Config, how: Pinning) {
    if matches!(how, Pinning::Off | Pinning::OffForAuthor) {
        if how == Pinning::Off {
            log::say(&format!("warning: {DEV_WARNING}"));
        }
        config.pins = Pins::Off;
        return;
    }
    let has_grants = config.mounts.values().any(|mount| mount.needs_pin());
    let lock = read(&config.lock);
    if !has_grants && lock.as_ref().map_or(true, |lock| lock.pins().all(|(_, pin)| pin.source.is_none())) {
        return;
    }
    warn_if_world_writable(&config.lock);
    if let Ok(lock) = &lock {
        warn_of_revoked(lock);
    }
    config.pins = match lock {
        Err(error) => {
            tracing::error!("no mount that has grants is served: {error}");
            Pins::Broken(error.to_string())
        }
        Ok(lock) if how == Pinning::ReadOnly => Pins::AllowMissing(lock),
        Ok(lock) => match unpinned(config, &lock) {
            false => Pins::On { lock, unwritten: None },
            true => pin(config).unwrap_or_else(|error| {
                let why = format!("its component cannot be bound to its grants: {error}");
                Pins::On { lock, unwritten: Some(why) }
            }),
        },
    };
}

fn unpinned(config: &Config, lock: &Lock) -> bool {
    config.mounts.iter().any(|(name, mount)| mount.needs_pin() && lock.pin(name).is_none())
}

/// Writes the missing pins.
fn pin(config: &Config) -> Result<Pins, PinError> {
    let dir = directories::open_plugins(config)?;
    let write_lock = files::lock_for_writing(&[&config.lock])?;
    // Another process may have written pins before this one got the lock.
    let mut lock = read(&config.lock)?;
    let is_missing =
        |name: &MountName| lock.pin(name).is_none() && config.mounts.get(name).is_some_and(|mount| mount.needs_pin());
    let found = catalog::read_components(config, &dir, is_missing)?;
    let mut is_new = false;
    // The loader refuses a component that is not a provider. It gets no pin, so its replacement gets the first pin.
    for MountComponent { name, component, .. } in found {
        let Ok((digest, profile)) = component else { continue };
        tracing::info!(mount = %name, "its grants are bound to {digest}");
        lock.set(name, Pin { digest, next: None, source: None, exports: profile.exports, imports: profile.imports });
        is_new = true;
    }
    if is_new {
        write(&write_lock, config, &lock)?;
    }
    Ok(Pins::On { lock, unwritten: None })
}

/// Reads the lock. A missing file is an empty lock.
///
/// # Errors
/// If the file cannot be read, or is damaged.
pub(crate) fn read(path: &Path) -> Result<Lock, LockFileError> {
    let Some(text) = files::read(path)? else { return Ok(Lock::default()) };
    Lock::parse(&text).map_err(|error| LockFileError::Damaged { path: path.to_owned(), error })
}

/// Writes the lock. A new file can be read by every user who may read the configuration.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write(write_lock: &files::WriteLock, config: &Config, lock: &Lock) -> Result<(), FileError> {
    #[expect(clippy::disallowed_methods, reason = "the operator's configuration")]
    let like = config.file.as_ref().and_then(|file| std::fs::metadata(file).ok()).map_or(0o600, |meta| meta.mode());
    files::replace(write_lock, &config.lock, lock.to_text(), like & 0o644 | 0o600)
}

/// Says which mounts have a revoked version. Those that are then stopped are reported once more, when they are loaded.
fn warn_of_revoked(lock: &Lock) {
    for (mount, pin) in lock.pins() {
        if let Some(revocation) = pin.source.as_ref().and_then(|source| source.revoked.as_ref()) {
            tracing::warn!(target: "belljar::catalog", mount = %mount, "{revocation}; {}", revocation.cure(mount));
        }
    }
}

fn warn_if_world_writable(lock: &Path) {
    #[expect(clippy::disallowed_methods, reason = "belljar's own file")]
    if std::fs::metadata(lock).is_ok_and(|meta| meta.mode() & 0o002 != 0) {
        tracing::warn!(
            "anyone on this machine can change \"{}\", and with it which components may use grants; run: chmod o-w {}",
            lock.display(),
            command::shell_quoted(&lock.to_string_lossy())
        );
    }
}
