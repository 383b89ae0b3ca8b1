//! One HTTP exchange: sends a request over a new connection and receives the response. Counts every byte. Dropping the
//! future of the call ends the exchange.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Response, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, Sleep, timeout_at};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::client_connection::{ConnectionDriver, convert_error, exchange};
use super::connect::{ConnectError, connect};
use super::headers;
use super::mount_state::HttpMountState;
use super::origin_grant::{OriginGrant, RequestTarget};
use crate::grants::call_record::CallRecord;
use crate::grants::secrets::{Redactor, StreamRedactor};
use crate::grants::traffic::TrafficExceeded;
use crate::model::UpstreamSpan;
use crate::model::error::{Limit, LimitKind};
use crate::model::limits::Traffic;

/// The most characters of an origin in the log.
const MAX_ORIGIN_CHARS: usize = 300;

/// An allowed request, with what sending it needs.
pub(super) struct AllowedRequest {
    pub(super) mount_state: Arc<HttpMountState>,
    pub(super) grant: Arc<OriginGrant>,
    pub(super) target: RequestTarget,
    pub(super) traffic: Traffic,
    pub(super) deadline: Instant,
    pub(super) position: QueuePosition,
    pub(super) record: CallRecord,
    /// The value of the header `Authorization` with an access token, if the grant adds one.
    pub(super) bearer: Option<HeaderValue>,
}

/// The position of a request in the queue of its call. Requests acquire their connections in the order in which the
/// guest sent them. Otherwise a guest that awaits the responses in this order could deadlock: later requests would hold
/// all connections.
pub(super) struct QueuePosition {
    previous_started: Option<oneshot::Receiver<()>>,
    /// Dropped when this request has its connection slot, or has failed.
    started: Option<oneshot::Sender<()>>,
}

impl QueuePosition {
    /// The position after `last`. `last` becomes this position.
    pub(super) fn after_last(last: &mut Option<oneshot::Receiver<()>>) -> Self {
        let (started, own) = oneshot::channel();
        Self { previous_started: last.replace(own), started: Some(started) }
    }
}

/// Why an exchange failed before there was a response.
pub(super) struct ExchangeFailure {
    pub(super) error: Error,
    /// Set if the grant does not allow the connection.
    pub(super) not_allowed: Option<ConnectError>,
}

impl From<Error> for ExchangeFailure {
    fn from(error: Error) -> Self {
        Self { error, not_allowed: None }
    }
}

