//! What replicas compare of a configuration: hashes that are the same in every process.

use std::collections::BTreeMap;

/// What replicas compare of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFingerprint {
    /// A hash of what the file says, without what belongs to one machine, and of the policies.
    pub settings: [u8; 32],
    /// The hashes of the grants of each mount, by the hash of the mount's name.
    pub mounts: BTreeMap<u64, Vec<u64>>,
}

/// The keys that belong to one machine: places and addresses. Replicas may differ in them.
const OF_ONE_MACHINE: [&str; 9] =
    ["plugins", "cache", "state", "audit", "serve", "admin", "replicas", "trace", "trust"];

/// A hash of the settings in the text of a configuration, which is valid TOML. Comments, the order of keys, and what belongs
/// to one machine make no difference.
pub(super) fn settings_hash(source: &str) -> [u8; 32] {
    let mut table: toml::Table = toml::from_str(source).unwrap_or_default();
    table.retain(|key, _| !OF_ONE_MACHINE.contains(&key));
    blake3::hash(toml::to_string(&table).unwrap_or_default().as_bytes()).into()
}

/// 64 bits of a hash of texts, which are kept apart.
pub fn hash(parts: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let mut hash = [0; 8];
    hasher.finalize_xof().fill(&mut hash);
    u64::from_le_bytes(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_machine_makes_no_difference() {
        let one = settings_hash("calls = 3\n[mounts.a]\nsearch = true\ncomponent = 'b.wasm'\n");
        for same in [
            "# a comment\ncalls=3\n[mounts]\na = { component = \"b.wasm\", search = true }",
            "state = '/x'\naudit = 'off'\ncalls = 3\n[admin]\nprobes = '0.0.0.0:1'\n[mounts.a]\nsearch = true\ncomponent = 'b.wasm'",
        ] {
            assert_eq!(settings_hash(same), one, "{same}");
        }
        for other in ["calls = 4\n[mounts.a]\nsearch = true\ncomponent = 'b.wasm'", "calls = 3", ""] {
            assert_ne!(settings_hash(other), one, "{other}");
        }
    }
}
