//! The breaker of one mount's operations: which of them crashed again and again, and is not asked for a while.
//!
//! Its key has everything that a caller can choose: the operation, the reference, template, argument or cursor, and where
//! what a caller may do differs, the caller. So nobody's input stops an operation for the others.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{Breaker, Patience, Standing};
use crate::model::error::Bound;
use crate::model::{Guard, Limit, Operation, ReadError, text};

const PATIENCE: Patience =
    Patience { times: 3, first: Duration::from_secs(1), longest: Duration::from_secs(60), remembered: 256 };

/// What was asked for: two hashes with secret keys, of whatever length it is.
pub(super) type Key = (u64, u64);

/// What a mount was asked for and failed at.
pub(super) struct Operations {
    breaker: Breaker<Key, ReadError>,
    hashers: [RandomState; 2],
}

impl Default for Operations {
    fn default() -> Self {
        Self { breaker: Breaker::new(PATIENCE), hashers: [RandomState::new(), RandomState::new()] }
    }
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

impl Operations {
    /// The key of an operation; none of one that asks for many things at once, of which any may be the one that fails.
    fn key(&self, operation: &Operation, scope: u64) -> Option<Key> {
        let [first, second] = &self.hashers;
        let of = |input: &[&str]| {
            let whole = (operation.name(), scope, input);
            (first.hash_one(whole), second.hash_one(whole))
        };
        Some(match operation {
            Operation::Describe | Operation::Templates | Operation::CatalogRevision => of(&[]),
            Operation::List { cursor } => of(&cursor.iter().map(String::as_str).collect::<Vec<_>>()),
            Operation::Read { reference } => of(&[reference]),
            Operation::Complete(asked) => {
                let resolved = asked.resolved.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
                of(&[asked.template.as_str(), &asked.name, &asked.value]
                    .into_iter()
                    .chain(resolved)
                    .collect::<Vec<_>>())
            }
            Operation::Revisions { references } => match references.as_slice() {
                [one] => of(&[one]),
                _ => return None,
            },
        })
    }

    /// Whether `operation` may be tried now. Gives its key where it is a trial: one caller tries while the others go on
    /// being refused.
    pub(super) fn check(
        &self,
        (operation, scope): (&Operation, u64),
        now: Instant,
        time: Duration,
    ) -> Result<Option<Key>, ReadError> {
        if self.breaker.is_empty() || !Guard::Breaker.is_on() {
            return Ok(None);
        }
        let Some(key) = self.key(operation, scope) else { return Ok(None) };
        match self.breaker.check(&key, now, time) {
            Standing::Closed => Ok(None),
            Standing::Trial => Ok(Some(key)),
            Standing::Open(last, times, pause) => {
                let pause = Duration::from_secs(u64::try_from(pause.as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
                Err(ReadError::Again { last: Box::new(last), times, pause })
            }
        }
    }

    /// A trial ended without a word.
    pub(super) fn withdrawn(&self, key: &Key, now: Instant) {
        self.breaker.withdrawn(key, now);
    }

    /// Takes note of how a call ended. Says, where a pause begins, how long it is.
    pub(super) fn ended(
        &self,
        (operation, scope): (&Operation, u64),
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
        if crash.is_none() && self.breaker.is_empty() {
            return None;
        }
        let key = self.key(operation, scope)?;
        match crash {
            Some(error) => self.breaker.failed(key, error.clone(), now()),
            None => {
                self.breaker.succeeded(&key);
                None
            }
        }
    }

    /// Forgets what failed at a limit: there are others now.
    pub(super) fn forget_limits(&self) {
        self.breaker.forget(|last| last.limit().is_some());
    }
}

/// What a pause is about, for the log.
pub(super) fn shown(operation: &Operation) -> String {
    match operation {
        Operation::Read { reference } => format!("read \"{}\"", text::excerpt(reference, 100)),
        Operation::Revisions { references } => {
            let first = references.first().map_or("", String::as_str);
            format!("{} of \"{}\"", operation.name(), text::excerpt(first, 100))
        }
        Operation::Complete(asked) => format!("complete \"{}\"", text::excerpt(&asked.template, 100)),
        _ => operation.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Completing;

    const TIME: Duration = Duration::from_secs(5);

    fn trap() -> ReadError {
        ReadError::Trapped("unreachable".to_owned())
    }

    fn crash(operations: &Operations, operation: &Operation, scope: u64, times: usize) {
        let now = Instant::now();
        for _ in 0..times {
            operations.ended((operation, scope), Some(&trap()), || now);
        }
    }

    fn is_open(operations: &Operations, operation: &Operation, scope: u64) -> bool {
        operations.check((operation, scope), Instant::now(), TIME).is_err()
    }

    #[test]
    fn one_input_that_crashes_stops_no_other() {
        let complete = |value: &str, resolved: &[(&str, &str)]| {
            Operation::Complete(Completing {
                template: "{a}/{b}".to_owned(),
                name: "a".to_owned(),
                value: value.to_owned(),
                resolved: resolved.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            })
        };
        let revisions = |all: &[&str]| Operation::Revisions { references: all.iter().map(|&one| one.into()).collect() };
        let list = |cursor: Option<&str>| Operation::List { cursor: cursor.map(str::to_owned) };
        let read = |reference: &str| Operation::Read { reference: reference.to_owned() };
        for (bad, good) in [
            (read("bad"), read("good")),
            (complete("bad", &[]), complete("good", &[])),
            (complete("x", &[("b", "bad")]), complete("x", &[("b", "good")])),
            (complete("x", &[("b", "c")]), complete("x", &[])),
            (revisions(&["bad"]), revisions(&["good"])),
            (list(Some("bad")), list(None)),
            (read("x"), revisions(&["x"])),
        ] {
            let operations = Operations::default();
            crash(&operations, &bad, 0, 3);
            assert!(is_open(&operations, &bad, 0), "{bad:?}");
            assert!(!is_open(&operations, &good, 0), "{bad:?} stops {good:?}");
            assert!(!is_open(&operations, &bad, 7), "what another caller may do can differ");
        }
        let operations = Operations::default();
        crash(&operations, &revisions(&["a", "b"]), 0, 10);
        assert!(operations.breaker.is_empty(), "of many, any may be the one that fails");
    }

    #[test]
    fn an_answer_that_says_no_is_no_crash_and_the_refusal_says_what_happened() {
        let (operations, read) = (Operations::default(), Operation::Read { reference: "x".to_owned() });
        for _ in 0..10 {
            assert_eq!(operations.ended((&read, 0), Some(&ReadError::NotFound), Instant::now), None);
        }
        crash(&operations, &read, 0, 3);
        let refused = operations.check((&read, 0), Instant::now(), TIME).unwrap_err().to_string();
        let told = "trapped: unreachable; so it was 3 times in a row, and it is not asked again for 1s";
        assert!(refused.contains(told), "{refused}");
    }

    #[test]
    fn new_limits_are_tried_at_once() {
        let (operations, read) = (Operations::default(), Operation::Read { reference: "x".to_owned() });
        let limit = ReadError::Exhausted(Limit { bound: Bound::Fuel, used: 2, cap: 1 });
        let now = Instant::now();
        for _ in 0..3 {
            operations.ended((&read, 0), Some(&limit), || now);
        }
        assert!(is_open(&operations, &read, 0));
        operations.forget_limits();
        assert!(!is_open(&operations, &read, 0));
    }
}
