//! MCP over Streamable HTTP at `/mcp`: loopback, Host and Origin checked, everything capped and timed.
//!
//! rmcp serves the protocol; this puts around it what it leaves to a server: connection and session caps, header and
//! write timeouts, bodies that are answered in JSON when they are not, requests that end with their connection, and a
//! stop that lets answers finish.

mod answer;
mod calm;
mod encoding;
mod head;
mod house;
mod session;
mod short;
mod wire;

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::answer::{Answer, GAVE_WAY, Untaken};
use self::calm::Calm;
use self::encoding::Encoding;
use self::head::{Judged, Own};
use self::house::{Guest, House, Stage};
use self::session::{InFlight, Sessions};
use self::wire::Wire;
use super::{DRAIN, LAST_ANSWERS, MAX_MESSAGE, message};
use crate::mcp::exchange::Exchange;
use crate::mcp::plain::{Nobody, Plain};
use crate::mcp::subscriptions::{Ready, next_peer};
use crate::mcp::turn::Turn;
use crate::mcp::{Handler, fault};
use crate::model::Guard;

/// The one path.
pub const PATH: &str = "/mcp";

/// Caps and time-outs of the front door.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once; for one more, the one that does least is closed.
    pub connections: usize,
    /// Sessions of older clients at once, about 50 KiB each; for one more, the one that does least is ended.
    pub sessions: usize,
    /// How long a session of an older client is kept without a request.
    pub session_idle: Duration,
    /// How long a client may take for its headers, and how long a connection may idle between requests.
    pub headers: Duration,
    /// How long a client may take for its body.
    pub body: Duration,
    /// How long a client may not take a single byte of its answer, and how long it may take for it in any case.
    pub write: Duration,
    /// Bytes of large answers that may wait to be taken, over all connections.
    pub untaken: usize,
    /// How long requests under way may go on after a stop was asked for.
    pub drain: Duration,
    /// Whether plain requests go the short way: without it rmcp serves everything, and says the same at several times the
    /// cost.
    pub short: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 512,
            sessions: 256,
            session_idle: Duration::from_secs(600),
            headers: Duration::from_secs(30),
            body: Duration::from_secs(30),
            write: Duration::from_secs(10),
            untaken: 256 << 20,
            drain: DRAIN,
            short: true,
        }
    }
}

type Inner = StreamableHttpService<Handler, LocalSessionManager>;

/// What every connection shares.
struct Front {
    inner: Inner,
    handler: Handler,
    bounds: Bounds,
    sessions: Arc<LocalSessionManager>,
    usage: Sessions,
    untaken: Arc<Untaken>,
    in_flight: InFlight,
    own: Own,
    nobody: Nobody,
    cancel: CancellationToken,
}

/// How long the last answers may take to be taken.
const TAKING: Duration = Duration::from_millis(150);

/// How long streams may take to end when all is over.
const STREAMS: Duration = Duration::from_millis(300);

/// Serves on `listener` until `stop`. Requests under way may finish for a while; then they are stopped. Each is answered.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    handler: Handler,
    listener: TcpListener,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let cancel = CancellationToken::new();
    let own = listener.local_addr().map_err(|error| format!("the listener has no address: {error}"))?;
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_MESSAGE)
        .with_cancellation_token(cancel.clone())
        // They are judged before: one rule, for both ways.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(bounds.session_idle);
    // A session does not keep its answers: a request ends with its connection, so that nobody can come back for one.
    sessions.session_config.completed_cache_ttl = Duration::ZERO;
    let sessions = Arc::new(sessions);
    let untaken = Arc::new(Untaken::new(bounds.untaken, Arc::clone(handler.budget()), bounds.write));
    let each = handler.clone();
    let inner = StreamableHttpService::new(move || Ok(each.for_session()), Arc::clone(&sessions), config);
    let front = Arc::new(Front {
        inner,
        handler: handler.clone(),
        bounds,
        sessions,
        usage: Sessions::default(),
        untaken,
        in_flight: InFlight::default(),
        own: Own::new(own),
        nobody: Nobody::new(handler.clone()),
        cancel: cancel.clone(),
    });
    let house = House::new(bounds.connections, house::PATIENCE);
    let graceful = GracefulShutdown::new();
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).max_headers(64).max_buf_size(64 << 10);
    builder.header_read_timeout(Guard::Slow.is_on().then_some(bounds.headers));
    let mut stop = pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => (stream, peer.ip()),
                Err(error) => {
                    // Out of descriptors, most likely: whoever does least gives some back, or what runs may.
                    tracing::warn!("cannot accept a connection: {error}");
                    house.make_room();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        // Until there is a place, those that come wait in the kernel's queue.
        let entry = async {
            loop {
                match house.enter(peer) {
                    Some(entry) => break entry,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let entry = tokio::select! { biased; () = &mut stop => break, entry = entry => entry };
        let front = Arc::clone(&front);
        let guest = Arc::clone(&entry.guest);
        let peer = next_peer();
        let service = service_fn(move |request| {
            let (front, guest) = (Arc::clone(&front), Arc::clone(&guest));
            async move { Ok::<_, Infallible>(front.answer(guest, peer, request).await) }
        });
        let write = Guard::Untaken.is_on().then_some(bounds.write);
        let connection = graceful
            .watch(builder.serve_connection(TokioIo::new(Wire::new(stream, write, Arc::clone(&entry.guest))), service));
        tokio::spawn(Calm::new(async move {
            let mut connection = pin!(connection);
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("connection: {error}");
                        entry.guest.is_cut();
                    }
                }
                () = entry.guest.over() => {
                    tracing::debug!("a connection is closed: it was silent or slow");
                    entry.guest.is_cut();
                }
            }
        }));
    }
    drop(listener);
    handler.close();
    let mut shut = std::pin::pin!(graceful.shutdown());
    let mut shut_by = async |by| tokio::time::timeout_at(by, shut.as_mut()).await.is_ok();
    let by = Instant::now() + bounds.drain;
    let is_idle = tokio::time::timeout_at(by, handler.idle()).await.is_ok();
    if !is_idle {
        handler.stop();
        let _ = tokio::time::timeout(LAST_ANSWERS, handler.idle()).await;
    }
    // Who is still taking an answer may go on until then; streams of sessions have no end of their own.
    if !shut_by(by.max(Instant::now() + TAKING)).await {
        cancel.cancel();
        if !shut_by(Instant::now() + STREAMS).await {
            tracing::info!("some answers were not taken when belljar stopped");
        }
    }
    cancel.cancel();
    Ok(())
}

