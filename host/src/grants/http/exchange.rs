//! One request and its answer: a connection of its own, every byte counted, everything dropped with the call.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Response, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, timeout_at};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::dial::{Connected, Unreached, connect};
use super::heads;
use super::rule::{Rule, Target};
use super::{Held, Io};
use crate::grants::SharedTrail;
use crate::grants::secrets::{Pieces, Redactor};
use crate::model::Guard;
use crate::model::error::{Bound, Limit};
use crate::model::limits::Traffic;

/// Bytes of an answer's status line and headers.
const HEAD: usize = 64 << 10;

/// Characters of an origin in the log.
const SHOWN: usize = 300;

/// Headers of an answer.
const FIELDS: usize = 100;

/// Bytes of an answer that wait for the guest in one HTTP/2 connection.
const WINDOW: u32 = 256 << 10;

/// What all requests of one call used together.
#[derive(Default)]
pub(super) struct Used {
    requests: AtomicU64,
    upload: AtomicU64,
    download: AtomicU64,
    refused: Mutex<Option<Limit>>,
}

impl Used {
    /// Counts a request.
    pub(super) fn request(&self, traffic: &Traffic) -> Result<(), Error> {
        self.count(&self.requests, 1, Bound::Requests, traffic.requests).map_err(|_| Error::ConnectionLimitReached)
    }

    fn count(&self, counter: &AtomicU64, more: u64, bound: Bound, cap: u64) -> Result<(), u64> {
        let used = counter.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if used <= cap || !Guard::Traffic.is_on() {
            return Ok(());
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_or_insert(Limit { bound, used, cap });
        Err(cap)
    }

    /// The first limit that was reached.
    pub(super) fn refused(&self) -> Option<Limit> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that was allowed.
pub(super) struct Plan {
    pub(super) held: Arc<Held>,
    pub(super) rule: Arc<Rule>,
    pub(super) target: Target,
    pub(super) used: Arc<Used>,
    pub(super) traffic: Traffic,
    pub(super) deadline: Instant,
    pub(super) turn: Turn,
    pub(super) trail: SharedTrail,
}

/// The place of a request among those of its call: they set out in the order in which the guest sent them, so that one who
/// takes the answers in that order never waits for an answer that has no connection because later ones hold them all.
pub(super) struct Turn {
    after: Option<oneshot::Receiver<()>>,
    /// Dropped when this one has set out, or will not.
    before: Option<oneshot::Sender<()>>,
}

impl Turn {
    /// The place behind `last`, which becomes this one.
    pub(super) fn behind(last: &mut Option<oneshot::Receiver<()>>) -> Self {
        let (before, own) = oneshot::channel();
        Self { after: last.replace(own), before: Some(before) }
    }
}

/// How an exchange failed before there was an answer.
pub(super) struct Failed {
    pub(super) error: Error,
    /// Where it is the grant that keeps it from going on.
    pub(super) unreached: Option<Unreached>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, unreached: None }
    }
}

/// Sends the request and waits for the head of the answer.
pub(super) async fn run(
    plan: &mut Plan,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(Response<WasiBody>, Io), Failed> {
    let by = |wish: Option<Duration>| {
        let own = wish.and_then(|wish| Instant::now().checked_add(wish)).unwrap_or(plan.deadline);
        own.min(plan.deadline)
    };
    let Some(network) = &plan.held.network else { return Err(Error::ConfigurationError.into()) };
    let Some(resolver) = &plan.held.resolver else { return Err(Error::ConfigurationError.into()) };
    let flights = plan.held.flights(plan.traffic.connections);
    let Turn { after, before } = &mut plan.turn;
    let set_out = async {
        if let Some(after) = after {
            let _ = after.await;
        }
        flights.acquire_owned().await
    };
    let flight = timeout_at(plan.deadline, set_out).await;
    drop(before.take());
    let flight = flight.ok().and_then(Result::ok).ok_or(Error::ConnectionLimitReached)?;
    let connected = connect(network, resolver, &plan.rule, &plan.target.origin, by(options.connect_timeout)).await;
    let connected = connected.map_err(|unreached| match unreached {
        Unreached::Failed(error) => Failed::from(error),
        unreached => Failed { error: Error::DestinationIpProhibited, unreached: Some(unreached) },
    })?;
    let (request, is_h2) = (dressed(plan, request, connected.1)?, connected.1);
    let answer = exchange(connected, request, by(options.first_byte_timeout)).await;
    let (answer, io) = answer.map_err(|error| match plan.used.refused() {
        // What stopped the upload is not for hyper to tell.
        Some(Limit { bound: Bound::Upload, cap, .. }) => Error::HttpRequestBodySize(Some(cap)),
        _ => error,
    })?;
    if answer.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::HttpUpgradeFailed.into());
    }
    let answer = received(plan, answer, flight, options.between_bytes_timeout)?;
    let origin = plan.trail.words(&plan.target.origin.to_string(), SHOWN);
    tracing::debug!(origin, h2 = is_h2, status = %answer.status(), "answered");
    Ok((answer, io))
}

