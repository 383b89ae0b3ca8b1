//! Counts what a store grows: all linear memories and tables of a call together.

use wasmtime::ResourceLimiter;

use crate::admission::account::Account;
use crate::model::limits::{CORE_INSTANCES, MEMORIES, TABLES};

/// Bytes that an element of a table takes in the host.
const TABLE_ELEMENT: u64 = 8;

/// Draws everything that grows from the account of the call. A guest that could not grow ends as it likes, mostly with a
/// trap of its own language; the account knows why.
pub(super) struct Meter {
    account: Account,
    /// The last growth that was allowed, to be undone when the allocator then refuses it.
    last: u64,
}

impl Meter {
    pub(super) fn new(account: Account) -> Self {
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
        self.account.give(self.last);
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
    use crate::admission::budget::{Allowance, Budget};
    use crate::model::ReadError;
    use crate::model::error::{Bound, Limit};

    fn meter(cap: u64) -> (Meter, Account) {
        let account = Account::new(cap, Allowance::of(&Budget::new(64 << 20)));
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
            account.refused(),
            Some(ReadError::Exhausted(Limit { bound: Bound::Memory, used: 1008, cap: 1000 }))
        );
    }

    #[test]
    fn what_the_allocator_refuses_is_not_counted() {
        let (mut meter, account) = meter(1000);
        assert!(meter.memory_growing(0, 900, None).unwrap());
        meter.memory_grow_failed(wasmtime::format_err!("no")).unwrap();
        assert!(meter.memory_growing(0, 900, None).unwrap());
        assert_eq!(account.refused(), None);
        assert!(!meter.memory_growing(0, 10, Some(5)).unwrap());
        assert_eq!(account.refused(), None, "its own maximum is not our limit");
    }
}
