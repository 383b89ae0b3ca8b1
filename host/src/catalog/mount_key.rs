//! The key of everything that is cached from a provider. Mounts with the same key give the same answers.

use std::fmt;

use crate::config::{Ask, CacheSettings};
use crate::model::{Digest, Limits, MountName};

/// Identifies one version of a mount. Two mounts with the same key run the same bytes under the same name, base,
/// grants, secrets, consent and cache settings, and limits. An answer of one is valid for the other.
///
/// The key is a hash, and the same in every process. A secret that is easy to guess can be guessed from the key. A
/// store outside this process must therefore not receive the key itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MountKey([u8; 32]);

/// The parts of a [`MountKey`]: everything that the provider sees, or that decides which parts of its answers are
/// served.
pub(super) struct MountKeyParts<'a> {
    pub(super) name: &'a MountName,
    pub(super) base: &'a str,
    /// The component's file name, which notices of a listing contain.
    pub(super) file: &'a str,
    pub(super) component: &'a Digest,
    /// The digest of all grants as written. `None` without grants.
    pub(super) grants: Option<&'a Digest>,
    /// The digest of the secrets that the grants name. `None` if they name none.
    pub(super) secrets: Option<&'a Digest>,
    /// The consent policy. With consent, a call may have other grants for each caller.
    pub(super) ask: Ask,
    /// The cache policy.
    pub(super) cache: CacheSettings,
    pub(super) limits: &'a Limits,
}

impl MountKey {
    pub(super) fn of(parts: &MountKeyParts<'_>) -> Self {
        let MountKeyParts { name, base, file, component, grants, secrets, ask, cache, limits } = parts;
        let digest = |digest: &Option<&Digest>| digest.map(Digest::hex).unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        // Prefix each part with its length, so that no two lists of parts give the same bytes.
        let mut put = |part: &str| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        };
        put(name.as_str());
        put(base);
        put(file);
        put(&component.hex());
        put(&digest(grants));
        put(&digest(secrets));
        put(&format!("{ask:?}"));
        put(&format!("{cache:?}"));
        put(&format!("{limits:?}"));
        Self(hasher.finalize().into())
    }

    /// The hash.
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Debug for MountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Digest(self.0).short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_everything_that_affects_answers() {
        let (name, other) = (MountName::new("a").unwrap(), MountName::new("b").unwrap());
        let (bytes, others) = (Digest::of(b"1"), Digest::of(b"2"));
        let limits = Limits::default();
        let larger = Limits { resources: limits.resources + 1, ..limits.clone() };
        let parts = || MountKeyParts {
            name: &name,
            base: "belljar://a/",
            file: "a.wasm",
            component: &bytes,
            grants: Some(&bytes),
            secrets: None,
            ask: Ask::Never,
            cache: CacheSettings::default(),
            limits: &limits,
        };
        let key = MountKey::of(&parts());
        assert_eq!(MountKey::of(&parts()), key);
        let changed = [
            MountKeyParts { name: &other, ..parts() },
            MountKeyParts { base: "belljar://b/", ..parts() },
            MountKeyParts { file: "b.wasm", ..parts() },
            MountKeyParts { component: &others, ..parts() },
            MountKeyParts { grants: Some(&others), ..parts() },
            MountKeyParts { grants: None, secrets: Some(&bytes), ..parts() },
            MountKeyParts { secrets: Some(&bytes), ..parts() },
            MountKeyParts { ask: Ask::Once, ..parts() },
            MountKeyParts {
                cache: CacheSettings { max_age: std::time::Duration::ZERO, ..CacheSettings::default() },
                ..parts()
            },
            MountKeyParts { limits: &larger, ..parts() },
        ];
        let mut keys: Vec<_> = changed.iter().map(MountKey::of).chain([key]).map(|key| key.0).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), changed.len() + 1);
    }
}
