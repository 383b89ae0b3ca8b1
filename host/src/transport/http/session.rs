//! Sessions of clients up to 2025-11-25. Evicts the least active session for a new one, and refuses a request whose id
//! is in flight. Cancels requests that the client cancelled, or whose connection ended.
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
use rmcp::transport::streamable_http_server::session::local::{LocalSessionHandle, LocalSessionManager};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::accepted_credential::{AcceptedCredential, CHECK_INTERVAL};
use super::names::{PATH, SESSION};
use crate::mcp::{Handler, SessionClient};
use crate::policy::{Principal, PrincipalKind};
use crate::transport::message::{self, IdInFlight};

/// rmcp's side of the endpoint.
pub(super) type RmcpService = StreamableHttpService<Handler, LocalSessionManager>;

/// An evicted session may take this time to end.
const END_TIME: Duration = Duration::from_secs(1);

/// The activity of all sessions. At the maximum, a new session evicts the least active one, so no client can keep
/// others out. The client of an evicted session gets status 404, and opens another session.
pub(super) struct SessionUsage {
    all: Sessions,
    /// rmcp ends the sessions that it hears nothing of. It is told of each that is used, at most once in this time.
    told_every: Duration,
}

type Sessions = Arc<Mutex<KnownSessions>>;

/// The sessions, and some that ended.
struct KnownSessions {
    all: HashMap<SessionId, OwnedSession>,
    /// At this number of sessions, those that ended are removed.
    tidy_at: usize,
}

/// The number of sessions from which on those that ended are removed.
const FIRST_TIDY: usize = 64;

/// A session and its principal: the one that opened it, or the same one with more scopes.
struct OwnedSession {
    owner: Principal,
    activity: SessionActivity,
    client: Weak<SessionClient>,
    /// When rmcp was told last that the session is used.
    told: Instant,
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
    /// The client. `None` if the session ended.
    client: Option<Arc<SessionClient>>,
    /// True if rmcp must be told that the session is used.
    must_tell: bool,
}

impl SessionUse {
    /// The number that distinguishes the client of the session from others. `None` if the session ended.
    pub(super) fn number(&self) -> Option<u64> {
        self.client.as_deref().map(SessionClient::number)
    }

    /// The client, if the fast path may answer its request. `manager` has the sessions that did not end.
    pub(super) async fn client(&self, manager: &LocalSessionManager) -> Option<&SessionClient> {
        let client = self.client.as_deref()?;
        let sessions = manager.sessions.read().await;
        let session = sessions.get(&self.session)?;
        if self.must_tell {
            tell_of_use(session.clone());
        }
        Some(client)
    }
}

/// Restarts the time after which rmcp ends `session`. Any event does that, and this one does nothing else: rmcp counts its
/// streams from zero, so none has this number.
fn tell_of_use(session: LocalSessionHandle) {
    tokio::spawn(async move {
        let told = session.close_request_wise_channel(u64::MAX).await;
        tracing::debug!("told rmcp that a session is used: {told:?}");
    });
}

