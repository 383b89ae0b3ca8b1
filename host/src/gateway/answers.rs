//! Answers that are served more than once: to those who ask for the same while it is being read, and to those who ask while
//! it is fresh.
//!
//! Only answers that everybody gets who asks: a mount that may ask a person reads for each caller anew. What changed is
//! forgotten, also the answer that is on its way: whoever is told of a change reads what is new.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::Expiry;
use moka::sync::Cache;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::admission::budget::{self, Budget};
use crate::catalog::Mount;
use crate::model::{ReadError, Reading};
use crate::sandbox::MountId;

/// The part of all memory that is for answers that are fresh: one of this many.
const PART: u64 = 8;

/// Bytes of an answer that is still shared. Each of those who wait gets a copy, all in one moment; what is larger is read
/// by each in turn, as the mount's limits let them.
const SHARED: usize = 1 << 20;

/// What one entry costs beside its bytes.
const ENTRY: usize = 512;

/// Which answer: a mount, how often all of its answers were forgotten, a reference.
pub(super) type Key = (MountId, u64, Arc<str>);

/// A read that is under way, and what it comes to for those who wait for it: nothing, where it is too large to share.
pub(super) type Flight = OnceCell<Result<Option<Arc<Reading>>, ReadError>>;

/// Bytes of a reading, with a charge for each piece.
pub(super) fn size(reading: &Reading) -> usize {
    reading.contents.iter().map(|contents| contents.body.len() + ENTRY).sum()
}

/// The reading as it is shared, or else back.
pub(super) fn share(reading: Reading) -> Result<Arc<Reading>, Reading> {
    if size(&reading) <= SHARED { Ok(Arc::new(reading)) } else { Err(reading) }
}

/// An answer that may be served again.
struct Kept {
    reading: Reading,
    until: Instant,
    bytes: usize,
    _held: budget::Held,
}

/// See the module.
pub(super) struct Answers {
    flights: Mutex<HashMap<Key, Arc<Flight>>>,
    kept: Cache<Key, Arc<Kept>>,
    /// Whether anything was ever kept: nearly no provider says that its answers stay fresh.
    any: AtomicBool,
    budget: Arc<Budget>,
}

/// Each answer has a time of its own.
struct Freshness;

impl Expiry<Key, Arc<Kept>> for Freshness {
    fn expire_after_create(&self, _: &Key, kept: &Arc<Kept>, _: std::time::Instant) -> Option<Duration> {
        Some(kept.until.saturating_duration_since(Instant::now()))
    }
}

/// A part in a read that may be shared, until it lands or is dropped.
pub(super) struct Joined<'a> {
    answers: &'a Answers,
    key: &'a Key,
    flight: Option<Arc<Flight>>,
}

impl Joined<'_> {
    /// The read.
    pub(super) fn flight(&self) -> Option<&Flight> {
        self.flight.as_deref()
    }

    /// The reading, when the flight has landed, if it is shared: moved where nobody else waits for it.
    pub(super) fn taken(mut self) -> Result<Option<Reading>, ReadError> {
        let shared = match self.flight.take().map(Arc::try_unwrap) {
            Some(Ok(own)) => own.into_inner(),
            Some(Err(shared)) => shared.get().cloned(),
            None => None,
        };
        let reading = shared.unwrap_or_else(|| Err(ReadError::Internal("a read that never ended".to_owned())))?;
        Ok(reading.map(|reading| Arc::try_unwrap(reading).unwrap_or_else(|shared| shared.as_ref().clone())))
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        // Withdrawn: where nobody else waits for it, it is as if it had never been. The map has one of the two.
        let mut flights = self.answers.flights();
        let is_own = flights.get(self.key).is_some_and(|own| Arc::ptr_eq(own, &flight));
        if is_own && Arc::strong_count(&flight) <= 2 {
            flights.remove(self.key);
        }
    }
}

/// What a mount's answer is kept under.
pub(super) fn key(mount: &Mount, reference: &str) -> Key {
    (mount.loaded.id(), mount.changes.load(Ordering::Acquire), reference.into())
}

impl Answers {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        let weigh = |(_, _, reference): &Key, kept: &Arc<Kept>| {
            u32::try_from(reference.len() + kept.bytes + ENTRY).unwrap_or(u32::MAX)
        };
        let kept = Cache::builder().max_capacity(budget.cap() / PART).weigher(weigh).expire_after(Freshness).build();
        Self { flights: Mutex::default(), kept, any: AtomicBool::new(false), budget: Arc::clone(budget) }
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<Key, Arc<Flight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer that is still fresh, with the time for which it is.
    pub(super) fn fresh(&self, key: &Key) -> Option<Reading> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let kept = self.kept.get(key)?;
        let rest = kept.until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())?;
        Some(Reading { fresh_for: Some(rest), ..kept.reading.clone() })
    }

    /// The read of `key` that is under way, or a new one.
    pub(super) fn join<'a>(&'a self, key: &'a Key) -> Joined<'a> {
        let flight = Arc::clone(self.flights().entry(key.clone()).or_default());
        Joined { answers: self, key, flight: Some(flight) }
    }

    /// Ends a read that was joined: nobody joins it any more, and what it gave is kept if it is fresh for a while. Not when
    /// it was forgotten meanwhile.
    pub(super) fn land(&self, mount: &Mount, joined: &Joined<'_>) {
        let (key, Some(flight)) = (joined.key, &joined.flight) else { return };
        let mut flights = self.flights();
        if !flights.get(key).is_some_and(|own| Arc::ptr_eq(own, flight)) {
            return;
        }
        flights.remove(key);
        drop(flights);
        let Some(Ok(Some(reading))) = flight.get() else { return };
        let fresh = reading.fresh_for.unwrap_or_default();
        if fresh.is_zero() || mount.changes.load(Ordering::Acquire) != key.1 {
            return;
        }
        let bytes = size(reading);
        let kept = Kept {
            reading: reading.as_ref().clone(),
            until: Instant::now() + fresh,
            bytes,
            _held: self.budget.hold(bytes as u64),
        };
        self.any.store(true, Ordering::Relaxed);
        self.kept.insert(key.clone(), Arc::new(kept));
    }

    /// Forgets what was read of one reference.
    pub(super) fn forget(&self, key: &Key) {
        self.flights().remove(key);
        self.kept.invalidate(key);
    }
}
