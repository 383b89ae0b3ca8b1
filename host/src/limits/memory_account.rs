//! The memory account of one call: its linear memories and tables, and the host memory kept for it. One sum with one
//! cap, taken from the budget of all calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory_budget::Allowance;
use crate::model::ReadError;
use crate::model::error::{Limit, LimitKind};

/// The memory account of one call. Clones share the account. Memory counts until it is released.
#[derive(Clone)]
pub struct MemoryAccount(Arc<Mutex<AccountState>>);

struct AccountState {
    cap: u64,
    peak: u64,
    /// The first limit that was reached, with the largest requested amount.
    refused: Option<Limit>,
    /// The memory in use, taken from the budget of all calls.
    allowance: Allowance,
    /// True if the budget of all calls refused a request.
    is_short: bool,
}

impl MemoryAccount {
    /// An empty account of at most `cap` bytes.
    pub fn new(cap: u64, allowance: Allowance) -> Self {
        Self(Arc::new(Mutex::new(AccountState { cap, peak: 0, refused: None, allowance, is_short: false })))
    }

    fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes` more. Returns false if they exceed the cap or the budget; the account remembers why.
    pub fn take(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        let wanted = state.allowance.bytes().saturating_add(bytes);
        if wanted > state.cap {
            let cap = state.cap;
            match &mut state.refused {
                Some(limit) if limit.kind == LimitKind::Memory => limit.used = limit.used.max(wanted),
                Some(_) => {}
                none => *none = Some(Limit { kind: LimitKind::Memory, used: wanted, cap }),
            }
            return false;
        }
        if !state.allowance.grow(bytes) {
            state.is_short = true;
            return false;
        }
        state.peak = state.peak.max(wanted);
        true
    }

    /// Releases `bytes`.
    pub fn release(&self, bytes: u64) {
        self.lock().allowance.shrink(bytes);
    }

    /// Releases everything: the call has ended, and its memory is about to be freed.
    pub fn close(&self) {
        let mut state = self.lock();
        let all = state.allowance.bytes();
        state.allowance.shrink(all);
    }

    /// Takes `bytes` until the charge is dropped. `None` if they are not available.
    pub fn charge(&self, bytes: u64) -> Option<MemoryCharge> {
        self.take(bytes).then(|| MemoryCharge { account: self.clone(), bytes })
    }

    /// Records that a limit of another kind was reached.
    pub fn record_limit(&self, limit: Limit) {
        self.lock().refused.get_or_insert(limit);
    }

    /// The peak of the memory in use, in bytes.
    pub fn peak(&self) -> u64 {
        self.lock().peak
    }

    /// The error for the first refusal, if there was one.
    pub fn refusal(&self) -> Option<ReadError> {
        let state = self.lock();
        let own = state.refused.map(ReadError::Exhausted);
        own.or_else(|| state.is_short.then(|| ReadError::busy(state.allowance.explain())))
    }
}

/// Bytes of an account, released when dropped.
pub struct MemoryCharge {
    account: MemoryAccount,
    bytes: u64,
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::memory_budget::MemoryBudget;

    const MIB: u64 = 1 << 20;

    fn account(cap: u64, total: u64) -> MemoryAccount {
        MemoryAccount::new(cap, Allowance::of(&MemoryBudget::new(total)))
    }

    #[test]
    fn a_charge_counts_until_it_is_dropped() {
        let account = account(1000, 64 * MIB);
        let first = account.charge(600).expect("there is room");
        assert!(account.take(400) && account.charge(1).is_none());
        assert_eq!(
            account.refusal(),
            Some(ReadError::Exhausted(Limit { kind: LimitKind::Memory, used: 1001, cap: 1000 }))
        );
        drop(first);
        let second = account.charge(600);
        assert!(second.is_some());
        account.close();
        assert!(account.charge(1000).is_some(), "a closed account uses nothing");
        drop(second);
        assert_eq!(account.peak(), 1000);
    }

    #[test]
    fn the_first_limit_is_reported() {
        let account = account(1000, 64 * MIB);
        let requests = Limit { kind: LimitKind::Requests, used: 3, cap: 2 };
        account.record_limit(requests);
        assert!(!account.take(2000));
        assert_eq!(account.refusal(), Some(ReadError::Exhausted(requests)));
    }

    #[test]
    fn the_budget_of_all_calls_is_a_separate_limit() {
        let account = account(64 * MIB, 16 * MIB);
        assert!(account.take(8 * MIB) && !account.take(MIB));
        assert!(matches!(account.refusal(), Some(ReadError::Busy(busy)) if busy.why.contains("of 16MiB")));
    }
}
