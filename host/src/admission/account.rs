//! What one call takes of the memory: its linear memories and tables, and everything that the host keeps for it. One sum
//! with one cap, drawn from what all calls have together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget::Allowance;
use crate::model::error::{Bound, Limit};
use crate::model::{Guard, ReadError};

/// The account of one call; clones are the same account. What is charged counts until it is given back.
#[derive(Clone)]
pub struct Account(Arc<Mutex<Sum>>);

struct Sum {
    cap: u64,
    peak: u64,
    /// The first limit that was met, with the largest amount that was asked for.
    refused: Option<Limit>,
    /// What is in use, drawn from what all calls have together.
    allowance: Allowance,
    /// Whether that refused something.
    is_short: bool,
}

impl Account {
    /// An empty account of at most `cap` bytes.
    pub fn new(cap: u64, allowance: Allowance) -> Self {
        Self(Arc::new(Mutex::new(Sum { cap, peak: 0, refused: None, allowance, is_short: false })))
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes` more; false, and noted as the limit that was met, when they are not there.
    pub fn take(&self, bytes: u64) -> bool {
        let mut sum = self.sum();
        let wanted = sum.allowance.bytes().saturating_add(bytes);
        if wanted > sum.cap && Guard::Memory.is_on() {
            let cap = sum.cap;
            match &mut sum.refused {
                Some(limit) if limit.bound == Bound::Memory => limit.used = limit.used.max(wanted),
                Some(_) => {}
                none => *none = Some(Limit { bound: Bound::Memory, used: wanted, cap }),
            }
            return false;
        }
        if !sum.allowance.grow(bytes) {
            sum.is_short = true;
            return false;
        }
        sum.peak = sum.peak.max(wanted);
        true
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: u64) {
        self.sum().allowance.shrink(bytes);
    }

    /// Takes `bytes` until the charge is dropped; nothing, when they are not there.
    pub fn charge(&self, bytes: u64) -> Option<Charge> {
        self.take(bytes).then(|| Charge { account: self.clone(), bytes })
    }

    /// Notes a limit of another kind that was met.
    pub fn refuse(&self, limit: Limit) {
        self.sum().refused.get_or_insert(limit);
    }

    /// The most that was in use at once, in bytes.
    pub fn peak(&self) -> u64 {
        self.sum().peak
    }

    /// Why, if something was refused.
    pub fn refused(&self) -> Option<ReadError> {
        let sum = self.sum();
        let own = sum.refused.map(ReadError::Exhausted);
        own.or_else(|| sum.is_short.then(|| ReadError::Busy(sum.allowance.explain())))
    }
}

/// Bytes of an account that are in use until this is dropped.
pub struct Charge {
    account: Account,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::budget::Budget;

    const MIB: u64 = 1 << 20;

    fn account(cap: u64, total: u64) -> Account {
        Account::new(cap, Allowance::of(&Budget::new(total)))
    }

    #[test]
    fn what_is_charged_counts_until_it_is_dropped() {
        let account = account(1000, 64 * MIB);
        let first = account.charge(600).expect("there is room");
        assert!(account.take(400) && account.charge(1).is_none());
        assert_eq!(
            account.refused(),
            Some(ReadError::Exhausted(Limit { bound: Bound::Memory, used: 1001, cap: 1000 }))
        );
        drop(first);
        assert!(account.charge(600).is_some());
        assert_eq!(account.peak(), 1000);
    }

    #[test]
    fn the_limit_that_was_met_first_is_told() {
        let account = account(1000, 64 * MIB);
        let requests = Limit { bound: Bound::Requests, used: 3, cap: 2 };
        account.refuse(requests);
        assert!(!account.take(2000));
        assert_eq!(account.refused(), Some(ReadError::Exhausted(requests)));
    }

    #[test]
    fn what_all_calls_have_together_is_a_bound_of_its_own() {
        let account = account(64 * MIB, 16 * MIB);
        assert!(account.take(8 * MIB) && !account.take(MIB));
        assert!(matches!(account.refused(), Some(ReadError::Busy(why)) if why.contains("of 16MiB")));
    }
}
