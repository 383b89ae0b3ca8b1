//! Requests over HTTP, through `wasi:http`. The host decides about each request, and adds the operator's credentials.
//! Knows nothing of the other interfaces of a provider.
//!
//! ```no_run
//! use belljar_guest::{Result, http};
//!
//! fn tides(harbour: &str) -> Result<String> {
//!     let response = http::get(&format!("https://api.example/tides/{harbour}"))?;
//!     match response.status() {
//!         200 => response.text(),
//!         status => Err(belljar_guest::Error::failed(format_args!("the API answered {status}"))),
//!     }
//! }
//! ```
//!
//! * A status is an answer, never an error. Without a grant, a request fails with [`Error::Denied`]: the host adds the command
//!   that grants it. If the server cannot be reached, or takes too long, it fails with [`Error::Unavailable`].
//! * `GET` and `HEAD` follow redirects, each by a further request. To another origin, only harmless headers travel.
//! * A response is read in pieces by [`std::io::Read`]. A cap is `response.take(bytes)`.
//! * Outside of a sandbox, as in unit tests, nothing is granted: each request is denied.

#[cfg(not(target_family = "wasm"))]
mod native;
mod url;
#[cfg(target_family = "wasm")]
mod wasi;

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

#[cfg(not(target_family = "wasm"))]
use native as host;
#[cfg(target_family = "wasm")]
use wasi as host;

use crate::{Error, Result};
use url::Url;

/// The redirects that a request follows if it does not say how many.
const REDIRECTS: usize = 5;

/// The headers that a redirect takes to another origin. Any other may hold a credential.
const TRAVELS: [&str; 3] = ["accept", "accept-language", "user-agent"];

/// Sends a `GET` request, and follows redirects.
///
/// # Errors
/// See [`Request::send`].
pub fn get(url: &str) -> Result<Response> {
    Request::get(url).send()
}

/// A request that was not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    timeout: Option<Duration>,
    redirects: usize,
}

impl Request {
    /// A request with this method, in capitals.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: None,
            redirects: REDIRECTS,
        }
    }

    /// A `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A `POST` request with this body.
    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let mut request = Self::new("POST", url);
        request.body = body.into();
        request
    }

    /// Adds a header. The host refuses `authorization` and others: the grant sets them, or allows them.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The longest wait for the connection, for the answer to begin, and between pieces of its body. Without it, the time limit
    /// of the call ends the wait.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// The most redirects that a `GET` or `HEAD` request follows; 0 gives the redirect itself as the answer.
    #[must_use]
    pub fn redirects(mut self, most: usize) -> Self {
        self.redirects = most;
        self
    }

    /// Sends the request, and waits until the answer begins.
    ///
    /// # Errors
    /// [`Error::Denied`] without a grant, [`Error::Unavailable`] if the server cannot be reached or takes too long,
    /// [`Error::Failed`] for any other reason.
    pub fn send(mut self) -> Result<Response> {
        let mut url = Url::parse(&self.url)?;
        let follows = self.redirects > 0 && matches!(self.method.as_str(), "GET" | "HEAD");
        let mut came_from: Option<Url> = None;
        let mut left = self.redirects;
        loop {
            let response =
                self.send_once(url.clone()).map_err(|error| after_redirect(error, came_from.as_ref(), &url))?;
            let Some(location) = response.location().filter(|_| follows) else { return Ok(response) };
            if left == 0 {
                let most = self.redirects;
                return Err(Error::failed(format_args!("{url} redirects once more after {most} redirects")));
            }
            left -= 1;
            let next = url
                .join(location)
                .map_err(|why| Error::failed(format_args!("{url} redirects to an address that is none: {why}")))?;
            if !next.has_origin_of(&url) {
                self.headers.retain(|(name, _)| TRAVELS.iter().any(|one| name.eq_ignore_ascii_case(one)));
            }
            came_from = Some(std::mem::replace(&mut url, next));
        }
    }

    fn send_once(&self, url: Url) -> Result<Response> {
        if self.body.is_empty() {
            return host::send(self, url, Length::Nothing)?.finish();
        }
        let mut upload = host::send(self, url, Length::Known(self.body.len()))?;
        upload.write_all(&self.body)?;
        upload.finish()
    }

    /// Begins a request whose body is written in pieces. Such a request follows no redirects, because its body is gone then.
    ///
    /// ```no_run
    /// # use belljar_guest::{Result, http::Request};
    /// use std::io::Write as _;
    ///
    /// # fn send() -> Result<()> {
    /// let mut upload = Request::new("POST", "https://api.example/lines").start()?;
    /// for number in 0..1000 {
    ///     writeln!(upload, "{number}")?;
    /// }
    /// let response = upload.finish()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Request::send`].
    pub fn start(self) -> Result<Upload> {
        let url = Url::parse(&self.url)?;
        let mut upload = host::send(&self, url, Length::Unknown)?;
        upload.write_all(&self.body)?;
        Ok(Upload(upload))
    }
}

/// The length of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// There is no body.
    Nothing,
    /// So many bytes.
    Known(usize),
    /// The body is written in pieces.
    Unknown,
}

/// A denial after a redirect also names the address that redirected.
fn after_redirect(error: Error, came_from: Option<&Url>, to: &Url) -> Error {
    match (error, came_from) {
        (Error::Denied(_), Some(from)) => {
            Error::denied(format_args!("{from} redirects to {to}, and no request to there was granted"))
        }
        (error, _) => error,
    }
}

/// A request whose body is being written.
#[derive(Debug)]
pub struct Upload(host::Upload);

impl Upload {
    /// Ends the body, and waits until the answer begins.
    ///
    /// # Errors
    /// Those of [`Request::send`].
    pub fn finish(self) -> Result<Response> {
        self.0.finish()
    }
}

impl io::Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An answer. Its body is read by [`std::io::Read`], or whole.
#[derive(Debug)]
pub struct Response {
    url: Url,
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: host::Body,
}

impl Response {
    /// The status, such as 200.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The URL after all redirects.
    pub fn url(&self) -> String {
        self.url.to_text()
    }

    /// The first header of this name, in any case, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find_map(|(own, value)| own.eq_ignore_ascii_case(name).then_some(value))
    }

    /// All headers that are text.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), std::str::from_utf8(value).ok()?.trim())))
    }

    /// The rest of the body.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the body ends too early or takes too long.
    pub fn bytes(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The rest of the body as UTF-8. Bytes that are none become U+FFFD.
    ///
    /// # Errors
    /// Those of [`Response::bytes`].
    pub fn text(self) -> Result<String> {
        let bytes = self.bytes()?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// The address of a redirect.
    fn location(&self) -> Option<&str> {
        matches!(self.status, 301 | 302 | 303 | 307 | 308).then(|| self.header("location")).flatten()
    }
}

impl io::Read for Response {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.body.read(bytes)
    }
}
