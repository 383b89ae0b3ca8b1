//! Requests through `wasi:http`: several concurrent ones in one thread, which polls for the next ready one.

use std::time::Duration;

use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, StreamError};

use super::{Failure, Headers, MAX_BODY_BYTES, Method, Request, Response, Upstream};

/// The bytes of a body that are requested at once. The host may return fewer.
const CHUNK: u64 = 256 * 1024;

/// Sends requests through the host, which checks the grants.
#[derive(Debug)]
struct Host;

/// The implementation of [`Upstream`] in a sandbox.
pub(crate) fn upstream() -> Box<dyn Upstream> {
    Box::new(Host)
}

impl Upstream for Host {
    fn exchange(&self, requests: &[Request], within: Option<Duration>) -> Vec<Result<Response, Failure>> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let timer = within.map(|time| monotonic_clock::subscribe_duration(nanoseconds(time)));
        let mut stages: Vec<Stage> = requests.iter().map(Stage::begin).collect();
        loop {
            let (awaited, pollables): (Vec<usize>, Vec<Pollable>) =
                stages.iter().enumerate().filter_map(|(at, stage)| Some((at, stage.subscribe()?))).unzip();
            if awaited.is_empty() {
                break;
            }
            let ready = poll(&pollables.iter().chain(&timer).collect::<Vec<_>>());
            // A pollable is a child resource of its stream, so it must be dropped first.
            drop(pollables);
            if ready.iter().any(|at| awaited.get(*at as usize).is_none()) {
                break;
            }
            for at in ready.iter().filter_map(|at| awaited.get(*at as usize)) {
                if let Some(stage) = stages.get_mut(*at) {
                    let taken = std::mem::replace(
                        stage,
                        Stage::Done(Err(Failure::Failed("internal error: the request was lost".to_owned()))),
                    );
                    *stage = taken.advance();
                }
            }
        }
        stages.into_iter().map(|stage| stage.end(within)).collect()
    }
}

/// The progress of a request.
enum Stage {
    Sent(Method, FutureIncomingResponse),
    Reading(Response, Body),
    Done(Result<Response, Failure>),
}

/// A body that is being read. The order of fields matters: they are dropped in order, and each is a child of the next.
struct Body {
    stream: InputStream,
    _body: IncomingBody,
    _response: IncomingResponse,
}

impl Stage {
    fn begin(request: &Request) -> Self {
        match send(request) {
            Ok(future) => Stage::Sent(request.method, future),
            Err(failure) => Stage::Done(Err(failure)),
        }
    }

    fn subscribe(&self) -> Option<Pollable> {
        match self {
            Stage::Sent(_, future) => Some(future.subscribe()),
            Stage::Reading(_, body) => Some(body.stream.subscribe()),
            Stage::Done(_) => None,
        }
    }

    fn advance(self) -> Self {
        let next = match self {
            Stage::Sent(method, future) => match future.get() {
                None => return Stage::Sent(method, future),
                Some(Ok(Ok(response))) => open(method, response),
                Some(Ok(Err(code))) => Err(failure(&code)),
                Some(Err(())) => Err(Failure::Failed("internal error: the answer was taken twice".to_owned())),
            },
            Stage::Reading(response, body) => read(response, body),
            Stage::Done(_) => return self,
        };
        next.unwrap_or_else(|failure| Stage::Done(Err(failure)))
    }

    fn end(self, within: Option<Duration>) -> Result<Response, Failure> {
        match self {
            Stage::Done(result) => result,
            Stage::Sent(..) | Stage::Reading(..) => {
                // `within` is the rest of the configured time. Rounding up gives the configured time again.
                let tenths = within.unwrap_or_default().as_millis().div_ceil(100);
                Err(Failure::Unavailable(format!("it took longer than {}.{} s", tenths / 10, tenths % 10)))
            }
        }
    }
}