fn lock(all: &Mutex<KnownSessions>) -> MutexGuard<'_, KnownSessions> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionUsage {
    /// For sessions that end when they are idle for `idle`.
    pub(super) fn new(idle: Duration) -> Self {
        let all = KnownSessions { all: HashMap::new(), tidy_at: FIRST_TIDY };
        Self { all: Arc::new(Mutex::new(all)), told_every: idle / 4 }
    }

    /// Adds a new session, which `owner` opened as `client`.
    pub(super) fn add(&self, session: &HeaderValue, owner: Principal, client: Weak<SessionClient>) {
        let Ok(session) = session.to_str() else { return };
        let now = Instant::now();
        let activity = SessionActivity { open: 0, is_used: false, last: now };
        let mut known = lock(&self.all);
        if known.all.len() >= known.tidy_at {
            known.all.retain(|_, session| session.client.strong_count() > 0);
            known.tidy_at = FIRST_TIDY.max(known.all.len() * 2);
        }
        known.all.insert(session.into(), OwnedSession { owner, activity, client, told: now });
    }

    /// Counts a request or stream of a session. `None` if the session is unknown, or belongs to another principal. A client
    /// that logged in again for more scopes goes on with its session.
    pub(super) fn begin_use(&self, session: &HeaderValue, principal: &Principal) -> Option<SessionUse> {
        let session: SessionId = session.to_str().ok()?.into();
        let mut known = lock(&self.all);
        let OwnedSession { owner, activity, client, told } = known.all.get_mut(&session)?;
        // Also with other groups or fewer scopes it is another principal: what the session holds open was judged for these.
        if owner != principal {
            if !principal.extends(owner) {
                return None;
            }
            *owner = principal.clone();
            client.upgrade().iter().for_each(|client| client.set_principal(principal));
        }
        (activity.open, activity.is_used) = (activity.open + 1, true);
        let now = Instant::now();
        let must_tell = now.saturating_duration_since(*told) >= self.told_every;
        if must_tell {
            *told = now;
        }
        Some(SessionUse { all: Arc::clone(&self.all), session, client: client.upgrade(), must_tell })
    }

    /// Evicts sessions of `manager` until there are fewer than `most`.
    pub(super) async fn evict_least_active(&self, manager: &LocalSessionManager, most: usize) {
        let open: HashSet<SessionId> = manager.sessions.read().await.keys().cloned().collect();
        let Some(surplus) = (open.len() + 1).checked_sub(most.max(1)).filter(|surplus| *surplus > 0) else { return };
        let mut least: Vec<(Option<SessionActivity>, SessionId)> = {
            let known = lock(&self.all);
            open.into_iter().map(|session| (known.all.get(&session).map(|known| known.activity), session)).collect()
        };
        least.sort();
        for (_, session) in least.into_iter().take(surplus) {
            lock(&self.all).all.remove(&session);
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
        if let Some(OwnedSession { activity, .. }) = lock(&self.all).all.get_mut(&self.session) {
            (activity.open, activity.last) = (activity.open.saturating_sub(1), Instant::now());
        }
    }
}

/// The requests in flight, by session and id, with what cancels each.
type Requests = HashMap<(Bytes, RequestId), CancellationToken>;

type Ids = Arc<Mutex<Requests>>;

/// The ids of all requests in flight, of all sessions.
#[derive(Default)]
pub(super) struct InFlightIds(Ids);

/// Reserves the id of one request until it is dropped.
pub(super) struct IdHold {
    all: Ids,
    session: HeaderValue,
    id: RequestId,
    cancellation: CancellationToken,
}

impl InFlightIds {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves `id` in `session`. `connection` ends the requests of its connection.
    ///
    /// # Errors
    /// Another request in flight has the id.
    pub(super) fn hold(
        &self,
        session: &HeaderValue,
        id: RequestId,
        connection: &CancellationToken,
    ) -> Result<IdHold, IdInFlight> {
        let cancellation = connection.child_token();
        let key = (Bytes::copy_from_slice(session.as_bytes()), id.clone());
        let mut all = self.lock();
        if message::is_duplicate(all.contains_key(&key)) {
            return Err(IdInFlight(id));
        }
        all.insert(key, cancellation.clone());
        Ok(IdHold { all: Arc::clone(&self.0), session: session.clone(), id, cancellation })
    }

    /// Cancels the request of `session` that has `id`, if one is in flight.
    pub(super) fn cancel(&self, session: &HeaderValue, id: RequestId) {
        if let Some(request) = self.lock().get(&(Bytes::copy_from_slice(session.as_bytes()), id)) {
            request.cancel();
        }
    }
}

impl IdHold {
    /// Cancelled when the client cancels the request, or when the requests of its connection end.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Evidence, authenticate};

    #[test]
    fn sessions_that_ended_take_no_memory() {
        let usage = SessionUsage::new(Duration::from_secs(1));
        for number in 0..10 * FIRST_TIDY {
            let session = HeaderValue::try_from(number.to_string()).unwrap();
            usage.add(&session, authenticate(Evidence::Loopback), Weak::new());
        }
        assert!(lock(&usage.all).all.len() <= FIRST_TIDY);
    }

    #[test]
    fn a_cancellation_reaches_the_request_of_its_session_only() {
        let ids = InFlightIds::default();
        let [own, other] = ["own", "other"].map(HeaderValue::from_static);
        let connection = CancellationToken::new();
        let hold = |session, id| ids.hold(session, RequestId::Number(id), &connection).unwrap();
        let holds = [hold(&own, 1), hold(&own, 2), hold(&other, 1)];
        ids.cancel(&own, RequestId::Number(1));
        ids.cancel(&own, RequestId::Number(3));
        assert_eq!(holds.each_ref().map(|hold| hold.cancellation().is_cancelled()), [true, false, false]);
        assert!(ids.hold(&own, RequestId::Number(2), &connection).is_err());
        connection.cancel();
        assert!(holds[2].cancellation().is_cancelled());
        drop(holds);
        assert!(ids.lock().is_empty());
    }
}
