//! Binds the grants of mounts to the bytes of their components, before the second wall stands and before anything of them
//! is loaded: what has no pin yet gets one now, and loading compares what it loads with what is known here.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Failure, open, store};
use crate::catalog::{self, Found};
use crate::config::Config;
use crate::config::lock::{Lock, Pin, Pins};
use crate::model::{MountName, command};

/// What a command does about mounts that have no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pinning {
    /// It runs them: they are pinned to the bytes that lie there.
    Pin,
    /// It only looks at them: nothing is written.
    Look,
    /// Nothing is pinned and nothing is compared, with a warning.
    Off,
    /// Nothing is pinned and nothing is compared: who runs it is the author of what it runs.
    Author,
}

impl Pinning {
    /// As the command line says, of a command that would otherwise do `otherwise`.
    pub(super) fn unless_dev(dev: bool, otherwise: Self) -> Self {
        if dev { Self::Off } else { otherwise }
    }
}

/// The warning of a run without pins.
pub(super) const DEV: &str = "--dev: no component is compared with belljar.lock; whatever lies in the plugin directory uses the grants of its mount";

/// Fills in which bytes may use the grants of which mount.
pub(super) fn apply(config: &mut Config, how: Pinning) {
    if matches!(how, Pinning::Off | Pinning::Author) {
        if how == Pinning::Off {
            super::log::say(&format!("warning: {DEV}"));
        }
        config.pins = Pins::Off;
        return;
    }
    if !config.mounts.values().any(|mount| mount.needs_pin()) {
        return;
    }
    warn_of_others(&config.lock);
    config.pins = match read(&config.lock) {
        Err(why) => {
            tracing::error!("no mount with grants is served: {why}");
            Pins::Broken(why)
        }
        Ok(lock) if how == Pinning::Look => Pins::Look(lock),
        Ok(lock) => match unpinned(config, &lock) {
            false => Pins::On { lock, unwritten: None },
            true => pin(config).unwrap_or_else(|why| {
                let why = format!("its component cannot be bound to its grants: {why}");
                Pins::On { lock, unwritten: Some(why) }
            }),
        },
    };
}

fn unpinned(config: &Config, lock: &Lock) -> bool {
    config.mounts.iter().any(|(name, mount)| mount.needs_pin() && lock.pin(name).is_none())
}

/// Writes the missing pins.
fn pin(config: &Config) -> Result<Pins, String> {
    let dir = open::plugins(config).map_err(Failure::why)?;
    let turn = store::turn(&[&config.lock])?;
    // Another first start may have been quicker.
    let mut lock = read(&config.lock)?;
    let is_missing =
        |name: &MountName| lock.pin(name).is_none() && config.mounts.get(name).is_some_and(|mount| mount.needs_pin());
    let found = catalog::find(config, &dir, is_missing).map_err(|error| error.to_string())?;
    let mut is_new = false;
    // What is no provider is refused where it is loaded, and the one that takes its place is the first.
    for Found { name, component, .. } in found {
        let Ok((digest, profile)) = component else { continue };
        tracing::info!(mount = %name, "its grants are bound to {digest}");
        lock.set(name, Pin { digest, exports: profile.exports, imports: profile.imports });
        is_new = true;
    }
    if is_new {
        write(&turn, config, &lock)?;
    }
    Ok(Pins::On { lock, unwritten: None })
}

/// Reads the lock; one that is not there is empty.
pub(super) fn read(path: &Path) -> Result<Lock, String> {
    let Some(text) = store::read(path)? else { return Ok(Lock::default()) };
    Lock::parse(&text).map_err(|why| {
        format!(
            "\"{}\": {why}; put a copy of it back, or, if you trust every component as it lies there, remove it: the next start writes it anew",
            path.display()
        )
    })
}

/// Writes the lock. A new one can be read by whoever may read the configuration.
pub(super) fn write(turn: &store::Turn, config: &Config, lock: &Lock) -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "the operator's configuration")]
    let like = config.file.as_ref().and_then(|file| std::fs::metadata(file).ok()).map_or(0o600, |meta| meta.mode());
    store::replace(turn, &config.lock, lock.to_text(), like & 0o644 | 0o600)
}

fn warn_of_others(lock: &Path) {
    #[expect(clippy::disallowed_methods, reason = "belljar's own file")]
    if std::fs::metadata(lock).is_ok_and(|meta| meta.mode() & 0o002 != 0) {
        tracing::warn!(
            "anyone on this machine can change \"{}\", and with it which components may use grants; run: chmod o-w {}",
            lock.display(),
            command::quoted(&lock.to_string_lossy())
        );
    }
}
