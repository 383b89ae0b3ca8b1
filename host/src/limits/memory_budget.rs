//! The memory budget of all calls and all results in transit. Requests beyond it are refused as busy, long before the
//! machine runs out of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::bounds;
use crate::model::error::show_bytes;

/// Bytes that every call gets, however full the budget is. Small providers continue to work while large ones fill it.
/// Twice the need of a Rust provider with a result of 1 MiB.
const GUARANTEED: u64 = 4 << 20;

/// The memory budget of the process.
pub struct MemoryBudget {
    cap: u64,
    used: AtomicU64,
}

impl MemoryBudget {
    /// A budget of `cap` bytes.
    pub fn new(cap: u64) -> Arc<Self> {
        Arc::new(Self { cap: bounds::of_budget(cap), used: AtomicU64::new(0) })
    }

    /// The size of the budget in bytes.
    pub fn cap(&self) -> u64 {
        self.cap
    }

    /// The bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// True if the whole budget is in use.
    pub fn is_exhausted(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.cap
    }

    /// Counts `bytes` of memory that is already allocated.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Reservation {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Reservation { budget: Arc::clone(self), bytes }
    }

    /// Takes `bytes` if they fit.
    fn try_take(&self, bytes: u64) -> bool {
        let fits = |used: u64| Some(used.saturating_add(bytes)).filter(|wanted| *wanted <= self.cap);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// The reason for a refusal, for the caller.
    pub fn explain(&self) -> String {
        format!(
            "all memory for calls is in use ({} of {})",
            show_bytes(self.used.load(Ordering::Relaxed)),
            show_bytes(self.cap)
        )
    }
}

/// Bytes of the host's own memory, counted until this is dropped.
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl Reservation {
    /// Counts `bytes` more of memory that is already allocated.
    pub fn add(&mut self, bytes: u64) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// Counts `bytes` more that are about to be allocated. Returns false if they do not fit.
    pub fn try_add(&mut self, bytes: u64) -> bool {
        let fits_in = self.budget.try_take(bytes);
        if fits_in {
            self.bytes += bytes;
        }
        fits_in
    }

    /// Releases `bytes` that were freed.
    pub fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// See [`MemoryBudget::explain`].
    pub fn explain(&self) -> String {
        self.budget.explain()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory that all calls of one mount hold: at most half of the budget.
pub(super) struct MountUsage {
    used: AtomicU64,
}

impl MountUsage {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { used: AtomicU64::new(0) })
    }
}

/// The memory of one call, taken from the budget as it grows and released when dropped.
pub struct Allowance {
    budget: Arc<MemoryBudget>,
    mount: Arc<MountUsage>,
    bytes: u64,
}

impl Allowance {
    pub(super) fn new(budget: &Arc<MemoryBudget>, mount: &Arc<MountUsage>) -> Self {
        Self { budget: Arc::clone(budget), mount: Arc::clone(mount), bytes: 0 }
    }

    /// An allowance that belongs to no mount.
    pub fn of(budget: &Arc<MemoryBudget>) -> Self {
        Self::new(budget, &MountUsage::new())
    }

    /// Takes `bytes` more. Returns false if they are not available now.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let budget = &self.budget;
        let is_small = self.bytes.saturating_add(bytes) <= GUARANTEED;
        // A refused amount is never counted, not even for a moment: other calls would be refused because of it.
        let take = |used: &AtomicU64, cap: u64| {
            let fits = |used: u64| Some(used.saturating_add(bytes)).filter(|wanted| is_small || *wanted <= cap);
            used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
        };
        if !take(&self.mount.used, budget.cap / 2) {
            return false;
        }
        if !take(&budget.used, budget.cap) {
            self.mount.used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        true
    }

    /// The bytes taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        self.mount.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// See [`MemoryBudget::explain`].
    pub fn explain(&self) -> String {
        self.budget.explain()
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_mount_gets_half_and_small_calls_always_run() {
        let budget = MemoryBudget::new(64 * MIB);
        let (greedy, other) = (MountUsage::new(), MountUsage::new());
        let mut first = Allowance::new(&budget, &greedy);
        assert!(first.grow(30 * MIB));
        let mut second = Allowance::new(&budget, &greedy);
        assert!(!second.grow(5 * MIB), "more than half for one mount");
        assert!(second.grow(2 * MIB) && second.grow(2 * MIB));
        assert!(!second.grow(1), "the guaranteed bytes are used up");
        let mut neighbour = Allowance::new(&budget, &other);
        assert!(neighbour.grow(30 * MIB));
        assert!(!neighbour.grow(MIB), "the budget is used up");
        assert!(budget.is_exhausted());
        drop((first, second));
        assert!(!budget.is_exhausted() && neighbour.grow(MIB));
        drop(neighbour);
        assert_eq!((budget.used.load(Ordering::Relaxed), greedy.used.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn reserved_bytes_count_until_they_are_dropped() {
        let budget = MemoryBudget::new(10);
        let held = budget.reserve(10);
        assert!(budget.is_exhausted());
        drop(held);
        assert!(!budget.is_exhausted());
    }

    #[test]
    fn bytes_that_do_not_fit_are_refused() {
        let budget = MemoryBudget::new(10);
        let mut held = budget.reserve(4);
        assert!(held.try_add(6) && !held.try_add(1));
        held.release(3);
        assert!(held.try_add(3) && budget.is_exhausted());
        drop(held);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
