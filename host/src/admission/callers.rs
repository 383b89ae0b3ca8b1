//! How often one caller may call tools and ask for completions: a token bucket for each connection or session.
//!
//! The table is bounded, and a caller that opens a new connection for each call gains nothing: what newcomers begin with
//! is drawn from a bucket that they have in common.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Guard;

/// Callers that are remembered. Those that have not asked for a while are forgotten first: nothing is known of them that
/// counts.
const REMEMBERED: usize = 1024;

/// Callers whose first calls are let in at once, of those that come together.
const NEWCOMERS: u32 = 16;

/// How often one caller may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests in a second, over time.
    pub rate: u32,
    /// Requests at once, after a while without any.
    pub burst: u32,
}

impl Default for Rate {
    /// More than a model calls or a person types: a hundred answers a second are read by nobody.
    fn default() -> Self {
        Self { rate: 50, burst: 200 }
    }
}

/// The most requests in a second, and at once, that can be configured.
pub const MAX_RATE: u64 = 1_000_000;

/// What a caller has left: thousandths of requests.
struct Bucket {
    left: u64,
    at: Instant,
}

impl Bucket {
    fn fill(&mut self, now: Instant, rate: u32, most: u32) {
        let rested = now.saturating_duration_since(self.at).as_micros();
        let earned = u64::try_from(rested.saturating_mul(rate.into()) / 1000).unwrap_or(u64::MAX);
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(u64::from(most) * 1000);
            self.at = now;
        }
    }
}

/// All callers.
pub struct Callers {
    rate: Rate,
    all: Mutex<All>,
}

struct All {
    buckets: HashMap<u64, Bucket>,
    newcomers: Bucket,
}

impl Callers {
    /// Each may ask so often.
    pub fn new(rate: Rate) -> Self {
        let newcomers = Bucket { left: u64::from(rate.burst) * u64::from(NEWCOMERS) * 1000, at: Instant::now() };
        Self { rate, all: Mutex::new(All { buckets: HashMap::new(), newcomers }) }
    }

    /// How often each may ask.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts a request of `caller`.
    ///
    /// # Errors
    /// After what time one more is let in.
    pub fn count(&self, caller: u64, now: Instant) -> Result<(), Duration> {
        if !Guard::Callers.is_on() {
            return Ok(());
        }
        let Rate { rate, burst } = self.rate;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let All { buckets, newcomers } = &mut *all;
        if !buckets.contains_key(&caller) {
            if buckets.len() >= REMEMBERED {
                buckets.retain(|_, bucket| {
                    bucket.fill(now, rate, burst);
                    bucket.left < u64::from(burst) * 1000
                });
            }
            if buckets.len() >= REMEMBERED
                && let Some(fullest) = buckets.iter().max_by_key(|(_, bucket)| bucket.left).map(|(caller, _)| *caller)
            {
                buckets.remove(&fullest);
            }
            newcomers.fill(now, rate.saturating_mul(NEWCOMERS), burst.saturating_mul(NEWCOMERS));
            let left = newcomers.left.min(u64::from(burst) * 1000);
            newcomers.left -= left;
            buckets.insert(caller, Bucket { left, at: now });
        }
        let Some(bucket) = buckets.get_mut(&caller) else { return Ok(()) };
        bucket.fill(now, rate, burst);
        if let Some(left) = bucket.left.checked_sub(1000) {
            bucket.left = left;
            return Ok(());
        }
        let missing = 1000 - bucket.left;
        Err(Duration::from_millis(missing.div_ceil(u64::from(rate.max(1))).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { rate: 10, burst: 20 };

    #[test]
    fn a_burst_is_let_in_and_then_so_many_a_second() {
        let (callers, now) = (Callers::new(RATE), Instant::now());
        let granted = |caller, now| (0..1000).take_while(|_| callers.count(caller, now).is_ok()).count();
        assert_eq!(granted(1, now), 20);
        assert_eq!(callers.count(1, now), Err(Duration::from_millis(100)), "it is told when to come again");
        assert_eq!(granted(1, now + Duration::from_millis(100)), 1);
        assert_eq!(granted(2, now), 20, "another caller has its own");
        assert_eq!(granted(1, now + Duration::from_secs(1000)), 20, "savings have an end");
        let mut soon = now + Duration::from_secs(2000);
        granted(1, soon);
        let late = (0..3000).filter(|_| {
            soon += Duration::from_millis(1);
            callers.count(1, soon).is_ok()
        });
        assert_eq!(late.count(), 30, "asking for more loses nothing of what is earned");
    }

    #[test]
    fn whoever_comes_anew_each_time_has_no_more() {
        let (callers, now) = (Callers::new(RATE), Instant::now());
        let first = callers.count(0, now);
        assert!(first.is_ok());
        let granted = (1..100_000u64).filter(|caller| callers.count(*caller, now).is_ok()).count();
        assert!(granted <= 20 * NEWCOMERS as usize, "{granted}");
        assert!(callers.all.lock().unwrap().buckets.len() <= REMEMBERED);
        assert!(callers.count(1_000_000, now).is_err());
        assert!(callers.count(1_000_000, now + Duration::from_millis(100)).is_ok(), "nobody waits for long");
    }
}
