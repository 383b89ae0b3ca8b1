//! How much of the processors a mount's calls may take over time, however often they are asked for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Guard;

/// The time over which a share is measured: what a mount did not use can be used later, up to this much of it.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// The account of one mount: it fills with time and is drawn on by what calls compute.
pub(super) struct Share {
    /// Percent of one processor.
    percent: u64,
    account: Mutex<Account>,
}

struct Account {
    at: Instant,
    /// Nanoseconds of computing that are left; below zero after calls that computed more than was left.
    left: i64,
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl Share {
    pub(super) fn new(percent: u64) -> Self {
        let account = Account { at: Instant::now(), left: Self::full(percent) };
        Self { percent, account: Mutex::new(account) }
    }

    /// What is there after a window of rest.
    fn full(percent: u64) -> i64 {
        nanos(WINDOW).saturating_mul(i64::try_from(percent).unwrap_or(i64::MAX)) / 100
    }

    fn with<T>(&self, now: Instant, work: impl FnOnce(&mut Account) -> T) -> T {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = nanos(now.saturating_duration_since(account.at));
        let earned = rested.saturating_mul(i64::try_from(self.percent).unwrap_or(i64::MAX)) / 100;
        account.left = account.left.saturating_add(earned).min(Self::full(self.percent));
        account.at = now;
        work(&mut account)
    }

    /// Draws `spent` of computing. The debt is at most one window's worth, so that a mount is heard again within that time
    /// whatever it did.
    pub(super) fn draw(&self, now: Instant, spent: Duration) {
        let lowest = -Self::full(self.percent);
        self.with(now, |account| account.left = account.left.saturating_sub(nanos(spent)).max(lowest));
    }

    /// How long until a call may start: zero when something is left.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        if !Guard::Cpu.is_on() {
            return Duration::ZERO;
        }
        let missing = self.with(now, |account| 1i64.saturating_sub(account.left).max(0)).unsigned_abs();
        Duration::from_nanos(missing.saturating_mul(100) / self.percent.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_drawn_comes_back_with_time() {
        let share = Share::new(50);
        let now = Instant::now();
        assert_eq!(share.wait(now), Duration::ZERO);
        share.draw(now, 5 * SECOND);
        // Nothing is left; the first nanosecond comes back at half speed.
        assert_eq!(share.wait(now), Duration::from_nanos(2));
        share.draw(now, SECOND);
        let wait = share.wait(now);
        assert!(wait >= 2 * SECOND && wait < 2 * SECOND + Duration::from_millis(1), "{wait:?}");
        assert_eq!(share.wait(now + wait), Duration::ZERO);
    }

    #[test]
    fn neither_savings_nor_debts_are_endless() {
        let share = Share::new(100);
        let later = Instant::now() + 1000 * SECOND;
        share.draw(later, WINDOW);
        assert!(share.wait(later) > Duration::ZERO);
        share.draw(later, 1000 * SECOND);
        assert!(share.wait(later) <= WINDOW + Duration::from_millis(1));
    }
}
