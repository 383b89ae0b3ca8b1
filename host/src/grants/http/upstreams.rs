//! Upstreams that do not answer are asked less and less often: each failure in a row doubles the pause.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::origin::Origin;
use crate::model::Guard;

/// Failures in a row that are nothing unusual.
const PATIENCE: u32 = 3;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause: how late at most a recovery is noticed.
const LONGEST: Duration = Duration::from_secs(4);

/// Upstreams of one mount that are remembered as failing.
const REMEMBERED: usize = 64;

/// The upstreams of one mount that fail.
#[derive(Default)]
pub(super) struct Upstreams(Mutex<HashMap<Origin, Failing>>);

struct Failing {
    times: u32,
    until: Instant,
}

impl Upstreams {
    /// Whether `origin` may be asked now; else how often it failed, and for how long it is left alone. After a pause, one
    /// request tries while others go on being refused.
    pub(super) fn check(&self, origin: &Origin, now: Instant) -> Result<(), (u32, Duration)> {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = failing.get_mut(origin).filter(|entry| entry.times >= PATIENCE) else { return Ok(()) };
        if entry.until <= now || !Guard::Upstream.is_on() {
            entry.until = now + FIRST;
            return Ok(());
        }
        Err((entry.times, entry.until - now))
    }

    /// Takes note of how an attempt to reach `origin` ended.
    pub(super) fn ended(&self, origin: &Origin, is_reached: bool, now: Instant) {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_reached {
            failing.remove(origin);
            return;
        }
        if failing.len() >= REMEMBERED && !failing.contains_key(origin) {
            failing.retain(|_, entry| entry.until > now);
            if failing.len() >= REMEMBERED {
                return;
            }
        }
        let entry = failing.entry(origin.clone()).or_insert(Failing { times: 0, until: now });
        entry.times = entry.times.saturating_add(1);
        let doublings = entry.times.saturating_sub(PATIENCE);
        entry.until = now + FIRST.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::http::origin::Scheme;

    #[test]
    fn the_pause_grows_and_ends() {
        let upstreams = Upstreams::default();
        let origin = Origin::of(Scheme::Https, "api.example").unwrap();
        let other = Origin::of(Scheme::Https, "other.example").unwrap();
        let mut now = Instant::now();
        for _ in 0..PATIENCE {
            assert!(upstreams.check(&origin, now).is_ok());
            upstreams.ended(&origin, false, now);
        }
        assert_eq!(upstreams.check(&origin, now), Err((3, FIRST)));
        assert!(upstreams.check(&other, now).is_ok());
        now += FIRST;
        assert!(upstreams.check(&origin, now).is_ok(), "one tries");
        assert!(upstreams.check(&origin, now).is_err(), "while others wait");
        upstreams.ended(&origin, false, now);
        assert_eq!(upstreams.check(&origin, now), Err((4, FIRST * 2)));
        for _ in 0..40 {
            upstreams.ended(&origin, false, now);
        }
        assert_eq!(upstreams.check(&origin, now).unwrap_err().1, LONGEST);
        upstreams.ended(&origin, true, now);
        assert!(upstreams.check(&origin, now).is_ok());
    }
}
