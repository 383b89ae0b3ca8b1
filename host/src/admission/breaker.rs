//! What crashes again and again is asked less and less often: each failure in a row doubles the pause.
//!
//! By what was asked for, not by mount: one bad resource does not take the good ones with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::error::Bound;
use crate::model::{Guard, Limit, Operation, ReadError, text};

/// Failures in a row that are nothing unusual.
const PATIENCE: u32 = 3;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Things of one mount that are remembered as failing; the one that failed longest ago is forgotten for a new one.
const REMEMBERED: usize = 256;

/// What a mount was asked for and failed at.
#[derive(Default)]
pub(super) struct Breaker {
    failing: Mutex<HashMap<(&'static str, String), Failing>>,
    /// How many there are: nearly always none, and then no lock is taken.
    count: AtomicUsize,
}

struct Failing {
    times: u32,
    seen: Instant,
    /// Until when it is not asked.
    until: Option<Instant>,
    last: ReadError,
}

fn key(operation: &Operation) -> (&'static str, String) {
    (operation.name(), operation.reference().unwrap_or_default().to_owned())
}

/// Whether a call ended in a way that costs, says nothing, and will most likely be repeated.
fn is_crash(error: &ReadError) -> bool {
    match error {
        ReadError::Trapped(_) => true,
        ReadError::Exhausted(Limit { bound, .. }) => {
            matches!(bound, Bound::Fuel | Bound::Time | Bound::ListTime | Bound::Memory | Bound::Stack)
        }
        _ => false,
    }
}

impl Breaker {
    /// Whether `operation` may be tried now. After a pause, one caller tries while the others go on being refused.
    pub(super) fn check(&self, operation: &Operation, now: Instant, time: Duration) -> Result<(), ReadError> {
        if self.count.load(Ordering::Relaxed) == 0 || !Guard::Breaker.is_on() {
            return Ok(());
        }
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = failing.get_mut(&key(operation)) else { return Ok(()) };
        let Some(until) = entry.until else { return Ok(()) };
        if until <= now {
            entry.until = Some(now + time);
            return Ok(());
        }
        let pause = Duration::from_secs(u64::try_from((until - now).as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
        Err(ReadError::Again { last: Box::new(entry.last.clone()), times: entry.times, pause })
    }

    /// Takes note of how a call ended. Says, where a pause begins, how long it is.
    pub(super) fn ended(
        &self,
        operation: &Operation,
        error: Option<&ReadError>,
        now: impl FnOnce() -> Instant,
    ) -> Option<Duration> {
        // What was refused before it ran, or withdrawn, says nothing about the provider.
        if matches!(
            error,
            Some(ReadError::Busy(_) | ReadError::Again { .. } | ReadError::Cancelled | ReadError::Internal(_))
        ) {
            return None;
        }
        let crash = error.filter(|error| is_crash(error));
        if crash.is_none() && self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let now = now();
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = match crash {
            None => {
                failing.remove(&key(operation));
                None
            }
            Some(error) => {
                if failing.len() >= REMEMBERED
                    && !failing.contains_key(&key(operation))
                    && let Some(oldest) = failing.iter().min_by_key(|(_, entry)| entry.seen).map(|(key, _)| key.clone())
                {
                    failing.remove(&oldest);
                }
                let new = Failing { times: 0, seen: now, until: None, last: error.clone() };
                let entry = failing.entry(key(operation)).or_insert(new);
                entry.times = entry.times.saturating_add(1);
                entry.seen = now;
                entry.last = error.clone();
                let doublings = entry.times.checked_sub(PATIENCE);
                let pause =
                    doublings.map(|n| FIRST.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(LONGEST));
                entry.until = pause.map(|pause| now + pause);
                pause
            }
        };
        self.count.store(failing.len(), Ordering::Relaxed);
        pause
    }
}

/// What a pause is about, for the log.
pub(super) fn shown(operation: &Operation) -> String {
    match operation.reference() {
        Some(reference) => format!("{} {}", operation.name(), text::quoted(reference, 100)),
        None => operation.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(5);

    fn read(reference: &str) -> Operation {
        Operation::Read { reference: reference.to_owned() }
    }

    fn trap() -> ReadError {
        ReadError::Trapped("unreachable".to_owned())
    }

    #[test]
    fn pauses_double_one_caller_tries_and_success_ends_it() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        let bad = read("bad");
        assert_eq!(breaker.ended(&bad, Some(&trap()), || now), None);
        assert_eq!(breaker.ended(&bad, Some(&trap()), || now), None);
        assert!(breaker.check(&bad, now, TIME).is_ok(), "two failures are nothing unusual");
        assert_eq!(breaker.ended(&bad, Some(&trap()), || now), Some(FIRST));
        let refused = breaker.check(&bad, now, TIME).unwrap_err().to_string();
        assert!(
            refused.contains("trapped: unreachable; so it was 3 times in a row, and it is not asked again for 1s"),
            "{refused}"
        );
        assert!(breaker.check(&read("good"), now, TIME).is_ok(), "another resource of the mount");
        let now = now + FIRST;
        assert!(breaker.check(&bad, now, TIME).is_ok(), "one tries");
        assert!(breaker.check(&bad, now, TIME).is_err(), "the others wait for what becomes of it");
        assert_eq!(breaker.ended(&bad, Some(&trap()), || now), Some(FIRST * 2));
        let now = now + FIRST * 2;
        assert!(breaker.check(&bad, now, TIME).is_ok());
        assert_eq!(breaker.ended(&bad, None, || now), None);
        assert!(breaker.check(&bad, now, TIME).is_ok());
        assert_eq!(breaker.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_answer_that_says_no_is_no_crash_and_memory_is_bounded() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            assert_eq!(breaker.ended(&read("absent"), Some(&ReadError::NotFound), || now), None);
        }
        for n in 0..10 * REMEMBERED {
            breaker.ended(&read(&n.to_string()), Some(&trap()), || now);
        }
        assert_eq!(breaker.count.load(Ordering::Relaxed), REMEMBERED);
        let mut pause = None;
        for _ in 0..80 {
            pause = breaker.ended(&read("x"), Some(&trap()), || now);
        }
        assert_eq!(pause, Some(LONGEST));
    }
}