/// The request as it is sent: in the spelling that was judged, with what the host adds.
fn dressed(plan: &Plan, request: Request<WasiBody>, is_h2: bool) -> Result<Request<Upload>, Error> {
    let (mut parts, body) = request.into_parts();
    let origin = &plan.target.origin;
    let path = plan.rule.path_and_query(&plan.target);
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
    if plan.rule.redactor().is_some() {
        // In a part of an answer, or in one that is compressed, the host could not mask what an upstream echoes.
        heads::ask_for_whole(&mut parts.headers);
    }
    for (name, value) in plan.rule.headers() {
        // Under any name that an upstream could take for it.
        let same: Vec<_> = parts.headers.keys().filter(|own| heads::is_same(own, name)).cloned().collect();
        same.iter().for_each(|own| drop(parts.headers.remove(own)));
        parts.headers.insert(name, value.clone());
    }
    let upload = Upload { body, used: Arc::clone(&plan.used), cap: plan.traffic.upload };
    Ok(Request::from_parts(parts, upload))
}

/// Hands the request over, and drives the connection until the head of the answer is there.
async fn exchange(
    (stream, is_h2): Connected,
    request: Request<Upload>,
    by: Instant,
) -> Result<(Response<Incoming>, Io), Error> {
    let stream = TokioIo::new(stream);
    if is_h2 {
        let tasks = Arc::new(Mutex::new(JoinSet::new()));
        let mut builder = hyper::client::conn::http2::Builder::new(Tasks(Arc::downgrade(&tasks)));
        builder
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(u32::try_from(HEAD).unwrap_or(u32::MAX))
            .max_concurrent_reset_streams(8);
        let (mut sender, connection) =
            timeout_at(by, builder.handshake(stream)).await.map_err(|_| Error::ConnectionTimeout)??;
        let answer = async move { sender.send_request(request).await };
        drive(answer, async { (connection.await, ended(tasks).await).0 }, by).await
    } else {
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(HEAD).max_headers(FIELDS);
        let (mut sender, connection) =
            timeout_at(by, builder.handshake(stream)).await.map_err(|_| Error::ConnectionTimeout)??;
        let answer = async move { sender.send_request(request).await };
        drive(answer, connection, by).await
    }
}

async fn drive(
    answer: impl Future<Output = hyper::Result<Response<Incoming>>>,
    connection: impl Future<Output = hyper::Result<()>> + Send + 'static,
    by: Instant,
) -> Result<(Response<Incoming>, Io), Error> {
    let mut connection = Box::pin(connection);
    let mut is_over = false;
    let both = async {
        let mut answer = pin!(answer);
        poll_fn(|cx| {
            // The connection first: it is what brings the answer.
            if !is_over && connection.as_mut().poll(cx).is_ready() {
                is_over = true;
            }
            answer.as_mut().poll(cx)
        })
        .await
    };
    let answer = timeout_at(by, both).await.map_err(|_| Error::HttpResponseTimeout)?.map_err(|error| plain(&error))?;
    let io = async move {
        if !is_over {
            // Its failure is the body's failure, and told there.
            let _ = connection.await;
        }
        Ok(())
    };
    Ok((answer, Box::new(io)))
}

