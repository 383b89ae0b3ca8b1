//! Bounds how many unknown credentials of one address are checked at once.
//!
//! Checking an opaque token asks its issuer, and only a few questions run at once. Without this bound, one client that
//! sends many random tokens would keep the questions of all others waiting.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::failure_limit::counted;
use crate::model::bounds::MAX_CHECKS_OF_ADDRESS;

/// How long a request waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The checks under way, by address. An address without one has no entry.
#[derive(Default)]
pub(super) struct CheckSlots(Mutex<HashMap<IpAddr, Arc<Semaphore>>>);

/// The right to check one credential, until it is dropped.
pub(super) struct CheckSlot<'a> {
    all: &'a CheckSlots,
    address: IpAddr,
    slots: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl CheckSlots {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot of this address. `None` if none came free.
    pub(super) async fn enter(&self, address: IpAddr) -> Option<CheckSlot<'_>> {
        let address = counted(address);
        let new = || Arc::new(Semaphore::new(MAX_CHECKS_OF_ADDRESS.get().min(Semaphore::MAX_PERMITS)));
        let slots = Arc::clone(self.lock().entry(address).or_insert_with(new));
        // Made before the wait: it removes the entry also if the request is cancelled.
        let mut slot = CheckSlot { all: self, address, slots: Some(Arc::clone(&slots)), permit: None };
        slot.permit = match Arc::clone(&slots).try_acquire_owned() {
            Ok(free) => Some(free),
            Err(_) => Some(timeout(MAX_WAIT, slots.acquire_owned()).await.ok()?.ok()?),
        };
        Some(slot)
    }
}

impl Drop for CheckSlot<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        (self.permit, self.slots) = (None, None);
        // Only the table is left.
        if all.get(&self.address).is_some_and(|slots| Arc::strong_count(slots) == 1) {
            all.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::Instant;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

    #[tokio::test(start_paused = true)]
    async fn an_address_gets_few_slots_and_leaves_nothing_behind() {
        let slots = CheckSlots::default();
        let most = MAX_CHECKS_OF_ADDRESS.get();
        let mut held: Vec<_> = (0..most).map(|_| slots.enter(ADDRESS).now_or_never().flatten().unwrap()).collect();
        let other = "203.0.113.8".parse().unwrap();
        assert!(slots.enter(other).now_or_never().flatten().is_some(), "another address");
        let began = Instant::now();
        assert!(slots.enter(ADDRESS).await.is_none());
        assert_eq!(began.elapsed(), MAX_WAIT);
        held.pop();
        held.push(slots.enter(ADDRESS).await.unwrap());
        assert_eq!(slots.lock().len(), 1);
        // A cancelled wait.
        assert!(slots.enter(ADDRESS).now_or_never().is_none());
        held.clear();
        assert_eq!(slots.lock().len(), 0);
    }
}
