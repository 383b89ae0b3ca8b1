//! A mount that is served.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::mount_cache::{Listings, MountCache};
use super::mount_key::{MountKey, MountKeyParts};
use super::watch::{DirectoryWatch, WatchDepth, WatchError, Watcher};
use crate::config::{Ask, CacheSettings, Isolation};
use crate::grants::view::ViewConfig;
use crate::grants::{Need, Needs, Powers};
use crate::interfaces::Interfaces;
use crate::limits::Gate;
use crate::model::{Digest, Limits, MountName, Reading};
use crate::policy::Principal;
use crate::sandbox::LoadedMount;

/// A mount that is served.
pub struct Mount {
    /// The name.
    pub name: MountName,
    /// The URI prefix of all its resources.
    pub base: String,
    /// The component's file name.
    pub file: String,
    /// The component's digest.
    pub digest: Digest,
    /// The component as it is loaded in the sandbox. It stays callable while the mount is referenced, even after
    /// another mount replaced it.
    pub loaded: LoadedMount,
    /// The grants as the operator wrote them, to compare them with those of another version.
    pub configured_grants: ConfiguredGrants,
    /// The admission gate, with the limits.
    pub gate: Gate,
    /// The policy for asking a person for grants that the mount lacks.
    pub ask: Ask,
    /// The policy for caching answers.
    pub cache: CacheSettings,
    /// True if a search may read its contents.
    pub search: bool,
    /// The first part of the public names of its tools and prompts; may be empty.
    pub tool_prefix: String,
    /// What its calls can do to the world, by its grants.
    pub powers: Powers,
    /// What the pages of its tools may do.
    pub view: ViewConfig,
    /// True if the directories with a `SKILL.md` that it lists are skills.
    pub lists_skills: bool,
    /// In which process its calls run.
    pub isolation: Isolation,
    /// The kinds of grants that it has.
    pub granted_kinds: Vec<&'static str>,
    /// The kinds of grants that its component can use.
    pub usable_kinds: Vec<&'static str>,
    /// The grants that its component declares as needs.
    pub needs: Arc<Needs>,
    /// The declared needs that are not granted.
    pub missing_needs: Vec<Need>,
    /// The interfaces that its component exports.
    pub interfaces: Interfaces,
    /// A warning about its file, for the operator.
    pub warning: Option<&'static str>,
    /// See [`Mount::is_per_principal`].
    pub has_principal_secrets: bool,
    /// The granted host directories. Empty if reading them may hang.
    pub directories: Vec<PathBuf>,
    /// True if one of its grants was revoked: results of its calls are discarded.
    pub withdrawn: AtomicBool,
    /// Its cached listings, and the generation of its cached answers. Shared with the mount that replaces it, if that
    /// one has the same key.
    pub cached: Arc<MountCache>,
}

impl Mount {
    /// A mount without grants and without a component. Callers set the fields of a real mount on it.
    pub fn plain(name: MountName, base: &str, limits: Limits) -> Self {
        let (file, digest) = ("x.wasm", Digest::of(b""));
        let tool_prefix = name.to_string();
        let key = MountKey::of(&MountKeyParts {
            name: &name,
            base,
            file,
            component: &digest,
            grants: None,
            secrets: None,
            ask: Ask::Never,
            cache: CacheSettings::default(),
            limits: &limits,
        });
        Self {
            gate: Gate::new(name.clone(), limits),
            name,
            base: base.to_owned(),
            file: file.to_owned(),
            digest,
            loaded: LoadedMount::none(),
            configured_grants: ConfiguredGrants::default(),
            ask: Ask::Never,
            cache: CacheSettings::default(),
            search: false,
            tool_prefix,
            powers: Powers::default(),
            view: ViewConfig::default(),
            lists_skills: false,
            isolation: Isolation::None,
            granted_kinds: Vec::new(),
            usable_kinds: Vec::new(),
            needs: Arc::default(),
            missing_needs: Vec::new(),
            interfaces: Interfaces::default(),
            warning: None,
            has_principal_secrets: false,
            directories: Vec::new(),
            withdrawn: AtomicBool::new(false),
            cached: Arc::new(MountCache::new(key)),
        }
    }

    /// True if a grant lets its calls reach other servers.
    pub fn reaches_servers(&self) -> bool {
        self.configured_grants.granted.iter().any(|(kind, _)| matches!(*kind, "http" | "tcp" | "postgres"))
    }

    /// Marks the mount as withdrawn, because one of its grants was revoked.
    pub(super) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// True if one of its grants was revoked. Then another mount is served in its place, or none.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// True if its grants use a secret of which each principal has its own. Then an answer for one principal may be
    /// neither cached nor shared for another: the principal belongs into every key of a cache, and of a shared call.
    pub fn is_per_principal(&self) -> bool {
        self.has_principal_secrets
    }

    /// True if it has skills: it exports their interface, or the operator made its directories skills.
    pub fn has_skills(&self) -> bool {
        self.lists_skills || self.interfaces.skills
    }

    /// The most bytes that one read gives, if longer resources are read in parts.
    pub fn parts_limit(&self) -> Option<u64> {
        self.interfaces.parts.then(|| self.gate.limits().result)
    }

    /// The cached listings for a principal: those that all share, unless each has secrets of its own.
    pub fn listings(&self, principal: &Principal) -> Arc<Listings> {
        match self.is_per_principal() {
            true => self.cached.of_principal(principal.id()),
            false => Arc::clone(&self.cached.shared),
        }
    }

    /// Compares contents that are about to be served with the kept skills.
    pub fn observe_skills(&self, principal: &Principal, reading: &Reading) {
        if self.has_skills()
            && reading.part.is_none()
            && let [contents] = reading.contents.as_slice()
            && let Some(reference) = contents.reference.strip_prefix(&self.base)
        {
            self.listings(principal).skills.observe(reference, &contents.body);
        }
    }

    /// True if `other` has all grants of this mount. Then readings of this mount may be given to callers of `other`.
    pub(super) fn is_subset_of(&self, other: &Self) -> bool {
        self.configured_grants.is_subset_of(&other.configured_grants) && self.ask <= other.ask
    }

    /// True if [`Mount::watch`] has directories to watch.
    pub fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    /// Watches the granted directories. Blocks on the file system.
    ///
    /// # Errors
    /// When one of them cannot be watched.
    pub fn watch(&self, watcher: &Watcher) -> Result<Vec<DirectoryWatch>, WatchError> {
        self.directories.iter().map(|dir| watcher.watch(dir, WatchDepth::Deep)).collect()
    }
}

/// A kind of grant, and its description on one line.
pub type GrantLine = (&'static str, String);

/// The grants of a mount as the operator wrote them, to compare them with those of another version.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConfiguredGrants {
    /// The digest of all grants, values included. `None` if nothing is granted.
    pub grants: Option<Digest>,
    /// The digest of the values of the secrets that the grants name. `None` if they name none.
    pub secrets: Option<Digest>,
    /// The description of each grant.
    pub granted: Vec<(&'static str, String)>,
    /// The grants that need consent. Each comes with the line of the same grant without consent.
    pub without_consent: Vec<(GrantLine, GrantLine)>,
}

impl ConfiguredGrants {
    /// True if `other` has all of these grants, with the same secrets.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        let is_plain = |line| {
            let plain = self.without_consent.iter().find(|(asked, _)| asked == line).map(|(_, plain)| plain);
            plain.is_some_and(|plain| other.granted.contains(plain))
        };
        self.granted.iter().all(|line| other.granted.contains(line) || is_plain(line))
            && (self.secrets.is_none() || self.secrets == other.secrets)
    }

    /// True if nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests;
