//! A future that wakes itself while it is polled is polled again at once, by the thread that has it.
//!
//! hyper wakes a connection's own task when the body of a request is taken, though nothing comes of it. The runtime puts
//! such a task at the end of its queue and gets another thread up to look there: for a small request that costs more than
//! reading its message.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// See the module.
pub(super) struct Calm<F> {
    inner: Pin<Box<F>>,
    bell: Option<(Arc<Bell>, Waker)>,
}

/// What the future inside wakes.
struct Bell {
    task: Waker,
    /// It is being polled.
    polled: AtomicBool,
    /// It was woken while it was.
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // First the mark, then the look: whoever polls takes the flag away first, and looks for the mark then, so that
        // one of the two sees the other.
        self.rung.store(true, Ordering::SeqCst);
        if !self.polled.load(Ordering::SeqCst) && self.rung.swap(false, Ordering::SeqCst) {
            self.task.wake_by_ref();
        }
    }
}

impl<F: Future> Calm<F> {
    pub(super) fn new(inner: F) -> Self {
        Self { inner: Box::pin(inner), bell: None }
    }
}

impl<F: Future> Future for Calm<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let own = &mut *self;
        let known = own.bell.take().filter(|(bell, _)| bell.task.will_wake(context.waker()));
        let (bell, waker) = known.unwrap_or_else(|| {
            let task = context.waker().clone();
            let bell = Arc::new(Bell { task, polled: AtomicBool::new(false), rung: AtomicBool::new(false) });
            let waker = Waker::from(Arc::clone(&bell));
            (bell, waker)
        });
        let polled = own.poll_twice(&bell, &waker);
        own.bell = Some((bell, waker));
        polled
    }
}

impl<F: Future> Calm<F> {
    /// Once more where it wakes itself, and then it is the runtime's turn: it may want to let others go first.
    fn poll_twice(&mut self, bell: &Bell, waker: &Waker) -> Poll<F::Output> {
        for is_last in [false, true] {
            // Taken, not overwritten: what the one who rang did before is seen.
            bell.rung.swap(false, Ordering::SeqCst);
            bell.polled.store(true, Ordering::SeqCst);
            let polled = self.inner.as_mut().poll(&mut Context::from_waker(waker));
            bell.polled.store(false, Ordering::SeqCst);
            if polled.is_ready() || !bell.rung.swap(false, Ordering::SeqCst) {
                return polled;
            }
            if is_last {
                bell.task.wake_by_ref();
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often the task is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once what wakes itself in each of the first `times` polls; says how often it was polled, and woken from without.
    fn polled(times: usize) -> (usize, usize, Poll<()>) {
        let (woken, mut polls) = (Arc::new(Woken::default()), 0);
        let mut calm = Calm::new(poll_fn(|cx| {
            polls += 1;
            if polls > times {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let answer = Pin::new(&mut calm).poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken))));
        drop(calm);
        (polls, woken.0.load(Ordering::SeqCst), answer)
    }

    #[test]
    fn who_wakes_itself_is_polled_once_more_and_then_waits_its_turn() {
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
            let sent = tokio::spawn(Calm::new(send));
            let taken = tokio::spawn(Calm::new(async move {
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
