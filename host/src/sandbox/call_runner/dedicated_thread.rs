//! Runs calls whose file operations may stall (a network or FUSE file system) on a dedicated thread each. A thread that
//! hangs in the kernel then affects only its own call. The caller is answered at the deadline in any case, and the
//! host's turn is released then. The thread keeps a slot of its mount until it ends, so only that mount has fewer
//! slots.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use super::call_end::CallEnd;
use super::nice;
use crate::model::{MountName, ReadError};
use crate::sandbox::spec::Outcome;

/// Threads that were still running at their deadline, since the start of the process.
static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Runs the call that `make` creates on a dedicated thread. `make` owns everything that the call holds. If the thread
/// does not return in time, the outcome is that of `end`.
pub(in crate::sandbox) async fn run<F>(name: &MountName, end: CallEnd, make: F) -> Outcome
where
    F: AsyncFnOnce() -> Outcome + Send + 'static,
{
    end.record.may_hang();
    let (mut done, outcome) = oneshot::channel();
    let body = move || {
        nice::lower_priority();
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async move {
            // If the caller is gone (cancelled or timed out), the call is dropped at its next await.
            tokio::select! {
                biased;
                () = done.closed() => {}
                outcome = make() => { let _ = done.send(outcome); }
            }
        });
    };
    if let Err(error) = std::thread::Builder::new().name(format!("call-{name}")).spawn(body) {
        return end.failed(ReadError::Internal(format!("cannot start a thread for a call: {error}")));
    }
    match end.within(outcome).await {
        Some(Ok(outcome)) => outcome,
        Some(Err(_)) => end.failed(ReadError::Internal("the thread of a call ended without an outcome".to_owned())),
        None => {
            let stuck = STUCK.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(
                mount = %name,
                "a file operation hangs; the call was answered, but its thread and a slot of its mount stay occupied until the operation returns ({stuck} such threads since the start)"
            );
            end.late()
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, Instant};

    use super::super::call_end::GRACE;
    use super::*;
    use crate::grants::CallRecord;
    use crate::model::error::LimitKind;
    use crate::model::waiting::EVENT_TIME;
    use crate::model::{DecisionKind, DecisionLog, Limit, Usage};

    fn end(deadline: Instant, record: &CallRecord) -> CallEnd {
        let limit = Limit { kind: LimitKind::Time, used: 50, cap: 50 };
        CallEnd { deadline, limit, record: record.clone() }
    }

    fn outcome() -> Outcome {
        Outcome { result: Err(ReadError::NotFound), usage: Usage::default(), decisions: DecisionLog::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_operation_does_not_hold_the_caller() {
        let name = MountName::new("m").unwrap();
        let record = CallRecord::default();
        let own = record.clone();
        let (recorded, has_recorded) = std::sync::mpsc::channel();
        let (release, held) = std::sync::mpsc::channel::<()>();
        // While a blocking task runs, the paused clock stands still. So the deadline passes after the call has recorded
        // its usage.
        let recorded_in_time = tokio::task::spawn_blocking(move || has_recorded.recv_timeout(EVENT_TIME).is_ok());
        let deadline = Instant::now() + Duration::from_millis(50);
        let stalled = run(&name, end(deadline, &record), async move || {
            own.begin(100);
            own.fuel_left(58);
            own.add_decision("fs", "/d", DecisionKind::Allowed, || None);
            recorded.send(()).unwrap();
            // The operation returns after the caller was answered.
            let _ = held.recv_timeout(EVENT_TIME);
            outcome()
        });
        let stalled = stalled.await;
        let answered = Instant::now();
        assert!(answered >= deadline && answered < deadline + 2 * GRACE, "{:?} late", answered - deadline);
        assert!(recorded_in_time.await.unwrap());
        assert!(matches!(stalled.result, Err(ReadError::Exhausted(Limit { kind: LimitKind::Time, cap: 50, .. }))));
        // Its usage up to then is recorded.
        assert_eq!((stalled.usage.fuel, stalled.decisions.decisions().len()), (42, 1));
        // The thread of the first call still hangs.
        tokio::time::resume();
        let fine = run(&name, end(Instant::now() + EVENT_TIME, &record), async || outcome()).await;
        assert!(matches!(fine.result, Err(ReadError::NotFound)));
        drop(release);
    }

    #[tokio::test]
    async fn a_call_is_dropped_with_its_caller() {
        let name = MountName::new("m").unwrap();
        let record = CallRecord::default();
        let (started, has_started) = oneshot::channel();
        let (held, dropped) = oneshot::channel::<()>();
        let call = run(&name, end(Instant::now() + EVENT_TIME, &record), async move || {
            let _held = held;
            started.send(()).unwrap();
            std::future::pending::<Outcome>().await
        });
        tokio::select! {
            _ = call => panic!("the call ended"),
            started = has_started => started.unwrap(),
        }
        // The channel closes when the call is dropped.
        let dropped = tokio::time::timeout(EVENT_TIME, dropped).await;
        assert!(dropped.expect("the call was not dropped").is_err());
    }
}
