//! Counts what a store grows: all linear memories and tables of a call together.

use wasmtime::ResourceLimiter;

use crate::admission::budget::Allowance;
use crate::model::error::{Bound, Limit};
use crate::model::limits::{CORE_INSTANCES, MEMORIES, TABLES};
use crate::model::{Guard, ReadError};

/// Bytes that an element of a table takes in the host.
const TABLE_ELEMENT: u64 = 8;

/// One sum over everything that grows, with its cap.
pub(super) struct Meter {
    cap: u64,
    peak: u64,
    /// The last growth that was allowed, to be undone when the allocator then refuses it.
    last: u64,
    /// The largest total that was asked for and refused.
    refused: Option<u64>,
    /// What is in use, drawn from what all calls have together.
    allowance: Allowance,
    /// Whether it was that which refused.
    is_short: bool,
}

impl Meter {
    pub(super) fn new(cap: u64, allowance: Allowance) -> Self {
        Self { cap, peak: 0, last: 0, refused: None, allowance, is_short: false }
    }

    /// The most that was in use at once, in bytes.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// Why, if something was refused. A guest that could not grow ends as it likes, mostly with a trap of its own
    /// language, so that the trap's code says nothing.
    pub(super) fn refused(&self) -> Option<ReadError> {
        let own = self.refused.map(|used| ReadError::Exhausted(Limit { bound: Bound::Memory, used, cap: self.cap }));
        own.or_else(|| self.is_short.then(|| ReadError::Busy(self.allowance.explain())))
    }

    fn grow(&mut self, by: u64) -> bool {
        let wanted = self.allowance.bytes().saturating_add(by);
        if wanted > self.cap && Guard::Memory.is_on() {
            self.refused = self.refused.max(Some(wanted));
            return false;
        }
        if !self.allowance.grow(by) {
            self.is_short = true;
            return false;
        }
        self.last = by;
        self.peak = self.peak.max(wanted);
        true
    }

    fn undo(&mut self) {
        self.allowance.shrink(self.last);
        self.last = 0;
    }
}

fn exceeds(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_some_and(|maximum| desired > maximum)
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Beyond its own maximum a memory cannot grow, whatever we say; it is not our limit that stops it.
        Ok(!exceeds(desired, maximum) && self.grow(desired.saturating_sub(current) as u64))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let bytes = (desired.saturating_sub(current) as u64).saturating_mul(TABLE_ELEMENT);
        Ok(!exceeds(desired, maximum) && self.grow(bytes))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.undo();
        Ok(())
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::budget::Budget;

    const MIB: u64 = 1 << 20;

    fn meter(cap: u64, total: u64) -> Meter {
        Meter::new(cap, Allowance::of(&Budget::new(total)))
    }

    #[test]
    fn sums_over_memories_and_tables() {
        let mut meter = meter(1000, 64 * MIB);
        assert!(meter.memory_growing(0, 400, None).unwrap());
        assert!(meter.memory_growing(0, 400, None).unwrap());
        assert!(meter.table_growing(0, 25, None).unwrap());
        assert_eq!(meter.peak(), 1000);
        assert!(!meter.table_growing(25, 26, None).unwrap());
        assert_eq!(meter.refused(), Some(ReadError::Exhausted(Limit { bound: Bound::Memory, used: 1008, cap: 1000 })));
    }

    #[test]
    fn what_the_allocator_refuses_is_not_counted() {
        let mut meter = meter(1000, 64 * MIB);
        assert!(meter.memory_growing(0, 900, None).unwrap());
        meter.memory_grow_failed(wasmtime::format_err!("no")).unwrap();
        assert!(meter.memory_growing(0, 900, None).unwrap());
        assert_eq!(meter.refused(), None);
        assert!(!meter.memory_growing(0, 10, Some(5)).unwrap());
        assert_eq!(meter.refused(), None, "its own maximum is not our limit");
    }

    #[test]
    fn what_all_calls_have_together_is_a_bound_of_its_own() {
        let mut meter = meter(64 * MIB, 16 * MIB);
        assert!(meter.memory_growing(0, 8 << 20, None).unwrap());
        assert!(!meter.memory_growing(8 << 20, 9 << 20, None).unwrap());
        assert!(matches!(meter.refused(), Some(ReadError::Busy(why)) if why.contains("of 16MiB")));
    }
}
