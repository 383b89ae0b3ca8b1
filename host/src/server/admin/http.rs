//! The HTTP side of the operator's endpoint. It answers `GET` and `HEAD`, and changes nothing.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::prometheus_text;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::console;
use super::metrics_token::MetricsToken;
use super::state::{AdminState, READY};

/// Connections at once. More wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 64;

/// A connection may be silent for this time.
const HEAD_TIME: Duration = Duration::from_secs(75);

/// A connection ends after this time, whatever it does.
const CONNECTION_TIME: Duration = Duration::from_secs(600);

/// Pause after the kernel refuses a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What an address has.
pub(super) enum AdminPages {
    /// Everything, for programs of this machine.
    All,
    /// Health, and metrics for those who bring the token.
    Probes(Option<MetricsToken>),
}

/// Serves `pages` on `listener`.
pub(super) async fn serve(listener: TcpListener, state: Arc<AdminState>, pages: AdminPages) {
    let pages = Arc::new(pages);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (state, pages) = (Arc::clone(&state), Arc::clone(&pages));
                tokio::spawn(async move {
                    let _place = place;
                    let _ = tokio::time::timeout(CONNECTION_TIME, connection(stream, state, pages)).await;
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection to the endpoint of [admin]: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, state: Arc<AdminState>, pages: Arc<AdminPages>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (state, pages) = (Arc::clone(&state), Arc::clone(&pages));
        async move {
            let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
            Ok::<_, Infallible>(match &*pages {
                AdminPages::All => answer(&state, method, path, headers),
                AdminPages::Probes(token) => probe(&state, token.as_ref(), method, path, headers),
            })
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_headers(64).max_buf_size(16 << 10);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!("a connection to the endpoint of [admin]: {error}");
    }
}

/// The answer of the address of the probes. It names no mount, except in the metrics.
fn probe(
    state: &AdminState,
    token: Option<&MetricsToken>,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return wrong_method();
    }
    match (path, token) {
        ("/livez", _) => text(StatusCode::OK, PLAIN, "ok\n"),
        ("/readyz", _) => {
            let word = state.word();
            let status = if word == READY { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            text(status, PLAIN, format!("{word}\n"))
        }
        ("/metrics", Some(token)) if token.is_in(headers) => {
            text(StatusCode::OK, prometheus_text::CONTENT_TYPE, state.metrics_text())
        }
        ("/metrics", Some(_)) => {
            let why = "expected the header  Authorization: Bearer TOKEN  with the token of admin.metrics-token\n";
            let mut response = text(StatusCode::UNAUTHORIZED, PLAIN, why);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
        _ => text(StatusCode::NOT_FOUND, PLAIN, "there is nothing here; expected /livez or /readyz\n"),
    }
}

fn wrong_method() -> Response<Body> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "expected the method GET\n");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn answer(state: &AdminState, method: &Method, path: &str, headers: &HeaderMap) -> Response<Body> {
    // A web page that a browser loads by a name of its own gets no answer (DNS rebinding).
    if !is_for_this_machine(headers) {
        let why = "expected the Host header to name this machine, such as localhost or 127.0.0.1\n";
        return text(StatusCode::FORBIDDEN, PLAIN, why);
    }
    // A page of another site may send requests here, but must learn nothing by them.
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return text(StatusCode::FORBIDDEN, PLAIN, "a page of another site sent this request\n");
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return wrong_method();
    }
    match path {
        "/livez" => text(StatusCode::OK, PLAIN, "ok\n"),
        "/metrics" => text(StatusCode::OK, prometheus_text::CONTENT_TYPE, state.metrics_text()),
        "/readyz" => {
            let (is_ready, about) = state.readiness();
            let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            text(status, JSON, format!("{about}\n"))
        }
        "/" => page("text/html; charset=utf-8", console::PAGE),
        "/console.js" => page("text/javascript; charset=utf-8", console::SCRIPT),
        "/console.css" => page("text/css; charset=utf-8", console::STYLE),
        "/api/state" => text(StatusCode::OK, JSON, console::state(state).to_string()),
        // A stream stays open, so a HEAD request for it gets no body.
        "/api/events" if *method == Method::GET => {
            let mut response = text(StatusCode::OK, "text/event-stream", String::new());
            *response.body_mut() = Body::new(state.live.stream());
            response
        }
        _ => text(
            StatusCode::NOT_FOUND,
            PLAIN,
            "there is nothing here; expected /, /metrics, /livez or /readyz\n".to_owned(),
        ),
    }
}

/// A file of the console.
fn page(kind: &'static str, body: &'static str) -> Response<Body> {
    let mut response = text(StatusCode::OK, kind, body);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(console::POLICY));
    response
}

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// True if the Host header names this machine.
fn is_for_this_machine(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else { return false };
    let authority: Result<http::uri::Authority, _> = host.parse();
    let Ok(authority) = authority else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn text(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_accepted() {
        let is_accepted = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
            }
            is_for_this_machine(&headers)
        };
        for own in ["localhost", "LOCALHOST:8809", "127.0.0.1:8809", "127.1.2.3", "[::1]:8809"] {
            assert!(is_accepted(&[own]), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:8809",
            "",
            "user@localhost:1:2",
        ] {
            assert!(!is_accepted(&[other]), "{other}");
        }
        assert!(!is_accepted(&[]) && !is_accepted(&["localhost", "evil.example"]));
    }
}
