//! The endpoint: the state that all connections share, and the code that answers one request.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use rmcp::model::{ErrorCode, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::charge_encoding::ChargeEncoding;
use super::connections::{Connection, Stage};
use super::head::{CheckedHead, HostNames};
use super::reply::{json, refuse, refuse_unparsable, refuse_with};
use super::response::{EVICTED, ResponseBody, ResponseBudget};
use super::session::{CancelOnDrop, IdHold, InFlightIds, RmcpService, SessionUsage, SessionUse};
use super::{body, names, stateless};
use crate::mcp::exchange::{Exchange, RequestSource};
use crate::mcp::stateless::StatelessRequest;
use crate::mcp::subscriptions::SubscribedSignal;
use crate::mcp::{DetachedPeer, Handler, fault};
use crate::model::bounds::MAX_MESSAGE;
use crate::transport::message;

/// The state that all connections share.
pub(super) struct Endpoint {
    rmcp: Arc<RmcpService>,
    handler: Handler,
    bounds: Bounds,
    sessions: Arc<LocalSessionManager>,
    session_usage: SessionUsage,
    responses: Arc<ResponseBudget>,
    in_flight: InFlightIds,
    host_names: HostNames,
    detached: DetachedPeer,
    cancel: CancellationToken,
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

impl Endpoint {
    /// An endpoint on `address`. Cancelling `cancel` ends its requests.
    pub(super) fn new(handler: Handler, address: SocketAddr, bounds: Bounds, cancel: CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE.get())
            .with_cancellation_token(cancel.clone())
            // `HostNames` has checked both headers: one rule for the fast path and for rmcp.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(bounds.session_idle);
        // A session keeps no answers: a request ends with its connection, so no client can come back for its answer.
        sessions.session_config.completed_cache_ttl = Duration::ZERO;
        let sessions = Arc::new(sessions);
        let each = handler.clone();
        let rmcp = StreamableHttpService::new(move || Ok(each.for_session()), Arc::clone(&sessions), config);
        Self {
            rmcp: Arc::new(rmcp),
            bounds,
            sessions,
            session_usage: SessionUsage::default(),
            responses: Arc::new(ResponseBudget::new(bounds.response_bytes, Arc::clone(handler.budget()), bounds.write)),
            in_flight: InFlightIds::default(),
            host_names: HostNames::new(address),
            detached: DetachedPeer::new(handler.clone()),
            handler,
            cancel,
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
        let read_message = OnceLock::new();
        let mut work = pin!(self.serve(&connection, peer, request, &read_message));
        let answered = poll_fn(|context| match connection.is_evicted() {
            true => Poll::Ready(None),
            false => work.as_mut().poll(context).map(Some),
        });
        let mut response = match answered.await {
            Some(response) => response,
            None => {
                let id = read_message.get().and_then(|message: &Bytes| message::request_id(message));
                let busy = refuse_with(StatusCode::SERVICE_UNAVAILABLE, fault::busy(EVICTED), id);
                let mut response = self.collect(&connection, busy, || None).await;
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
        };
        if connection.closes_after_answer() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Answers a request. Puts its message into `read_message` once it is read.
    async fn serve(
        &self,
        connection: &Arc<Connection>,
        peer: u64,
        request: Request<Incoming>,
        read_message: &OnceLock<Bytes>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let head = match self.host_names.check(parts) {
            Ok(head) => head,
            Err(refusal) => return self.collect(connection, refusal, || None).await,
        };
        let session_use =
            head.parts().headers.get(&names::SESSION).and_then(|session| self.session_usage.begin_use(session));
        let (message, id_hold) = if head.parts().method == Method::POST {
            match self.read_message(&head, body).await {
                Ok(read) => read,
                Err(refusal) => return self.collect(connection, refusal, || None).await,
            }
        } else {
            (Bytes::new(), None)
        };
        let _ = read_message.set(message.clone());
        let source = RequestSource { peer, principal: head.principal() };
        let exchange = Exchange::new(source, connection.begin_serving());
        if self.bounds.fast_path
            && let Some(request) = stateless::request(&head, &message)
        {
            return self.serve_fast_path(connection, request, &exchange).await;
        }
        let (connection, exchange) = (Arc::clone(connection), Arc::new(exchange));
        self.serve_by_rmcp(ReceivedRequest { connection, head, message, id_hold, session_use, exchange }).await
    }

    /// Answers a request of the fast path.
    async fn serve_fast_path(
        &self,
        connection: &Arc<Connection>,
        request: StatelessRequest,
        exchange: &Exchange,
    ) -> Response<Body> {
        let id = request.id().clone();
        let answer = self.handler.answer(request, self.detached.peer(), exchange, self.cancel.child_token()).await;
        let (responses, connection) = (Arc::clone(&self.responses), Arc::clone(connection));
        let body = ResponseBody::complete(answer.message.into(), responses, connection, || Some(id));
        json(stateless::status(answer.error), body)
    }

    /// Answers a request through rmcp.
    async fn serve_by_rmcp(&self, received: ReceivedRequest) -> Response<Body> {
        let ReceivedRequest { connection, head, message, id_hold, session_use, exchange } = received;
        let parts = head.into_parts();
        let is_json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"application/json"));
        // rmcp checks that the header names the method of the body.
        let listens = parts.headers.get(&names::METHOD).is_some_and(|method| method == "subscriptions/listen");
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
        let response = ChargeEncoding::new(Box::pin(self.rmcp.handle(request)), Arc::clone(&exchange)).await;
        // rmcp answers JSON that it cannot parse with status 415 and plain text.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
            cancel_on_drop.disarm();
            return self.collect(&connection, refuse_unparsable(&message), || None).await;
        }
        if let Some(session) = response.headers().get(&names::SESSION) {
            self.session_usage.add(session);
        }
        let is_stream = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let response = response.map(Body::new);
        if !is_stream {
            cancel_on_drop.disarm();
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
        let encoded = |body| Body::new(ChargeEncoding::new(body, exchange));
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
    /// refuses it.
    async fn read_message(
        &self,
        head: &CheckedHead,
        body: Incoming,
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
        let id_hold = match session.and_then(|session| Some((session, message::request_id(&body)?))) {
            None => None,
            Some((session, id)) => match self.in_flight.hold(session, id) {
                Ok(id_hold) => Some(id_hold),
                // Without the id: the client would take it for the answer to the first request.
                Err(error) => {
                    let why = error.to_string();
                    return Err(refuse(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, why, None));
                }
            },
        };
        Ok((body, id_hold))
    }
}

/// True if a message is an `initialize` request. Called only when the maximum of sessions is reached.
fn opens_session(body: &Bytes) -> bool {
    serde_json::from_slice::<serde_json::Value>(body)
        .is_ok_and(|message| message.get("method").is_some_and(|method| method == "initialize"))
}