impl Front {
    /// Answers a request of connection `peer`, or says that belljar is busy if its connection gives way meanwhile.
    async fn answer(self: Arc<Self>, guest: Arc<Guest>, peer: u64, request: Request<Incoming>) -> Response<Body> {
        guest.is_at(Stage::Asking);
        let said = OnceLock::new();
        let mut work = pin!(Arc::clone(&self).serve(&guest, peer, request, &said));
        let answered = poll_fn(|context| match guest.gives_way() {
            true => Poll::Ready(None),
            false => work.as_mut().poll(context).map(Some),
        });
        let mut response = match answered.await {
            Some(response) => response,
            None => {
                let id = said.get().and_then(|message: &Bytes| message::id(message));
                let busy = refuse_with(StatusCode::SERVICE_UNAVAILABLE, fault::busy(GAVE_WAY), id);
                let mut response = self.whole(&guest, busy, || None).await;
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
        };
        if guest.is_last() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Answers a request. What it says is put into `said` once it has been read.
    async fn serve(
        self: Arc<Self>,
        guest: &Arc<Guest>,
        peer: u64,
        request: Request<Incoming>,
        said: &OnceLock<Bytes>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let head = match self.own.judge(parts) {
            Ok(head) => head,
            Err(refusal) => return self.whole(guest, refusal, || None).await,
        };
        let used = head.parts().headers.get(session::HEADER).and_then(|session| self.usage.uses(session));
        let (message, held) = if head.parts().method == Method::POST {
            match self.read(head.parts(), body).await {
                Ok(read) => read,
                Err(refusal) => return self.whole(guest, refusal, || None).await,
            }
        } else {
            (Bytes::new(), None)
        };
        let _ = said.set(message.clone());
        let turn = guest.is_served();
        if self.bounds.short
            && let Some(plain) = short::plain(&head, &message)
        {
            return self.plain(guest, plain.over(peer), &turn).await;
        }
        self.by_rmcp((guest, peer), head, message, (held, used, turn)).await
    }

    /// Answers a request by rmcp.
    async fn by_rmcp(
        self: &Arc<Self>,
        (guest, peer): (&Arc<Guest>, u64),
        head: Judged,
        message: Bytes,
        (held, used, turn): (Option<session::Held>, Option<session::Use>, Turn),
    ) -> Response<Body> {
        let parts = head.into_parts();
        let is_json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"application/json"));
        // rmcp checks that the header says what the body does.
        let listens = parts.headers.get("mcp-method").is_some_and(|method| method == "subscriptions/listen");
        let stays_open = listens || parts.method == Method::GET;
        let ready = listens.then(Ready::default);
        if listens {
            // What is accepted is decided by what is loaded, in a place where rmcp lets nothing wait.
            self.handler.loaded_soon().await;
        }
        let mut request = Request::from_parts(parts, http_body_util::Full::new(message.clone()));
        let exchange = Exchange::new(peer);
        request.extensions_mut().insert(exchange.clone());
        request.extensions_mut().insert(turn);
        ready.iter().for_each(|ready| drop(request.extensions_mut().insert(ready.clone())));
        // Until the response is there, a client that goes away drops this future, and `held` with it.
        let mut left = session::Left::new(self, held);
        // On the heap, as the work of a handler is: the connection moves what it waits for.
        let response = Encoding::new(Box::pin(self.inner.handle(request)), exchange.clone()).await;
        // rmcp says 415 in plain text to JSON that it cannot read.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
            left.stays();
            return self.whole(guest, unreadable(&message), || None).await;
        }
        if let Some(session) = response.headers().get(session::HEADER) {
            self.usage.open(session);
        }
        let is_stream = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let response = response.map(Body::new);
        if !is_stream {
            left.stays();
            return self.whole(guest, response, || message::id(&message)).await;
        }
        // The acknowledgement is in it.
        if let Some(ready) = ready {
            ready.said().await;
        }
        if stays_open {
            guest.is_at(Stage::Listening);
        }
        let id = left.id().or_else(|| message::id(&message));
        let untaken = Arc::clone(&self.untaken);
        let encoded = |body| Body::new(Encoding::new(body, exchange));
        response.map(encoded).map(|body| Answer::stream(body, untaken, Arc::clone(guest), id, (left, used)))
    }

    /// Answers a request that goes the short way.
    async fn plain(&self, guest: &Arc<Guest>, plain: Plain, turn: &Turn) -> Response<Body> {
        let id = plain.id().clone();
        let answer = self.handler.answer(plain, self.nobody.peer(), self.cancel.child_token(), turn).await;
        // rmcp's other statuses are for what is none of a plain request's troubles.
        let status = if answer.lacks_capability { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        json(status, Answer::given(answer.message.into(), Arc::clone(&self.untaken), Arc::clone(guest), || Some(id)))
    }

    async fn whole(
        &self,
        guest: &Arc<Guest>,
        response: Response<Body>,
        id: impl FnOnce() -> Option<RequestId>,
    ) -> Response<Body> {
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, Answer::whole(body, Arc::clone(&self.untaken), Arc::clone(guest), id).await)
    }

    /// The message of a request, and what keeps its id while it is in flight; or the refusal.
    async fn read(
        self: &Arc<Self>,
        parts: &http::request::Parts,
        body: Incoming,
    ) -> Result<(Bytes, Option<session::Held>), Response<Body>> {
        let cap = if Guard::Message.is_on() { MAX_MESSAGE } else { usize::MAX };
        let time = if Guard::Slow.is_on() { self.bounds.body } else { Duration::from_secs(3600) };
        let body = match tokio::time::timeout(time, Limited::new(body, cap).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let why = format!("a message has at most {MAX_MESSAGE} bytes");
                return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::INVALID_REQUEST, why, None));
            }
            Ok(Err(_)) => return Err(plain(StatusCode::BAD_REQUEST, "the body ended early\n")),
            Err(_) => return Err(plain(StatusCode::REQUEST_TIMEOUT, "the body took too long\n")),
        };
        let session = parts.headers.get(session::HEADER);
        if session.is_none()
            && Guard::Sessions.is_on()
            && self.sessions.sessions.read().await.len() >= self.bounds.sessions
            && opens_session(&body)
        {
            self.usage.make_room(&self.sessions, self.bounds.sessions).await;
        }
        if let Err((code, why, id)) = message::check_cursor(&body) {
            return Err(refuse(StatusCode::OK, code, why, id));
        }
        let held = match session.and_then(|session| Some((session, message::id(&body)?))) {
            None => None,
            Some((session, id)) => match self.in_flight.hold(session, id) {
                Ok(held) => Some(held),
                // Not with that id: it would be taken for the answer to the first one.
                Err(why) => return Err(refuse(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, why, None)),
            },
        };
        Ok((body, held))
    }
}

