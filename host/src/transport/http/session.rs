//! Sessions of older clients: which one gives way to a newcomer, and what each has in flight: no two requests with one id,
//! and none whose client is gone.
//!
//! rmcp lets a request of a session go on when its connection ends, and keeps its answer for a client that comes back.
//! Nobody comes back to belljar (a session keeps no answers), so the guest would run for nobody.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::time::{Instant, timeout};

use super::{Front, PATH};
use crate::model::Guard;
use crate::transport::message;

/// The header that names a session.
pub(super) const HEADER: &str = "mcp-session-id";

/// How long a session that gives way may take to end.
const END: Duration = Duration::from_secs(1);

/// Which sessions are used, and when they were. A client that opens sessions without end, or leaves them open, keeps nobody
/// else from opening one: the session that does least gives way. Its client is told that it is gone, and opens another.
#[derive(Default)]
pub(super) struct Sessions(Arc<Mutex<HashMap<SessionId, Usage>>>);

/// How a session is used. The lesser gives way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Usage {
    /// Requests and streams of it that are open.
    open: usize,
    /// Whether there was any after the one that opened it.
    is_used: bool,
    /// When the last one ended.
    last: Instant,
}

/// A request or stream of a session, as long as it is open.
pub(super) struct Use {
    all: Arc<Mutex<HashMap<SessionId, Usage>>>,
    session: SessionId,
}

fn lock(all: &Mutex<HashMap<SessionId, Usage>>) -> MutexGuard<'_, HashMap<SessionId, Usage>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    /// Takes note of a session that was opened.
    pub(super) fn open(&self, session: &HeaderValue) {
        if let Ok(session) = session.to_str() {
            lock(&self.0).insert(session.into(), Usage { open: 0, is_used: false, last: Instant::now() });
        }
    }

    /// Takes note that a session is used.
    pub(super) fn uses(&self, session: &HeaderValue) -> Option<Use> {
        let session: SessionId = session.to_str().ok()?.into();
        let mut all = lock(&self.0);
        let usage = all.get_mut(&session)?;
        (usage.open, usage.is_used) = (usage.open + 1, true);
        Some(Use { all: Arc::clone(&self.0), session })
    }

    /// Ends as many of `manager`'s sessions as it takes to have fewer than `most`.
    pub(super) async fn make_room(&self, manager: &LocalSessionManager, most: usize) {
        let open: HashSet<SessionId> = manager.sessions.read().await.keys().cloned().collect();
        let Some(surplus) = (open.len() + 1).checked_sub(most.max(1)).filter(|surplus| *surplus > 0) else { return };
        let mut least: Vec<(Option<Usage>, SessionId)> = {
            let mut known = lock(&self.0);
            known.retain(|session, _| open.contains(session));
            open.into_iter().map(|session| (known.get(&session).copied(), session)).collect()
        };
        least.sort();
        for (_, session) in least.into_iter().take(surplus) {
            lock(&self.0).remove(&session);
            // Its worker ends by itself; nobody waits for that.
            let Some(worker) = manager.sessions.write().await.remove(&session) else { continue };
            tokio::spawn(async move {
                let closed = timeout(END, worker.close()).await;
                tracing::debug!("a session gave way to a newcomer: {closed:?}");
            });
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if let Some(usage) = lock(&self.all).get_mut(&self.session) {
            (usage.open, usage.last) = (usage.open.saturating_sub(1), Instant::now());
        }
    }
}

type Ids = Arc<Mutex<HashSet<(Bytes, RequestId)>>>;

/// All requests of all sessions.
#[derive(Default)]
pub(super) struct InFlight(Ids);

/// The place of one request.
pub(super) struct Held {
    all: Ids,
    session: HeaderValue,
    id: RequestId,
}

impl InFlight {
    /// Takes the place of request `id` of `session`.
    ///
    /// # Errors
    /// When it is taken.
    pub(super) fn hold(&self, session: &HeaderValue, id: RequestId) -> Result<Held, String> {
        let key = (Bytes::copy_from_slice(session.as_bytes()), id.clone());
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key) && Guard::Pending.is_on() {
            return Err(message::is_taken(&id));
        }
        Ok(Held { all: Arc::clone(&self.0), session: session.clone(), id })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let key = (Bytes::copy_from_slice(self.session.as_bytes()), self.id.clone());
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

/// Withdraws a request when it is dropped, unless it [`stays`](Self::stays).
#[derive(Default)]
pub(super) struct Left(Option<(Weak<Front>, Held)>);

impl Left {
    /// For a request of `front`, if it is one of a session.
    pub(super) fn new(front: &Arc<Front>, held: Option<Held>) -> Self {
        Self(held.map(|held| (Arc::downgrade(front), held)))
    }

    /// Which request it is.
    pub(super) fn id(&self) -> Option<RequestId> {
        self.0.as_ref().map(|(_, held)| held.id.clone())
    }

    /// The request is answered.
    pub(super) fn stays(&mut self) {
        self.0 = None;
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        let Some((front, held)) = self.0.take().filter(|_| Guard::Cancel.is_on()) else { return };
        // Without a runtime or a front, the server has stopped.
        let (Some(front), Ok(runtime)) = (front.upgrade(), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(async move {
            let withdrawal = serde_json::json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": held.id, "reason": "the connection was closed" }
            });
            let request = Request::builder()
                .method(Method::POST)
                .uri(PATH)
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json, text/event-stream")
                .header(HEADER, held.session.clone())
                .body(http_body_util::Full::new(Bytes::from(withdrawal.to_string())));
            if let Ok(request) = request {
                let response = front.inner.handle(request).await;
                tracing::debug!("a request was withdrawn for a client that went away: {}", response.status());
            }
            drop(held);
        });
    }
}
