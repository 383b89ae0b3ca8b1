//! What waits to be taken by the client of one connection: while it is too much, no further work is begun for it.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::model::Guard;

/// Bytes of answers that may wait before nothing more is begun: a client that asks and does not listen.
const MOST: usize = 64 << 20;

/// Bytes that wait, counted by the transport.
#[derive(Default)]
pub struct Outbox {
    bytes: Mutex<usize>,
    taken: Notify,
}

impl Outbox {
    fn with<T>(&self, work: impl FnOnce(&mut usize) -> T) -> T {
        work(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An answer waits.
    pub fn put(&self, bytes: usize) {
        self.with(|all| *all += bytes);
    }

    /// An answer was taken, or will not be.
    pub fn take(&self, bytes: usize) {
        self.with(|all| *all = all.saturating_sub(bytes));
        self.taken.notify_waiters();
    }

    /// Waits until there is room.
    pub async fn room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.with(|all| *all <= MOST) || !Guard::Untaken.is_on() {
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
