//! Runs calls in one of three places. A call starts on the thread of its caller, which is by far the cheapest place for
//! a short call. A call that still computes after one or two milliseconds moves to the slow pool: a few threads with
//! the lowest priority, where long calls take turns. Therefore short calls, timers and the protocol never wait behind a
//! long call.
//!
//! A call whose file operations may stall runs on a dedicated thread; see [`dedicated_thread`]. A call that meets such
//! a file later moves to one from either place.

mod call_end;
pub(super) mod dedicated_thread;
mod nice;

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

pub(super) use self::call_end::CallEnd;
use crate::grants::DedicatedThread;
use crate::limits::DetachedTurn;
use crate::model::{Guard, MountName, ReadError};
use crate::sandbox::spec::Outcome;

/// A running call with everything it owns. Boxed from the beginning: it is moved several times, and the move must be
/// cheap.
pub(super) type CallFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Turns a panic of host code during a call into an outcome of that call.
struct CatchPanic(CallFuture);

impl Future for CatchPanic {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| Poll::Ready(panicked(panic.as_ref())))
    }
}

/// The progress of a call, written from inside of it and read from outside.
#[derive(Default)]
pub(super) struct CallProgress {
    /// True if it has computed for longer than a tick of the epoch.
    pub(super) is_long: AtomicBool,
    /// The start of the call, moved forward by its waiting times: nanoseconds after the real start.
    pub(super) started: AtomicU64,
    /// The request for a dedicated thread, and its state.
    pub(super) thread: DedicatedThread,
}

/// What a call on a dedicated thread needs besides.
pub(super) struct DedicatedCall {
    pub(super) mount: MountName,
    /// The turn, released when the caller is answered.
    pub(super) turn: Option<DetachedTurn>,
}

/// Runs the calls of one sandbox.
pub(super) struct CallRunner {
    slow: Handle,
    /// The slow pool, with one thread for each processor. `None` after shutdown.
    threads: Mutex<Option<Runtime>>,
}

impl CallRunner {
    /// Starts the slow pool.
    pub(super) fn start() -> std::io::Result<Self> {
        let slow = Builder::new_multi_thread()
            .thread_name("slow")
            .on_thread_start(nice::lower_priority)
            .enable_all()
            .build()?;
        Ok(Self { slow: slow.handle().clone(), threads: Mutex::new(Some(slow)) })
    }

    /// Stops the slow pool and all its calls, and waits at most `within` for its threads. Must be called from outside
    /// of every runtime, and while the runtime on which calls start still exists. Their timers belong to that runtime,
    /// and polling a timer of a dropped runtime panics.
    pub(super) fn shut_down(&self, within: Duration) {
        if let Some(threads) = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take() {
            threads.shutdown_timeout(within);
        }
    }

