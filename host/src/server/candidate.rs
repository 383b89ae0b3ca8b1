//! The current component of a mount beside its pin in the lock, for the operator's decision to trust it. Runs no code
//! of the component.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use super::directories::{self, PluginsError};
use super::pins::{self, LockFileError};
use crate::catalog;
use crate::config::Config;
use crate::config::lock::{Lock, Pin};
use crate::model::{Digest, MountName, command};
use crate::sandbox::Profile;

/// The current component of a mount, and its pin in the lock.
pub(crate) struct Candidate {
    pub(crate) name: MountName,
    pub(crate) file: String,
    pub(crate) digest: Digest,
    pub(crate) profile: Profile,
    pinned: Option<Pin>,
}

/// Why the component of a mount cannot be examined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CandidateError {
    /// The plugin directory cannot be opened.
    #[error(transparent)]
    Plugins(#[from] PluginsError),
    /// The plugin directory cannot be read.
    #[error("cannot read the plugin directory \"{}\": {error}", plugins.display())]
    Unreadable {
        /// The directory.
        plugins: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The mount has no component.
    #[error(
        "there is no component for the mount \"{mount}\"; put \"{mount}.wasm\" into \"{}\", or name another file there with component = \"FILE.wasm\" under [mounts.{mount}]",
        plugins.display()
    )]
    Absent {
        /// The mount.
        mount: MountName,
        /// The plugin directory.
        plugins: PathBuf,
    },
    /// The file is not a provider.
    #[error("\"{file}\" of the mount \"{mount}\" cannot be trusted: {why}")]
    NotAProvider {
        /// The file.
        file: String,
        /// The mount.
        mount: MountName,
        /// The reason.
        why: String,
    },
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] LockFileError),
}

impl Candidate {
    /// Reads the component of `mount`.
    ///
    /// # Errors
    /// If the mount has no component, the file is not a provider, or the lock cannot be read.
    pub(crate) fn find(config: &Config, mount: &MountName) -> Result<Self, CandidateError> {
        let dir = directories::open_plugins(config)?;
        let plugins = || config.plugins.clone();
        let found = catalog::read_components(config, &dir, |name| name == mount)
            .map_err(|error| CandidateError::Unreadable { plugins: plugins(), error })?;
        let Some(found) = found.into_iter().next() else {
            return Err(CandidateError::Absent { mount: mount.clone(), plugins: plugins() });
        };
        let (digest, profile) = found.component.map_err(|why| CandidateError::NotAProvider {
            file: found.file.clone(),
            mount: mount.clone(),
            why: why.to_string(),
        })?;
        let pinned = pins::read(&config.lock)?.pin(mount).cloned();
        Ok(Self { name: found.name, file: found.file, digest, profile, pinned })
    }

    /// A component that is to take the place of the pinned one.
    pub(crate) fn replacing(pinned: Pin, (name, file): (MountName, String), digest: Digest, profile: Profile) -> Self {
        Self { name, file, digest, profile, pinned: Some(pinned) }
    }

    /// The imports that the pinned component does not have, in any version.
    pub(crate) fn new_imports(&self) -> Vec<&str> {
        let old = self.pinned.iter().flat_map(|pin| &pin.imports).map(|name| unversioned(name)).collect::<Vec<_>>();
        self.profile.imports.iter().map(String::as_str).filter(|name| !old.contains(&unversioned(name))).collect()
    }

    /// True if the lock has this digest.
    pub(crate) fn is_trusted(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pin| pin.digest == self.digest)
    }

    /// True if the lock has another digest.
    pub(crate) fn has_changed(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pin| pin.digest != self.digest)
    }

    /// Writes this digest, with the exports and imports, into `lock`. The source of a component that was fetched stays with it.
    pub(crate) fn pin(&self, lock: &mut Lock) {
        let Profile { exports, imports, .. } = self.profile.clone();
        let same = lock.pin(&self.name).filter(|pin| pin.digest == self.digest);
        let source = same.and_then(|pin| pin.source.clone());
        lock.set(self.name.clone(), Pin { digest: self.digest, next: None, source, exports, imports });
    }

    /// A line with the digest to which a grant will be bound.
    pub(crate) fn binding(&self) -> String {
        let Self { name, file, digest, .. } = self;
        let before = match &self.pinned {
            Some(pin) if pin.digest != *digest => format!(" (belljar.lock has {} from an earlier grant)", pin.digest),
            _ => String::new(),
        };
        let trust = command::line(["trust", name.as_str()]);
        format!("only the current \"{file}\" may use it: {digest}{before}; after a new build, run: {trust}\n")
    }

    /// The changes since the grants were given, for the operator's decision.
    pub(crate) fn comparison(&self, config: &Config) -> String {
        let Self { name, file, digest, profile, pinned } = self;
        let mut out = format!("{name}  ({file})\n");
        let old = pinned
            .as_ref()
            .map_or_else(|| "none: its grants were not bound to a digest yet".to_owned(), |pin| pin.digest.to_string());
        let _ = writeln!(out, "  old      {old}\n  new      {digest}");
        let grants = config.mounts.get(name).map(|own| own.grants.describe()).unwrap_or_default();
        let held =
            |import: &str| grants.iter().map(|(kind, _)| *kind).find(|kind| Profile::kind_of(import) == Some(*kind));
        let (no_exports, no_imports) = (Vec::new(), Vec::new());
        let (exports, imports) = pinned.as_ref().map_or((&no_exports, &no_imports), |pin| (&pin.exports, &pin.imports));
        for (title, old, new) in [("exports", exports, &profile.exports), ("imports", imports, &profile.imports)] {
            // A newer tool chain changes the version of every interface. Listing them all would hide the real changes.
            let lacks =
                |names: &[String], name: &String| !names.iter().any(|other| unversioned(other) == unversioned(name));
            let gone = old.iter().filter(|name| lacks(new, name)).map(|name| format!("- {name}"));
            let come = new.iter().filter(|name| lacks(old, name)).map(|name| match held(name) {
                Some(kind) if title == "imports" => {
                    format!("+ {name}   (this import can use the grant \"{kind}\")")
                }
                _ => format!("+ {name}"),
            });
            let mut lines: Vec<String> = gone.chain(come).collect();
            let versions = new.iter().filter(|name| !old.contains(name) && !lacks(old, name)).count();
            if versions > 0 {
                lines.push(format!("{versions} in another version"));
            }
            if lines.is_empty() {
                lines.push("unchanged".to_owned());
            }
            for (at, line) in lines.iter().enumerate() {
                let _ = writeln!(out, "  {:8} {line}", if at == 0 { title } else { "" });
            }
        }
        for (at, (kind, line)) in grants.iter().enumerate() {
            let _ = writeln!(out, "  {:8} {kind}: {line}", if at == 0 { "holds" } else { "" });
        }
        out
    }
}

/// The name of an interface without its version.
fn unversioned(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}
