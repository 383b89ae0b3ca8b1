//! The variants of a mount for principals that have secrets of their own. Knows neither mounts nor grants.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::Digest;

/// The most variants that are kept. For another principal, the next call makes the variant again.
const MAX_KEPT: usize = 64;

/// The variants of one mount, the least recently used first.
pub(super) struct PrincipalCache<T>(Mutex<VecDeque<Variant<T>>>);

/// The variant for one principal.
struct Variant<T> {
    principal: String,
    /// The digest of its secrets. If a file changes, the next call makes the variant again.
    secrets: Digest,
    mount: Arc<T>,
}

impl<T> Default for PrincipalCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PrincipalCache<T> {
    /// The variant of `principal` with these secrets, if it is kept.
    pub(super) fn find(&self, principal: &str, secrets: &Digest) -> Option<Arc<T>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|one| one.principal == principal)?;
        let found = kept.remove(at)?;
        let mount = (found.secrets == *secrets).then(|| Arc::clone(&found.mount));
        kept.push_back(found);
        mount
    }

    /// Keeps a variant, in place of an earlier one of the same principal.
    pub(super) fn keep(&self, principal: String, secrets: Digest, mount: Arc<T>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = kept.iter().position(|one| one.principal == principal).and_then(|at| kept.remove(at));
        let oldest = if kept.len() >= MAX_KEPT { kept.pop_front() } else { None };
        kept.push_back(Variant { principal, secrets, mount });
        drop(kept);
        // Dropped outside of the lock: it may close files.
        drop((old, oldest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_principal_has_the_variant_of_its_present_secrets() {
        let (cache, one, two) = (PrincipalCache::default(), Digest::of(b"1"), Digest::of(b"2"));
        assert!(cache.find("a", &one).is_none());
        cache.keep("a".to_owned(), one, Arc::new("a1"));
        cache.keep("b".to_owned(), one, Arc::new("b1"));
        assert_eq!(cache.find("a", &one).as_deref(), Some(&"a1"));
        assert_eq!(cache.find("b", &one).as_deref(), Some(&"b1"));
        assert!(cache.find("a", &two).is_none(), "another secret");
        cache.keep("a".to_owned(), two, Arc::new("a2"));
        assert!(cache.find("a", &one).is_none());
        assert_eq!(cache.find("a", &two).as_deref(), Some(&"a2"));
    }

    #[test]
    fn the_least_recently_used_variant_goes() {
        let (cache, secrets) = (PrincipalCache::default(), Digest::of(b"1"));
        for n in 0..MAX_KEPT {
            cache.keep(n.to_string(), secrets, Arc::new(n));
        }
        assert_eq!(cache.find("0", &secrets).as_deref(), Some(&0));
        cache.keep("more".to_owned(), secrets, Arc::new(MAX_KEPT));
        assert_eq!(cache.find("0", &secrets).as_deref(), Some(&0));
        assert!(cache.find("1", &secrets).is_none());
        assert_eq!(cache.0.lock().unwrap().len(), MAX_KEPT);
    }
}
