//! The CPU share of a mount: the processor time that its calls may use over time, whatever the rate of requests.
//!
//! Used time is owed in full. While a mount is overdrawn, one of its calls continues at a time and the others wait.
//! Over several windows the mount uses its share and at most the time of one call more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The window of a share. Unused time can be saved up to one window.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// The CPU account of one mount: time fills it, computing calls charge it.
pub(super) struct CpuShare {
    /// Percent of one processor.
    percent: AtomicU64,
    balance: Mutex<CpuBalance>,
    /// True if one call continues although the account is overdrawn.
    has_leader: AtomicBool,
}

struct CpuBalance {
    at: Instant,
    /// Nanoseconds of processor time left. Negative after calls used more than was left.
    left: i64,
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The nanoseconds that `percent` of a processor provide in `time`.
fn nanos_of_share(time: Duration, percent: u64) -> i64 {
    nanos(time).saturating_mul(i64::try_from(percent).unwrap_or(i64::MAX)) / 100
}

impl CpuShare {
    pub(super) fn new(percent: u64) -> Self {
        let balance = CpuBalance { at: Instant::now(), left: nanos_of_share(WINDOW, percent) };
        Self { percent: AtomicU64::new(percent), balance: Mutex::new(balance), has_leader: AtomicBool::new(false) }
    }

    fn percent(&self) -> u64 {
        self.percent.load(Ordering::Relaxed).max(1)
    }

    /// Applies another share from now on. Debts remain.
    pub(super) fn set_percent(&self, now: Instant, percent: u64) {
        let before = self.percent();
        if before == percent {
            return;
        }
        // The time until now is earned at the old rate.
        self.with(now, |balance| {
            let more = nanos_of_share(WINDOW, percent) - nanos_of_share(WINDOW, before);
            // A full account stays full, and an overdrawn one keeps its debt.
            balance.left = if balance.left > 0 { balance.left.saturating_add(more).max(0) } else { balance.left };
            self.percent.store(percent, Ordering::Relaxed);
        });
    }

    fn with<T>(&self, now: Instant, work: impl FnOnce(&mut CpuBalance) -> T) -> T {
        let mut balance = self.balance.lock().unwrap_or_else(PoisonError::into_inner);
        let percent = self.percent();
        // Threads read the clock before they take the lock, so `now` may be older than `at`.
        if let Some(rested) = now.checked_duration_since(balance.at).filter(|rested| !rested.is_zero()) {
            balance.left =
                balance.left.saturating_add(nanos_of_share(rested, percent)).min(nanos_of_share(WINDOW, percent));
            balance.at = now;
        }
        work(&mut balance)
    }

    /// Charges `spent`. All of it is owed, however long it takes to earn.
    pub(super) fn charge(&self, now: Instant, spent: Duration) {
        self.with(now, |balance| balance.left = balance.left.saturating_sub(nanos(spent)));
    }

    /// The time until a call may start: zero if processor time is left.
    pub(super) fn time_until_available(&self, now: Instant) -> Duration {
        let missing = self.with(now, |balance| 1i64.saturating_sub(balance.left).max(0)).unsigned_abs();
        if missing == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(missing.saturating_mul(100) / self.percent())
    }

    /// The time that a running call must wait before it continues. Zero while processor time is left, and zero for the
    /// leader: the one call that continues while the account is overdrawn. `is_leader` records whether this call is the
    /// leader, until [`CpuShare::end`].
    pub(super) fn pause(&self, now: Instant, is_leader: &AtomicBool) -> Duration {
        let wait = self.time_until_available(now);
        if wait.is_zero() || is_leader.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        if !self.has_leader.swap(true, Ordering::AcqRel) {
            is_leader.store(true, Ordering::Relaxed);
            return Duration::ZERO;
        }
        wait
    }

