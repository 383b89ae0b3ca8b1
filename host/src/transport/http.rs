//! MCP over Streamable HTTP at `/mcp`: loopback, Host and Origin checked, everything capped and timed.
//!
//! rmcp serves the protocol; this puts around it what it leaves to a server: connection and session caps, header and
//! write timeouts, bodies that are answered in JSON when they are not, and a stop that lets answers finish.

use std::convert::Infallible;
use std::sync::Arc;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use super::{DRAIN, MAX_MESSAGE, message};
use crate::mcp::Handler;

/// The one path.
pub const PATH: &str = "/mcp";

/// Caps and time-outs of the front door.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once; one more waits in the kernel's queue.
    pub connections: usize,
    /// Sessions of older clients at once, about 50 KiB each.
    pub sessions: usize,
    /// How long a session of an older client is kept without a request.
    pub session_idle: Duration,
    /// How long a client may take for its headers, and how long a connection may idle between requests.
    pub headers: Duration,
    /// How long a client may take for its body.
    pub body: Duration,
    /// How long a client may not take a single byte of its answer.
    pub write: Duration,
    /// How long answers under way may take after a stop was asked for.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 512,
            sessions: 1024,
            session_idle: Duration::from_secs(600),
            headers: Duration::from_secs(30),
            body: Duration::from_secs(30),
            write: Duration::from_secs(30),
            drain: DRAIN,
        }
    }
}

type Inner = StreamableHttpService<Handler, LocalSessionManager>;

/// What every connection shares.
struct Front {
    inner: Inner,
    bounds: Bounds,
    sessions: Arc<LocalSessionManager>,
}

/// Serves on `listener` until `stop`, then lets answers under way finish.
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
    // A page that this very server showed could only be one of its own; every other Origin is turned away.
    let origins = [own.to_string(), format!("localhost:{}", own.port())].map(|authority| format!("http://{authority}"));
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_MESSAGE)
        .with_cancellation_token(cancel.clone())
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(bounds.session_idle);
    let sessions = Arc::new(sessions);
    let inner = StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&sessions), config);
    let front = Arc::new(Front { inner, bounds, sessions });
    let connections = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.headers).max_headers(64).max_buf_size(64 << 10);
    let mut stop = std::pin::pin!(stop);
    loop {
        let Ok(slot) = Arc::clone(&connections).acquire_owned().await else { break };
        let stream = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely: what runs may free some.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let front = Arc::clone(&front);
        let service = service_fn(move |request| {
            let front = Arc::clone(&front);
            async move { Ok::<_, Infallible>(front.answer(request).await) }
        });
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(timed(stream, bounds.write)), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("connection: {error}");
            }
            drop(slot);
        });
    }
    drop(listener);
    if tokio::time::timeout(bounds.drain, graceful.shutdown()).await.is_err() {
        tracing::info!("some answers were still under way when belljar stopped");
    }
    cancel.cancel();
    Ok(())
}

fn timed(stream: TcpStream, write: Duration) -> std::pin::Pin<Box<TimeoutStream<TcpStream>>> {
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(write));
    Box::pin(stream)
}

impl Front {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, &format!("there is nothing here; MCP is at {PATH}\n"));
        }
        if request.headers().get_all(header::HOST).iter().count() > 1 {
            return plain(StatusCode::BAD_REQUEST, "more than one Host header\n");
        }
        if request.method() != Method::POST {
            return self.inner.handle(request).await.map(Body::new);
        }
        let (parts, body) = request.into_parts();
        let body = match tokio::time::timeout(self.bounds.body, Limited::new(body, MAX_MESSAGE).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return refuse(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    ErrorCode::INVALID_REQUEST,
                    format!("a message has at most {MAX_MESSAGE} bytes"),
                    None,
                );
            }
            Ok(Err(_)) => return plain(StatusCode::BAD_REQUEST, "the body ended early\n"),
            Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
        };
        if !parts.headers.contains_key("mcp-session-id")
            && self.sessions.sessions.read().await.len() >= self.bounds.sessions
            && opens_session(&body)
        {
            return refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorCode::INTERNAL_ERROR,
                "too many sessions; close one, or use the 2026-07-28 revision, which needs none".to_owned(),
                None,
            );
        }
        if let Err((code, why, id)) = message::check_cursor(&body) {
            return refuse(StatusCode::OK, code, why, id);
        }
        let is_json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"application/json"));
        let response = self.inner.handle(Request::from_parts(parts, http_body_util::Full::new(body.clone()))).await;
        // rmcp says 415 in plain text to JSON that it cannot read.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
            return unreadable(&body);
        }
        response.map(Body::new)
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
    let body = serde_json::to_vec(&JsonRpcError::new(id, ErrorData::new(code, why, None))).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
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
