//! Sends requests: several at once, with redirects, and converts statuses to errors. Does not interpret bodies.
//!
//! Redirects are followed here as separate requests, so the host checks each of them against the mount's grants.

mod coding;
#[cfg(not(target_os = "wasi"))]
mod native;
#[cfg(target_os = "wasi")]
mod wasi;

use std::fmt;
use std::time::{Duration, SystemTime};

use belljar_guest::Error;
use url::Url;

use crate::fresh::{self, StatedLifetime};
use coding::CodingError;

pub(crate) use coding::{gunzip, is_gzip};
#[cfg(not(target_os = "wasi"))]
pub(crate) use native::upstream;
#[cfg(target_os = "wasi")]
pub(crate) use wasi::upstream;

/// The most redirects of one request.
const REDIRECTS: usize = 5;

/// The most concurrent requests.
pub(crate) const AT_ONCE: usize = 8;

/// The largest body that is read, in bytes. The sandbox's memory must hold the body and its conversion. The host's limit on
/// results has the same default.
#[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "only a sandbox has a host to ask"))]
pub(crate) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The longest quotation of upstream's own error message, in characters.
const MAX_EXCERPT: usize = 200;

/// Sends requests: through the host, or from a recording in tests.
pub(crate) trait Upstream: fmt::Debug {
    /// Sends all requests concurrently. Returns one result for each, in order. A request without an answer after `within`
    /// fails as timed out.
    fn exchange(&self, requests: &[Request], within: Option<Duration>) -> Vec<Result<Response, Failure>>;
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    /// Asks for the headers only.
    Head,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
}

/// The response to one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// Header fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, Vec<u8>)>);

/// The reason for a missing response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "only a sandbox has a host to ask"))]
pub(crate) enum Failure {
    /// The host refused the request: no grant allows it.
    Denied,
    /// A temporary failure; the text gives the reason.
    Unavailable(String),
    /// Any other failure; the text gives the reason.
    Failed(String),
}

/// The final response after all redirects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The URL after all redirects.
    pub(crate) url: Url,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    /// The lifetime of the answer in a cache, limited by that of its redirects.
    pub(crate) fresh: StatedLifetime,
}

impl Headers {
    #[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "only a sandbox has a host to ask"))]
    pub(crate) fn new(fields: Vec<(String, Vec<u8>)>) -> Self {
        Headers(fields)
    }

    /// The first field of that name, if it is text.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All fields of that name that are text.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let same = move |(key, _): &&(String, Vec<u8>)| key.eq_ignore_ascii_case(name);
        self.0.iter().filter(same).filter_map(|(_, value)| std::str::from_utf8(value).ok()).map(str::trim)
    }
}

/// Sends all requests, at most [`AT_ONCE`] concurrently, and follows redirects. Returns one result for each, in order.
pub(crate) fn fetch(
    upstream: &dyn Upstream,
    requests: Vec<Request>,
    within: Option<Duration>,
) -> Vec<Result<Answer, Error>> {
    let began = SystemTime::now();
    let mut results: Vec<Option<Result<Answer, Error>>> = requests.iter().map(|_| None).collect();
    let mut waiting: Vec<PendingRequest> = requests.into_iter().enumerate().map(PendingRequest::new).rev().collect();
    while !waiting.is_empty() {
        let batch = waiting.split_off(waiting.len().saturating_sub(AT_ONCE));
        let asked: Vec<Request> = batch.iter().rev().map(|pending| pending.request.clone()).collect();
        let left = within.map(|all| all.saturating_sub(began.elapsed().unwrap_or_default()));
        let answered = upstream.exchange(&asked, left);
        for (pending, response) in batch.into_iter().rev().zip(answered) {
            let index = pending.index;
            match pending.advance(response) {
                Step::Done(result) => {
                    if let Some(slot) = results.get_mut(index) {
                        *slot = Some(*result);
                    }
                }
                Step::Again(pending) => waiting.push(*pending),
            }
        }
    }
    let missing = || Err(Error::failed("internal error: a request has no answer"));
    results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
}

