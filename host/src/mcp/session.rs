//! The session of a client up to 2025-11-25: its number, its client, and the task that notifies it of changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rmcp::RoleServer;
use rmcp::service::Peer;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::request_meta::MetaCache;
use crate::gateway::subscriptions::Subscriber;
use crate::policy::Principal;

/// One session. The clones of its handler share it.
#[derive(Clone)]
pub(super) struct Session {
    id: u64,
    shared: Arc<SharedSession>,
}

/// The client of a session, for requests that rmcp does not dispatch. It is gone when rmcp has ended the session.
pub struct SessionClient {
    number: u64,
    peer: Peer<RoleServer>,
    meta_cache: MetaCache,
    session: Weak<SharedSession>,
}

impl SessionClient {
    /// The number that distinguishes it from other clients.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Receives the notifications that a request causes. Says what the client said when it opened the session.
    pub fn peer(&self) -> &Peer<RoleServer> {
        &self.peer
    }

    /// The last `_meta` of its requests.
    pub fn meta_cache(&self) -> &MetaCache {
        &self.meta_cache
    }

    /// Judges what the session is subscribed to for `principal` from now on: the same account, with other scopes.
    pub fn set_principal(&self, principal: &Principal) {
        let Some(session) = self.session.upgrade() else { return };
        session.notification_task().iter().for_each(|task| task.subscriber().set_principal(principal));
    }
}

/// The state of a session that the clones of its handler share.
#[derive(Default)]
struct SharedSession {
    client: OnceLock<Arc<SessionClient>>,
    notification_task: Mutex<Option<NotificationTask>>,
    is_ended: AtomicBool,
    /// Notified when the session ends.
    end: Notify,
}

impl SharedSession {
    fn notification_task(&self) -> MutexGuard<'_, Option<NotificationTask>> {
        self.notification_task.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    /// The client, which `peer` is. The session keeps the one that opened it.
    pub(super) fn client(&self, peer: &Peer<RoleServer>) -> Weak<SessionClient> {
        let new = || {
            let (peer, meta_cache, session) = (peer.clone(), MetaCache::default(), Arc::downgrade(&self.shared));
            Arc::new(SessionClient { number: self.id, peer, meta_cache, session })
        };
        Arc::downgrade(self.shared.client.get_or_init(new))
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
        self.shared.notification_task()
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
