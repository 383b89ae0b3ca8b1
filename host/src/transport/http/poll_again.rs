//! Polls a future again, at once and on the same thread, if the future woke itself during the poll.
//!
//! hyper needlessly wakes the task of a connection when the body of a request is read. The runtime puts the woken
//! task at the end of its queue and wakes another thread for it. On a single connection, a small read then takes 1.3
//! times the processor time (`cargo xtask bench --only floor` measures that read).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A future that is polled once more if it wakes itself during a poll.
pub(super) struct PollAgain<F> {
    inner: Pin<Box<F>>,
    wake: Option<(Arc<SelfWake>, Waker)>,
}

/// The waker that the inner future gets in place of its task's waker.
struct SelfWake {
    task: Waker,
    /// True while the inner future is polled.
    is_polled: AtomicBool,
    /// True if the inner future was woken and not polled since.
    is_woken: AtomicBool,
}

impl Wake for SelfWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // This sets `is_woken` before it reads `is_polled`. `poll_twice` clears `is_polled` before it reads `is_woken`.
        // So at least one of the two threads sees the other's write, and no wake is lost.
        self.is_woken.store(true, Ordering::SeqCst);
        if !self.is_polled.load(Ordering::SeqCst) && self.is_woken.swap(false, Ordering::SeqCst) {
            self.task.wake_by_ref();
        }
    }
}

impl<F: Future> PollAgain<F> {
    pub(super) fn new(inner: F) -> Self {
        Self { inner: Box::pin(inner), wake: None }
    }

    /// Polls once, and a second time if the future woke itself. After the second poll it wakes the task through the
    /// runtime, which can run other tasks first.
    fn poll_twice(&mut self, wake: &SelfWake, waker: &Waker) -> Poll<F::Output> {
        for is_last in [false, true] {
            // A swap instead of a store: it synchronizes with the waking thread, so the poll sees that thread's writes.
            wake.is_woken.swap(false, Ordering::SeqCst);
            wake.is_polled.store(true, Ordering::SeqCst);
            let polled = self.inner.as_mut().poll(&mut Context::from_waker(waker));
            wake.is_polled.store(false, Ordering::SeqCst);
            if polled.is_ready() || !wake.is_woken.swap(false, Ordering::SeqCst) {
                return polled;
            }
            if is_last {
                wake.task.wake_by_ref();
            }
        }
        Poll::Pending
    }
}

impl<F: Future> Future for PollAgain<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let own = &mut *self;
        let known = own.wake.take().filter(|(wake, _)| wake.task.will_wake(context.waker()));
        let (wake, waker) = known.unwrap_or_else(|| {
            let task = context.waker().clone();
            let wake = Arc::new(SelfWake { task, is_polled: AtomicBool::new(false), is_woken: AtomicBool::new(false) });
            let waker = Waker::from(Arc::clone(&wake));
            (wake, waker)
        });
        let polled = own.poll_twice(&wake, &waker);
        own.wake = Some((wake, waker));
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts the wakes of the task.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once a future that wakes itself in each of its first `times` polls. Returns the number of inner polls, the
    /// number of wakes of the task, and the result.
    fn polled(times: usize) -> (usize, usize, Poll<()>) {
        let (woken, mut polls) = (Arc::new(Woken::default()), 0);
        let mut again = PollAgain::new(poll_fn(|cx| {
            polls += 1;
            if polls > times {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let answer = Pin::new(&mut again).poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken))));
        drop(again);
        (polls, woken.0.load(Ordering::SeqCst), answer)
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_once_more_and_then_waits_for_the_runtime() {
        assert_eq!(polled(0), (1, 0, Poll::Ready(())));
        assert_eq!(polled(1), (2, 0, Poll::Ready(())));
        assert_eq!(polled(2), (2, 1, Poll::Pending));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_from_another_thread_is_lost() {
        for _ in 0..20 {
            let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
            let send = async move {
                for number in 0..2000 {
                    sender.send(number).await.unwrap();
                    if number % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            };
            let sent = tokio::spawn(PollAgain::new(send));
            let taken = tokio::spawn(PollAgain::new(async move {
                let mut count = 0;
                while receiver.recv().await.is_some() {
                    count += 1;
                }
                count
            }));
            let both = async { (sent.await.unwrap(), taken.await.unwrap()).1 };
            assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(60), both).await.unwrap(), 2000);
        }
    }
}
