//! Counts the growth of a store: all linear memories and tables of a call together.

use wasmtime::ResourceLimiter;

use crate::limits::memory_account::MemoryAccount;
use crate::model::limits::{CORE_INSTANCES, MEMORIES, TABLES};

/// Host bytes of one table element.
const TABLE_ELEMENT: u64 = 8;

/// Takes the memory of every growth from the account of the call. A guest without memory usually ends with a trap of
/// its own language; the account knows the cause.
pub(super) struct Meter {
    account: MemoryAccount,
    /// The last allowed growth, undone if the allocator then refuses it.
    last: u64,
}

impl Meter {
    pub(super) fn new(account: MemoryAccount) -> Self {
        Self { account, last: 0 }
    }

    fn grow(&mut self, by: u64) -> bool {
        let is_allowed = self.account.take(by);
        if is_allowed {
            self.last = by;
        }
        is_allowed
    }

    fn undo(&mut self) {
        self.account.release(self.last);
        self.last = 0;
    }
}

fn exceeds(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_some_and(|maximum| desired > maximum)
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // A growth beyond the memory's own maximum fails anyway and must not count as a belljar limit.
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
    use crate::limits::memory_budget::{Allowance, MemoryBudget};
    use crate::model::ReadError;
    use crate::model::error::{Limit, LimitKind};

    fn meter(cap: u64) -> (Meter, MemoryAccount) {
        let account = MemoryAccount::new(cap, Allowance::of(&MemoryBudget::new(64 << 20)));
        (Meter::new(account.clone()), account)
    }

    #[test]
    fn sums_over_memories_and_tables() {
        let (mut meter, account) = meter(1000);
        assert!(meter.memory_growing(0, 400, None).unwrap());
        assert!(meter.memory_growing(0, 400, None).unwrap());
        assert!(meter.table_growing(0, 25, None).unwrap());
        assert_eq!(account.peak(), 1000);
        assert!(!meter.table_growing(25, 26, None).unwrap());
        assert_eq!(
            account.refusal(),
            Some(ReadError::Exhausted(Limit { kind: LimitKind::Memory, used: 1008, cap: 1000 }))
        );
    }

    #[test]
    fn growth_refused_by_the_allocator_is_not_counted() {
        let (mut meter, account) = meter(1000);
        assert!(meter.memory_growing(0, 900, None).unwrap());
        meter.memory_grow_failed(wasmtime::format_err!("no")).unwrap();
        assert!(meter.memory_growing(0, 900, None).unwrap());
        assert_eq!(account.refusal(), None);
        assert!(!meter.memory_growing(0, 10, Some(5)).unwrap());
        assert_eq!(account.refusal(), None, "its own maximum is not our limit");
    }
}
