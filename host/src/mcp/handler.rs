//! The handler: the state that the requests of one connection or session share, and the code that runs a request.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ProtocolVersion, RequestId};
use rmcp::service::{Peer, RequestContext as RmcpContext};
use tokio_util::sync::CancellationToken;

use super::context::RequestContext;
use super::cursor::Cursors;
use super::era::{Era, is_since};
use super::exchange::Exchange;
use super::fault;
use super::outbox::Outbox;
use super::request_meta::RequestMeta;
use super::request_phase::RequestPhase;
use super::session::Session;
use super::shutdown::Shutdown;
use crate::gateway::Gateway;
use crate::limits::memory_budget::MemoryBudget;
use crate::model::{RemoteSpan, RequestInfo, text};
use crate::policy::{Caller, Evidence, Principal, authenticate};

/// Characters of the id of a request that a trace has.
const MAX_ID: usize = 100;

/// The name of a revision that rmcp knows.
fn known_revision(version: &ProtocolVersion) -> Option<&'static str> {
    ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| *known == version).map(ProtocolVersion::as_str)
}

/// Serves MCP for one connection or session; cheap to clone.
#[derive(Clone)]
pub struct Handler {
    pub(super) gateway: Arc<Gateway>,
    pub(super) cursors: Arc<Cursors>,
    transport: &'static str,
    /// The principal of requests for which the transport names no principal of their own.
    principal: Principal,
    outbox: Arc<Outbox>,
    pub(super) has_tools: bool,
    pub(super) session: Session,
    shutdown: Shutdown,
}

impl Handler {
    /// A handler of connections over `transport` (`stdio` or `http`). `principal` applies to each request for which the
    /// transport names no principal of its own.
    pub fn new(gateway: Arc<Gateway>, cursors: Arc<Cursors>, transport: &'static str, principal: Principal) -> Self {
        let outbox = Arc::new(Outbox::new(gateway.budget()));
        let (session, shutdown) = (Session::default(), Shutdown::default());
        Self { gateway, cursors, transport, principal, outbox, has_tools: true, session, shutdown }
    }

    /// Sets whether clients see tools.
    #[must_use]
    pub fn with_tools(self, has_tools: bool) -> Self {
        Self { has_tools, ..self }
    }

