//! The state of one request that the transport and the handler share: its connection, its phase and the cost of its
//! answer. The cost outlives the handler, because the answer is encoded after the handler is done.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, Extensions};
use rmcp::service::RequestContext as RmcpContext;

use super::fault;
use super::request_phase::RequestPhase;
use super::session::SessionClient;
use crate::gateway::response_cost::ResponseCost;
use crate::model::RemoteSpan;
use crate::policy::Principal;

/// The connection and the principal of a request, as the transport knows them.
#[derive(Clone, Debug)]
pub struct RequestSource {
    /// The number of the session if the request belongs to one, else that of the connection.
    pub peer: u64,
    /// The principal that this request was authenticated as.
    pub principal: Principal,
    /// The address of the client, for the record. `None` unless the endpoint authenticates its clients.
    pub address: Option<IpAddr>,
    /// The span that the header `traceparent` of the HTTP request names.
    pub link: Option<RemoteSpan>,
}

/// The state of one request that the transport and the handler share. For a request that rmcp dispatches, the transport
/// puts it into the request's extensions and keeps a clone of the `Arc`.
#[derive(Default)]
pub struct Exchange {
    source: Option<RequestSource>,
    phase: RequestPhase,
    /// The size of the message in bytes.
    message_bytes: Option<usize>,
    /// True once the handler has the request, and with it the duty to record it.
    is_received: AtomicBool,
    /// The cost of the answer and the bytes of its contents. `None` until the handler is done.
    cost: Mutex<Option<(ResponseCost, usize)>>,
    /// The scopes that the request needs and its credential lacks.
    missing_scopes: OnceLock<Vec<String>>,
    /// The time after which a busy request can succeed. `None` until the handler is done, or if it is not known.
    retry_after: OnceLock<Duration>,
    /// True if the request was refused because belljar shuts down, before anything of it was done.
    is_turned_away: AtomicBool,
    /// The client of the session that the request opened.
    opened: OnceLock<Weak<SessionClient>>,
}

impl Exchange {
    /// The state of a request that comes from `source` and has the phase `phase`.
    pub fn new(source: RequestSource, phase: RequestPhase) -> Self {
        Self { source: Some(source), phase, ..Self::default() }
    }

    /// The same, for a message of `bytes` bytes.
    pub fn with_message_bytes(self, bytes: usize) -> Self {
        Self { message_bytes: Some(bytes), ..self }
    }

    /// The size of the message in bytes, if the transport counts it.
    pub(super) fn message_bytes(&self) -> Option<usize> {
        self.message_bytes
    }

    /// Notes that the handler has the request.
    pub(super) fn set_received(&self) {
        self.is_received.store(true, Ordering::Relaxed);
    }

    /// True once the handler has the request, and with it the duty to record it.
    pub fn is_received(&self) -> bool {
        self.is_received.load(Ordering::Relaxed)
    }

    /// The shared state of a request that rmcp dispatched, if its transport keeps any.
    pub(super) fn of(context: &RmcpContext<RoleServer>) -> Option<&Self> {
        Self::of_extensions(&context.extensions)
    }

    /// The shared state in the extensions of a request or notification.
    pub(super) fn of_extensions(extensions: &Extensions) -> Option<&Self> {
        let parts = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<Self>>());
        parts.or_else(|| extensions.get()).map(Arc::as_ref)
    }

    /// The connection and principal of the request. `None` if the handler's own ones apply.
    pub(super) fn source(&self) -> Option<&RequestSource> {
        self.source.as_ref()
    }

    /// The phase of the request.
    pub fn phase(&self) -> &RequestPhase {
        &self.phase
    }

    fn lock(&self) -> MutexGuard<'_, Option<(ResponseCost, usize)>> {
        self.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the scopes that the request needs and its credential lacks.
    pub(super) fn set_missing_scopes(&self, scopes: Vec<String>) {
        let _ = self.missing_scopes.set(scopes);
    }

    /// The scopes that the request needs and its credential lacks. `None` unless the request was refused for that.
    pub fn missing_scopes(&self) -> Option<&[String]> {
        self.missing_scopes.get().map(Vec::as_slice)
    }

    /// Stores the cost of an answer with `bytes` bytes of contents for the code that encodes it.
    pub(super) fn set_cost(&self, cost: ResponseCost, bytes: usize) {
        *self.lock() = Some((cost, bytes));
    }

    /// Stores the time after which the request that got `error` can succeed, if `error` says so.
    pub(super) fn set_error(&self, error: &ErrorData) {
        if let Some(pause) = fault::retry_after(error) {
            let _ = self.retry_after.set(pause);
        }
    }

    /// The time after which the request can succeed, if it was refused and the refusal says so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.get().copied()
    }

    /// Notes that the request was refused because belljar shuts down, before anything of it was done.
    pub(super) fn set_turned_away(&self) {
        self.is_turned_away.store(true, Ordering::Relaxed);
    }

    /// True if the request was refused because belljar shuts down, before anything of it was done.
    pub fn is_turned_away(&self) -> bool {
        self.is_turned_away.load(Ordering::Relaxed)
    }

    /// Notes that the request opened the session of `client`.
    pub(super) fn set_opened(&self, client: Weak<SessionClient>) {
        let _ = self.opened.set(client);
    }

    /// The client of the session that the request opened, if it opened one.
    pub fn opened(&self) -> Option<&Weak<SessionClient>> {
        self.opened.get()
    }

    /// Takes the cost, and the bytes of the contents.
    pub(super) fn take_cost_and_size(&self) -> Option<(ResponseCost, usize)> {
        self.lock().take()
    }

    /// Takes the cost of the answer. `None` until the handler is done.
    pub fn take_cost(&self) -> Option<ResponseCost> {
        self.take_cost_and_size().map(|(cost, _)| cost)
    }
}