/// Sends the request and waits for the head of the response. Adds the exchange to the trace that the call belongs to.
pub(super) async fn run(
    allowed: &mut AllowedRequest,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(Response<WasiBody>, ConnectionDriver), ExchangeFailure> {
    let Some(span) = UpstreamTrace::begin(allowed) else { return send(allowed, request, options, None).await };
    let sent = send(allowed, request, options, Some(&span.header)).await;
    let outcome = sent.as_ref().map(|(response, _)| response.status().as_u16()).map_err(|failure| &failure.error);
    span.end(allowed, outcome);
    sent
}

/// The span of one exchange.
struct UpstreamTrace {
    id: [u8; 8],
    /// The value of the header `traceparent`.
    header: HeaderValue,
    started_at: SystemTime,
    started: Instant,
}

impl UpstreamTrace {
    /// Begins a span. `None`: the call is not traced.
    fn begin(allowed: &AllowedRequest) -> Option<Self> {
        let trace = allowed.record.trace()?;
        let mut id = [0; 8];
        getrandom::fill(&mut id).ok()?;
        let header = HeaderValue::try_from(trace.traceparent(id)).ok()?;
        Some(Self { id, header, started_at: SystemTime::now(), started: Instant::now() })
    }

    /// Ends the span with the status of the response, or with the error.
    fn end(self, allowed: &AllowedRequest, outcome: Result<u16, &Error>) {
        let origin = &allowed.target.origin;
        let error = outcome.err().map(|error| format!("{error:?}"));
        // The first word is the kind of the error. What follows may have text of others.
        let kind =
            error.map(|error| error.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned());
        allowed.record.add_upstream(UpstreamSpan {
            span: self.id,
            method: allowed.target.method.to_string(),
            host: allowed.record.excerpt(&origin.host.to_string(), MAX_ORIGIN_CHARS),
            port: origin.port,
            started_at: self.started_at,
            took: self.started.elapsed(),
            status: outcome.ok(),
            error: kind,
        });
    }
}

async fn send(
    allowed: &mut AllowedRequest,
    request: Request<WasiBody>,
    options: RequestOptions,
    traceparent: Option<&HeaderValue>,
) -> Result<(Response<WasiBody>, ConnectionDriver), ExchangeFailure> {
    let deadline = |timeout: Option<Duration>| {
        let own = timeout.and_then(|timeout| Instant::now().checked_add(timeout)).unwrap_or(allowed.deadline);
        own.min(allowed.deadline)
    };
    let Some(network) = &allowed.mount_state.network else { return Err(Error::ConfigurationError.into()) };
    let Some(resolver) = &allowed.mount_state.resolver else { return Err(Error::ConfigurationError.into()) };
    let connection_slots = allowed.mount_state.connection_slots.get(allowed.traffic.connections);
    let QueuePosition { previous_started, started } = &mut allowed.position;
    let acquire = async {
        if let Some(previous) = previous_started {
            let _ = previous.await;
        }
        connection_slots.acquire_owned().await
    };
    let slot = timeout_at(allowed.deadline, acquire).await;
    drop(started.take());
    let slot = slot.ok().and_then(Result::ok).ok_or(Error::ConnectionLimitReached)?;
    let connection =
        connect(network, resolver, &allowed.grant, &allowed.target.origin, deadline(options.connect_timeout)).await;
    let connection = connection.map_err(|error| match error {
        ConnectError::Failed(error) => ExchangeFailure::from(error),
        error => ExchangeFailure { error: Error::DestinationIpProhibited, not_allowed: Some(error) },
    })?;
    let (request, is_h2) = (outgoing_request(allowed, request, traceparent, connection.1)?, connection.1);
    if !allowed.target.method.is_safe() {
        allowed.record.act();
    }
    let response = exchange(connection, request, deadline(options.first_byte_timeout)).await;
    let (response, io) = response.map_err(|error| match allowed.record.traffic().reached_limit() {
        // hyper cannot tell that the upload limit stopped the body.
        Some(Limit { kind: LimitKind::Upload, cap, .. }) => Error::HttpRequestBodySize(Some(cap)),
        _ => error,
    })?;
    if response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::HttpUpgradeFailed.into());
    }
    let response = guest_response(allowed, response, slot, options.between_bytes_timeout)?;
    let origin = allowed.record.excerpt(&allowed.target.origin.to_string(), MAX_ORIGIN_CHARS);
    tracing::debug!(origin, h2 = is_h2, status = %response.status(), "answered");
    Ok((response, io))
}

/// Builds the outgoing request: the parsed form that was decided on, and the headers that the host adds.
fn outgoing_request(
    allowed: &AllowedRequest,
    request: Request<WasiBody>,
    traceparent: Option<&HeaderValue>,
    is_h2: bool,
) -> Result<Request<Upload>, Error> {
    let (mut parts, body) = request.into_parts();
    let origin = &allowed.target.origin;
    let path = allowed.grant.path_and_query(&allowed.target);
    let uri = match is_h2 {
        true => Uri::builder()
            .scheme(origin.scheme.as_str())
            .authority(origin.authority())
            .path_and_query(path.as_str())
            .build(),
        false => Uri::builder().path_and_query(path.as_str()).build(),
    };
    parts.uri = uri.map_err(|_| Error::HttpRequestUriInvalid)?;
    parts.headers.remove(HOST);
    if is_h2 {
        parts.version = Version::HTTP_2;
    } else {
        parts.version = Version::HTTP_11;
        let host = HeaderValue::try_from(origin.authority()).map_err(|_| Error::HttpRequestUriInvalid)?;
        parts.headers.insert(HOST, host);
    }
    parts.headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("belljar/", env!("CARGO_PKG_VERSION"))));
    if allowed.grant.redactor().is_some() {
        // The host cannot mask secrets in a partial or a compressed response.
        headers::request_whole_response(&mut parts.headers);
    }
    if let Some(traceparent) = traceparent {
        parts.headers.remove("tracestate");
        parts.headers.insert("traceparent", traceparent.clone());
    }
    let bearer = allowed.bearer.as_ref().map(|value| (&AUTHORIZATION, value));
    for (name, value) in allowed.grant.headers().iter().map(|(name, value)| (name, value)).chain(bearer) {
        // Remove every name that an upstream could treat as the same header.
        let same: Vec<_> = parts.headers.keys().filter(|own| headers::is_same(own, name)).cloned().collect();
        same.iter().for_each(|own| drop(parts.headers.remove(own)));
        parts.headers.insert(name, value.clone());
    }
    let upload = Upload { body, record: allowed.record.clone(), cap: allowed.traffic.upload };
    Ok(Request::from_parts(parts, upload))
}

