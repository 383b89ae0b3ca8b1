//! Request quotas in memory: a token bucket for each caller.
//!
//! The table is bounded. A caller that opens a new connection for each request gains nothing: new callers draw their
//! first tokens from one common bucket.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::time::Instant;

use crate::store::quota::{QuotaDecision, QuotaStore, Rate};

/// The most callers that are remembered. Callers that were idle for long are forgotten first, because their buckets are
/// full anyway.
const MAX_CALLERS: usize = 1024;

/// The number of new callers that may arrive together and still get a full burst.
const NEW_CALLERS: u32 = 16;

/// The tokens of a caller, in thousandths of a request.
struct Bucket {
    tokens: u64,
    at: Instant,
}

impl Bucket {
    fn fill(&mut self, now: Instant, rate: u32, most: u32) {
        let elapsed = now.saturating_duration_since(self.at).as_micros();
        let earned = u64::try_from(elapsed.saturating_mul(rate.into()) / 1000).unwrap_or(u64::MAX);
        if earned > 0 {
            self.tokens = self.tokens.saturating_add(earned).min(u64::from(most) * 1000);
            self.at = now;
        }
    }
}

/// Request quotas in memory. See the module.
#[derive(Default)]
pub struct MemoryQuotas(Mutex<Buckets>);

#[derive(Default)]
struct Buckets {
    callers: HashMap<u64, Bucket>,
    /// Starts full at the first request.
    new_callers: Option<Bucket>,
}

impl MemoryQuotas {
    fn take_at(&self, caller: u64, rate: Rate, now: Instant) -> QuotaDecision {
        let Rate { rate, burst } = rate;
        let full = u64::from(burst) * 1000;
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { callers, new_callers } = &mut *buckets;
        if !callers.contains_key(&caller) && callers.len() >= MAX_CALLERS {
            callers.retain(|_, bucket| {
                bucket.fill(now, rate, burst);
                bucket.tokens < full
            });
            if callers.len() >= MAX_CALLERS
                && let Some(fullest) = callers.iter().max_by_key(|(_, bucket)| bucket.tokens).map(|(caller, _)| *caller)
            {
                callers.remove(&fullest);
            }
        }
        let bucket = callers.entry(caller).or_insert_with(|| {
            let new_callers = new_callers.get_or_insert(Bucket { tokens: full * u64::from(NEW_CALLERS), at: now });
            new_callers.fill(now, rate.saturating_mul(NEW_CALLERS), burst.saturating_mul(NEW_CALLERS));
            let tokens = new_callers.tokens.min(full);
            new_callers.tokens -= tokens;
            Bucket { tokens, at: now }
        });
        bucket.fill(now, rate, burst);
        if let Some(tokens) = bucket.tokens.checked_sub(1000) {
            bucket.tokens = tokens;
            return QuotaDecision::Granted;
        }
        let missing = 1000 - bucket.tokens;
        QuotaDecision::Wait(Duration::from_millis(missing.div_ceil(u64::from(rate.max(1))).max(1)))
    }
}

impl QuotaStore for MemoryQuotas {
    fn take(&self, caller: u64, rate: Rate) -> BoxFuture<'_, QuotaDecision> {
        ready(self.take_at(caller, rate, Instant::now())).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { rate: 10, burst: 20 };

    #[test]
    fn a_burst_is_admitted_and_then_the_rate_applies() {
        let (quotas, now) = (MemoryQuotas::default(), Instant::now());
        let is_granted = |caller, now| quotas.take_at(caller, RATE, now) == QuotaDecision::Granted;
        let granted = |caller, now| (0..1000).take_while(|_| is_granted(caller, now)).count();
        assert_eq!(granted(1, now), 20);
        let soon = QuotaDecision::Wait(Duration::from_millis(100));
        assert_eq!(quotas.take_at(1, RATE, now), soon, "the wait is reported");
        assert_eq!(granted(1, now + Duration::from_millis(100)), 1);
        assert_eq!(granted(2, now), 20, "another caller has its own bucket");
        assert_eq!(granted(1, now + Duration::from_secs(1000)), 20, "tokens are bounded by the burst");
        let mut soon = now + Duration::from_secs(2000);
        granted(1, soon);
        let late = (0..3000).filter(|_| {
            soon += Duration::from_millis(1);
            is_granted(1, soon)
        });
        assert_eq!(late.count(), 30, "refused requests cost no tokens");
    }

    #[test]
    fn new_callers_share_one_bucket() {
        let (quotas, now) = (MemoryQuotas::default(), Instant::now());
        let is_granted = |caller, now| quotas.take_at(caller, RATE, now) == QuotaDecision::Granted;
        assert!(is_granted(0, now));
        let granted = (1..100_000u64).filter(|caller| is_granted(*caller, now)).count();
        assert!(granted <= 20 * NEW_CALLERS as usize, "{granted}");
        assert!(quotas.0.lock().unwrap().callers.len() <= MAX_CALLERS);
        assert!(!is_granted(1_000_000, now));
        assert!(is_granted(1_000_000, now + Duration::from_millis(100)), "nobody waits for long");
    }
}
