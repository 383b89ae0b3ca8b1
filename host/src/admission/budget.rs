//! The memory that all calls and all answers on their way may take together. What does not fit is refused as busy, long
//! before the machine would run out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::freed;
use crate::model::Guard;
use crate::model::error::show_bytes;

/// Bytes that a call gets whatever the others hold, so that small providers go on while large ones fill
/// the budget. Twice what a Rust provider with an answer of 1 MiB uses.
const ALWAYS: u64 = 4 << 20;

/// One number for the whole process.
pub struct Budget {
    cap: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `cap` bytes.
    pub fn new(cap: u64) -> Arc<Self> {
        freed::begin();
        Arc::new(Self { cap, used: AtomicU64::new(0) })
    }

    /// Bytes in all.
    pub fn cap(&self) -> u64 {
        self.cap
    }

    /// Whether everything is in use.
    pub fn is_spent(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.cap && Guard::Budget.is_on()
    }

    /// Counts `bytes` that exist already.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Held {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Held { budget: Arc::clone(self), bytes }
    }

    /// Takes `bytes`, where they are there.
    fn try_take(&self, bytes: u64) -> bool {
        let fits =
            |used: u64| Some(used.saturating_add(bytes)).filter(|wanted| *wanted <= self.cap || !Guard::Budget.is_on());
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Why a call has to wait, in words for the caller.
    pub fn explain(&self) -> String {
        format!(
            "all memory for calls is in use ({} of {})",
            show_bytes(self.used.load(Ordering::Relaxed)),
            show_bytes(self.cap)
        )
    }
}

/// Bytes of the host's own memory that are counted until this is dropped.
pub struct Held {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Held {
    /// Counts `bytes` more that exist already.
    pub fn add(&mut self, bytes: u64) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// Counts `bytes` more that are about to exist; false, where they do not fit.
    pub fn try_add(&mut self, bytes: u64) -> bool {
        let is_there = self.budget.try_take(bytes);
        if is_there {
            self.bytes += bytes;
        }
        is_there
    }

    /// Gives back `bytes` that are gone.
    pub fn give(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        freed::soon(bytes);
    }

    /// See [`Budget::explain`].
    pub fn explain(&self) -> String {
        self.budget.explain()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        freed::soon(self.bytes);
    }
}

/// What the calls of one mount hold of the budget: at most half of it.
pub(super) struct Part {
    used: AtomicU64,
}

impl Part {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { used: AtomicU64::new(0) })
    }
}

/// The memory of one call, drawn from the budget as it grows.
pub struct Allowance {
    budget: Arc<Budget>,
    part: Arc<Part>,
    bytes: u64,
}

impl Allowance {
    pub(super) fn new(budget: &Arc<Budget>, part: &Arc<Part>) -> Self {
        Self { budget: Arc::clone(budget), part: Arc::clone(part), bytes: 0 }
    }

    /// One that is no mount's.
    #[cfg(test)]
    pub fn of(budget: &Arc<Budget>) -> Self {
        Self::new(budget, &Part::new())
    }

    /// Takes `bytes` more, or says that they are not there now.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let budget = &self.budget;
        let is_small = self.bytes.saturating_add(bytes) <= ALWAYS;
        let is_let = is_small || !Guard::Budget.is_on();
        // What is refused is never counted, not even for a moment: others would be refused for it.
        let take = |used: &AtomicU64, cap: u64| {
            let fits = |used: u64| Some(used.saturating_add(bytes)).filter(|wanted| is_let || *wanted <= cap);
            used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
        };
        if !take(&self.part.used, budget.cap / 2) {
            return false;
        }
        if !take(&budget.used, budget.cap) {
            self.part.used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        true
    }

    /// What it has taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives `bytes` back.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        self.part.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// See [`Budget::explain`].
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
        let budget = Budget::new(64 * MIB);
        let (greedy, other) = (Part::new(), Part::new());
        let mut first = Allowance::new(&budget, &greedy);
        assert!(first.grow(30 * MIB));
        let mut second = Allowance::new(&budget, &greedy);
        assert!(!second.grow(5 * MIB), "more than half for one mount");
        assert!(second.grow(2 * MIB) && second.grow(2 * MIB));
        assert!(!second.grow(1), "the small part is used up");
        let mut neighbour = Allowance::new(&budget, &other);
        assert!(neighbour.grow(30 * MIB));
        assert!(!neighbour.grow(MIB), "the whole is used up");
        assert!(budget.is_spent());
        drop((first, second));
        assert!(!budget.is_spent() && neighbour.grow(MIB));
        drop(neighbour);
        assert_eq!((budget.used.load(Ordering::Relaxed), greedy.used.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn what_exists_is_counted_and_given_back() {
        let budget = Budget::new(10);
        let held = budget.hold(10);
        assert!(budget.is_spent());
        drop(held);
        assert!(!budget.is_spent());
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let budget = Budget::new(10);
        let mut held = budget.hold(4);
        assert!(held.try_add(6) && !held.try_add(1));
        held.give(3);
        assert!(held.try_add(3) && budget.is_spent());
        drop(held);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
