//! The memory of all cached listings. It is bounded, and counts against the memory budget of all calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::memory_budget::{self, MemoryBudget};

/// See the module. Sizes are in bytes.
pub struct ListingMemory {
    cap: u64,
    used: AtomicU64,
    budget: Arc<MemoryBudget>,
    clock: AtomicU64,
}

impl ListingMemory {
    /// A bound of one quarter of `budget`: the memory belongs to calls first.
    pub(super) fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { cap: budget.cap() / 4, used: AtomicU64::new(0), budget, clock: AtomicU64::new(1) })
    }

    /// True if a listing must be evicted.
    pub(super) fn is_over(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.cap
    }

    /// The most bytes of one listing: half of the bound.
    pub(super) fn max_listing_bytes(&self) -> u64 {
        self.cap / 2
    }

    /// The bytes of all listings now.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Adds `bytes` to the count.
    pub(super) fn grow(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts `bytes` from the count.
    pub(super) fn shrink(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A reservation of zero bytes in the memory budget of all calls.
    pub(super) fn reserve(&self) -> memory_budget::Reservation {
        self.budget.reserve(0)
    }

    /// The next value of a logical clock, which orders listings by their last use.
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}
