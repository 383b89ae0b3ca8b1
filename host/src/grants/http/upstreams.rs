//! Upstreams that do not answer are asked less and less often.

use std::time::Duration;

use tokio::time::Instant;

use super::origin::Origin;
use crate::admission::breaker::{Breaker, Patience, Standing};
use crate::model::Guard;

/// The first pause; and how long one request has to try after a pause, before another one may.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause is how late at most a recovery is noticed.
const PATIENCE: Patience = Patience { times: 3, first: FIRST, longest: Duration::from_secs(4), remembered: 64 };

/// The upstreams of one mount that fail.
pub(super) struct Upstreams(Breaker<Origin, ()>);

impl Default for Upstreams {
    fn default() -> Self {
        Self(Breaker::new(PATIENCE))
    }
}

impl Upstreams {
    /// Whether `origin` may be asked now; else how often it failed, and for how long it is left alone. After a pause, one
    /// request tries while others go on being refused.
    pub(super) fn check(&self, origin: &Origin, now: Instant) -> Result<(), (u32, Duration)> {
        if self.0.is_empty() || !Guard::Upstream.is_on() {
            return Ok(());
        }
        match self.0.check(origin, now, FIRST) {
            Standing::Closed | Standing::Trial => Ok(()),
            Standing::Open((), times, pause) => Err((times, pause)),
        }
    }

    /// Takes note of how an attempt to reach `origin` ended.
    pub(super) fn ended(&self, origin: &Origin, is_reached: bool, now: Instant) {
        if !is_reached {
            self.0.failed(origin.clone(), (), now);
        } else if !self.0.is_empty() {
            self.0.succeeded(origin);
        }
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
        for _ in 0..PATIENCE.times {
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
        assert_eq!(upstreams.check(&origin, now).unwrap_err().1, PATIENCE.longest);
        upstreams.ended(&origin, true, now);
        assert!(upstreams.check(&origin, now).is_ok());
    }
}
