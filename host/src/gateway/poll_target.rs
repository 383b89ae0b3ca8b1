//! The watched resources of a mount that are polled, the result of a poll, and the pause after a crash.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The state of a resource at its last poll: a hash of its revision or of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceState {
    /// The resource exists and has this hash.
    Present(blake3::Hash),
    /// The resource does not exist.
    Absent,
}

/// A resource that is to be polled.
#[derive(Clone, Debug)]
pub(super) struct PollTarget {
    pub(super) uri: Arc<str>,
    pub(super) reference: String,
    /// The subscriber on whose behalf the resource is polled: of all its subscribers, the one with the fewest watched
    /// resources.
    pub(super) subscriber: u64,
    /// True if the resource has a known state and its last poll did not crash.
    pub(super) is_known: bool,
    /// True if the last poll of the resource crashed.
    pub(super) is_suspect: bool,
}

/// The result of polling one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollResult {
    /// The resource has this state.
    Known(ResourceState),
    /// The state is unknown: the provider answered without it, or there was no turn for the call.
    Unknown {
        /// True if the provider answered.
        is_answered: bool,
    },
    /// The poll crashed, either for this resource alone or for others of the same subscriber with it.
    Crashed,
}

/// How many polls of a resource crashed in a row, and until when it is not polled.
#[derive(Clone, Copy)]
pub(super) struct CrashBackoff {
    crashes: u32,
    /// The resource is not polled before this time.
    pub(super) until: Instant,
}

/// The pause after the first crash. Each further crash doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

impl CrashBackoff {
    /// The backoff after one more crash.
    pub(super) fn after(before: Option<Self>) -> Self {
        let crashes = before.map_or(0, |backoff| backoff.crashes).saturating_add(1);
        let pause = FIRST_PAUSE.saturating_mul(1u32.checked_shl(crashes - 1).unwrap_or(u32::MAX)).min(MAX_PAUSE);
        Self { crashes, until: Instant::now() + pause }
    }
}
