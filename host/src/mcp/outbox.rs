//! What waits to be taken by the client of one connection: while it is too much, no further work is begun for it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::admission::budget::{Budget, Held};
use crate::model::Guard;

/// Bytes of answers that may wait before nothing more is begun: a client that asks and does not listen.
const MOST: usize = 64 << 20;

/// Bytes that wait, counted by the transport.
#[derive(Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    taken: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: usize,
    /// What they are part of.
    held: Option<Held>,
}

impl Outbox {
    /// One whose bytes are part of `budget`.
    pub fn of(budget: &Arc<Budget>) -> Self {
        let waiting = Waiting { bytes: 0, held: Some(budget.hold(0)) };
        Self { waiting: Mutex::new(waiting), taken: Notify::new() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An answer waits.
    pub fn put(&self, bytes: usize) {
        self.with(|all| {
            all.bytes += bytes;
            all.held.iter_mut().for_each(|held| held.add(bytes as u64));
        });
    }

    /// An answer was taken, or will not be.
    pub fn take(&self, bytes: usize) {
        self.with(|all| {
            all.bytes = all.bytes.saturating_sub(bytes);
            all.held.iter_mut().for_each(|held| held.give(bytes as u64));
        });
        self.taken.notify_waiters();
    }

    /// Waits until there is room.
    pub async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.with(|all| all.bytes <= MOST) || !Guard::Untaken.is_on() {
                return;
            }
            taken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_begun_while_too_much_waits() {
        let outbox = Outbox::default();
        let bit = std::time::Duration::from_millis(20);
        outbox.put(MOST);
        outbox.room().await;
        outbox.put(1);
        assert!(tokio::time::timeout(bit, outbox.room()).await.is_err());
        tokio::join!(outbox.room(), async { outbox.take(1) });
    }
}
