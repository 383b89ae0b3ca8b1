//! The phase of a request. A full transport evicts a request that still waits, and never one whose call runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// The phase of one request: waiting, running or evicted. The transport creates and reads it; the handler sets it to
/// running.
#[derive(Clone, Default)]
pub struct RequestPhase(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: AtomicU8,
    /// Notified when the request is evicted.
    evicted: Notify,
}

/// The call waits for admission, or for another read of the same resource.
const WAITING: u8 = 0;

/// The call was admitted.
const RUNNING: u8 = 1;

/// The transport evicted the request for another one. The handler answers it as busy.
const EVICTED: u8 = 2;

impl RequestPhase {
    fn leave_waiting(&self, to: u8) -> bool {
        self.0.state.compare_exchange(WAITING, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Marks the call as admitted, unless the request was evicted.
    pub fn set_running(&self) {
        self.leave_waiting(RUNNING);
    }

    /// True if the call was admitted.
    pub fn is_running(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == RUNNING
    }

    /// Evicts the request if its call still waits; the handler then answers it as busy. True if this evicted it.
    pub fn evict(&self) -> bool {
        let is_evicted = self.leave_waiting(EVICTED);
        if is_evicted {
            self.0.evicted.notify_waiters();
        }
        is_evicted
    }

    /// True if the request was evicted.
    pub fn is_evicted(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == EVICTED
    }

    /// Waits until the request is evicted.
    pub(super) async fn wait_for_eviction(&self) {
        let evicted = self.0.evicted.notified();
        if !self.is_evicted() {
            evicted.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_evicted_only_while_it_waits() {
        let running = RequestPhase::default();
        running.set_running();
        assert!(running.is_running() && !running.evict() && !running.is_evicted());
        let waiting = RequestPhase::default();
        let eviction = tokio::spawn({
            let waiting = waiting.clone();
            async move { waiting.wait_for_eviction().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_running() && waiting.evict() && waiting.is_evicted());
        eviction.await.unwrap();
        waiting.wait_for_eviction().await;
        waiting.set_running();
        assert!(!waiting.is_running(), "an evicted request does not begin");
    }
}
