//! Classes of access: who may share an answer with whom.

use std::sync::atomic::{AtomicU64, Ordering};

/// The class of a permission. Two permissions of the same class were given by the same rules to principals that policy
/// does not keep apart, so one answer serves both. It is a part of every key of a cache or of a shared call. Classes of
/// different mounts or different actions say nothing about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccessClass {
    number: u64,
    /// The same in every process with the same rules. `None`: only this process knows the class.
    name: Option<u64>,
}

/// The number of the next class. Rules that replace others get new classes, so no number is used twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl AccessClass {
    /// The class without rules: everybody shares. With rules, the class of belljar itself.
    pub const EVERYONE: Self = Self { number: 0, name: Some(0) };

    /// A class that nobody has yet.
    pub(super) fn new() -> Self {
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), name: None }
    }

    /// A class that nobody has yet: of the principals to whom exactly the rules at `places` apply.
    pub(super) fn of_rules(places: &[usize]) -> Self {
        let mut hasher = blake3::Hasher::new();
        places.iter().for_each(|place| {
            hasher.update(&(*place as u64).to_le_bytes());
        });
        let mut name = [0; 8];
        hasher.finalize_xof().fill(&mut name);
        Self { name: Some(u64::from_le_bytes(name).max(1)), ..Self::new() }
    }

    /// A name of the class that is the same in every process with the same rules. `None` if there is none.
    pub fn name(self) -> Option<u64> {
        self.name
    }
}