/// A request with the redirects that it has followed.
#[derive(Debug)]
struct PendingRequest {
    index: usize,
    request: Request,
    redirects: usize,
    came_from: Option<Url>,
    /// The shortest lifetime of the redirects so far; `None`: unlimited.
    fresh_for: Option<Duration>,
}

enum Step {
    Done(Box<Result<Answer, Error>>),
    Again(Box<PendingRequest>),
}

impl PendingRequest {
    fn new((index, request): (usize, Request)) -> Self {
        PendingRequest { index, request, redirects: 0, came_from: None, fresh_for: None }
    }

    fn advance(self, response: Result<Response, Failure>) -> Step {
        match response {
            Ok(response) if matches!(response.status, 301 | 302 | 303 | 307 | 308) => match self.follow(&response) {
                Ok(next) => Step::Again(Box::new(next)),
                Err(error) => Step::Done(Box::new(Err(error))),
            },
            Ok(response) => Step::Done(Box::new(self.finish(response))),
            Err(failure) => Step::Done(Box::new(Err(self.explain(failure)))),
        }
    }

    fn follow(self, response: &Response) -> Result<PendingRequest, Error> {
        let here = shown(&self.request.url);
        if self.redirects == REDIRECTS {
            return Err(Error::failed(format_args!(
                "\"{here}\" redirects once more after {REDIRECTS} redirects: set the entry to the final URL"
            )));
        }
        let location = response
            .headers
            .get("location")
            .ok_or_else(|| Error::failed(format_args!("\"{here}\" redirects without a location header")))?;
        let unusable = || {
            let location: String = location.chars().take(MAX_EXCERPT).collect();
            Error::failed(format_args!("\"{here}\" redirects to \"{location}\", which is not an http or https URL"))
        };
        let mut url = self.request.url.join(location).map_err(|_| unusable())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(unusable());
        }
        url.set_fragment(None);
        // A redirect must not add credentials to the request.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let mut request = self.request;
        if url.origin() != request.url.origin() {
            let travels = |name: &str| matches!(name, "accept" | "accept-language" | "user-agent");
            request.headers.retain(|(name, _)| travels(&name.to_ascii_lowercase()));
        }
        let stated = fresh::stated_lifetime(&response.headers, SystemTime::now());
        // Permanent redirects are cacheable without a stated lifetime, temporary ones only with one.
        let limit = match (stated, response.status) {
            (StatedLifetime::For(time), _) => Some(time),
            (StatedLifetime::Nothing, 301 | 308) => None,
            (StatedLifetime::Nothing | StatedLifetime::Never, _) => Some(Duration::ZERO),
        };
        Ok(PendingRequest {
            fresh_for: [self.fresh_for, limit].into_iter().flatten().min(),
            came_from: Some(std::mem::replace(&mut request.url, url)),
            redirects: self.redirects + 1,
            request,
            index: self.index,
        })
    }

    fn finish(self, response: Response) -> Result<Answer, Error> {
        let PendingRequest { request, fresh_for, .. } = self;
        let from = shown(&request.url);
        if !(200..300).contains(&response.status) {
            return Err(refusal(&from, &response));
        }
        let mut response = response;
        if request.method == Method::Get {
            check_whole(&from, &response)?;
            response.body = decoded(&from, &response.headers, response.body)?;
        }
        let fresh = match (fresh::stated_lifetime(&response.headers, SystemTime::now()), fresh_for) {
            (own, None) => own,
            (StatedLifetime::For(own), Some(limit)) if !limit.is_zero() => StatedLifetime::For(own.min(limit)),
            _ => StatedLifetime::Never,
        };
        Ok(Answer { url: request.url, headers: response.headers, body: response.body, fresh })
    }

    fn explain(self, failure: Failure) -> Error {
        let to = shown(&self.request.url);
        match (failure, self.came_from) {
            (Failure::Denied, None) => Error::denied(format_args!("no request to \"{to}\" was granted")),
            (Failure::Denied, Some(from)) => Error::denied(format_args!(
                "\"{}\" redirects to \"{to}\", and no request to there was granted",
                shown(&from)
            )),
            (Failure::Unavailable(why), _) => Error::unavailable(format_args!("no answer from \"{to}\": {why}")),
            (Failure::Failed(why), _) => Error::failed(format_args!("no answer from \"{to}\": {why}")),
        }
    }
}

