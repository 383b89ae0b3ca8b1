//! Sessions of clients up to 2025-11-25. Evicts the least active session for a new one, and refuses a request whose id
//! is in flight. Cancels requests whose connection ended.
//!
//! rmcp continues a request of a session when its connection ends, and keeps the answer for a client that reconnects.
//! belljar's sessions keep no answers, so the guest would run for no client.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::time::{Instant, sleep, timeout};

use super::accepted_credential::{AcceptedCredential, CHECK_INTERVAL};
use super::names::{PATH, SESSION};
use crate::mcp::Handler;
use crate::policy::{Principal, PrincipalKind};
use crate::transport::message::{self, IdInFlight};

/// rmcp's side of the endpoint.
pub(super) type RmcpService = StreamableHttpService<Handler, LocalSessionManager>;

/// An evicted session may take this time to end.
const END_TIME: Duration = Duration::from_secs(1);

/// The activity of all sessions. At the maximum, a new session evicts the least active one, so no client can keep
/// others out. The client of an evicted session gets status 404, and opens another session.
#[derive(Default)]
pub(super) struct SessionUsage(Sessions);

type Sessions = Arc<Mutex<HashMap<SessionId, OwnedSession>>>;

/// A session, and the principal that opened it.
struct OwnedSession {
    owner: Principal,
    activity: SessionActivity,
}

/// The use of one session. The least value is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SessionActivity {
    /// Open requests and streams.
    open: usize,
    /// True if there was any request after `initialize`.
    is_used: bool,
    /// The end of the last request or stream.
    last: Instant,
}

/// Counts one open request or stream of a session, until it is dropped.
pub(super) struct SessionUse {
    all: Sessions,
    session: SessionId,
}

fn lock(all: &Mutex<HashMap<SessionId, OwnedSession>>) -> MutexGuard<'_, HashMap<SessionId, OwnedSession>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionUsage {
    /// Adds a new session, which `owner` opened.
    pub(super) fn add(&self, session: &HeaderValue, owner: Principal) {
        if let Ok(session) = session.to_str() {
            let activity = SessionActivity { open: 0, is_used: false, last: Instant::now() };
            lock(&self.0).insert(session.into(), OwnedSession { owner, activity });
        }
    }

    /// Counts a request or stream of a session. `None` if the session is unknown, or belongs to another principal.
    pub(super) fn begin_use(&self, session: &HeaderValue, principal: &Principal) -> Option<SessionUse> {
        let session: SessionId = session.to_str().ok()?.into();
        let mut all = lock(&self.0);
        let OwnedSession { owner, activity } = all.get_mut(&session)?;
        // Also with other groups or scopes it is another principal: what the session holds open was judged for these.
        if owner != principal {
            return None;
        }
        (activity.open, activity.is_used) = (activity.open + 1, true);
        Some(SessionUse { all: Arc::clone(&self.0), session })
    }

    /// Evicts sessions of `manager` until there are fewer than `most`.
    pub(super) async fn evict_least_active(&self, manager: &LocalSessionManager, most: usize) {
        let open: HashSet<SessionId> = manager.sessions.read().await.keys().cloned().collect();
        let Some(surplus) = (open.len() + 1).checked_sub(most.max(1)).filter(|surplus| *surplus > 0) else { return };
        let mut least: Vec<(Option<SessionActivity>, SessionId)> = {
            let mut known = lock(&self.0);
            known.retain(|session, _| open.contains(session));
            open.into_iter().map(|session| (known.get(&session).map(|known| known.activity), session)).collect()
        };
        least.sort();
        for (_, session) in least.into_iter().take(surplus) {
            lock(&self.0).remove(&session);
            // The worker ends in a task of its own, and the new session does not wait for it.
            close(&session, manager, "evicted a session for a new one").await;
        }
    }
}

