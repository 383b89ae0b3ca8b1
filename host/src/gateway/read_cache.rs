//! Readings that more than one request receives: requests that arrive during the same read, and requests that arrive
//! while the reading is fresh.
//!
//! Only readings that are the same for every caller are shared. A mount that may ask a person reads for each caller
//! separately.
//!
//! A change removes the cached reading and also detaches a read in flight. A client that is notified of a change
//! therefore reads the new contents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use crate::catalog::{Mount, MountKey};
use crate::limits::memory_budget::{self, MemoryBudget};
use crate::model::{ReadError, Reading};
use crate::store::{CachedValue, MemoryReadCache, ReadCache};

/// Fresh readings may use one part in this many of the memory budget of all calls.
const BUDGET_DIVISOR: u64 = 8;

/// The largest reading in bytes that is shared. All waiting requests get their copies at the same moment. A larger
/// reading is read by each request in turn, within the mount's limits.
const MAX_SHARED_BYTES: usize = 1 << 20;

/// Bytes that one entry costs in addition to its contents.
const ENTRY_OVERHEAD: usize = 512;

/// Identifies a reading: the version of a mount, the generation of its answers, and a reference.
pub(super) type ReadKey = (MountKey, u64, Arc<str>);

/// A read in flight, and its result for the requests that wait for it. The result is `None` if the reading is too large
/// to share.
pub(super) type InFlightRead = OnceCell<Result<Option<Arc<Reading>>, ReadError>>;

/// The size of a reading in bytes, with an overhead for each of its contents.
pub(super) fn size(reading: &Reading) -> usize {
    reading.contents.iter().map(|contents| contents.body.len() + ENTRY_OVERHEAD).sum()
}

/// The reading in shared form, or the reading itself if it is too large.
pub(super) fn share(reading: Reading) -> Result<Arc<Reading>, Reading> {
    if size(&reading) <= MAX_SHARED_BYTES { Ok(Arc::new(reading)) } else { Err(reading) }
}

/// The cache of fresh readings. Its entries count against the memory budget of all calls.
type FreshReads = MemoryReadCache<ReadKey, Reading, memory_budget::Reservation>;

/// Reads in flight and fresh readings. See the module.
pub(super) struct SharedReads<C = FreshReads> {
    in_flight: Mutex<HashMap<ReadKey, Arc<InFlightRead>>>,
    fresh: C,
}

/// One request's part in a read that may be shared, until the read is finished or the request is dropped.
pub(super) struct JoinedRead<'a> {
    in_flight: &'a Mutex<HashMap<ReadKey, Arc<InFlightRead>>>,
    key: &'a ReadKey,
    read: Option<Arc<InFlightRead>>,
}

impl JoinedRead<'_> {
    /// The read in flight.
    pub(super) fn read(&self) -> Option<&InFlightRead> {
        self.read.as_deref()
    }

    /// The reading of the finished read, if it is shared. Moves it if no other request waits for it, and clones it
    /// otherwise.
    pub(super) fn into_reading(mut self) -> Result<Option<Reading>, ReadError> {
        let shared = match self.read.take().map(Arc::try_unwrap) {
            Some(Ok(own)) => own.into_inner(),
            Some(Err(shared)) => shared.get().cloned(),
            None => None,
        };
        let reading =
            shared.unwrap_or_else(|| Err(ReadError::Internal("a shared read ended without a result".to_owned())))?;
        Ok(reading.map(|reading| Arc::try_unwrap(reading).unwrap_or_else(|shared| shared.as_ref().clone())))
    }
}

impl Drop for JoinedRead<'_> {
    fn drop(&mut self) {
        let Some(read) = self.read.take() else { return };
        // The request was cancelled. If no other request waits for the read, remove it. One of the two references is in
        // the map.
        let mut in_flight = lock(self.in_flight);
        let is_current = in_flight.get(self.key).is_some_and(|own| Arc::ptr_eq(own, &read));
        if is_current && Arc::strong_count(&read) <= 2 {
            in_flight.remove(self.key);
        }
    }
}