    /// The principal of requests for which the transport names no principal of their own.
    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The answers that wait to be written, if the transport counts them.
    pub fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// The memory budget that all calls and all unsent answers share.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        self.gateway.budget()
    }

    /// Ends the subscriptions of this connection.
    pub fn end_subscriptions(&self) {
        self.session.end();
    }

    /// Cancelled when the shutdown of the server begins, before the first subscription ends.
    pub fn closing(&self) -> CancellationToken {
        self.gateway.subscriptions().closing()
    }

    /// Begins the shutdown of the server: ends every subscription of every connection, and refuses new requests.
    pub fn begin_shutdown(&self) {
        self.gateway.subscriptions().close();
        self.shutdown.close();
    }

    /// Stops the running requests of this connection, or of the server if this is no handler of
    /// [`Handler::for_connection`]. Each is answered with an error that says that belljar is shutting down.
    pub fn stop_requests(&self) {
        self.shutdown.stop();
    }

    /// Waits until no request runs. Call [`Handler::begin_shutdown`] first.
    pub async fn wait_until_idle(&self) {
        self.shutdown.wait_until_idle().await;
    }

    /// A handler with the same settings for another session.
    pub fn for_session(&self) -> Self {
        Self { session: Session::default(), ..self.clone() }
    }

    /// A handler with the same settings for one of several connections: with a session, and with answers to be written,
    /// of its own.
    pub fn for_connection(&self) -> Self {
        let outbox = Arc::new(Outbox::new(self.gateway.budget()));
        Self { outbox, shutdown: self.shutdown.of_connection(), ..self.for_session() }
    }

    /// A handler for one request of this principal.
    pub fn for_principal(&self, principal: Principal) -> Self {
        Self { principal, ..self.for_session() }
    }

    /// Records a request that the transport refused because its credential is missing or not valid. `credential`: the
    /// first digits of the SHA-256 of the credential, if there is one.
    pub fn record_unauthenticated(&self, address: IpAddr, why: String, credential: Option<String>, count: u32) {
        self.gateway.record_unauthenticated(self.unknown_caller(Some(address)), why, credential, count);
    }

    /// Records a request that the transport refused with `error` before belljar knew what it asks for. `address`: that of
    /// the client, if it belongs into the record. `count`: how many such requests the record stands for.
    pub fn record_refused(&self, address: Option<IpAddr>, error: &ErrorData, count: u32) {
        self.gateway.record_refused(self.unknown_caller(address), fault::event_error(error), count);
    }

    /// The caller of a request that proves nothing, or of one whose evidence was not looked at.
    fn unknown_caller(&self, address: Option<IpAddr>) -> Caller {
        // The client of standard input is the user who started belljar. That needs no proof.
        let principal =
            if self.transport == "http" { authenticate(Evidence::Loopback) } else { self.principal.clone() };
        Caller { address, ..Caller::new(principal, self.transport) }
    }

    /// Waits until the mounts that were present at start-up are loaded.
    pub async fn wait_until_loaded(&self) {
        self.gateway.loaded_snapshot().await;
    }

    /// Builds the context of request `id` of this method, from its `_meta` and from the transport's `exchange`.
    pub(super) fn request_context<'a>(
        &self,
        id: &RequestId,
        (peer, cancellation): (&'a Peer<RoleServer>, &'a CancellationToken),
        meta: Arc<RequestMeta>,
        exchange: Option<&'a Exchange>,
        method: &'static str,
    ) -> RequestContext<'a> {
        let version = meta.version.as_ref();
        let era = Era::of(version);
        let supports_links = is_since(version, &ProtocolVersion::V_2025_06_18);
        let source = exchange.and_then(Exchange::source);
        let principal = source.map_or(&self.principal, |source| &source.principal).clone();
        // All connections of a session are one caller. A request without a session belongs to its connection.
        let connection = source.map_or(self.session.id(), |source| source.peer);
        let address = source.and_then(|source| source.address);
        let parent = meta.traceparent.as_ref().and_then(|text| Some((text, RemoteSpan::parse(text)?)));
        let trace = parent.map(|(text, _)| Arc::clone(text));
        let link = source.and_then(|source| source.link);
        let span = self.gateway.tracer().and_then(|tracer| {
            tracer.begin(parent.map(|(_, parent)| parent), link, || text::excerpt(&id.to_string(), MAX_ID))
        });
        exchange.into_iter().for_each(Exchange::set_received);
        let revision = version.and_then(known_revision);
        let request = RequestInfo::new(method, revision, exchange.and_then(Exchange::message_bytes));
        let request = Some(Arc::new(request.traced(span)));
        let (client, transport) = (meta.client.clone(), self.transport);
        let caller = Caller { principal, transport, client, peer: connection, address, trace, request };
        let record = self.gateway.record_request(&caller);
        RequestContext { cancellation, peer, meta, exchange, caller, record, era, supports_links }
    }

    /// Builds the context of a request that rmcp dispatched.
    pub(super) fn context_of<'a>(&self, rmcp: &'a RmcpContext<RoleServer>, method: &'static str) -> RequestContext<'a> {
        let meta = Arc::new(RequestMeta::of_rmcp(rmcp));
        self.request_context(&rmcp.id, (&rmcp.peer, &rmcp.ct), meta, Exchange::of(rmcp), method)
    }

    /// Runs a request. It begins when the outbox has room. It ends when the client cancels it, when the transport
    /// evicts it, or when belljar shuts down. A panic is answered with an error.
    ///
    /// `work` is boxed: rmcp and its callers move the future about a dozen times, and each move would copy all its
    /// state.
    pub(super) async fn run<T>(
        &self,
        context: &RequestContext<'_>,
        work: Pin<Box<impl Future<Output = Result<T, ErrorData>>>>,
    ) -> Result<T, ErrorData> {
        let Some(_running) = self.shutdown.begin_request() else {
            context.exchange.into_iter().for_each(Exchange::set_turned_away);
            return Err(fault::shutting_down());
        };
        let note_scopes = |error: &ErrorData| {
            if let Some((exchange, scopes)) = context.exchange.zip(fault::missing_scopes(error)) {
                exchange.set_missing_scopes(scopes);
            }
        };
        let work = async {
            self.outbox.wait_for_room().await;
            self.gateway.check_record().map_err(|why| fault::unavailable(why.to_string()))?;
            work.await
        };
        let eviction = async {
            match context.exchange {
                Some(exchange) => exchange.phase().wait_for_eviction().await,
                None => std::future::pending().await,
            }
        };
        let done = tokio::select! {
            biased;
            // Dropping the work drops the guest. rmcp sends no answer to a cancelled request, so this error is not
            // sent.
            () = context.cancellation.cancelled() => Err(fault::cancelled()),
            done = AssertUnwindSafe(work).catch_unwind() => {
                done.unwrap_or_else(|_| Err(fault::panicked())).inspect_err(note_scopes)
            }
            // Polled after the work: a request that is done at once never waits for these.
            () = eviction => Err(fault::evicted()),
            () = self.shutdown.wait_for_stop() => Err(fault::shutting_down()),
        };
        if let (Err(error), Some(exchange)) = (&done, context.exchange) {
            exchange.set_error(error);
        }
        done
    }

    /// Waits for room in the outbox. A call that was admitted waits for nothing else, so this marks the request of
    /// `exchange` as running.
    pub(super) async fn start_call(&self, exchange: Option<&Exchange>) {
        exchange.map(Exchange::phase).into_iter().for_each(RequestPhase::set_running);
        self.outbox.wait_for_room().await;
    }
}
