//! Where a call runs. It starts on the thread that asks, which for a short call is the cheapest place by far. What is still
//! computing after a millisecond or two goes on in the slow lane: a few threads that yield to everything else on the
//! machine, where long calls take turns. So short calls, timers and the protocol never wait behind a long one.
//!
//! Calls whose file operations may stall have a thread each: see [`apart`].

pub(super) mod apart;

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::model::{Guard, Outcome, ReadError};

/// How much the threads of the slow lane yield to others (`nice`): the most. A thread of the front that wakes must get the
/// processor at once; at 10 and at 5 it waited for a tick of the kernel's one time in a hundred, and the slowest short reads
/// took three and four times as long (`cargo xtask bench`, fair).
const NICE: i32 = 19;

/// A call under way, with everything it needs. On the heap from the beginning: what waits for it is moved more than once,
/// and would take it along.
pub(super) type Call = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A panic of ours under a guest's call ends that call.
struct Caught(Call);

impl Future for Caught {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| Poll::Ready(panicked(panic.as_ref())))
    }
}

/// How a call gets on, as it is told from inside of it and looked at from outside.
#[derive(Default)]
pub(super) struct Progress {
    /// Whether it has computed for longer than a tick of the epoch.
    pub(super) is_long: AtomicBool,
    /// When it began, as if it had computed all the time: nanoseconds after it did.
    pub(super) began: AtomicU64,
}

/// The lanes of one sandbox.
pub(super) struct Lanes {
    /// Its threads, as many as there are processors. Gone only while this is dropped.
    slow: Option<Runtime>,
}

impl Lanes {
    /// Starts the slow lane.
    pub(super) fn start() -> std::io::Result<Self> {
        let slow = Builder::new_multi_thread().thread_name("slow").on_thread_start(be_nice).enable_all().build()?;
        Ok(Self { slow: Some(slow) })
    }

    /// Runs `call`: from here on when it is expected to be short, else in the slow lane. Dropping the future stops it.
    pub(super) async fn run(&self, call: Call, is_quick: bool, progress: Arc<Progress>) -> Outcome {
        let mut front = Front { call: Some(Caught(call)), lanes: self };
        if is_quick || !Guard::Lane.is_on() {
            let polled = poll_fn(|cx| {
                let Some(call) = front.call.as_mut() else { return Poll::Ready(None) };
                match Pin::new(call).poll(cx) {
                    Poll::Ready(outcome) => {
                        front.call = None;
                        Poll::Ready(Some(outcome))
                    }
                    Poll::Pending if progress.is_long.load(Ordering::Relaxed) && Guard::Lane.is_on() => {
                        Poll::Ready(None)
                    }
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(outcome) = polled.await {
                return outcome;
            }
        }
        let (Some(slow), Some(call)) = (&self.slow, front.call.take()) else { return internal("the lane is closed") };
        Elsewhere(slow.spawn(call)).join().await.unwrap_or_else(|_| internal("the call was stopped"))
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Waits for nobody: it may be dropped on a thread that must not wait.
        if let Some(slow) = self.slow.take() {
            slow.shutdown_background();
        }
    }
}

/// A call on the front.
struct Front<'a> {
    call: Option<Caught>,
    lanes: &'a Lanes,
}

impl Drop for Front<'_> {
    fn drop(&mut self) {
        if !Guard::Cancel.is_on()
            && let (Some(call), Some(slow)) = (self.call.take(), &self.lanes.slow)
        {
            slow.spawn(call);
        }
    }
}

/// A call in the slow lane; it ends with its caller.
struct Elsewhere(JoinHandle<Outcome>);

impl Elsewhere {
    async fn join(mut self) -> Result<Outcome, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if Guard::Cancel.is_on() {
            self.0.abort();
        }
    }
}

/// Makes the current thread yield to others.
fn be_nice() {
    // None is the thread that calls; the second wall lets it name no other.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!("long calls run with the priority of short ones: {error}");
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
    use std::time::Duration;

    use super::*;

    fn answer() -> Outcome {
        Outcome::failed(ReadError::NotFound)
    }

    fn nice() -> i32 {
        rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap()
    }

    #[tokio::test]
    async fn a_call_moves_when_it_is_long_and_only_then() {
        let lanes = Lanes::start().unwrap();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let progress = Arc::<Progress>::default();
        let (own, marks) = (Arc::clone(&progress), Arc::clone(&seen));
        let call = Box::pin(async move {
            marks.lock().unwrap().push(nice());
            tokio::time::sleep(Duration::from_millis(1)).await;
            marks.lock().unwrap().push(nice());
            own.is_long.store(true, Ordering::Relaxed);
            tokio::task::yield_now().await;
            marks.lock().unwrap().push(nice());
            answer()
        });
        assert!(matches!(lanes.run(call, true, progress).await.result, Err(ReadError::NotFound)));
        let front = nice();
        assert_eq!(*seen.lock().unwrap(), [front, front, NICE.max(front)]);
        let call = Box::pin(async { Outcome::failed(ReadError::Provider(nice().to_string())) });
        let outcome = lanes.run(call, false, Arc::default()).await;
        assert!(matches!(outcome.result, Err(ReadError::Provider(at)) if at == NICE.max(front).to_string()));
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_in_both_lanes() {
        let lanes = Lanes::start().unwrap();
        for is_quick in [true, false] {
            let call = Box::pin(async { panic!("planted") });
            let outcome = lanes.run(call, is_quick, Arc::default()).await;
            assert!(matches!(outcome.result, Err(ReadError::Internal(why)) if why.contains("planted")));
        }
        let fine = lanes.run(Box::pin(async { answer() }), false, Arc::default()).await;
        assert!(matches!(fine.result, Err(ReadError::NotFound)));
    }

    #[tokio::test]
    async fn what_a_call_holds_goes_with_its_caller_in_both_lanes() {
        let lanes = Lanes::start().unwrap();
        for is_quick in [true, false] {
            let held = Arc::new(());
            let inner = Arc::clone(&held);
            let call = Box::pin(async move {
                let _inner = inner;
                loop {
                    tokio::task::yield_now().await;
                }
            });
            let run = lanes.run(call, is_quick, Arc::default());
            assert!(tokio::time::timeout(Duration::from_millis(20), run).await.is_err());
            let gone = async {
                while Arc::strong_count(&held) > 1 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            assert!(tokio::time::timeout(Duration::from_secs(10), gone).await.is_ok());
        }
    }
}
