//! What of a mount is to be looked at, what was found, and for how long what crashes is left alone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// What was seen of a resource when it was looked at last: a hash of its revision or of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was there, like this.
    There(blake3::Hash),
    /// It was not there.
    Gone,
}

/// A resource that is to be looked at.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) uri: Arc<str>,
    pub(super) reference: String,
    /// For whom: of those who watch it, the one who watches least.
    pub(super) watcher: u64,
    /// Whether it was seen before, and answered the last time.
    pub(super) is_known: bool,
    /// Whether asking for it crashed the last time.
    pub(super) is_suspect: bool,
}

/// What was found out about one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is like this.
    Seen(Seen),
    /// Nothing: its provider answered and does not know, or there was no turn.
    Nothing {
        /// Whether the provider answered.
        is_answered: bool,
    },
    /// Asking for it, or for others of the same watcher with it, crashed.
    Crashed,
}

/// How often in a row asking for a resource crashed, and until when it is not asked for.
#[derive(Clone, Copy)]
pub(super) struct Trouble {
    times: u32,
    /// Until when it is not asked for.
    pub(super) until: Instant,
}

/// The first pause after a crash; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

impl Trouble {
    /// One more crash after these.
    pub(super) fn after(before: Option<Self>) -> Self {
        let times = before.map_or(0, |trouble| trouble.times).saturating_add(1);
        let pause = PAUSE.saturating_mul(1u32.checked_shl(times - 1).unwrap_or(u32::MAX)).min(LONGEST);
        Self { times, until: Instant::now() + pause }
    }
}