    /// Runs `call`: on this thread if it is expected to be short, otherwise in the slow pool. Dropping the future stops
    /// it. `dedicated` provides the data for a dedicated thread, or the reason why there is none.
    pub(super) async fn run(
        &self,
        call: CallFuture,
        is_quick: bool,
        progress: Arc<CallProgress>,
        end: CallEnd,
        dedicated: impl FnOnce() -> Result<DedicatedCall, ReadError>,
    ) -> Outcome {
        let mut inline = InlineCall { call: Some(CatchPanic(call)), runner: self };
        let never_moves = !Guard::LongCalls.is_on();
        if is_quick || never_moves {
            let polled = poll_fn(|cx| {
                let Some(call) = inline.call.as_mut() else { return Poll::Ready(None) };
                match Pin::new(call).poll(cx) {
                    Poll::Ready(outcome) => {
                        inline.call = None;
                        Poll::Ready(Some(outcome))
                    }
                    Poll::Pending if progress.is_long.load(Ordering::Relaxed) && !never_moves => Poll::Ready(None),
                    Poll::Pending if progress.thread.is_requested() => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(outcome) = polled.await {
                return outcome;
            }
        }
        let Some(mut call) = inline.call.take() else { return internal("the call is gone") };
        if !progress.thread.is_requested() {
            let own = Arc::clone(&progress);
            let slow = SlowCall(self.slow.spawn(until_ended_or_moved(call, own)));
            match end.within(slow.join()).await {
                Some(Ok(SlowCallResult::Ended(outcome))) => return *outcome,
                Some(Ok(SlowCallResult::NeedsThread(moved))) => call = moved,
                Some(Err(_)) => return internal("the call was stopped"),
                None => return end.late(),
            }
        }
        progress.thread.assign();
        let DedicatedCall { mount, turn: _turn } = match dedicated() {
            Ok(dedicated) => dedicated,
            Err(error) => return Outcome::failed(error),
        };
        dedicated_thread::run(&mount, end, async move || call.await).await
    }
}

/// The result of a call in the slow pool.
enum SlowCallResult {
    Ended(Box<Outcome>),
    NeedsThread(CatchPanic),
}

/// Polls a call until it ends or requests a dedicated thread.
async fn until_ended_or_moved(call: CatchPanic, progress: Arc<CallProgress>) -> SlowCallResult {
    let mut call = Some(call);
    poll_fn(|cx| {
        let Some(mut running) = call.take() else { return Poll::Pending };
        match Pin::new(&mut running).poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(SlowCallResult::Ended(Box::new(outcome))),
            Poll::Pending if progress.thread.is_requested() => Poll::Ready(SlowCallResult::NeedsThread(running)),
            Poll::Pending => {
                call = Some(running);
                Poll::Pending
            }
        }
    })
    .await
}

impl Drop for CallRunner {
    fn drop(&mut self) {
        // Does not wait: it may be dropped on a thread that must not block.
        if let Some(threads) = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take() {
            threads.shutdown_background();
        }
    }
}

/// True if a call ends when its caller is gone.
fn ends_with_caller() -> bool {
    Guard::Cancel.is_on()
}

/// A call on the thread of its caller.
struct InlineCall<'a> {
    call: Option<CatchPanic>,
    runner: &'a CallRunner,
}

impl Drop for InlineCall<'_> {
    fn drop(&mut self) {
        if !ends_with_caller()
            && let Some(call) = self.call.take()
        {
            self.runner.slow.spawn(call);
        }
    }
}

/// A call in the slow pool. Aborted when its caller is gone.
struct SlowCall(JoinHandle<SlowCallResult>);

