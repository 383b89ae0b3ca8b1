//! An HTTP client with bounds: on time, on size, on redirects, and on where they may lead.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use belljar_fetch_protocol::FailureKind;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::body::{Body, Payload};
use crate::failure::{Outcome, failure};
use crate::network::Dialer;
use crate::text;
use crate::url::{Origin, Url};

/// The most redirects of one request. Registries send to their storage with one.
const MAX_REDIRECTS: usize = 3;

/// The most bytes of the head of an answer.
const MAX_HEAD: usize = 64 * 1024;

/// The most header fields of an answer.
const MAX_FIELDS: usize = 64;

/// The port of HTTPS.
pub(crate) const HTTPS: u16 = 443;

/// A client for one source.
pub(crate) struct Client {
    dialer: Dialer,
    /// The server that the operator named. It may have any address.
    named: Origin,
    /// The longest wait for the head of an answer, and for the next piece of its body.
    idle: Duration,
    /// True if the named server was reached at an address that is not public.
    is_private: bool,
    open: HashMap<Origin, SendRequest<Body>>,
}

/// One request.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
    /// Sent to the origin of `url` only, not to where that sends.
    pub(crate) authorization: Option<String>,
    /// The first byte that is wanted, if not all are.
    pub(crate) from: Option<u64>,
    /// What is sent.
    pub(crate) payload: Payload,
    pub(crate) purpose: Purpose,
}

/// What a request is for, which decides where it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To fetch something.
    Content,
    /// To get a token from the server that the registry names.
    Token,
    /// To write to the registry: to the named server alone, and without redirects.
    Write,
}

/// An answer whose body is not read yet.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// The URL that answered.
    pub(crate) url: Url,
    idle: Duration,
}

impl Call {
    /// A GET request.
    pub(crate) fn get(url: Url, accept: &'static str) -> Self {
        Self {
            method: Method::GET,
            url,
            accept,
            authorization: None,
            from: None,
            payload: Payload::None,
            purpose: Purpose::Content,
        }
    }
}

impl Client {
    /// A client for the server `named`.
    pub(crate) fn new(dialer: Dialer, named: Origin, idle: Duration) -> Self {
        Self { dialer, named, idle, is_private: false, open: HashMap::new() }
    }

    /// Sends a request, and follows redirects.
    pub(crate) async fn send(&mut self, mut call: Call) -> Outcome<Answer> {
        let first = call.url.origin.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.judge(&call.url, call.purpose)?;
            let answer = self.exchange(&call).await?;
            let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !is_redirect || call.purpose == Purpose::Write || !matches!(call.payload, Payload::None) {
                return Ok(answer);
            }
            let location = header(&answer.headers, LOCATION).unwrap_or_default();
            let Some(next) = answer.url.join(location) else {
                // A query may hold a signature that gives access.
                let location = location.split('?').next().unwrap_or_default();
                return Err(failure(
                    FailureKind::Content,
                    format!(
                        "\"{}\" redirects to no plain URL: \"{}\"",
                        answer.url.shown(),
                        text::clean(location, text::NAME)
                    ),
                    "ask the operator of the registry",
                ));
            };
            if next.origin != first {
                call.authorization = None;
            }
            call.url = next;
        }
        Err(failure(
            FailureKind::Address,
            format!("\"{}\" redirects more than {MAX_REDIRECTS} times", call.url.origin),
            "ask the operator of the registry",
        ))
    }

    /// Refuses URLs that a server may not send to: without TLS, or another port than that of HTTPS. The server that the operator
    /// named is allowed. [`Dialer::connect`] judges the addresses.
    fn judge(&self, url: &Url, purpose: Purpose) -> Outcome<()> {
        let origin = &url.origin;
        if *origin == self.named {
            return Ok(());
        }
        let of = match purpose {
            Purpose::Content => "the server sends to",
            Purpose::Token => "the registry wants a token of",
            Purpose::Write => "the registry wants the upload at",
        };
        let refuse = |problem: &str| {
            let problem = format!("{of} \"{}\", {problem}", url.shown());
            Err(failure(FailureKind::Address, problem, "ask the operator of the registry"))
        };
        if purpose == Purpose::Write {
            return refuse("which is another server than the one that was named");
        }
        if !origin.secure {
            return refuse("which is not HTTPS");
        }
        if origin.port != HTTPS && origin.port != self.named.port {
            return refuse("whose port is neither 443 nor that of the source");
        }
        Ok(())
    }

    /// Sends one request, and waits for the head of its answer.
    async fn exchange(&mut self, call: &Call) -> Outcome<Answer> {
        let origin = call.url.origin.clone();
        // A blob that was sent in part is not sent again.
        if let Some(mut sender) = self.open.remove(&origin)
            && !matches!(call.payload, Payload::Blob(_))
            && timeout(self.idle, sender.ready()).await.is_ok_and(|ready| ready.is_ok())
            && let Ok(Ok(answer)) = timeout(self.idle, sender.send_request(request(call)?)).await
        {
            self.open.insert(origin, sender);
            return Ok(self.answer(call, answer));
        }
        // A kept connection may have ended. A new one is tried once.
        let any_address = origin == self.named || (call.purpose == Purpose::Token && self.is_private);
        let connection = self.dialer.connect(&origin, any_address).await?;
        if origin == self.named {
            self.is_private = !connection.is_public;
        }
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD).max_headers(MAX_FIELDS);
        let broken = |error: hyper::Error| {
            let problem = format!("\"{origin}\" does not speak HTTP: {error}");
            failure(FailureKind::Network, problem, "check the name of the registry; try again")
        };
        let (mut sender, link) = builder.handshake(TokioIo::new(connection.stream)).await.map_err(broken)?;
        tokio::spawn(async move {
            // The error also ends the request that waits.
            let _ = link.await;
        });
        let answer = self.while_moving(call, sender.send_request(request(call)?)).await?;
        let answer = answer.map_err(|error| match &call.payload {
            Payload::Blob(_) => broken_upload(&origin, &error),
            _ => broken(error),
        })?;
        // A connection that only a token may use is not kept for content.
        if origin == self.named || !any_address {
            self.open.insert(origin.clone(), sender);
        }
        Ok(self.answer(call, answer))
    }

    /// Waits for an answer as long as bytes are sent, and then for the longest wait.
    async fn while_moving<T>(&self, call: &Call, answer: impl Future<Output = T>) -> Outcome<T> {
        let mut answer = pin!(answer);
        let mut before = call.payload.sent();
        loop {
            match timeout(self.idle, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(_) if call.payload.sent() > before => before = call.payload.sent(),
                Err(_) => return Err(silent(&call.url, self.idle)),
            }
        }
    }

    fn answer(&self, call: &Call, answer: hyper::Response<Incoming>) -> Answer {
        let (head, body) = answer.into_parts();
        Answer { status: head.status, headers: head.headers, body, url: call.url.clone(), idle: self.idle }
    }
}

