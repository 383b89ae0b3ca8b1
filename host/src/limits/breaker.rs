//! A circuit breaker: after consecutive failures, attempts are refused for a pause. Each further failure doubles the
//! pause.
//!
//! Failures are counted by key, so a failing key does not affect the others. Used for operations of a mount
//! (`limits::operation_breaker`) and for the upstreams of its calls.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The settings of a breaker.
#[derive(Clone, Copy, Debug)]
pub struct BreakerConfig {
    /// Consecutive failures before the first pause.
    pub threshold: u32,
    /// The first pause.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// Failing keys that are remembered. A new one replaces the one that failed longest ago.
    pub max_keys: usize,
}

/// The failing keys. `L` describes the last failure of each.
pub struct CircuitBreaker<K, L> {
    config: BreakerConfig,
    failing: Mutex<HashMap<K, FailureRecord<L>>>,
    /// Number of failing keys. Nearly always 0, and then no lock is taken.
    count: AtomicUsize,
}

struct FailureRecord<L> {
    times: u32,
    seen: Instant,
    /// The end of the pause, if there is one.
    until: Option<Instant>,
    last: L,
}

/// The state of the circuit of one key.
#[derive(Debug, PartialEq, Eq)]
pub enum CircuitState<L> {
    /// Attempts are allowed.
    Closed,
    /// The pause is over: this attempt is allowed. Others are refused until its result is known.
    Trial,
    /// Attempts are refused: the last failure, the number of consecutive failures, and the rest of the pause.
    Open(L, u32, Duration),
}

impl<K: Eq + Hash + Clone, L: Clone> CircuitBreaker<K, L> {
    /// A breaker without failing keys.
    pub fn new(config: BreakerConfig) -> Self {
        Self { config, failing: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, FailureRecord<L>>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if no key is failing. The usual case, in which callers need not compute a key.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// The state of `key` now. A trial must report within `time`; after that the next caller may try.
    pub fn check(&self, key: &K, now: Instant, time: Duration) -> CircuitState<L> {
        let mut failing = self.lock();
        let Some(entry) = failing.get_mut(key) else { return CircuitState::Closed };
        let Some(until) = entry.until else { return CircuitState::Closed };
        if until <= now {
            entry.until = Some(now + time);
            return CircuitState::Trial;
        }
        CircuitState::Open(entry.last.clone(), entry.times, until - now)
    }

    /// A trial ended without a result: the next caller may try at once.
    pub fn trial_cancelled(&self, key: &K, now: Instant) {
        if let Some(entry) = self.lock().get_mut(key) {
            entry.until = entry.until.map(|until| until.min(now));
        }
    }

    /// Records a success.
    pub fn succeeded(&self, key: &K) {
        let mut failing = self.lock();
        failing.remove(key);
        self.count.store(failing.len(), Ordering::Relaxed);
    }

    /// Records a failure. Returns the length of the pause, if one begins.
    pub fn failed(&self, key: K, last: L, now: Instant) -> Option<Duration> {
        let BreakerConfig { threshold, first_pause, longest_pause, max_keys } = self.config;
        let mut failing = self.lock();
        if failing.len() >= max_keys
            && !failing.contains_key(&key)
            && let Some(oldest) = failing.iter().min_by_key(|(_, entry)| entry.seen).map(|(key, _)| key.clone())
        {
            failing.remove(&oldest);
        }
        let new = FailureRecord { times: 0, seen: now, until: None, last: last.clone() };
        let entry = failing.entry(key).or_insert(new);
        entry.times = entry.times.saturating_add(1);
        (entry.seen, entry.last) = (now, last);
        let doublings = entry.times.checked_sub(threshold);
        let pause =
            doublings.map(|n| first_pause.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(longest_pause));
        entry.until = pause.map(|pause| now + pause);
        self.count.store(failing.len(), Ordering::Relaxed);
        pause
    }

    /// Forgets the failures for which `is_over` returns true.
    pub fn forget(&self, is_over: impl Fn(&L) -> bool) {
        let mut failing = self.lock();
        failing.retain(|_, entry| !is_over(&entry.last));
        self.count.store(failing.len(), Ordering::Relaxed);
    }

    /// Number of failing keys.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BreakerConfig = BreakerConfig {
        threshold: 3,
        first_pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(60),
        max_keys: 4,
    };
    const TIME: Duration = Duration::from_secs(5);

    #[test]
    fn pauses_double_until_a_trial_succeeds() {
        let (breaker, mut now) = (CircuitBreaker::new(CONFIG), Instant::now());
        assert_eq!(breaker.failed("bad", 1, now), None);
        assert_eq!(breaker.failed("bad", 2, now), None);
        assert_eq!(breaker.check(&"bad", now, TIME), CircuitState::Closed, "below the threshold");
        assert_eq!(breaker.failed("bad", 3, now), Some(CONFIG.first_pause));
        assert_eq!(breaker.check(&"bad", now, TIME), CircuitState::Open(3, 3, CONFIG.first_pause));
        assert_eq!(breaker.check(&"good", now, TIME), CircuitState::Closed, "another key");
        now += CONFIG.first_pause;
        assert_eq!(breaker.check(&"bad", now, TIME), CircuitState::Trial, "one trial");
        assert_eq!(
            breaker.check(&"bad", now, TIME),
            CircuitState::Open(3, 3, TIME),
            "others wait for the result of the trial"
        );
        breaker.trial_cancelled(&"bad", now);
        assert_eq!(breaker.check(&"bad", now, TIME), CircuitState::Trial, "a cancelled trial has no result");
        assert_eq!(breaker.failed("bad", 4, now), Some(CONFIG.first_pause * 2));
        now += CONFIG.first_pause * 2;
        assert_eq!(breaker.check(&"bad", now, TIME), CircuitState::Trial);
        breaker.succeeded(&"bad");
        assert_eq!(breaker.check(&"bad", now, TIME), CircuitState::Closed);
        assert!(breaker.is_empty());
    }

    #[test]
    fn keys_and_pauses_are_bounded() {
        let (breaker, now) = (CircuitBreaker::new(CONFIG), Instant::now());
        for n in 0..100 {
            breaker.failed(n, (), now);
        }
        assert_eq!(breaker.len(), CONFIG.max_keys);
        let pause = (0..80).map(|_| breaker.failed(1000, (), now)).last().flatten();
        assert_eq!(pause, Some(CONFIG.longest_pause));
        breaker.forget(|()| true);
        assert!(breaker.is_empty());
    }
}
