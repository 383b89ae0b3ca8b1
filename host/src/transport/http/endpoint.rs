//! The endpoint: the state that all connections share, and the code that answers one request.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::charge_encoding::ChargeEncoding;
use super::connections::{Connection, Stage};
use super::front_door::FrontDoor;
use super::head::{CheckedHead, Door, DoorAnswer, RefusedAuthentication};
use super::reply::{
    add_retry_after, ended_stream, json, refuse, refuse_unparsable, refuse_with, take_refusal, turn_away,
};
use super::response::{EVICTED, ResponseBody, ResponseBudget};
use super::session::{CancelOnDrop, IdHold, InFlightIds, RmcpService, SessionUsage, SessionUse};
use super::{body, fast_path, names, session};
use crate::mcp::direct::DirectRequest;
use crate::mcp::exchange::{Exchange, RequestSource};
use crate::mcp::subscriptions::SubscribedSignal;
use crate::mcp::{DetachedPeer, Handler, SessionClient, fault};
use crate::model::RemoteSpan;
use crate::model::bounds::MAX_MESSAGE;
use crate::policy::{Principal, PrincipalKind};
use crate::transport::message;

/// The state that all connections share.
pub(super) struct Endpoint {
    rmcp: Arc<RmcpService>,
    config: StreamableHttpServerConfig,
    handler: Handler,
    bounds: Bounds,
    sessions: Arc<LocalSessionManager>,
    session_usage: SessionUsage,
    responses: Arc<ResponseBudget>,
    in_flight: InFlightIds,
    door: Door,
    detached: DetachedPeer,
    /// Cancelled when clients should connect elsewhere: each answer then closes its connection.
    leaving: CancellationToken,
    /// When the last request came.
    last_request: Mutex<Instant>,
    /// True while answers wait for the listener to close.
    is_holding: AtomicBool,
    /// Cancelled when the listener has closed.
    closed: CancellationToken,
}

/// A request that was read and checked, and the values that are kept while it is served.
struct ReceivedRequest {
    connection: Arc<Connection>,
    head: CheckedHead,
    message: Bytes,
    /// Reserves its id in its session.
    id_hold: Option<IdHold>,
    /// Marks its session as in use.
    session_use: Option<SessionUse>,
    exchange: Arc<Exchange>,
}

/// What is known of a request while it is served.
#[derive(Default)]
struct RequestProgress {
    /// The message, once it is read.
    message: OnceLock<Bytes>,
    /// The state that the request shares with the handler, if rmcp serves it.
    exchange: OnceLock<Arc<Exchange>>,
    /// The address of the client, if it belongs into the record.
    address: OnceLock<Option<IpAddr>>,
    /// True if the request needs no further record: it got to the handler, or its refused credential is counted.
    is_recorded: AtomicBool,
}

impl RequestProgress {
    fn set_recorded(&self) {
        self.is_recorded.store(true, Ordering::Relaxed);
    }

    fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Relaxed) || self.exchange.get().is_some_and(|exchange| exchange.is_received())
    }
}

