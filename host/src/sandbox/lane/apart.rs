//! Where calls run whose file operations may stall (a mount on a network or FUSE file system): a thread each, so that
//! what hangs in the kernel hangs alone. The caller is answered at the deadline whatever the thread does, and the host's turn
//! is given back then; the thread keeps a slot of its mount until it ends, so that only its own mount has less.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;
use tokio::time::{Duration, Instant, timeout_at};

use crate::grants::SharedTrail;
use crate::model::{Limit, MountName, Outcome, ReadError};

/// How much later than the call's own timer the front gives up.
const GRACE: Duration = Duration::from_millis(25);

/// Threads that did not come back by their calls' deadlines, since the start.
static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Runs the call that `make` makes on a thread of its own. `make` holds whatever the call holds; `late` is what is told
/// when it does not come back, with what is noted on `trail` by then.
pub(in crate::sandbox) async fn run<F>(
    name: &MountName,
    deadline: Instant,
    late: Limit,
    trail: &SharedTrail,
    make: F,
) -> Outcome
where
    F: AsyncFnOnce() -> Outcome + Send + 'static,
{
    let none = |error| Outcome { result: Err(error), usage: trail.usage(), trail: trail.take() };
    let (mut done, outcome) = oneshot::channel();
    let body = move || {
        super::be_nice();
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async move {
            // When the front goes away (cancelled, or given up on us), the call is dropped at its next step.
            tokio::select! {
                biased;
                () = done.closed() => {}
                outcome = make() => { let _ = done.send(outcome); }
            }
        });
    };
    if let Err(error) = std::thread::Builder::new().name(format!("call-{name}")).spawn(body) {
        return none(ReadError::Internal(format!("cannot start a thread for a call: {error}")));
    }
    match timeout_at(deadline + GRACE, outcome).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => none(ReadError::Internal("the thread of a call ended without an outcome".to_owned())),
        Err(_) => {
            let stuck = STUCK.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(
                mount = %name,
                "a file operation does not return; the call was answered, its thread and a slot of its mount are lost until it does ({stuck} so far)"
            );
            none(ReadError::Exhausted(late))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Bound;
    use crate::model::{Trail, Usage, Verdict};

    const LATE: Limit = Limit { bound: Bound::Time, used: 50, cap: 50 };

    fn outcome() -> Outcome {
        Outcome { result: Err(ReadError::NotFound), usage: Usage::default(), trail: Trail::default() }
    }

    #[tokio::test]
    async fn a_stalled_operation_does_not_hold_the_caller() {
        let name = MountName::new("m").unwrap();
        let time = Duration::from_millis(50);
        let started = Instant::now();
        let trail = SharedTrail::default();
        let own = trail.clone();
        let stalled = run(&name, started + time, LATE, &trail, async move || {
            own.begin(100);
            own.fuel_left(58);
            own.add("fs", "/d", Verdict::Allowed, || None);
            std::thread::sleep(Duration::from_secs(2));
            outcome()
        });
        let stalled = stalled.await;
        assert!(matches!(stalled.result, Err(ReadError::Exhausted(Limit { bound: Bound::Time, cap: 50, .. }))));
        // What it had done by then is on record.
        assert_eq!((stalled.usage.fuel, stalled.trail.decisions().len()), (42, 1));
        assert!(started.elapsed() < Duration::from_secs(1));
        let fine = run(&name, Instant::now() + time, LATE, &trail, async || outcome()).await;
        assert!(matches!(fine.result, Err(ReadError::NotFound)));
    }

    #[tokio::test]
    async fn what_the_call_holds_is_dropped_with_its_caller() {
        let name = MountName::new("m").unwrap();
        let held = std::sync::Arc::new(());
        let inner = std::sync::Arc::clone(&held);
        let time = Duration::from_secs(60);
        let trail = SharedTrail::default();
        let call = run(&name, Instant::now() + time, LATE, &trail, async move || {
            let _inner = inner;
            tokio::time::sleep(Duration::from_secs(60)).await;
            outcome()
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
        for _ in 0..100 {
            if std::sync::Arc::strong_count(&held) == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the call was not dropped");
    }
}
