//! The circuit breaker of the operations of one mount.
//!
//! The key contains every input that a caller can choose: the operation, the reference, template, argument or cursor.
//! If permissions differ between callers, it contains the caller too. Therefore no caller's input blocks an operation
//! for the others.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{BreakerConfig, CircuitBreaker, CircuitState};
use super::operation::Operation;
use crate::model::bounds::CRASH_THRESHOLD;
use crate::model::error::LimitKind;
use crate::model::{Limit, ReadError, text};

/// The settings of the breaker.
fn config() -> BreakerConfig {
    BreakerConfig {
        threshold: CRASH_THRESHOLD.get(),
        first_pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(60),
        max_keys: 256,
    }
}

/// The key of an operation: two hashes with secret keys, so that its size does not depend on the input.
pub(super) type OperationKey = (u64, u64);

/// The failing operations of one mount.
pub(super) struct OperationBreaker {
    breaker: CircuitBreaker<OperationKey, ReadError>,
    hashers: [RandomState; 2],
}

impl Default for OperationBreaker {
    fn default() -> Self {
        Self { breaker: CircuitBreaker::new(config()), hashers: [RandomState::new(), RandomState::new()] }
    }
}

/// True if a call ended in an expensive way that carries no information and will probably repeat.
fn is_crash(error: &ReadError) -> bool {
    match error {
        ReadError::Trapped(_) => true,
        ReadError::Exhausted(Limit { kind, .. }) => {
            matches!(
                kind,
                LimitKind::Fuel | LimitKind::Time | LimitKind::ListTime | LimitKind::Memory | LimitKind::Stack
            )
        }
        _ => false,
    }
}

impl OperationBreaker {
    /// The key of a call. `None` for a batch, of which any item may be the cause.
    fn key(&self, operation: &dyn Operation, scope: u64) -> Option<OperationKey> {
        let [first, second] = &self.hashers;
        let input = operation.caller_input()?;
        let whole = (operation.name(), scope, input.as_slice());
        Some((first.hash_one(whole), second.hash_one(whole)))
    }

    /// Checks whether a call may be tried now. Returns its key if it is a trial: then one call tries, and the others
    /// are refused until it ends.
    pub(super) fn check(
        &self,
        operation: &dyn Operation,
        scope: u64,
        now: Instant,
        time: Duration,
    ) -> Result<Option<OperationKey>, ReadError> {
        if self.breaker.is_empty() {
            return Ok(None);
        }
        let Some(key) = self.key(operation, scope) else { return Ok(None) };
        match self.breaker.check(&key, now, time) {
            CircuitState::Closed => Ok(None),
            CircuitState::Trial => Ok(Some(key)),
            CircuitState::Open(last, times, pause) => {
                let pause = Duration::from_secs(u64::try_from(pause.as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
                Err(ReadError::CircuitOpen { last: Box::new(last), times, retry_after: pause })
            }
        }
    }

    /// A trial ended without a result.
    pub(super) fn trial_cancelled(&self, key: &OperationKey, now: Instant) {
        self.breaker.trial_cancelled(key, now);
    }

    /// Records the result of a call. Returns the length of the pause, if one begins.
    pub(super) fn record_result(
        &self,
        operation: &dyn Operation,
        scope: u64,
        error: Option<&ReadError>,
        now: impl FnOnce() -> Instant,
    ) -> Option<Duration> {
        // A call that was refused before it ran, or was cancelled, says nothing about the provider.
        if matches!(
            error,
            Some(ReadError::Busy(_) | ReadError::CircuitOpen { .. } | ReadError::Cancelled | ReadError::Internal(_))
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

    /// Forgets operations that failed at a limit, because the limits have changed.
    pub(super) fn forget_limits(&self) {
        self.breaker.forget(|last| last.limit().is_some());
    }
}

/// The operation as the log shows it.
pub(super) fn log_text(operation: &dyn Operation) -> String {
    match operation.log_text() {
        Some(input) => format!("{} \"{}\"", operation.name(), text::excerpt(input, 100)),
        None => operation.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::limits::operation::tests::TestOperation;

    const TIME: Duration = Duration::from_secs(5);

    /// The time of every call in these tests: no pause of a breaker ends, however slow the machine is.
    fn now() -> Instant {
        static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
        *NOW
    }

    fn trap() -> ReadError {
        ReadError::Trapped("unreachable".to_owned())
    }

    fn crash(operations: &OperationBreaker, operation: &dyn Operation, scope: u64, times: usize) {
        for _ in 0..times {
            operations.record_result(operation, scope, Some(&trap()), now);
        }
    }

    fn is_open(operations: &OperationBreaker, operation: &dyn Operation, scope: u64) -> bool {
        operations.check(operation, scope, now(), TIME).is_err()
    }

    fn operation(name: &'static str, input: &[&'static str]) -> TestOperation {
        TestOperation { name, input: Some(input.to_vec()) }
    }

    #[test]
    fn a_crash_blocks_only_the_same_input() {
        for (bad, good) in [
            (operation("read", &["bad"]), operation("read", &["good"])),
            (operation("complete", &["x", "b", "bad"]), operation("complete", &["x", "b", "good"])),
            (operation("complete", &["x", "b", "c"]), operation("complete", &["x"])),
            (operation("list-resources", &["bad"]), operation("list-resources", &[])),
            (operation("read", &["x"]), operation("resource-revisions", &["x"])),
        ] {
            let operations = OperationBreaker::default();
            crash(&operations, &bad, 0, 3);
            assert!(is_open(&operations, &bad, 0), "{bad:?}");
            assert!(!is_open(&operations, &good, 0), "{bad:?} stops {good:?}");
            assert!(!is_open(&operations, &bad, 7), "permissions of another caller can differ");
        }
        let operations = OperationBreaker::default();
        crash(&operations, &TestOperation { name: "resource-revisions", input: None }, 0, 10);
        assert!(operations.breaker.is_empty(), "any item of a batch may be the cause");
    }

    #[test]
    fn errors_of_a_provider_are_no_crashes_and_a_refusal_names_the_last_crash() {
        let (operations, read) = (OperationBreaker::default(), operation("read", &["x"]));
        for _ in 0..10 {
            assert_eq!(operations.record_result(&read, 0, Some(&ReadError::NotFound), now), None);
        }
        crash(&operations, &read, 0, 3);
        let refused = operations.check(&read, 0, now(), TIME).unwrap_err().to_string();
        let told = "trapped: unreachable; failed 3 times in a row; next attempt in 1s";
        assert!(refused.contains(told), "{refused}");
    }

    #[test]
    fn new_limits_close_the_circuit() {
        let (operations, read) = (OperationBreaker::default(), operation("read", &["x"]));
        let limit = ReadError::Exhausted(Limit { kind: LimitKind::Fuel, used: 2, cap: 1 });
        for _ in 0..3 {
            operations.record_result(&read, 0, Some(&limit), now);
        }
        assert!(is_open(&operations, &read, 0));
        operations.forget_limits();
        assert!(!is_open(&operations, &read, 0));
    }
}