/// The key of a mount's reading.
pub(super) fn key(mount: &Mount, reference: &str) -> ReadKey {
    (mount.cached.key(), mount.cached.generation(), reference.into())
}

fn lock(in_flight: &Mutex<HashMap<ReadKey, Arc<InFlightRead>>>) -> MutexGuard<'_, HashMap<ReadKey, Arc<InFlightRead>>> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedReads {
    pub(super) fn new(budget: &Arc<MemoryBudget>) -> Self {
        let (cap, budget) = (budget.cap() / BUDGET_DIVISOR, Arc::clone(budget));
        let fresh = MemoryReadCache::new(cap, move |bytes| budget.reserve(bytes));
        Self { in_flight: Mutex::default(), fresh }
    }
}

impl<C: ReadCache<ReadKey, Reading>> SharedReads<C> {
    /// A reading that is still fresh, with the remaining time in `fresh_for`.
    pub(super) async fn fresh(&self, key: &ReadKey) -> Option<Reading> {
        let CachedValue { value, fresh_for } = self.fresh.get(key).await?;
        Some(Reading { fresh_for: Some(fresh_for), ..value.as_ref().clone() })
    }

    /// The read of `key` that is in flight, or a new one.
    pub(super) fn join<'a>(&'a self, key: &'a ReadKey) -> JoinedRead<'a> {
        let read = Arc::clone(lock(&self.in_flight).entry(key.clone()).or_default());
        JoinedRead { in_flight: &self.in_flight, key, read: Some(read) }
    }

    /// Ends a joined read: no further request can join it. Caches the reading if it stays fresh for some time, unless
    /// the key was forgotten during the read.
    pub(super) async fn finish(&self, mount: &Mount, joined: &JoinedRead<'_>) {
        let (key, Some(read)) = (joined.key, &joined.read) else { return };
        {
            let mut in_flight = lock(&self.in_flight);
            if !in_flight.get(key).is_some_and(|own| Arc::ptr_eq(own, read)) {
                return;
            }
            in_flight.remove(key);
        }
        let Some(Ok(Some(reading))) = read.get() else { return };
        let fresh = reading.fresh_for.unwrap_or_default();
        if fresh.is_zero() || mount.cached.generation() != key.1 {
            return;
        }
        let (_, _, reference) = key;
        let bytes = size(reading) + reference.len();
        self.fresh.put(key.clone(), reading.as_ref().clone(), bytes, fresh).await;
    }

    /// Forgets the reading of one reference.
    pub(super) fn forget(&self, key: &ReadKey) {
        lock(&self.in_flight).remove(key);
        self.fresh.forget(key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalog::mount::tests::mount;

    async fn read(reads: &SharedReads, mount: &Mount, fresh_for: Option<Duration>) {
        let key = key(mount, "a.md");
        let joined = reads.join(&key);
        let reading = Reading { fresh_for, ..Reading::default() };
        joined.read().unwrap().get_or_init(async || Ok(Some(Arc::new(reading)))).await;
        reads.finish(mount, &joined).await;
    }

    #[tokio::test]
    async fn a_fresh_answer_is_served_until_its_mount_changes() {
        let reads = SharedReads::new(&MemoryBudget::new(1 << 20));
        let (own, other) = (mount("a", "a://"), mount("a", "b://"));
        let is_fresh = async |mount: &Mount| reads.fresh(&key(mount, "a.md")).await.is_some();
        read(&reads, &own, None).await;
        assert!(!is_fresh(&own).await, "its provider did not say that it stays fresh");
        read(&reads, &own, Some(Duration::from_secs(60))).await;
        assert!(is_fresh(&own).await);
        assert!(!is_fresh(&other).await, "another version of the mount may answer otherwise");
        reads.forget(&key(&own, "a.md"));
        assert!(!is_fresh(&own).await);
        read(&reads, &own, Some(Duration::from_secs(60))).await;
        own.cached.invalidate_answers();
        assert!(!is_fresh(&own).await);
    }
}
