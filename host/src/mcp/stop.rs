//! How requests end when belljar does: those that are begun may finish for a while, then they are stopped; later ones are
//! refused. Each is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Shared by all handlers of a server.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_closed: AtomicBool,
    stopped: CancellationToken,
    running: AtomicUsize,
    /// The last request has ended, after the close.
    idle: Notify,
}

/// A request that runs, until it is dropped.
pub(super) struct Running<'a>(&'a Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.is_closed.load(Ordering::SeqCst) {
            self.0.idle.notify_waiters();
        }
    }
}

impl Stop {
    /// Counts a request; none when no more are begun.
    pub(super) fn begin(&self) -> Option<Running<'_>> {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        let running = Running(&self.0);
        (!self.0.is_closed.load(Ordering::SeqCst)).then_some(running)
    }

    /// Lets no further request begin.
    pub(super) fn close(&self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
    }

    /// Stops all requests that run.
    pub(super) fn stop(&self) {
        self.0.stopped.cancel();
    }

    /// Waits for [`Stop::stop`].
    pub(super) async fn stopped(&self) {
        self.0.stopped.cancelled().await;
    }

    /// Waits until no request runs; after [`Stop::close`].
    pub(super) async fn idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            if self.0.running.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}
