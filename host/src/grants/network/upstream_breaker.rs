//! A circuit breaker for upstreams: belljar sends fewer requests to an upstream that does not answer.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use crate::limits::breaker::{BreakerConfig, CircuitBreaker, CircuitState};
use crate::model::bounds::UPSTREAM_FAILURE_THRESHOLD;

/// The first pause. After a pause, one trial request also has this time before another one may try.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: a recovery is noticed at most this late.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The failing upstreams of one mount. `K` names an upstream.
pub(in crate::grants) struct UpstreamBreaker<K>(CircuitBreaker<K, ()>);

impl<K: Clone + Eq + Hash> Default for UpstreamBreaker<K> {
    fn default() -> Self {
        Self(CircuitBreaker::new(BreakerConfig {
            threshold: UPSTREAM_FAILURE_THRESHOLD.get(),
            first_pause: FIRST_PAUSE,
            longest_pause: LONGEST_PAUSE,
            max_keys: 64,
        }))
    }
}

impl<K: Clone + Eq + Hash> UpstreamBreaker<K> {
    /// Checks that a request to `upstream` may be sent now. The error holds the number of failures and the remaining
    /// pause. After a pause, one trial request may be sent; others are still refused.
    pub(in crate::grants) fn check(&self, upstream: &K, now: Instant) -> Result<(), (u32, Duration)> {
        if self.0.is_empty() {
            return Ok(());
        }
        match self.0.check(upstream, now, FIRST_PAUSE) {
            CircuitState::Closed | CircuitState::Trial => Ok(()),
            CircuitState::Open((), times, pause) => Err((times, pause)),
        }
    }

    /// Records the result of an attempt to reach `upstream`.
    pub(in crate::grants) fn record_result(&self, upstream: &K, is_reached: bool, now: Instant) {
        if !is_reached {
            self.0.failed(upstream.clone(), (), now);
        } else if !self.0.is_empty() {
            self.0.succeeded(upstream);
        }
    }
}

/// The error of [`UpstreamBreaker::check`] in words.
pub(in crate::grants) fn describe_pause((times, pause): (u32, Duration)) -> String {
    format!("failed {times} times in a row; next attempt in {} s", pause.as_millis().div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_up_to_its_limit() {
        let upstreams = UpstreamBreaker::default();
        let (origin, other) = ("api.example", "other.example");
        let mut now = Instant::now();
        for _ in 0..UPSTREAM_FAILURE_THRESHOLD.get() {
            assert!(upstreams.check(&origin, now).is_ok());
            upstreams.record_result(&origin, false, now);
        }
        assert_eq!(upstreams.check(&origin, now), Err((3, FIRST_PAUSE)));
        assert!(upstreams.check(&other, now).is_ok());
        now += FIRST_PAUSE;
        assert!(upstreams.check(&origin, now).is_ok(), "one tries");
        assert!(upstreams.check(&origin, now).is_err(), "while others wait");
        upstreams.record_result(&origin, false, now);
        assert_eq!(upstreams.check(&origin, now), Err((4, FIRST_PAUSE * 2)));
        for _ in 0..40 {
            upstreams.record_result(&origin, false, now);
        }
        assert_eq!(upstreams.check(&origin, now).unwrap_err().1, LONGEST_PAUSE);
        upstreams.record_result(&origin, true, now);
        assert!(upstreams.check(&origin, now).is_ok());
    }
}
