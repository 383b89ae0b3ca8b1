//! Threads for calls that may block in the kernel.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;

use crate::model::Guard;

/// Tells whether a call runs on a dedicated thread. Only there may a host function block in the kernel, for example on
/// a drive that does not answer. On a shared thread it would block all other tasks of this thread.
#[derive(Clone, Debug)]
pub struct DedicatedThread(Arc<AtomicU8>);

impl Default for DedicatedThread {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(if Guard::DedicatedThread.is_on() { Self::NOT_REQUESTED } else { Self::ASSIGNED })))
    }
}

impl DedicatedThread {
    const NOT_REQUESTED: u8 = 0;
    const REQUESTED: u8 = 1;
    const ASSIGNED: u8 = 2;

    /// True if the call may block on this thread.
    pub fn may_block(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::ASSIGNED
    }

    /// True if the call waits for a dedicated thread. It continues when a dedicated thread polls it.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::REQUESTED
    }

    /// Records that a dedicated thread polls the call from now on.
    pub fn assign(&self) {
        self.0.store(Self::ASSIGNED, Ordering::Relaxed);
    }

    /// Requests a dedicated thread, and continues there. The executor of the call moves the call to that thread and
    /// polls it again.
    pub async fn request(&self) {
        poll_fn(|_| match self.may_block() {
            true => Poll::Ready(()),
            false => {
                self.0.store(Self::REQUESTED, Ordering::Relaxed);
                Poll::Pending
            }
        })
        .await;
    }
}
