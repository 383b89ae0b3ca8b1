//! Asking upstream: several requests at once, redirects, and what a status means. Knows nothing of what is in a body.
//!
//! A redirect is followed here, as a request of its own, so that the host judges each place by the mount's grants.

#[cfg(not(target_os = "wasi"))]
mod native;
#[cfg(target_os = "wasi")]
mod wasi;

use std::fmt;
use std::time::{Duration, SystemTime};

use belljar_guest::Error;
use url::Url;

use crate::fresh::{self, Stated};

#[cfg(not(target_os = "wasi"))]
pub(crate) use native::upstream;
#[cfg(target_os = "wasi")]
pub(crate) use wasi::upstream;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// How many requests are under way at once.
pub(crate) const AT_ONCE: usize = 8;

/// The largest body that is read: as much as fits into the sandbox's memory beside what is made of it. The host's limit
/// on results is as large by default.
#[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "only a sandbox has a host to ask"))]
pub(crate) const LARGEST: usize = 8 * 1024 * 1024;

/// How much is shown of what upstream says about a failure.
const SHOWN: usize = 200;

/// What sends requests: the host, or a test's recording.
pub(crate) trait Upstream: fmt::Debug {
    /// Sends all requests at once, and gives one result for each, in order. What has not answered after `within` has
    /// timed out.
    fn exchange(&self, requests: &[Request], within: Option<Duration>) -> Vec<Result<Response, Failure>>;
}

/// How to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    /// For the header alone.
    Head,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, String)>,
}

/// What came back from one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// Header fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, Vec<u8>)>);

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "wasi"), allow(dead_code, reason = "only a sandbox has a host to ask"))]
pub(crate) enum Failure {
    /// The host refused: not granted.
    Denied,
    /// It may work later.
    Unavailable(String),
    /// Anything else.
    Failed(String),
}

/// What was asked for, after all redirects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Where it came from in the end.
    pub(crate) url: Url,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    /// For how long it may be served again, redirects included.
    pub(crate) fresh: Stated,
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

/// Asks for all of `requests`, a few at once, and follows redirects. One result for each, in order.
pub(crate) fn fetch(
    upstream: &dyn Upstream,
    requests: Vec<Request>,
    within: Option<Duration>,
) -> Vec<Result<Answer, Error>> {
    let began = SystemTime::now();
    let mut results: Vec<Option<Result<Answer, Error>>> = requests.iter().map(|_| None).collect();
    let mut waiting: Vec<Chase> = requests.into_iter().enumerate().map(Chase::new).rev().collect();
    while !waiting.is_empty() {
        let batch = waiting.split_off(waiting.len().saturating_sub(AT_ONCE));
        let asked: Vec<Request> = batch.iter().rev().map(|chase| chase.request.clone()).collect();
        let left = within.map(|all| all.saturating_sub(began.elapsed().unwrap_or_default()));
        let answered = upstream.exchange(&asked, left);
        for (chase, response) in batch.into_iter().rev().zip(answered) {
            let index = chase.index;
            match chase.advance(response) {
                Step::Done(result) => {
                    if let Some(slot) = results.get_mut(index) {
                        *slot = Some(*result);
                    }
                }
                Step::Again(chase) => waiting.push(*chase),
            }
        }
    }
    let missing = || Err(Error::failed("no answer was kept"));
    results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
}

/// A request on its way, and where it began.
#[derive(Debug)]
struct Chase {
    index: usize,
    request: Request,
    redirects: usize,
    came_from: Option<Url>,
    /// For how long the redirects so far may be followed again without asking; none: no limit.
    fresh_for: Option<Duration>,
}

enum Step {
    Done(Box<Result<Answer, Error>>),
    Again(Box<Chase>),
}

impl Chase {
    fn new((index, request): (usize, Request)) -> Self {
        Chase { index, request, redirects: 0, came_from: None, fresh_for: None }
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

    fn follow(self, response: &Response) -> Result<Chase, Error> {
        let here = shown(&self.request.url);
        if self.redirects == REDIRECTS {
            return Err(Error::failed(format_args!(
                "\"{here}\" redirects once more after {REDIRECTS} redirects: give the entry the URL where it ends"
            )));
        }
        let location = response
            .headers
            .get("location")
            .ok_or_else(|| Error::failed(format_args!("\"{here}\" redirects, and does not say where to")))?;
        let unusable = || {
            let location: String = location.chars().take(SHOWN).collect();
            Error::failed(format_args!("\"{here}\" redirects to \"{location}\", which is no http or https URL"))
        };
        let mut url = self.request.url.join(location).map_err(|_| unusable())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(unusable());
        }
        url.set_fragment(None);
        // What a place says of who asks is nothing that a redirect may hand on.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let mut request = self.request;
        if url.origin() != request.url.origin() {
            let travels = |name: &str| matches!(name, "accept" | "accept-language" | "user-agent");
            request.headers.retain(|(name, _)| travels(&name.to_ascii_lowercase()));
        }
        let stated = fresh::stated(&response.headers, SystemTime::now());
        // Permanent ones hold until they say otherwise; others only for as long as they say.
        let limit = match (stated, response.status) {
            (Stated::For(time), _) => Some(time),
            (Stated::Nothing, 301 | 308) => None,
            (Stated::Nothing | Stated::Never, _) => Some(Duration::ZERO),
        };
        Ok(Chase {
            fresh_for: [self.fresh_for, limit].into_iter().flatten().min(),
            came_from: Some(std::mem::replace(&mut request.url, url)),
            redirects: self.redirects + 1,
            request,
            index: self.index,
        })
    }

    fn finish(self, response: Response) -> Result<Answer, Error> {
        let Chase { request, fresh_for, .. } = self;
        let from = shown(&request.url);
        if !(200..300).contains(&response.status) {
            return Err(refusal(&from, &response));
        }
        if request.method == Method::Get {
            check_whole(&from, &response)?;
        }
        let fresh = match (fresh::stated(&response.headers, SystemTime::now()), fresh_for) {
            (own, None) => own,
            (Stated::For(own), Some(limit)) if !limit.is_zero() => Stated::For(own.min(limit)),
            _ => Stated::Never,
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

/// A URL for people: without its query, which may hold what a client filled in.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// Whether the body is what the header promised.
fn check_whole(from: &str, response: &Response) -> Result<(), Error> {
    if let Some(coding) = response.headers.get("content-encoding").filter(|coding| !coding.is_empty())
        && !coding.eq_ignore_ascii_case("identity")
    {
        return Err(Error::failed(format_args!(
            "\"{from}\" answered in the content encoding \"{}\", which was not asked for",
            excerpt(coding)
        )));
    }
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

/// What a status that is no success means to the caller.
fn refusal(from: &str, response: &Response) -> Error {
    let status = Status(response.status);
    let words = match said(response) {
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

/// When to try again, in words.
fn retry_after(response: &Response) -> Option<String> {
    let value = response.headers.get("retry-after")?;
    if let Ok(seconds) = value.parse::<u64>() {
        // More than that is no advice.
        let seconds = seconds.min(30 * 24 * 3600);
        return Some(format!("in {}", humantime::format_duration(Duration::from_secs(seconds))));
    }
    let time = httpdate::parse_http_date(value).ok()?;
    Some(format!("after {}", humantime::format_rfc3339_seconds(time)))
}

/// What upstream said about a failure: the message of a JSON error, or the beginning of a plain text.
fn said(response: &Response) -> Option<String> {
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
        if line.len() > SHOWN {
            return line.chars().take(SHOWN).chain(['\u{2026}']).collect();
        }
    }
    line
}

/// A status with its meaning.
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