impl Endpoint {
    /// An endpoint on `address`. From `leaving` on, each answer closes its connection. Cancelling `cancel` ends its requests.
    pub(super) fn new(
        handler: Handler,
        address: SocketAddr,
        front: FrontDoor,
        leaving: CancellationToken,
        cancel: CancellationToken,
    ) -> Self {
        let bounds = front.bounds;
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE.get())
            .with_cancellation_token(cancel.clone())
            // the door has checked both headers: one rule for the fast path and for rmcp.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(bounds.session_idle);
        // A session keeps no answers: a request ends with its connection, so no client can come back for its answer.
        sessions.session_config.completed_cache_ttl = Duration::ZERO;
        let sessions = Arc::new(sessions);
        let each = handler.clone();
        let rmcp = StreamableHttpService::new(move || Ok(each.for_session()), Arc::clone(&sessions), config.clone());
        Self {
            rmcp: Arc::new(rmcp),
            config,
            bounds,
            sessions,
            session_usage: SessionUsage::new(bounds.session_idle),
            responses: Arc::new(ResponseBudget::new(bounds.response_bytes, Arc::clone(handler.budget()), bounds.write)),
            in_flight: InFlightIds::default(),
            door: Door::new(address, front),
            detached: DetachedPeer::new(handler.clone()),
            handler,
            leaving,
            last_request: Mutex::new(Instant::now()),
            is_holding: AtomicBool::new(false),
            closed: CancellationToken::new(),
        }
    }

    /// Answers a request of connection `peer`. The answer is a busy error if the connection is evicted meanwhile.
    pub(super) async fn answer(
        self: Arc<Self>,
        connection: Arc<Connection>,
        peer: u64,
        request: Request<Incoming>,
    ) -> Response<Body> {
        connection.set_stage(Stage::Receiving);
        if self.leaving.is_cancelled() {
            *self.last_request.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        let page = self.door.pages().origin(request.headers()).cloned();
        let progress = RequestProgress::default();
        let mut work = pin!(self.serve(&connection, peer, request, &progress));
        let answered = poll_fn(|context| match connection.is_evicted() {
            true => Poll::Ready(None),
            false => work.as_mut().poll(context).map(Some),
        });
        let mut response = match answered.await {
            Some(response) => response,
            None => {
                let id = progress.message.get().and_then(|message| message::request_id(message));
                let busy = refuse_with(StatusCode::SERVICE_UNAVAILABLE, fault::busy(EVICTED), id);
                let mut response = self.collect(&connection, busy, || None).await;
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
        };
        if let Some(error) = take_refusal(&mut response)
            && !progress.is_recorded()
            && let Some(count) = self.door.count_refused(connection.peer())
        {
            self.handler.record_refused(progress.address.get().copied().flatten(), &error, count);
        }
        self.door.pages().add_to(&mut response, page);
        if self.is_holding.load(Ordering::Relaxed) {
            self.closed.cancelled().await;
        }
        if connection.closes_after_answer() || self.leaving.is_cancelled() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Holds answers back until [`Endpoint::release_answers`]. A client that waits for its answer opens no connection, so
    /// none is in the kernel's queue when the listener closes.
    pub(super) fn hold_answers(&self) {
        self.is_holding.store(true, Ordering::Relaxed);
    }

    /// See [`Endpoint::hold_answers`].
    pub(super) fn release_answers(&self) {
        self.closed.cancel();
    }

    /// Waits until no request has come for `quiet`, or until `by`.
    pub(super) async fn wait_until_quiet(&self, quiet: Duration, by: Instant) {
        let began = Instant::now();
        loop {
            let last = *self.last_request.lock().unwrap_or_else(PoisonError::into_inner);
            let quiet_at = last.max(began) + quiet;
            if Instant::now() >= quiet_at.min(by) {
                return;
            }
            tokio::time::sleep_until(quiet_at.min(by)).await;
        }
    }

    /// Records the refused requests that no line of the record stands for yet.
    pub(super) fn record_unwritten(&self) {
        let count = self.door.take_unwritten();
        if count > 0 {
            let why = "the record has no line for each of so many refused requests".to_owned();
            self.handler.record_refused(None, &ErrorData::new(ErrorCode::INVALID_REQUEST, why, None), count);
        }
    }

    /// Answers a request.
    async fn serve(
        &self,
        connection: &Arc<Connection>,
        peer: u64,
        request: Request<Incoming>,
        progress: &RequestProgress,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let _ = progress.address.set(self.door.recorded_address(connection.peer(), &parts.headers));
        let mut head = match self.door.check(parts, connection.peer()).await {
            Ok(head) => head,
            Err(answer) => {
                let DoorAnswer { response, refusal, is_authentication } = *answer;
                if is_authentication {
                    progress.set_recorded();
                }
                if let Some(refusal) = refusal {
                    let RefusedAuthentication { address, why, credential, count } = refusal;
                    self.handler.record_unauthenticated(address, why, credential, count);
                }
                return self.collect(connection, response, || None).await;
            }
        };
        let session = head.parts().headers.get(&names::SESSION);
        let session_use = session.and_then(|session| self.session_usage.begin_use(session, head.principal()));
        if session.is_some() && session_use.is_none() {
            // Also the session of another principal. Its own client and a stranger get the same answer.
            head.forget_session();
        }
        let (message, id_hold) = if head.parts().method == Method::POST {
            match self.read_message(connection, &head, body, session_use.is_some()).await {
                Ok(read) => read,
                Err(refusal) => return self.collect(connection, refusal, || None).await,
            }
        } else {
            (Bytes::new(), None)
        };
        let _ = progress.message.set(message.clone());
        let link = head.parts().headers.get("traceparent").and_then(|value| RemoteSpan::parse(value.to_str().ok()?));
        let caller = session_use.as_ref().and_then(SessionUse::number).unwrap_or(peer);
        let source = RequestSource { peer: caller, principal: head.principal().clone(), address: head.address(), link };
        let exchange = Exchange::new(source, connection.begin_serving()).with_message_bytes(message.len());
        if self.bounds.fast_path {
            if let Some(request) = fast_path::stateless_request(&head, &message, connection.meta_cache())
                // rmcp compares these headers with the arguments.
                && !request.has_parameter_headers(&self.handler, head.principal())
            {
                progress.set_recorded();
                return self.answer_stateless(connection, request, &exchange).await;
            }
            if let (Some(session_use), Some(id_hold)) = (&session_use, &id_hold)
                && let Some(client) = session_use.client(&self.sessions).await
                && let Some(request) = fast_path::session_request(&head, &message, client, &self.handler)
            {
                progress.set_recorded();
                let mut response = self.answer_session(connection, request, &exchange, (client, id_hold)).await;
                // No login adds scopes to a key, and some clients of sessions end at status 403.
                if head.principal().kind() == PrincipalKind::Token {
                    self.demand_missing_scopes(&mut response, &exchange);
                }
                return response;
            }
        }
        let (connection, exchange) = (Arc::clone(connection), Arc::new(exchange));
        let _ = progress.exchange.set(Arc::clone(&exchange));
        self.serve_by_rmcp(ReceivedRequest { connection, head, message, id_hold, session_use, exchange }).await
    }

    /// Answers a request of the fast path that belongs to a session.
    async fn answer_session(
        &self,
        connection: &Arc<Connection>,
        request: DirectRequest,
        exchange: &Exchange,
        (client, id_hold): (&SessionClient, &IdHold),
    ) -> Response<Body> {
        let id = request.id().clone();
        let answer = self.handler.answer(request, client.peer(), exchange, id_hold.cancellation()).await;
        // A client that cancelled its request ignores an answer (2025-11-25, "Cancellation").
        if id_hold.cancellation().is_cancelled() && !connection.cancellation().is_cancelled() {
            return self.collect(connection, ended_stream(), || None).await;
        }
        self.respond(connection, (StatusCode::OK, answer.message), id, exchange)
    }

    /// The response with `message`, the answer to request `id` of the fast path.
    fn respond(
        &self,
        connection: &Arc<Connection>,
        (status, message): (StatusCode, Vec<u8>),
        id: RequestId,
        exchange: &Exchange,
    ) -> Response<Body> {
        let (responses, connection) = (Arc::clone(&self.responses), Arc::clone(connection));
        let body = ResponseBody::complete(message.into(), responses, connection, || Some(id));
        let mut response = json(status, body);
        add_retry_after(&mut response, exchange.retry_after());
        response
    }

    /// Demands the scopes that the request of `exchange` was refused for, if it was.
    fn demand_missing_scopes(&self, response: &mut Response<Body>, exchange: &Exchange) {
        if let Some(scopes) = exchange.missing_scopes() {
            self.door.demand_scopes(response, scopes);
        }
    }

    /// Answers a request of the fast path that belongs to no session.
    async fn answer_stateless(
        &self,
        connection: &Arc<Connection>,
        request: DirectRequest,
        exchange: &Exchange,
    ) -> Response<Body> {
        let id = request.id().clone();
        let answer = self.handler.answer(request, self.detached.peer(), exchange, connection.cancellation()).await;
        let mut response = self.respond(connection, (fast_path::status(answer.error), answer.message), id, exchange);
        self.demand_missing_scopes(&mut response, exchange);
        if exchange.is_turned_away() {
            turn_away(&mut response);
        }
        response
    }

    /// rmcp's side for one request. rmcp asks the handler which part of a filter is accepted, and which headers a tool has,
    /// and does not say for whom: so each `subscriptions/listen` and each call of a tool gets a handler that knows its
    /// principal.
    fn rmcp_for(&self, principal: &Principal) -> RmcpService {
        let handler = self.handler.for_principal(principal.clone());
        let each = move || Ok(handler.clone());
        StreamableHttpService::new(each, Arc::clone(&self.sessions), self.config.clone())
    }

    /// Answers a request through rmcp.
    async fn serve_by_rmcp(&self, received: ReceivedRequest) -> Response<Body> {
        let ReceivedRequest { connection, head, message, id_hold, session_use, exchange } = received;
        let (principal, credential) = (head.principal().clone(), self.door.credential(&head));
        let parts = head.into_parts();
        let is_json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"application/json"));
        let ends_session = parts.method == Method::DELETE;
        // rmcp checks that the header names the method of the body.
        let is_method = |name: &str| parts.headers.get(&names::METHOD).is_some_and(|method| method == name);
        let (listens, calls) = (is_method("subscriptions/listen"), is_method("tools/call"));
        let stays_open = listens || parts.method == Method::GET;
        let subscribed = listens.then(SubscribedSignal::default);
        if listens {
            // The loaded mounts decide which part of the filter is accepted. rmcp's hook for that decision is not
            // async.
            self.handler.wait_until_loaded().await;
        }
        let mut request = Request::from_parts(parts, http_body_util::Full::new(message.clone()));
        request.extensions_mut().insert(Arc::clone(&exchange));
        subscribed.iter().for_each(|signal| drop(request.extensions_mut().insert(signal.clone())));
        // A client that disconnects before the response drops this future, and `id_hold` with it.
        let mut cancel_on_drop = CancelOnDrop::new(&self.rmcp, id_hold);
        // Boxed, as the work of a handler is: the connection moves the future that it waits for.
        let response = match listens || calls {
            false => ChargeEncoding::new(Box::pin(self.rmcp.handle(request)), Arc::clone(&exchange)).await,
            true => {
                let rmcp = self.rmcp_for(&principal);
                ChargeEncoding::new(Box::pin(async move { rmcp.handle(request).await }), Arc::clone(&exchange)).await
            }
        };
        // rmcp answers JSON that it cannot parse with status 415 and plain text.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
            cancel_on_drop.disarm();
            return self.collect(&connection, refuse_unparsable(&message), || None).await;
        }
        if let Some(session) = response.headers().get(&names::SESSION) {
            if let Some(client) = exchange.opened() {
                self.session_usage.add(session, principal, client.clone());
            }
            if let Some(credential) = &credential {
                session::end_with_key(session, credential, &self.sessions);
            }
        }
        let is_stream = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let mut response = response.map(Body::new);
        // rmcp answers 202. The SDK for Python takes any other success than 200 and 204 for a failure.
        if ends_session && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if !is_stream {
            cancel_on_drop.disarm();
            // In a session, the answer belongs to the session and not to this HTTP request.
            if session_use.is_none() {
                self.demand_missing_scopes(&mut response, &exchange);
            }
            add_retry_after(&mut response, exchange.retry_after());
            if exchange.is_turned_away() {
                turn_away(&mut response);
            }
            return self.collect(&connection, response, || message::request_id(&message)).await;
        }
        // The stream begins with the acknowledgement of the subscription.
        if let Some(signal) = subscribed {
            signal.wait().await;
        }
        if stays_open {
            connection.set_stage(Stage::Streaming);
        }
        let id = cancel_on_drop.id().or_else(|| message::request_id(&message));
        let responses = Arc::clone(&self.responses);
        // An answer without a session names its request. The stream of a session answers none.
        let answered = id.clone().filter(|_| listens);
        let encoded = |body| {
            let body = Body::new(ChargeEncoding::new(body, exchange));
            match credential.filter(|_| stays_open) {
                Some(credential) => credential.limit(body, answered),
                None => body,
            }
        };
        response
            .map(encoded)
            .map(|body| ResponseBody::stream(body, responses, connection, id, (cancel_on_drop, session_use)))
    }

    /// Collects the body of a response, so that it is counted and has a deadline.
    async fn collect(
        &self,
        connection: &Arc<Connection>,
        response: Response<Body>,
        id: impl FnOnce() -> Option<RequestId>,
    ) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let (responses, connection) = (Arc::clone(&self.responses), Arc::clone(connection));
        Response::from_parts(parts, ResponseBody::collected(body, responses, connection, id).await)
    }

    /// Reads and checks the message of a request. Returns the message and the hold on its id; or the response that
    /// refuses it. `has_session`: it belongs to a session of its principal.
    async fn read_message(
        &self,
        connection: &Connection,
        head: &CheckedHead,
        body: Incoming,
        has_session: bool,
    ) -> Result<(Bytes, Option<IdHold>), Response<Body>> {
        let body = body::read(body, self.bounds.body).await?;
        let session = head.parts().headers.get(&names::SESSION);
        if session.is_none()
            && self.sessions.sessions.read().await.len() >= self.bounds.sessions
            && opens_session(&body)
        {
            self.session_usage.evict_least_active(&self.sessions, self.bounds.sessions).await;
        }
        if let Err((code, why, id)) = message::check_cursor(&body) {
            return Err(refuse(StatusCode::OK, code, why, id));
        }
        let Some(session) = session.filter(|_| has_session) else { return Ok((body, None)) };
        let Some(id) = message::request_id(&body) else {
            // rmcp gets the message too: it may serve the request.
            message::cancelled_id(&body).into_iter().for_each(|id| self.in_flight.cancel(session, id));
            return Ok((body, None));
        };
        match self.in_flight.hold(session, id, connection.cancellation()) {
            Ok(id_hold) => Ok((body, Some(id_hold))),
            // Without the id: the client would take it for the answer to the first request.
            Err(error) => Err(refuse(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, error.to_string(), None)),
        }
    }
}

/// True if a message is an `initialize` request. Called only when the maximum of sessions is reached.
fn opens_session(body: &Bytes) -> bool {
    serde_json::from_slice::<serde_json::Value>(body)
        .is_ok_and(|message| message.get("method").is_some_and(|method| method == "initialize"))
}