/// The request on the wire.
fn request(call: &Call) -> Outcome<Request<Body>> {
    let invalid =
        || failure(FailureKind::Content, "the server wants a request that HTTP does not allow", "report this as a bug");
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| invalid());
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(&call.url.path)
        .body(call.payload.body())
        .map_err(|_| invalid())?;
    let headers = request.headers_mut();
    headers.insert(HOST, value(&call.url.origin.authority())?);
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("belljar-fetch/", env!("CARGO_PKG_VERSION"))));
    headers.insert(ACCEPT, HeaderValue::from_static(call.accept));
    // Digests are of the bytes as they are stored.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(media_type) = call.payload.media_type() {
        headers.insert(CONTENT_TYPE, value(media_type)?);
    }
    if let Some(authorization) = &call.authorization {
        let mut value = value(authorization)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(from) = call.from {
        headers.insert(RANGE, value(&format!("bytes={from}-"))?);
    }
    Ok(request)
}

/// A header field as text.
pub(crate) fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn broken_upload(origin: &Origin, error: &hyper::Error) -> Box<belljar_fetch_protocol::Failure> {
    let problem = format!("the upload to \"{origin}\" broke off: {error}");
    failure(FailureKind::Network, problem, "run the same command again: what is there is not sent again")
}

fn silent(url: &Url, idle: Duration) -> Box<belljar_fetch_protocol::Failure> {
    let problem = format!("\"{}\" sends nothing for {} s", url.origin, idle.as_secs_f32());
    failure(FailureKind::Time, problem, "try again later")
}

impl Answer {
    /// The length that the answer claims.
    pub(crate) fn length(&self) -> Option<u64> {
        header(&self.headers, CONTENT_LENGTH)?.parse().ok()
    }

    /// The next piece of the body. `None` at its end.
    pub(crate) async fn piece(&mut self) -> Outcome<Option<Bytes>> {
        loop {
            let frame = timeout(self.idle, self.body.frame()).await.map_err(|_| silent(&self.url, self.idle))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    let problem = format!("\"{}\" broke off: {error}", self.url.origin);
                    return Err(failure(FailureKind::Network, problem, "run the same command again"));
                }
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The whole body, which has at most `max` bytes. `what` names it in the error.
    pub(crate) async fn body(&mut self, max: usize, what: &str) -> Outcome<Vec<u8>> {
        let too_large = || {
            failure(
                FailureKind::Size,
                format!("{what} of \"{}\" has more than {max} bytes", self.url.origin),
                "ask its publisher, since no such thing is that large",
            )
        };
        if self.length().is_some_and(|length| length > max as u64) {
            return Err(too_large());
        }
        let mut out = Vec::new();
        while let Some(piece) = self.piece().await? {
            if out.len() + piece.len() > max {
                return Err(failure(
                    FailureKind::Size,
                    format!("{what} of \"{}\" has more than {max} bytes", self.url.origin),
                    "ask its publisher, since no such thing is that large",
                ));
            }
            out.extend_from_slice(&piece);
        }
        Ok(out)
    }
}
