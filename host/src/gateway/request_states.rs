//! The states of questions: sealed, sent to a client, and valid once when they come back.
//!
//! A state is valid in the process that made it. With a store, it is valid in each replica, and the store knows whether it
//! came back before. Without a store nothing can know that, so no other replica accepts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::catalog::Mount;
use crate::model::ReadError;
use crate::model::busy::BusyReason;
use crate::model::seal::Seal;
use crate::store::{Spending, SpentMarks};

/// Time in which a state is valid.
pub const ANSWER_TIME: Duration = Duration::from_secs(5 * 60);

/// Identifies a state among those of all replicas.
pub type StateNumber = [u8; 16];

/// When a client may come again whose state cannot be checked.
const UNCHECKED_PAUSE: Duration = Duration::from_secs(1);

/// What replicas share, so that each accepts the states of the others.
pub struct SharedStates {
    /// The key that all replicas have.
    pub key: [u8; 32],
    /// Knows which states came back.
    pub marks: Arc<dyn SpentMarks>,
}

/// See the module. Clones are for several kinds of questions.
#[derive(Clone)]
pub struct RequestStates {
    /// Of this process alone.
    own_key: [u8; 32],
    seal_key: [u8; 32],
    marks: Option<Arc<dyn SpentMarks>>,
    began: Instant,
    /// Milliseconds from the Unix epoch to `began`.
    began_at: u64,
    last: Arc<AtomicU64>,
}

impl RequestStates {
    /// The states of this process, whose `own_key` no other process has.
    pub fn new(own_key: &[u8; 32], shared: Option<SharedStates>) -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            own_key: *own_key,
            seal_key: shared.as_ref().map_or(*own_key, |shared| shared.key),
            marks: shared.map(|shared| shared.marks),
            began: Instant::now(),
            began_at: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
            last: Arc::default(),
        }
    }

    /// The seal of one kind of states.
    pub(super) fn seal(&self, purpose: &'static str) -> Seal {
        Seal::new(purpose, &self.seal_key)
    }

    /// The number of a new state. No other state has it, of any replica.
    pub(super) fn number(&self) -> StateNumber {
        let count = self.last.fetch_add(1, Ordering::Relaxed);
        let mut number = StateNumber::default();
        blake3::Hasher::new_keyed(&self.own_key).update(&count.to_le_bytes()).finalize_xof().fill(&mut number);
        number
    }

    /// A time, for the states of all replicas: milliseconds since the Unix epoch.
    pub(super) fn time(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.began).as_millis();
        self.began_at.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// True if a state of the time `at` is too old.
    pub(super) fn is_expired(&self, at: u64, now: Instant) -> bool {
        u128::from(self.time(now).saturating_sub(at)) >= ANSWER_TIME.as_millis()
    }

    /// The version of a mount that a state is for. Any change of the mount makes another one. In one process, a change that
    /// is taken back does so too.
    pub(super) fn mount_version(&self, mount: &Mount) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&mount.cached.key().bytes());
        if self.marks.is_none() {
            hasher.update(&mount.loaded.id().number().to_le_bytes());
        }
        hasher.finalize().into()
    }

    /// Spends a state among all replicas. True if another replica did before. This process has checked its own.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if nobody knows.
    pub(super) async fn is_spent(&self, number: StateNumber) -> Result<bool, ReadError> {
        let Some(marks) = &self.marks else { return Ok(false) };
        match marks.spend(u128::from_le_bytes(number), ANSWER_TIME * 2).await {
            Spending::First => Ok(false),
            Spending::Again => Ok(true),
            Spending::Unknown => {
                let why = "the store that knows which questions were answered cannot be reached; send the answer again";
                Err(ReadError::Busy(BusyReason::from(why.to_owned()).retry_after(UNCHECKED_PAUSE)))
            }
        }
    }
}
