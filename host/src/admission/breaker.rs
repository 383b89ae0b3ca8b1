//! What fails again and again is asked less and less often: each failure in a row doubles the pause.
//!
//! By what was asked for, whatever that is: a key. One bad thing does not take the good ones with it. Used for operations
//! of a mount (`admission::operations`) and for the upstreams that its calls ask.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How patient a breaker is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Failures in a row from which on there are pauses.
    pub times: u32,
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// Things that are remembered as failing; the one that failed longest ago is forgotten for a new one.
    pub remembered: usize,
}

/// Things that fail, by key, with what is known of the last failure.
pub struct Breaker<K, L> {
    patience: Patience,
    failing: Mutex<HashMap<K, Failing<L>>>,
    /// How many there are: nearly always none, and then no lock is taken.
    count: AtomicUsize,
}

struct Failing<L> {
    times: u32,
    seen: Instant,
    /// Until when it is not asked.
    until: Option<Instant>,
    last: L,
}

/// Whether something may be tried.
#[derive(Debug, PartialEq, Eq)]
pub enum Standing<L> {
    /// It may.
    Closed,
    /// It may, after a pause, while all others are refused until it is known what came of it.
    Trial,
    /// It may not: it failed so many times, the last time like this, and there is a pause.
    Open(L, u32, Duration),
}

impl<K: Eq + Hash + Clone, L: Clone> Breaker<K, L> {
    /// One that knows of nothing that fails.
    pub fn new(patience: Patience) -> Self {
        Self { patience, failing: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Failing<L>>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is known to fail: the usual case, for which no key is made.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether `key` may be tried now. A trial has `time` until the next one may try.
    pub fn check(&self, key: &K, now: Instant, time: Duration) -> Standing<L> {
        let mut failing = self.lock();
        let Some(entry) = failing.get_mut(key) else { return Standing::Closed };
        let Some(until) = entry.until else { return Standing::Closed };
        if until <= now {
            entry.until = Some(now + time);
            return Standing::Trial;
        }
        Standing::Open(entry.last.clone(), entry.times, until - now)
    }

    /// A trial ended, and nobody knows how: the next one may try at once.
    pub fn withdrawn(&self, key: &K, now: Instant) {
        if let Some(entry) = self.lock().get_mut(key) {
            entry.until = entry.until.map(|until| until.min(now));
        }
    }

    /// It did not fail.
    pub fn succeeded(&self, key: &K) {
        let mut failing = self.lock();
        failing.remove(key);
        self.count.store(failing.len(), Ordering::Relaxed);
    }

    /// It failed like this. Says, where a pause begins, how long it is.
    pub fn failed(&self, key: K, last: L, now: Instant) -> Option<Duration> {
        let Patience { times, first, longest, remembered } = self.patience;
        let mut failing = self.lock();
        if failing.len() >= remembered
            && !failing.contains_key(&key)
            && let Some(oldest) = failing.iter().min_by_key(|(_, entry)| entry.seen).map(|(key, _)| key.clone())
        {
            failing.remove(&oldest);
        }
        let new = Failing { times: 0, seen: now, until: None, last: last.clone() };
        let entry = failing.entry(key).or_insert(new);
        entry.times = entry.times.saturating_add(1);
        (entry.seen, entry.last) = (now, last);
        let doublings = entry.times.checked_sub(times);
        let pause = doublings.map(|n| first.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(longest));
        entry.until = pause.map(|pause| now + pause);
        self.count.store(failing.len(), Ordering::Relaxed);
        pause
    }

    /// Forgets the failures that `is_over` says of.
    pub fn forget(&self, is_over: impl Fn(&L) -> bool) {
        let mut failing = self.lock();
        failing.retain(|_, entry| !is_over(&entry.last));
        self.count.store(failing.len(), Ordering::Relaxed);
    }

    /// How many things are known to fail.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience =
        Patience { times: 3, first: Duration::from_secs(1), longest: Duration::from_secs(60), remembered: 4 };
    const TIME: Duration = Duration::from_secs(5);

    #[test]
    fn pauses_double_one_tries_and_success_ends_it() {
        let (breaker, mut now) = (Breaker::new(PATIENCE), Instant::now());
        assert_eq!(breaker.failed("bad", 1, now), None);
        assert_eq!(breaker.failed("bad", 2, now), None);
        assert_eq!(breaker.check(&"bad", now, TIME), Standing::Closed, "two failures are nothing unusual");
        assert_eq!(breaker.failed("bad", 3, now), Some(PATIENCE.first));
        assert_eq!(breaker.check(&"bad", now, TIME), Standing::Open(3, 3, PATIENCE.first));
        assert_eq!(breaker.check(&"good", now, TIME), Standing::Closed, "something else");
        now += PATIENCE.first;
        assert_eq!(breaker.check(&"bad", now, TIME), Standing::Trial, "one tries");
        assert_eq!(
            breaker.check(&"bad", now, TIME),
            Standing::Open(3, 3, TIME),
            "the others wait for what comes of it"
        );
        breaker.withdrawn(&"bad", now);
        assert_eq!(breaker.check(&"bad", now, TIME), Standing::Trial, "a trial that was withdrawn says nothing");
        assert_eq!(breaker.failed("bad", 4, now), Some(PATIENCE.first * 2));
        now += PATIENCE.first * 2;
        assert_eq!(breaker.check(&"bad", now, TIME), Standing::Trial);
        breaker.succeeded(&"bad");
        assert_eq!(breaker.check(&"bad", now, TIME), Standing::Closed);
        assert!(breaker.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_pauses_have_an_end() {
        let (breaker, now) = (Breaker::new(PATIENCE), Instant::now());
        for n in 0..100 {
            breaker.failed(n, (), now);
        }
        assert_eq!(breaker.len(), PATIENCE.remembered);
        let pause = (0..80).map(|_| breaker.failed(1000, (), now)).last().flatten();
        assert_eq!(pause, Some(PATIENCE.longest));
        breaker.forget(|()| true);
        assert!(breaker.is_empty());
    }
}
