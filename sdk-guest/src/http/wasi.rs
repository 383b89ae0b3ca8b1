//! Requests in a sandbox, through the bindings of `wasi:http`. Interprets no status and no header.

use std::io;
use std::time::Duration;

use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use super::url::Url;
use super::{Length, Request, Response};
use crate::{Error, Result};

/// A request that was sent, and whose body is being written. The order of fields matters: a stream is a child of its body.
#[derive(Debug)]
pub(super) struct Upload {
    stream: Option<OutputStream>,
    body: Option<OutgoingBody>,
    future: FutureIncomingResponse,
    url: Url,
}

/// The body of an answer. The order of fields matters: each is a child of the next.
#[derive(Debug)]
pub(super) struct Body {
    stream: Option<InputStream>,
    _body: IncomingBody,
    _response: IncomingResponse,
    url: Url,
}

/// Begins a request.
pub(super) fn send(request: &Request, url: Url, length: Length) -> Result<Upload> {
    let malformed = |part: &str| {
        Error::failed(format_args!(
            "the request to {url} cannot be sent: {part} is malformed, or belljar does not let a provider set it"
        ))
    };
    let fields = Fields::new();
    for (name, value) in &request.headers {
        fields.append(name, value.as_bytes()).map_err(|_| malformed(&format!("the header \"{name}\"")))?;
    }
    if let Length::Known(length) = length {
        fields.append("content-length", length.to_string().as_bytes()).map_err(|_| malformed("the length"))?;
    }
    let outgoing = OutgoingRequest::new(fields);
    let scheme = if url.is_secure { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&method(&request.method)).map_err(|()| malformed("the method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| malformed("the scheme"))?;
    outgoing.set_authority(Some(&url.authority)).map_err(|()| malformed("the host"))?;
    outgoing.set_path_with_query(Some(&url.target())).map_err(|()| malformed("the path"))?;
    let body = match length {
        Length::Nothing => None,
        Length::Known(_) | Length::Unknown => Some(outgoing.body().map_err(|()| malformed("the body"))?),
    };
    let stream = match &body {
        Some(body) => Some(body.write().map_err(|()| malformed("the body"))?),
        None => None,
    };
    let options = request.timeout.map(options);
    let future = outgoing_handler::handle(outgoing, options).map_err(|code| failure(&url, &code))?;
    Ok(Upload { stream, body, future, url })
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "PATCH" => Method::Patch,
        "OPTIONS" => Method::Options,
        other => Method::Other(other.to_owned()),
    }
}

fn options(time: Duration) -> RequestOptions {
    let nanoseconds = Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let options = RequestOptions::new();
    // A host that has no such limits has that of the call.
    let _ = options.set_connect_timeout(nanoseconds);
    let _ = options.set_first_byte_timeout(nanoseconds);
    let _ = options.set_between_bytes_timeout(nanoseconds);
    options
}

impl Upload {
    /// Ends the body, and waits until the answer begins.
    pub(super) fn finish(mut self) -> Result<Response> {
        self.close();
        self.future.subscribe().block();
        let response = match self.future.get() {
            Some(Ok(Ok(response))) => response,
            Some(Ok(Err(code))) => return Err(failure(&self.url, &code)),
            Some(Err(())) | None => return Err(Error::failed("internal error: the answer was taken twice")),
        };
        let twice = |()| Error::failed("internal error: the body was taken twice");
        let body = response.consume().map_err(twice)?;
        let stream = Some(body.stream().map_err(twice)?);
        Ok(Response {
            status: response.status(),
            headers: response.headers().entries(),
            body: Body { stream, _body: body, _response: response, url: self.url.clone() },
            url: self.url,
        })
    }

    /// Ends the body. If the host does not take it, the answer says why.
    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            let _ = stream.blocking_flush();
        }
        if let Some(body) = self.body.take() {
            let _ = OutgoingBody::finish(body, None);
        }
    }

    fn write_some(&self, stream: &OutputStream, bytes: &[u8]) -> Result<usize, StreamError> {
        loop {
            let room = usize::try_from(stream.check_write()?).unwrap_or(usize::MAX);
            if room > 0 {
                let (now, _) = bytes.split_at(room.min(bytes.len()));
                stream.write(now)?;
                return Ok(now.len());
            }
            stream.subscribe().block();
        }
    }
}

impl io::Write for Upload {
    /// After the end of the request, the host takes no more bytes. They are dropped: the answer says why.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &self.stream else { return Ok(bytes.len()) };
        match self.write_some(stream, bytes) {
            Ok(length) => Ok(length),
            Err(_) => {
                self.close();
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.stream.as_ref().is_some_and(|stream| stream.blocking_flush().is_err()) {
            self.close();
        }
        Ok(())
    }
}

impl io::Read for Body {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = self.stream.as_ref().filter(|_| !bytes.is_empty()) else { return Ok(0) };
        match stream.blocking_read(bytes.len() as u64) {
            Ok(piece) => {
                let Some(place) = bytes.get_mut(..piece.len()) else { return Ok(0) };
                place.copy_from_slice(&piece);
                Ok(piece.len())
            }
            Err(StreamError::Closed) => {
                self.stream = None;
                Ok(0)
            }
            Err(StreamError::LastOperationFailed(error)) => Err(io::Error::other(match http_error_code(&error) {
                Some(code) => failure(&self.url, &code),
                None => Error::unavailable(format_args!("no whole answer from {}: it ended too early", self.url)),
            })),
        }
    }
}

/// The error for an error code of the host.
fn failure(url: &Url, code: &ErrorCode) -> Error {
    let later = |why: &str| Error::unavailable(format_args!("no answer from {url}: {why}"));
    let never = |why: &str| Error::failed(format_args!("no answer from {url}: {why}"));
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
            Error::denied(format_args!("no request to {url} was granted"))
        }
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
        ErrorCode::HttpRequestBodySize(_) => never("the body of the request is larger than the host allows"),
        ErrorCode::HttpResponseBodySize(_) => never("its answer is larger than the host allows"),
        ErrorCode::HttpProtocolError => never("it does not speak HTTP as it should"),
        ErrorCode::InternalError(Some(why)) => never(&format!("the host failed: {why}")),
        // The reason of any other code, such as `HttpRequestUriTooLong`, is its name.
        other => never(&format!("{other:?}")),
    }
}