/// Ends a session in a task of its own. `why` is for the log.
async fn close(session: &SessionId, manager: &LocalSessionManager, why: &'static str) {
    let Some(worker) = manager.sessions.write().await.remove(session) else { return };
    tokio::spawn(async move {
        let closed = timeout(END_TIME, worker.close()).await;
        tracing::debug!("{why}: {closed:?}");
    });
}

/// Ends a session soon after its API key is revoked or expires, or gets other groups or scopes. Its subscriptions end with
/// it. A session that was opened with a token stays: clients renew their tokens, and each request of a session has its
/// own.
pub(super) fn end_with_key(session: &HeaderValue, key: &AcceptedCredential, manager: &Arc<LocalSessionManager>) {
    if key.principal().kind() != PrincipalKind::Key {
        return;
    }
    let Ok(session) = session.to_str().map(SessionId::from) else { return };
    let (key, manager) = (key.clone(), Arc::downgrade(manager));
    tokio::spawn(async move {
        loop {
            sleep(CHECK_INTERVAL).await;
            let Some(manager) = manager.upgrade() else { return };
            if !manager.sessions.read().await.contains_key(&session) {
                return;
            }
            if key.is_valid().await == Some(false) {
                return close(&session, &manager, "the key of a session is no longer valid").await;
            }
        }
    });
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        if let Some(OwnedSession { activity, .. }) = lock(&self.all).get_mut(&self.session) {
            (activity.open, activity.last) = (activity.open.saturating_sub(1), Instant::now());
        }
    }
}

type Ids = Arc<Mutex<HashSet<(Bytes, RequestId)>>>;

/// The ids of all requests in flight, of all sessions.
#[derive(Default)]
pub(super) struct InFlightIds(Ids);

/// Reserves the id of one request until it is dropped.
pub(super) struct IdHold {
    all: Ids,
    session: HeaderValue,
    id: RequestId,
}

impl InFlightIds {
    /// Reserves `id` in `session`.
    ///
    /// # Errors
    /// Another request in flight has the id.
    pub(super) fn hold(&self, session: &HeaderValue, id: RequestId) -> Result<IdHold, IdInFlight> {
        let key = (Bytes::copy_from_slice(session.as_bytes()), id.clone());
        if message::is_duplicate(!self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key)) {
            return Err(IdInFlight(id));
        }
        Ok(IdHold { all: Arc::clone(&self.0), session: session.clone(), id })
    }
}

impl Drop for IdHold {
    fn drop(&mut self) {
        let key = (Bytes::copy_from_slice(self.session.as_bytes()), self.id.clone());
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

/// Cancels a request of a session when it is dropped, unless it was [disarmed](Self::disarm).
#[derive(Default)]
pub(super) struct CancelOnDrop(Option<(Weak<RmcpService>, IdHold)>);

impl CancelOnDrop {
    /// For a request that `rmcp` serves. Does nothing without `id_hold`, which only requests of a session have.
    pub(super) fn new(rmcp: &Arc<RmcpService>, id_hold: Option<IdHold>) -> Self {
        Self(id_hold.map(|id_hold| (Arc::downgrade(rmcp), id_hold)))
    }

    /// The id of the request.
    pub(super) fn id(&self) -> Option<RequestId> {
        self.0.as_ref().map(|(_, id_hold)| id_hold.id.clone())
    }

    /// Marks the request as answered.
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((rmcp, id_hold)) = self.0.take() else { return };
        // If the runtime or the service is gone, the server has stopped.
        let (Some(rmcp), Ok(runtime)) = (rmcp.upgrade(), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(async move {
            let cancellation = serde_json::json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": id_hold.id, "reason": "the connection was closed" }
            });
            let request = Request::builder()
                .method(Method::POST)
                .uri(PATH)
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json, text/event-stream")
                .header(&SESSION, id_hold.session.clone())
                .body(http_body_util::Full::new(Bytes::from(cancellation.to_string())));
            if let Ok(request) = request {
                let response = rmcp.handle(request).await;
                tracing::debug!("cancelled a request whose client disconnected: {}", response.status());
            }
            drop(id_hold);
        });
    }
}
