//! The names of keys in the store. They are hashes with the key of the replicas: who can read the store learns neither
//! principals nor mounts. Two groups of replicas with different keys can use one store.

use super::quota_key::QuotaKey;

/// Makes the names of keys.
pub(super) struct StoreNames {
    key: [u8; 32],
    /// The beginning of all names.
    prefix: String,
}

impl StoreNames {
    /// The names of the replicas that have this key.
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        let key = blake3::derive_key("belljar 2026-11 names in the store of replicas", secret);
        let group = blake3::keyed_hash(&key, b"group");
        let group = data_encoding::HEXLOWER.encode(group.as_bytes().get(..6).unwrap_or_default());
        Self { key, prefix: format!("belljar:{group}") }
    }

    fn hash(&self, kind: &str, parts: &[&[u8]]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        // Each part with its length, so that no two lists of parts give the same bytes.
        for part in [kind.as_bytes()].into_iter().chain(parts.iter().copied()) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        data_encoding::HEXLOWER.encode(hasher.finalize().as_bytes().get(..16).unwrap_or_default())
    }

    /// The count of one quota of one principal. All quotas of a principal are in one slot of a cluster.
    pub(super) fn quota(&self, key: &QuotaKey) -> String {
        let principal = self.hash("principal", &[&key.principal]);
        format!("{}:quota:{{{principal}}}:{}", self.prefix, self.hash("quota", &[&key.quota_bytes()]))
    }

    /// What is watched of a mount, and the lease of its rounds. Both are in one slot of a cluster.
    pub(super) fn round(&self, mount: &[u8; 32]) -> (String, String) {
        let mount = self.hash("mount", &[mount]);
        (format!("{}:watched:{{{mount}}}", self.prefix), format!("{}:lease:{{{mount}}}", self.prefix))
    }

    /// The replicas, what each said, the generations, their order, the last order, and the last change of what is said. All
    /// are in one slot of a cluster.
    pub(super) fn beat(&self) -> [String; 6] {
        ["replicas", "said", "generations", "orders", "order", "change"]
            .map(|name| format!("{}:{{beat}}:{name}", self.prefix))
    }

    /// The epoch of a mount, an answer of it, and the mark of a call for that answer. All are in one slot of a cluster.
    pub(super) fn answer(&self, mount: &[u8; 32], answer: &[u8; 32]) -> [String; 3] {
        let (tag, answer) = (self.hash("mount", &[mount]), self.hash("answer", &[mount, answer]));
        let of = |kind: &str, name: &str| format!("{}:{kind}:{{{tag}}}{name}", self.prefix);
        [of("epoch", ""), of("answer", &format!(":{answer}")), of("call", &format!(":{answer}"))]
    }

    /// What a generation of the configuration grants.
    pub(super) fn generation(&self, generation: &str) -> String {
        format!("{}:generation:{generation}", self.prefix)
    }

    /// The channel of news.
    pub(super) fn news(&self) -> String {
        format!("{}:news", self.prefix)
    }

    /// The mark of an answered question.
    pub(super) fn spent(&self, number: u128) -> String {
        format!("{}:spent:{}", self.prefix, self.hash("spent", &[&number.to_le_bytes()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_neither_principals_nor_keys() {
        let (one, other) = (StoreNames::new(&[1; 32]), StoreNames::new(&[2; 32]));
        assert_ne!(one.spent(7), other.spent(7));
        assert_ne!(one.spent(7), one.spent(8));
        assert_eq!(one.spent(7), StoreNames::new(&[1; 32]).spent(7));
        assert!(one.spent(7).starts_with("belljar:"));
    }
}
