//! The session of a client up to 2025-11-25: its number, and the task that notifies it of changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::gateway::subscriptions::Subscriber;

/// One session. The clones of its handler share it.
#[derive(Clone)]
pub(super) struct Session {
    id: u64,
    shared: Arc<SharedSession>,
}

/// The state of a session that the clones of its handler share.
#[derive(Default)]
struct SharedSession {
    notification_task: Mutex<Option<NotificationTask>>,
    is_ended: AtomicBool,
    /// Notified when the session ends.
    end: Notify,
}

impl Default for Session {
    fn default() -> Self {
        Self { id: next_peer_id(), shared: Arc::default() }
    }
}

impl Session {
    /// The number that distinguishes its client from others.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Ends the `listen` requests of this session.
    pub(super) fn end(&self) {
        self.shared.is_ended.store(true, Ordering::SeqCst);
        self.shared.end.notify_waiters();
    }

    /// Waits for [`Session::end`].
    pub(super) async fn ended(&self) {
        let end = self.shared.end.notified();
        if !self.shared.is_ended.load(Ordering::SeqCst) {
            end.await;
        }
    }

    /// The task that notifies the client of changes. `None` until it is started.
    pub(super) fn notification_task(&self) -> MutexGuard<'_, Option<NotificationTask>> {
        self.shared.notification_task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A unique number for a connection or session.
pub fn next_peer_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A subscriber, and the task that sends its changes to the client. Dropping this value aborts the task.
pub(super) struct NotificationTask {
    subscriber: Arc<Subscriber>,
    task: AbortHandle,
}

impl NotificationTask {
    /// `task` sends the changes of `subscriber` to a client.
    pub(super) fn new(subscriber: Arc<Subscriber>, task: AbortHandle) -> Self {
        Self { subscriber, task }
    }

    /// The subscriber.
    pub(super) fn subscriber(&self) -> &Arc<Subscriber> {
        &self.subscriber
    }
}

impl Drop for NotificationTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}