/// What went wrong in an exchange, without the upstream's words.
fn plain(error: &hyper::Error) -> Error {
    match () {
        () if error.is_timeout() => Error::HttpResponseTimeout,
        () if error.is_parse_too_large() => Error::HttpResponseHeaderSectionSize(u32::try_from(HEAD).ok()),
        () if error.is_incomplete_message() => Error::HttpResponseIncomplete,
        () if error.is_canceled() || error.is_closed() => Error::ConnectionTerminated,
        () if error.is_parse() => Error::HttpProtocolError,
        // HTTP/2 has its reasons in an error of its own.
        () if std::error::Error::source(error).is_some_and(|source| !source.is::<std::io::Error>()) => {
            Error::HttpProtocolError
        }
        () => Error::ConnectionTerminated,
    }
}

/// The answer as the guest gets it.
fn received(
    plan: &Plan,
    answer: Response<Incoming>,
    flight: OwnedSemaphorePermit,
    between: Option<Duration>,
) -> Result<Response<WasiBody>, Error> {
    let (mut parts, incoming) = answer.into_parts();
    let redactor = plan.rule.redactor().cloned();
    if let Some(redactor) = &redactor {
        heads::is_whole(&parts)?;
        heads::mask(redactor, &mut parts.headers);
    }
    // The upstream's own words for its status, and the like.
    parts.extensions.clear();
    // Zero would be over before it began.
    let between = between.map(|time| time.max(Duration::from_millis(1)));
    let timer = between.map(|time| Box::pin(tokio::time::sleep(time)));
    let body = Download {
        incoming,
        used: Arc::clone(&plan.used),
        cap: plan.traffic.download,
        between: between.zip(timer),
        pieces: redactor.clone().map(Pieces::new),
        redactor,
        trailers: None,
        is_over: false,
        _flight: flight,
    };
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

/// What the guest sends, counted.
struct Upload {
    body: WasiBody,
    used: Arc<Used>,
    cap: u64,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            // Some upstreams take them for headers, which were judged before there were any.
            if frame.is_trailers() && Guard::Override.is_on() {
                return Poll::Ready(Some(Err(Error::HttpRequestTrailerSectionSize(Some(0)))));
            }
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            if let Err(cap) = self.used.count(&self.used.upload, bytes, Bound::Upload, self.cap) {
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

/// What the upstream sends: counted, timed, and with the secrets masked that it echoes.
struct Download {
    incoming: Incoming,
    used: Arc<Used>,
    cap: u64,
    /// How long the guest waits for the next piece.
    between: Option<(Duration, Pin<Box<Sleep>>)>,
    redactor: Option<Arc<Redactor>>,
    pieces: Option<Pieces>,
    trailers: Option<HeaderMap>,
    is_over: bool,
    _flight: OwnedSemaphorePermit,
}

impl Download {
    /// What can be passed on of `piece`; none: all of it waits for more.
    fn mask(&mut self, piece: Bytes) -> Option<Bytes> {
        let Some(pieces) = &mut self.pieces else { return Some(piece) };
        let ready = pieces.pass(&piece);
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
                let rest = this.pieces.as_mut().map(Pieces::rest).unwrap_or_default();
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
                Some(Err(error)) => return Poll::Ready(Some(Err(plain(&error)))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        let bytes = piece.len() as u64;
                        if let Err(cap) = this.used.count(&this.used.download, bytes, Bound::Download, this.cap) {
                            return Poll::Ready(Some(Err(Error::HttpResponseBodySize(Some(cap)))));
                        }
                        if let Some(ready) = this.mask(piece) {
                            return Poll::Ready(Some(Ok(Frame::data(ready))));
                        }
                    }
                    Err(frame) => {
                        if let Ok(mut trailers) = frame.into_trailers() {
                            if let Some(redactor) = &this.redactor {
                                heads::mask(redactor, &mut trailers);
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

/// Waits for the tasks of a connection: they go on bringing a body when nothing more can be asked. Dropping this ends them.
async fn ended(tasks: Arc<Mutex<JoinSet<()>>>) {
    loop {
        let mut running = std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if running.is_empty() {
            return;
        }
        while running.join_next().await.is_some() {}
    }
}

/// Where an HTTP/2 connection's own tasks run: they end with the exchange.
#[derive(Clone)]
struct Tasks(Weak<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        if let Some(tasks) = self.0.upgrade() {
            tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
        }
    }
}