/// A URL for messages: without its query, which may contain values from a client.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// The body without its content encodings.
fn decoded(from: &str, headers: &Headers, body: Vec<u8>) -> Result<Vec<u8>, Error> {
    let codings: Vec<&str> = headers.all("content-encoding").collect();
    coding::decode(body, &codings.join(",")).map_err(|error| match error {
        CodingError::Unknown(coding) => Error::failed(format_args!(
            "\"{from}\" answered with the content encoding \"{}\", which was not requested: this provider decodes gzip \
             and deflate; set `accept-encoding` in the headers of the entry, or ask the server's operator",
            excerpt(&coding)
        )),
        CodingError::TooLarge => Error::failed(format_args!(
            "the decompressed answer of \"{from}\" is larger than the {MAX_BODY_BYTES} bytes that this provider reads"
        )),
        CodingError::Broken(why) => Error::unavailable(format_args!("no whole answer from \"{from}\": {why}")),
    })
}

/// Checks the length of the body against the headers.
fn check_whole(from: &str, response: &Response) -> Result<(), Error> {
    let stated = response.headers.get("content-length").and_then(|length| length.parse::<u64>().ok());
    let length = response.body.len() as u64;
    match stated {
        Some(stated) if stated > length => {
            Err(Error::unavailable(format_args!("the answer of \"{from}\" ended after {length} of {stated} bytes")))
        }
        Some(stated) if stated < length => {
            Err(Error::failed(format_args!("the answer of \"{from}\" has more than the {stated} bytes that it states")))
        }
        _ => Ok(()),
    }
}

/// The error for a status other than success.
fn refusal(from: &str, response: &Response) -> Error {
    let status = Status(response.status);
    let words = match upstream_message(response) {
        Some(words) => format!("\"{from}\" answered {status}: {words}"),
        None => format!("\"{from}\" answered {status}"),
    };
    match response.status {
        404 | 410 => Error::NotFound,
        401 | 403 | 407 => Error::denied(words),
        408 | 425 | 429 | 500..600 => match retry_after(response) {
            Some(when) => Error::unavailable(format_args!("{words}; try again {when}")),
            None => Error::unavailable(words),
        },
        _ => Error::failed(words),
    }
}

/// The time of a `Retry-After` header, as words.
fn retry_after(response: &Response) -> Option<String> {
    let value = response.headers.get("retry-after")?;
    if let Ok(seconds) = value.parse::<u64>() {
        // Caps absurd values at 30 days.
        let seconds = seconds.min(30 * 24 * 3600);
        return Some(format!("in {}", humantime::format_duration(Duration::from_secs(seconds))));
    }
    let time = httpdate::parse_http_date(value).ok()?;
    Some(format!("after {}", humantime::format_rfc3339_seconds(time)))
}

/// Upstream's own error message: the message of a JSON error, or the beginning of a plain text.
fn upstream_message(response: &Response) -> Option<String> {
    let media = response.headers.get("content-type").unwrap_or_default().to_ascii_lowercase();
    let text = std::str::from_utf8(&response.body).ok()?;
    if media.contains("json") {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let at = ["/message", "/error/message", "/error_description", "/detail", "/error", "/title"];
        return at.iter().find_map(|at| value.pointer(at)?.as_str()).map(excerpt).filter(|words| !words.is_empty());
    }
    media.starts_with("text/plain").then(|| excerpt(text)).filter(|words| !words.is_empty())
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_EXCERPT {
            return line.chars().take(MAX_EXCERPT).chain(['\u{2026}']).collect();
        }
    }
    line
}

/// A status that displays with its meaning.
struct Status(u16);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self.0 {
            304 => " (not modified)",
            400 => " (bad request)",
            401 => " (unauthorized)",
            403 => " (forbidden)",
            405 => " (method not allowed)",
            406 => " (not acceptable)",
            408 => " (request timeout)",
            429 => " (too many requests)",
            451 => " (unavailable for legal reasons)",
            500 => " (internal server error)",
            502 => " (bad gateway)",
            503 => " (service unavailable)",
            504 => " (gateway timeout)",
            _ => "",
        };
        write!(f, "{}{meaning}", self.0)
    }
}
