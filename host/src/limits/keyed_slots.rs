//! Bounds how many operations of each owner run at once, such as searches of one caller. Further ones wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The operations under way, by owner. An owner without one has no entry.
pub struct KeyedSlots<K: Copy + Eq + Hash> {
    most: usize,
    owners: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// The right to run one operation, until it is dropped.
pub struct KeyedSlot<'a, K: Copy + Eq + Hash> {
    all: &'a KeyedSlots<K>,
    owner: K,
    slots: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K: Copy + Eq + Hash> KeyedSlots<K> {
    /// At most `most` operations of each owner at once.
    pub fn new(most: usize) -> Self {
        Self { most: most.min(Semaphore::MAX_PERMITS), owners: Mutex::default() }
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot of `owner`, for at most `longest`. `None` if none came free.
    pub async fn enter(&self, owner: K, longest: Duration) -> Option<KeyedSlot<'_, K>> {
        let slots = Arc::clone(self.owners().entry(owner).or_insert_with(|| Arc::new(Semaphore::new(self.most))));
        // Made before the wait: it removes the entry also if the request is cancelled.
        let mut slot = KeyedSlot { all: self, owner, slots: Some(Arc::clone(&slots)), permit: None };
        slot.permit = match Arc::clone(&slots).try_acquire_owned() {
            Ok(free) => Some(free),
            Err(_) => Some(timeout(longest, slots.acquire_owned()).await.ok()?.ok()?),
        };
        Some(slot)
    }
}

impl<K: Copy + Eq + Hash> Drop for KeyedSlot<'_, K> {
    fn drop(&mut self) {
        let mut owners = self.all.owners();
        (self.permit, self.slots) = (None, None);
        // Only the table is left.
        if owners.get(&self.owner).is_some_and(|slots| Arc::strong_count(slots) == 1) {
            owners.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_owner_gets_few_slots_and_leaves_nothing_behind() {
        let slots = KeyedSlots::new(2);
        let enter = |owner: u32| slots.enter(owner, Duration::from_secs(10));
        let mut held: Vec<_> = (0..2).map(|_| enter(1).now_or_never().flatten().unwrap()).collect();
        assert!(enter(2).now_or_never().flatten().is_some(), "another owner");
        let began = Instant::now();
        assert!(enter(1).await.is_none());
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        held.pop();
        held.push(enter(1).await.unwrap());
        assert_eq!(slots.owners().len(), 1);
        // A cancelled wait.
        assert!(enter(1).now_or_never().is_none());
        held.clear();
        assert_eq!(slots.owners().len(), 0);
    }
}
