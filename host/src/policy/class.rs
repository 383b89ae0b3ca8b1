//! Classes of access: who may share an answer with whom.

use std::sync::atomic::{AtomicU64, Ordering};

/// The class of a permission. Two permissions of the same class were given by the same rules to principals that policy
/// does not keep apart, so one answer serves both. It is a part of every key of a cache or of a shared call. Classes of
/// different mounts or different actions say nothing about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccessClass(u64);

/// The number of the next class. Rules that replace others get new classes, so no number is used twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl AccessClass {
    /// The class without rules: everybody shares. With rules, the class of belljar itself.
    pub const EVERYONE: Self = Self(0);

    /// A class that nobody has yet.
    pub(super) fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