fn send(request: &Request) -> Result<FutureIncomingResponse, Failure> {
    let unfit = |part: &str| Failure::Failed(format!("{part} cannot be sent"));
    let fields = Fields::new();
    for (name, value) in &request.headers {
        // The host refuses a header that it adds itself; its own value takes effect.
        let _ = fields.append(name, value.as_bytes());
    }
    let url = &request.url;
    let outgoing = OutgoingRequest::new(fields);
    let method = match request.method {
        Method::Get => wasip2::http::types::Method::Get,
        Method::Head => wasip2::http::types::Method::Head,
    };
    let scheme = if url.scheme() == "https" { Scheme::Https } else { Scheme::Http };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    outgoing.set_method(&method).map_err(|()| unfit("the method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| unfit("the scheme"))?;
    outgoing.set_authority(Some(url.authority())).map_err(|()| unfit("the host"))?;
    outgoing.set_path_with_query(Some(&path)).map_err(|()| unfit("the path"))?;
    // The request has no body, so the host can send it at once.
    outgoing_handler::handle(outgoing, None).map_err(|code| failure(&code))
}

fn open(method: Method, response: IncomingResponse) -> Result<Stage, Failure> {
    let headers = Headers::new(response.headers().entries());
    let answer = Response { status: response.status(), headers, body: Vec::new() };
    if method == Method::Head {
        return Ok(Stage::Done(Ok(answer)));
    }
    let stated = answer.headers.get("content-length").and_then(|length| length.parse::<usize>().ok());
    if stated.is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    let lost = |()| Failure::Failed("internal error: the body was taken twice".to_owned());
    let body = response.consume().map_err(lost)?;
    let stream = body.stream().map_err(lost)?;
    Ok(Stage::Reading(answer, Body { stream, _body: body, _response: response }))
}

fn read(mut response: Response, body: Body) -> Result<Stage, Failure> {
    loop {
        match body.stream.read(CHUNK) {
            // No more bytes are available for now.
            Ok(chunk) if chunk.is_empty() => return Ok(Stage::Reading(response, body)),
            Ok(chunk) if response.body.len() + chunk.len() > MAX_BODY_BYTES => return Err(too_large()),
            Ok(chunk) => response.body.extend_from_slice(&chunk),
            Err(StreamError::Closed) => return Ok(Stage::Done(Ok(response))),
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(match http_error_code(&error) {
                    Some(code) => failure(&code),
                    None => Failure::Unavailable("its answer ended too early".to_owned()),
                });
            }
        }
    }
}

fn too_large() -> Failure {
    Failure::Failed(format!("its answer is larger than the {MAX_BODY_BYTES} bytes that this provider reads"))
}

/// Converts an error code of the host.
fn failure(code: &ErrorCode) -> Failure {
    let later = |why: &str| Failure::Unavailable(why.to_owned());
    let never = |why: &str| Failure::Failed(why.to_owned());
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => Failure::Denied,
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            later("its name cannot be resolved")
        }
        ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => later("it cannot be reached"),
        ErrorCode::ConnectionRefused => later("it refused the connection"),
        ErrorCode::ConnectionTerminated => later("the connection was closed"),
        ErrorCode::HttpResponseIncomplete => later("its answer ended too early"),
        ErrorCode::ConnectionLimitReached => later("too many connections are open"),
        ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => later("it took too long"),
        ErrorCode::TlsProtocolError => never("TLS failed"),
        ErrorCode::TlsCertificateError => never("its certificate is not trusted"),
        ErrorCode::TlsAlertReceived(_) => never("it refused TLS"),
        ErrorCode::HttpResponseBodySize(_) => never("its answer is larger than the host allows"),
        ErrorCode::HttpResponseHeaderSectionSize(_) | ErrorCode::HttpResponseHeaderSize(_) => {
            never("the header of its answer is larger than the host allows")
        }
        ErrorCode::HttpProtocolError => never("it does not speak HTTP as it should"),
        ErrorCode::InternalError(Some(why)) => Failure::Failed(format!("the host failed: {why}")),
        // The message of any other code, such as `HttpRequestUriTooLong`, is its name.
        other => Failure::Failed(format!("{other:?}")),
    }
}