impl SlowCall {
    async fn join(mut self) -> Result<SlowCallResult, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl Drop for SlowCall {
    fn drop(&mut self) {
        if ends_with_caller() {
            self.0.abort();
        }
    }
}

fn internal(why: &str) -> Outcome {
    Outcome::failed(ReadError::Internal(why.to_owned()))
}

fn panicked(panic: &(dyn Any + Send)) -> Outcome {
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    internal(&format!("a host function panicked: {}", words.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::call_end::GRACE;
    use super::nice::NICE;
    use super::*;
    use crate::grants::CallRecord;
    use crate::model::Limit;
    use crate::model::waiting::EVENT_TIME;

    fn answer() -> Outcome {
        Outcome::failed(ReadError::NotFound)
    }

    fn end_in(time: Duration) -> CallEnd {
        let limit = Limit { kind: crate::model::error::LimitKind::Time, used: 50, cap: 50 };
        CallEnd { deadline: Instant::now() + time, limit, record: CallRecord::default() }
    }

    fn dedicated() -> Result<DedicatedCall, ReadError> {
        Ok(DedicatedCall { mount: MountName::new("m").unwrap(), turn: None })
    }

    fn nice() -> i32 {
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[tokio::test]
    async fn only_a_long_call_moves_to_the_slow_pool() {
        let runner = CallRunner::start().unwrap();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let progress = Arc::<CallProgress>::default();
        let (call_progress, marks) = (Arc::clone(&progress), Arc::clone(&seen));
        let call = Box::pin(async move {
            marks.lock().unwrap().push(nice());
            tokio::time::sleep(Duration::from_millis(1)).await;
            marks.lock().unwrap().push(nice());
            call_progress.is_long.store(true, Ordering::Relaxed);
            tokio::task::yield_now().await;
            marks.lock().unwrap().push(nice());
            answer()
        });
        assert!(matches!(
            runner.run(call, true, progress, end_in(EVENT_TIME), dedicated).await.result,
            Err(ReadError::NotFound)
        ));
        let inline = nice();
        assert_eq!(*seen.lock().unwrap(), [inline, inline, NICE.max(inline)]);
        let call = Box::pin(async { Outcome::failed(ReadError::ProviderFailed(nice().to_string())) });
        let outcome = runner.run(call, false, Arc::default(), end_in(EVENT_TIME), dedicated).await;
        assert!(matches!(outcome.result, Err(ReadError::ProviderFailed(at)) if at == NICE.max(inline).to_string()));
    }

    #[tokio::test]
    async fn a_call_gets_a_dedicated_thread_from_either_place() {
        let runner = CallRunner::start().unwrap();
        for is_quick in [true, false] {
            let progress = Arc::<CallProgress>::default();
            let own = progress.thread.clone();
            let call = Box::pin(async move {
                let thread = || std::thread::current().name().unwrap_or_default().to_owned();
                let before = thread();
                tokio::task::yield_now().await;
                own.request().await;
                // This blocks only the dedicated thread.
                std::thread::sleep(Duration::from_millis(5));
                tokio::time::sleep(Duration::from_millis(1)).await;
                Outcome::failed(ReadError::ProviderFailed(format!("{} {}", before == "call-m", thread())))
            });
            let outcome = runner.run(call, is_quick, progress, end_in(EVENT_TIME), dedicated).await;
            assert!(
                matches!(&outcome.result, Err(ReadError::ProviderFailed(said)) if said == "false call-m"),
                "{:?}",
                outcome.result
            );
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_outcome_in_either_place() {
        let runner = CallRunner::start().unwrap();
        for is_quick in [true, false] {
            let call = Box::pin(async { panic!("planted") });
            let outcome = runner.run(call, is_quick, Arc::default(), end_in(EVENT_TIME), dedicated).await;
            assert!(matches!(outcome.result, Err(ReadError::Internal(why)) if why.contains("planted")));
        }
        let fine = runner.run(Box::pin(async { answer() }), false, Arc::default(), end_in(EVENT_TIME), dedicated).await;
        assert!(matches!(fine.result, Err(ReadError::NotFound)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_is_answered_at_the_deadline_although_the_slow_pool_has_no_processor() {
        let runner = CallRunner::start().unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (began, has_begun) = std::sync::mpsc::channel();
        // While a blocking task runs, the paused clock stands still. So the deadline passes after the call has begun.
        let begun_in_time = tokio::task::spawn_blocking(move || has_begun.recv_timeout(EVENT_TIME).is_ok());
        let end = end_in(Duration::from_millis(50));
        let (deadline, own) = (end.deadline, end.record.clone());
        let call = Box::pin(async move {
            own.begin(100);
            own.fuel_left(58);
            began.send(()).unwrap();
            let _ = held.recv_timeout(EVENT_TIME);
            answer()
        });
        let outcome = runner.run(call, false, Arc::default(), end, dedicated).await;
        let answered = Instant::now();
        assert!(answered >= deadline && answered < deadline + 2 * GRACE, "{:?} late", answered - deadline);
        assert!(begun_in_time.await.unwrap());
        assert!(matches!(outcome.result, Err(ReadError::Exhausted(Limit { cap: 50, .. }))));
        assert_eq!(outcome.usage.fuel, 42, "its usage up to then is recorded");
        drop(release);
    }

    #[tokio::test]
    async fn a_call_is_dropped_with_its_caller_in_either_place() {
        let runner = CallRunner::start().unwrap();
        for is_quick in [true, false] {
            let (started, has_started) = oneshot::channel();
            let (held, dropped) = oneshot::channel::<()>();
            let call = Box::pin(async move {
                let _held = held;
                started.send(()).unwrap();
                loop {
                    tokio::task::yield_now().await;
                }
            });
            let run = runner.run(call, is_quick, Arc::default(), end_in(EVENT_TIME), dedicated);
            tokio::select! {
                _ = run => panic!("the call ended"),
                started = has_started => started.unwrap(),
            }
            // The channel closes when the call is dropped. The deadline is longer than that takes on a busy machine.
            let dropped = tokio::time::timeout(Duration::from_secs(60), dropped).await;
            assert!(dropped.expect("the call was not dropped").is_err());
        }
    }
}
