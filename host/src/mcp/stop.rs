//! How requests end when belljar does: those that are begun may finish for a while, then they are stopped; later ones are
//! refused. Each is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Shared by all handlers of a server.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_closed: AtomicBool,
    stopped: CancellationToken,
    running: TaskTracker,
}

impl Stop {
    /// Counts a request until the token is dropped; none when no more are begun.
    pub(super) fn begin(&self) -> Option<TaskTrackerToken> {
        let token = self.0.running.token();
        (!self.0.is_closed.load(Ordering::SeqCst)).then_some(token)
    }

    /// Lets no further request begin.
    pub(super) fn close(&self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        self.0.running.close();
    }

    /// Stops all requests that run.
    pub(super) fn stop(&self) {
        self.close();
        self.0.stopped.cancel();
    }

    /// Waits for [`Stop::stop`].
    pub(super) async fn stopped(&self) {
        self.0.stopped.cancelled().await;
    }

    /// Waits until no request runs; after [`Stop::close`].
    pub(super) async fn idle(&self) {
        self.0.running.wait().await;
    }
}
