//! How much of the processors a mount's calls may take over time, however often they are asked for.
//!
//! What was used is owed in full. While a mount owes, one of its calls goes on at a time and the others wait, so that over
//! some windows it uses its share and at most one call's worth more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Guard;

/// The time over which a share is measured: what a mount did not use can be used later, up to this much of it.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// The account of one mount: it fills with time and is drawn on by what calls compute.
pub(super) struct Share {
    /// Percent of one processor.
    percent: AtomicU64,
    account: Mutex<Account>,
    /// Whether one of the calls goes on although the mount owes.
    is_led: AtomicBool,
}

struct Account {
    at: Instant,
    /// Nanoseconds of computing that are left; below zero after calls that computed more than was left.
    left: i64,
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// What `percent` of a processor are worth in this time.
fn worth(time: Duration, percent: u64) -> i64 {
    nanos(time).saturating_mul(i64::try_from(percent).unwrap_or(i64::MAX)) / 100
}

impl Share {
    pub(super) fn new(percent: u64) -> Self {
        let account = Account { at: Instant::now(), left: worth(WINDOW, percent) };
        Self { percent: AtomicU64::new(percent), account: Mutex::new(account), is_led: AtomicBool::new(false) }
    }

    fn percent(&self) -> u64 {
        self.percent.load(Ordering::Relaxed).max(1)
    }

    /// Another share from now on. What is owed stays owed.
    pub(super) fn set(&self, now: Instant, percent: u64) {
        let before = self.percent();
        if before == percent {
            return;
        }
        // What was earned until now was earned at the old rate.
        self.with(now, |account| {
            let more = worth(WINDOW, percent) - worth(WINDOW, before);
            // A full account stays full, and an empty one empty.
            account.left = if account.left > 0 { account.left.saturating_add(more).max(0) } else { account.left };
            self.percent.store(percent, Ordering::Relaxed);
        });
    }

    fn with<T>(&self, now: Instant, work: impl FnOnce(&mut Account) -> T) -> T {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let percent = self.percent();
        // Of two threads, the later one may have looked at the clock first.
        if let Some(rested) = now.checked_duration_since(account.at).filter(|rested| !rested.is_zero()) {
            account.left = account.left.saturating_add(worth(rested, percent)).min(worth(WINDOW, percent));
            account.at = now;
        }
        work(&mut account)
    }

    /// Draws `spent` of computing. All of it is owed, however long that takes to come back.
    pub(super) fn draw(&self, now: Instant, spent: Duration) {
        self.with(now, |account| account.left = account.left.saturating_sub(nanos(spent)));
    }

    /// How long until a call may start: zero when something is left.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        if !Guard::Cpu.is_on() {
            return Duration::ZERO;
        }
        let missing = self.with(now, |account| 1i64.saturating_sub(account.left).max(0)).unsigned_abs();
        if missing == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(missing.saturating_mul(100) / self.percent())
    }

    /// How long a call that runs has to wait before it goes on: not at all while something is left, and not at all for the
    /// one call that leads while nothing is. `leads`: whether this call does; it says so until [`Share::end`].
    pub(super) fn pause(&self, now: Instant, leads: &AtomicBool) -> Duration {
        let wait = self.wait(now);
        if wait.is_zero() || leads.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        if !self.is_led.swap(true, Ordering::AcqRel) {
            leads.store(true, Ordering::Relaxed);
            return Duration::ZERO;
        }
        wait
    }

    /// A call ends: where it led, another one may.
    pub(super) fn end(&self, leads: &AtomicBool) {
        if leads.load(Ordering::Relaxed) {
            self.is_led.store(false, Ordering::Release);
        }
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
    fn savings_have_an_end_and_debts_are_paid_in_full() {
        let share = Share::new(100);
        let later = Instant::now() + 1000 * SECOND;
        share.draw(later, WINDOW);
        assert!(share.wait(later) > Duration::ZERO);
        share.draw(later, 1000 * SECOND);
        assert!(share.wait(later) >= 1000 * SECOND);
        assert!(share.wait(later + 999 * SECOND) > Duration::ZERO);
        assert_eq!(share.wait(later + 1001 * SECOND), Duration::ZERO);
    }

    #[test]
    fn over_some_windows_a_mount_uses_its_share_and_one_call() {
        // Eight clients ask without pause for calls that compute for three seconds; a twentieth of a processor is theirs.
        let (percent, call, step) = (5, 3 * SECOND, Duration::from_millis(2));
        let share = Share::new(percent);
        let (start, mut used) = (Instant::now(), Duration::ZERO);
        let mut running: Vec<(Duration, AtomicBool)> = Vec::new();
        for tick in 0..60_000u32 {
            let now = start + step * tick;
            while running.len() < 8 && share.wait(now).is_zero() {
                running.push((Duration::ZERO, AtomicBool::new(false)));
            }
            running.retain_mut(|(computed, leads)| {
                // What has to wait for longer than it may take is ended.
                if !share.pause(now, leads).is_zero() {
                    return false;
                }
                share.draw(now, step);
                (*computed, used) = (*computed + step, used + step);
                let goes_on = *computed < call;
                if !goes_on {
                    share.end(leads);
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
    fn one_call_leads_at_a_time() {
        let (share, now) = (Share::new(100), Instant::now());
        let [first, second] = [AtomicBool::new(false), AtomicBool::new(false)];
        assert!(share.pause(now, &first).is_zero() && share.pause(now, &second).is_zero());
        share.draw(now, WINDOW + SECOND);
        assert!(share.pause(now, &first).is_zero(), "one goes on");
        assert!(!share.pause(now, &second).is_zero(), "the other waits");
        assert!(share.pause(now, &first).is_zero());
        share.end(&first);
        assert!(share.pause(now, &second).is_zero(), "when the one has ended");
    }

    #[test]
    fn another_share_keeps_what_is_owed() {
        let (share, now) = (Share::new(100), Instant::now());
        share.draw(now, WINDOW + 5 * SECOND);
        share.set(now, 50);
        let wait = share.wait(now);
        assert!(wait >= 10 * SECOND && wait < 11 * SECOND, "{wait:?}");
        let full = Share::new(100);
        full.set(now, 10);
        full.draw(now, SECOND + Duration::from_millis(1));
        assert!(full.wait(now) > Duration::ZERO, "savings shrink with the share");
    }
}
