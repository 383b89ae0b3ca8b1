//! The answers of one connection that wait to be written. While they are too many bytes, none of its requests begins.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::limits::memory_budget::{MemoryBudget, Reservation};
use crate::model::bounds::MAX_QUEUED_RESPONSES;

/// Counts the bytes of answers that wait for the client. The transport calls [`Outbox::put`] and [`Outbox::take`].
#[derive(Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    /// Notified when bytes were removed.
    removed: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: usize,
    /// The same bytes in the budget.
    held: Option<Reservation>,
}

impl Outbox {
    /// An outbox whose bytes count in `budget`.
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        let waiting = Waiting { bytes: 0, held: Some(budget.reserve(0)) };
        Self { waiting: Mutex::new(waiting), removed: Notify::new() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds an answer of `bytes` bytes.
    pub fn put(&self, bytes: usize) {
        self.with(|all| {
            all.bytes += bytes;
            all.held.iter_mut().for_each(|held| held.add(bytes as u64));
        });
    }

    /// Removes an answer of `bytes` bytes: it was written, or the connection ended.
    pub fn take(&self, bytes: usize) {
        self.with(|all| {
            all.bytes = all.bytes.saturating_sub(bytes);
            all.held.iter_mut().for_each(|held| held.release(bytes as u64));
        });
        self.removed.notify_waiters();
    }

    /// Waits until at most [`MAX_QUEUED_RESPONSES`] bytes wait.
    pub async fn wait_for_room(&self) {
        loop {
            let removed = self.removed.notified();
            if self.with(|all| all.bytes <= MAX_QUEUED_RESPONSES.get()) {
                return;
            }
            removed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_full_outbox_has_no_room_until_an_answer_is_written() {
        let outbox = Outbox::default();
        outbox.put(MAX_QUEUED_RESPONSES.get());
        outbox.wait_for_room().await;
        outbox.put(1);
        assert!(outbox.wait_for_room().now_or_never().is_none());
        tokio::join!(outbox.wait_for_room(), async { outbox.take(1) });
    }
}
