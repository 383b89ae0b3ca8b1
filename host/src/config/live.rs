//! Settings of `[watch]`, and of a mount's kept answers.

use std::time::Duration;

use crate::model::bounds;

/// `[watch]`: how belljar follows changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Whether belljar reads components and the configuration again when they change.
    pub reload: bool,
    /// The interval between two questions for the revisions of watched resources, for providers that export `revisions`.
    pub poll: Duration,
    /// The interval between two reads of a watched resource, for providers without `revisions`.
    pub reread: Duration,
    /// The interval between two looks for changes of a list, while a client waits for them. Also the largest age of a kept
    /// list.
    pub lists: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            reload: true,
            poll: Duration::from_secs(2),
            reread: Duration::from_secs(30),
            lists: Duration::from_secs(60),
        }
    }
}

/// How long an answer of a mount is served again, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// The largest age of an answer that is served again, whatever its provider proposes. Zero: no answer is served again.
    pub max_age: Duration,
    /// Whether a cache between belljar and its clients may serve an answer to other clients.
    pub public: bool,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { max_age: bounds::MAX_FRESHNESS.get(), public: false }
    }
}