    /// Ends a call. If it was the leader, another call may become one.
    pub(super) fn end(&self, is_leader: &AtomicBool) {
        if is_leader.load(Ordering::Relaxed) {
            self.has_leader.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn charged_time_returns_at_the_rate_of_the_share() {
        let share = CpuShare::new(50);
        let now = Instant::now();
        assert_eq!(share.time_until_available(now), Duration::ZERO);
        share.charge(now, 5 * SECOND);
        // The share is used up. At half speed, the mount gets one nanosecond after two.
        assert_eq!(share.time_until_available(now), Duration::from_nanos(2));
        share.charge(now, SECOND);
        let wait = share.time_until_available(now);
        assert!(wait >= 2 * SECOND && wait < 2 * SECOND + Duration::from_millis(1), "{wait:?}");
        assert_eq!(share.time_until_available(now + wait), Duration::ZERO);
    }

    #[test]
    fn savings_are_capped_and_debts_are_not() {
        let share = CpuShare::new(100);
        let later = Instant::now() + 1000 * SECOND;
        share.charge(later, WINDOW);
        assert!(share.time_until_available(later) > Duration::ZERO);
        share.charge(later, 1000 * SECOND);
        assert!(share.time_until_available(later) >= 1000 * SECOND);
        assert!(share.time_until_available(later + 999 * SECOND) > Duration::ZERO);
        assert_eq!(share.time_until_available(later + 1001 * SECOND), Duration::ZERO);
    }

    #[test]
    fn over_several_windows_a_mount_uses_its_share_plus_one_call() {
        // Eight clients send calls of three seconds without a pause; the share is a twentieth of a processor.
        let (percent, call, step) = (5, 3 * SECOND, Duration::from_millis(2));
        let share = CpuShare::new(percent);
        let (start, mut used) = (Instant::now(), Duration::ZERO);
        let mut running: Vec<(Duration, AtomicBool)> = Vec::new();
        for tick in 0..60_000u32 {
            let now = start + step * tick;
            while running.len() < 8 && share.time_until_available(now).is_zero() {
                running.push((Duration::ZERO, AtomicBool::new(false)));
            }
            running.retain_mut(|(computed, is_leader)| {
                // A call that must wait is ended here.
                if !share.pause(now, is_leader).is_zero() {
                    return false;
                }
                share.charge(now, step);
                (*computed, used) = (*computed + step, used + step);
                let goes_on = *computed < call;
                if !goes_on {
                    share.end(is_leader);
                }
                goes_on
            });
        }
        let (time, percent) = (step * 60_000, u32::try_from(percent).unwrap());
        let most = (time + WINDOW) * percent / 100 + call + step * 16;
        assert!(used <= most, "{used:?} of {most:?}");
        assert!(used >= time * percent / 200, "{used:?}: it gets something");
    }

    #[test]
    fn one_call_continues_at_a_time() {
        let (share, now) = (CpuShare::new(100), Instant::now());
        let [first, second] = [AtomicBool::new(false), AtomicBool::new(false)];
        assert!(share.pause(now, &first).is_zero() && share.pause(now, &second).is_zero());
        share.charge(now, WINDOW + SECOND);
        assert!(share.pause(now, &first).is_zero(), "one goes on");
        assert!(!share.pause(now, &second).is_zero(), "the other waits");
        assert!(share.pause(now, &first).is_zero());
        share.end(&first);
        assert!(share.pause(now, &second).is_zero(), "after the leader has ended");
    }

    #[test]
    fn a_new_share_keeps_debts() {
        let (share, now) = (CpuShare::new(100), Instant::now());
        share.charge(now, WINDOW + 5 * SECOND);
        share.set_percent(now, 50);
        let wait = share.time_until_available(now);
        assert!(wait >= 10 * SECOND && wait < 11 * SECOND, "{wait:?}");
        let full = CpuShare::new(100);
        full.set_percent(now, 10);
        full.charge(now, SECOND + Duration::from_millis(1));
        assert!(full.time_until_available(now) > Duration::ZERO, "savings shrink with the share");
    }
}
