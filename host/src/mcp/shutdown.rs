//! The shutdown of requests. Running requests may finish until the grace period ends, then they are stopped. New ones
//! are refused. Each request is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The shutdown state that the handlers of a server share. Clones also share the token that stops requests;
/// [`Shutdown::of_connection`] has one of its own.
#[derive(Clone, Default)]
pub(super) struct Shutdown(Arc<Inner>);

#[derive(Default)]
struct Inner {
    server: Arc<ServerState>,
    stopped: CancellationToken,
}

/// The state that all connections of a server share.
#[derive(Default)]
struct ServerState {
    is_closed: AtomicBool,
    running: AtomicUsize,
    /// Notified when the last request ends after [`Shutdown::close`].
    became_idle: Notify,
}

/// Counts one running request until it is dropped.
pub(super) struct RunningRequest<'a>(&'a ServerState);

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.is_closed.load(Ordering::SeqCst) {
            self.0.became_idle.notify_waiters();
        }
    }
}

impl Shutdown {
    /// The state of one connection: [`Shutdown::stop`] stops its requests and no others.
    pub(super) fn of_connection(&self) -> Self {
        let (server, stopped) = (Arc::clone(&self.0.server), self.0.stopped.child_token());
        Self(Arc::new(Inner { server, stopped }))
    }

    /// Counts a request. `None` after [`Shutdown::close`].
    pub(super) fn begin_request(&self) -> Option<RunningRequest<'_>> {
        let server = &self.0.server;
        server.running.fetch_add(1, Ordering::SeqCst);
        let running = RunningRequest(server);
        (!server.is_closed.load(Ordering::SeqCst)).then_some(running)
    }

    /// Refuses new requests.
    pub(super) fn close(&self) {
        self.0.server.is_closed.store(true, Ordering::SeqCst);
    }

    /// Stops the running requests of this state and of those made from it.
    pub(super) fn stop(&self) {
        self.0.stopped.cancel();
    }

    /// Waits for [`Shutdown::stop`].
    pub(super) async fn wait_for_stop(&self) {
        self.0.stopped.cancelled().await;
    }

    /// Waits until no request runs. Call [`Shutdown::close`] first.
    pub(super) async fn wait_until_idle(&self) {
        loop {
            let idle = self.0.server.became_idle.notified();
            if self.0.server.running.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}
