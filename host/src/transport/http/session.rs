//! What a session of an older client has in flight: no two requests with one id, and none whose client is gone.
//!
//! rmcp lets a request of a session go on when its connection ends, and keeps its answer for a client that comes back.
//! Nobody comes back to belljar (a session keeps no answers), so the guest would run for nobody.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use rmcp::model::RequestId;

use super::{Front, PATH};
use crate::model::Guard;
use crate::transport::message;

/// The header that names a session.
pub(super) const HEADER: &str = "mcp-session-id";

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