/// Builds the response for the guest.
fn guest_response(
    allowed: &AllowedRequest,
    response: Response<Incoming>,
    slot: OwnedSemaphorePermit,
    between: Option<Duration>,
) -> Result<Response<WasiBody>, Error> {
    let (mut parts, incoming) = response.into_parts();
    let redactor = allowed.grant.redactor().cloned();
    if let Some(redactor) = &redactor {
        headers::check_maskable(&parts)?;
        headers::mask(redactor, &mut parts.headers);
    }
    // These may contain text of the upstream, such as the reason phrase.
    parts.extensions.clear();
    // A timeout of zero would expire at once.
    let between = between.map(|time| time.max(Duration::from_millis(1)));
    let timer = between.map(|time| Box::pin(tokio::time::sleep(time)));
    let body = Download {
        incoming,
        record: allowed.record.clone(),
        cap: allowed.traffic.download,
        between: between.zip(timer),
        pieces: redactor.clone().map(StreamRedactor::new),
        redactor,
        trailers: None,
        is_over: false,
        _slot: slot,
    };
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

/// The body of the request, with its bytes counted.
struct Upload {
    body: WasiBody,
    record: CallRecord,
    cap: u64,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            // Some upstreams treat trailers as headers. The decision on the request did not see the trailers.
            if headers::overrides_request(frame.is_trailers()) {
                return Poll::Ready(Some(Err(Error::HttpRequestTrailerSectionSize(Some(0)))));
            }
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            if let Err(TrafficExceeded(cap)) = self.record.traffic().count_upload(bytes, self.cap) {
                return Poll::Ready(Some(Err(Error::HttpRequestBodySize(Some(cap)))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of the response: counts its bytes, applies the timeout between bytes, and masks secrets.
struct Download {
    incoming: Incoming,
    record: CallRecord,
    cap: u64,
    /// The timeout between two pieces, and its timer.
    between: Option<(Duration, Pin<Box<Sleep>>)>,
    redactor: Option<Arc<Redactor>>,
    pieces: Option<StreamRedactor>,
    trailers: Option<HeaderMap>,
    is_over: bool,
    _slot: OwnedSemaphorePermit,
}

impl Download {
    /// Masks `piece`. `None`: all bytes have to wait for the next piece.
    fn mask(&mut self, piece: Bytes) -> Option<Bytes> {
        let Some(pieces) = &mut self.pieces else { return Some(piece) };
        let ready = pieces.push(&piece);
        (!ready.is_empty()).then(|| ready.into())
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        loop {
            if this.is_over {
                let rest = this.pieces.as_mut().map(StreamRedactor::finish).unwrap_or_default();
                if !rest.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(rest.into()))));
                }
                return Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(cx) else {
                let Some((_, timer)) = &mut this.between else { return Poll::Pending };
                ready!(timer.as_mut().poll(cx));
                return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
            };
            if let Some((time, timer)) = &mut this.between
                && let Some(next) = Instant::now().checked_add(*time)
            {
                timer.as_mut().reset(next);
            }
            match frame {
                None => this.is_over = true,
                Some(Err(error)) => return Poll::Ready(Some(Err(convert_error(&error)))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        let bytes = piece.len() as u64;
                        if let Err(TrafficExceeded(cap)) = this.record.traffic().count_download(bytes, this.cap) {
                            return Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(cap)))));
                        }
                        if let Some(ready) = this.mask(piece) {
                            return Poll::Ready(Some(Ok(Frame::data(ready))));
                        }
                    }
                    Err(frame) => {
                        if let Ok(mut trailers) = frame.into_trailers() {
                            if let Some(redactor) = &this.redactor {
                                headers::mask(redactor, &mut trailers);
                            }
                            this.trailers = Some(trailers);
                            this.is_over = true;
                        }
                    }
                },
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