/// Whether a message is an `initialize`: looked for only when the sessions are used up.
fn opens_session(body: &Bytes) -> bool {
    serde_json::from_slice::<serde_json::Value>(body)
        .is_ok_and(|message| message.get("method").is_some_and(|method| method == "initialize"))
}

fn unreadable(body: &Bytes) -> Response<Body> {
    let Err(error) = serde_json::from_slice::<rmcp::model::ClientJsonRpcMessage>(body) else {
        return refuse(
            StatusCode::BAD_REQUEST,
            ErrorCode::INVALID_REQUEST,
            "the message cannot be read".to_owned(),
            None,
        );
    };
    match message::explain(body, &error) {
        None => Response::builder().status(StatusCode::ACCEPTED).body(Body::empty()).unwrap_or_default(),
        Some((code, why, id)) => refuse(StatusCode::BAD_REQUEST, code, why, id),
    }
}

fn refuse(status: StatusCode, code: ErrorCode, why: String, id: Option<RequestId>) -> Response<Body> {
    refuse_with(status, ErrorData::new(code, why, None), id)
}

fn refuse_with(status: StatusCode, error: ErrorData, id: Option<RequestId>) -> Response<Body> {
    json(status, Body::from(serde_json::to_vec(&JsonRpcError::new(id, error)).unwrap_or_default()))
}

fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests;
