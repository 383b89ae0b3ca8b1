//! The generic cell rate algorithm (GCRA): one number for each quota, and no timer.
//!
//! The arithmetic is exact. Time and units are both counted in parts: a nanosecond gives back `amount` parts, and a unit
//! costs as many parts as its period has nanoseconds. So 50 MiB a day is not rounded to whole nanoseconds a byte.
//!
//! The crate `governor` was considered. It rounds to nanoseconds a unit, cannot take from several quotas at once or
//! from none, has no debts, and does not bound its table of keys.

use std::time::Duration;

use crate::store::quota::QuotaRate;

/// What is used of one quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeakyBucket {
    /// The time at which all of the quota is available again, in parts.
    empty_at: u128,
}

/// `now`, in nanoseconds, in parts of `rate`.
fn parts(rate: QuotaRate, now: u128) -> u128 {
    now.saturating_mul(rate.amount.max(1).into())
}

/// The parts of one unit.
fn unit(rate: QuotaRate) -> u128 {
    rate.period.as_nanos().max(1)
}

/// The parts of the whole quota.
pub(super) fn capacity(rate: QuotaRate) -> u128 {
    unit(rate).saturating_mul(rate.burst.max(1).into())
}

impl LeakyBucket {
    /// A bucket of which `used` parts are used at `now`.
    pub(super) fn with_used(rate: QuotaRate, used: u128, now: u128) -> Self {
        Self { empty_at: parts(rate, now).saturating_add(used) }
    }

    /// The parts that are used. More than the capacity if there is a debt.
    pub(super) fn used(&self, rate: QuotaRate, now: u128) -> u128 {
        self.empty_at.saturating_sub(parts(rate, now))
    }

    /// The time until all of the quota is available again, in nanoseconds.
    pub(super) fn time_until_empty(&self, rate: QuotaRate, now: u128) -> u128 {
        self.used(rate, now).div_ceil(rate.amount.max(1).into())
    }

    /// The time until `cost` units are available. `None` if they are available now.
    pub(super) fn wait(&self, rate: QuotaRate, cost: u64, now: u128) -> Option<Duration> {
        let wanted = unit(rate).saturating_mul(cost.max(1).into());
        let missing = self.used(rate, now).saturating_add(wanted).saturating_sub(capacity(rate));
        let nanos = missing.div_ceil(rate.amount.max(1).into());
        (nanos > 0).then(|| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Takes `parts` parts, also beyond the capacity.
    pub(super) fn take_parts(&mut self, rate: QuotaRate, taken: u128, now: u128) {
        self.empty_at = self.empty_at.max(parts(rate, now)).saturating_add(taken);
    }

    /// Takes `cost` units, also beyond the capacity.
    pub(super) fn take(&mut self, rate: QuotaRate, cost: u64, now: u128) {
        self.take_parts(rate, unit(rate).saturating_mul(cost.into()), now);
    }
}
