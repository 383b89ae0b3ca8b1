//! The frames of one HTTP exchange between a call in a worker process and the front: first the head of the request, then
//! the frames of its body; in the other direction the answer, then the frames of the response's body.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, request, response};
use http_body::{Body as _, Frame};
use serde::{Deserialize, Serialize};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use crate::grants::frames::{BytePiece, FrameError};
use crate::model::error::Limit;

/// Names and values of headers or trailers, in order. Values are bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HeaderFields(Vec<(String, BytePiece)>);

impl HeaderFields {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let field = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.as_str().to_owned(), BytePiece(Bytes::copy_from_slice(value.as_bytes())))
        };
        Self(headers.iter().map(field).collect())
    }

    pub(super) fn into_headers(self) -> Result<HeaderMap, FrameError> {
        let mut headers = HeaderMap::new();
        for (name, BytePiece(value)) in self.0 {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| FrameError::Malformed)?;
            let value = HeaderValue::from_maybe_shared(value).map_err(|_| FrameError::Malformed)?;
            headers.try_append(name, value).map_err(|_| FrameError::Malformed)?;
        }
        Ok(headers)
    }
}

/// The head of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) uri: String,
    pub(super) fields: HeaderFields,
    /// The exact length of the body, if it is known.
    pub(super) length: Option<u64>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) first_byte_timeout: Option<Duration>,
    pub(super) between_bytes_timeout: Option<Duration>,
}

impl RequestHead {
    /// The head of a guest's request. Leaves out the header `host`: wasmtime-wasi-http adds it, and the front makes its own.
    pub(super) fn of(parts: &request::Parts, body: &WasiBody, options: &RequestOptions) -> Self {
        let mut headers = parts.headers.clone();
        headers.remove(HOST);
        Self {
            method: parts.method.as_str().to_owned(),
            uri: parts.uri.to_string(),
            fields: HeaderFields::of(&headers),
            length: if body.is_end_stream() { Some(0) } else { body.size_hint().exact() },
            connect_timeout: options.connect_timeout,
            first_byte_timeout: options.first_byte_timeout,
            between_bytes_timeout: options.between_bytes_timeout,
        }
    }

    /// The request without its body, its options, and the length of its body if the request declares one.
    pub(super) fn into_request(self) -> Result<(Request<()>, RequestOptions, Option<u64>), FrameError> {
        let method = Method::from_bytes(self.method.as_bytes()).map_err(|_| FrameError::Malformed)?;
        let uri = Uri::try_from(self.uri).map_err(|_| FrameError::Malformed)?;
        let headers = self.fields.into_headers()?;
        let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
        let declared = match (lengths.next(), lengths.next()) {
            (None, _) => None,
            (Some(length), None) => Some(parse_length(length)?),
            (Some(_), Some(_)) => return Err(FrameError::Malformed),
        };
        if declared.is_some() && self.length.is_some() && declared != self.length {
            return Err(FrameError::Malformed);
        }
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        let options = RequestOptions {
            connect_timeout: self.connect_timeout,
            first_byte_timeout: self.first_byte_timeout,
            between_bytes_timeout: self.between_bytes_timeout,
        };
        Ok((request, options, declared.or(self.length)))
    }
}

fn parse_length(value: &HeaderValue) -> Result<u64, FrameError> {
    let text = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or(FrameError::Malformed)
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ExchangeAnswer {
    /// The status and the headers of the response. Its body follows.
    Response(u16, HeaderFields),
    /// There is no response.
    Failed(FailedExchange),
}

impl ExchangeAnswer {
    pub(super) fn of(parts: &response::Parts) -> Self {
        Self::Response(parts.status.as_u16(), HeaderFields::of(&parts.headers))
    }

    /// The status and the headers, or the failure.
    pub(super) fn into_response(self) -> Result<Result<(StatusCode, HeaderMap), FailedExchange>, FrameError> {
        match self {
            Self::Response(status, fields) => {
                let status = StatusCode::from_u16(status).map_err(|_| FrameError::Malformed)?;
                Ok(Ok((status, fields.into_headers()?)))
            }
            Self::Failed(failed) => Ok(Err(failed)),
        }
    }
}

/// A frame of a body.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum BodyFrame {
    Data(BytePiece),
    Trailers(HeaderFields),
    /// The body is whole.
    End,
    /// The body ends early.
    Failed(FailedExchange),
}

impl BodyFrame {
    /// Splits a frame of a body into frames that are short enough.
    pub(super) fn split(frame: Frame<Bytes>) -> impl Iterator<Item = Self> {
        let (mut data, trailers) = match frame.into_data() {
            Ok(data) => (data, None),
            Err(frame) => (Bytes::new(), frame.into_trailers().ok()),
        };
        let pieces = std::iter::from_fn(move || BytePiece::take(&mut data).map(Self::Data));
        pieces.chain(trailers.map(|trailers| Self::Trailers(HeaderFields::of(&trailers))))
    }
}

/// Why an exchange fails.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FailedExchange {
    pub(super) error: ExchangeError,
    /// The limit on network traffic that the call has reached in the front.
    pub(super) limit: Option<Limit>,
}

/// The errors of `wasi:http` that belljar's code makes. None has text of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ExchangeError {
    RequestDenied,
    RequestUriInvalid,
    RequestBodySize(Option<u64>),
    RequestTrailerSectionSize(Option<u32>),
    DnsTimeout,
    NameNotFound,
    DestinationNotFound,
    DestinationUnavailable,
    DestinationIpProhibited,
    DestinationIpUnroutable,
    ConnectionRefused,
    ConnectionTerminated,
    ConnectionTimeout,
    ConnectionReadTimeout,
    ConnectionLimitReached,
    TlsProtocolError,
    TlsCertificateError,
    /// Holds the number of the alert.
    TlsAlertReceived(u8),
    ResponseIncomplete,
    ResponseHeaderSectionSize(Option<u32>),
    ResponseBodySize(Option<u64>),
    ResponseTransferCoding,
    ResponseContentCoding,
    /// The response is a part of the whole one.
    PartialResponse,
    /// The character set of the response hides ASCII letters.
    ResponseCharset,
    ResponseTimeout,
    UpgradeFailed,
    ProtocolError,
    Configuration,
    /// Any other error.
    Internal,
}

impl From<Error> for ExchangeError {
    fn from(error: Error) -> Self {
        match error {
            Error::HttpRequestDenied => Self::RequestDenied,
            Error::HttpRequestUriInvalid => Self::RequestUriInvalid,
            Error::HttpRequestBodySize(cap) => Self::RequestBodySize(cap),
            Error::HttpRequestTrailerSectionSize(cap) => Self::RequestTrailerSectionSize(cap),
            Error::DnsTimeout => Self::DnsTimeout,
            Error::DnsError { .. } => Self::NameNotFound,
            Error::DestinationNotFound => Self::DestinationNotFound,
            // As in the hooks of `HttpCallState`.
            Error::DestinationUnavailable | Error::Connect(_) => Self::DestinationUnavailable,
            Error::DestinationIpProhibited => Self::DestinationIpProhibited,
            Error::DestinationIpUnroutable => Self::DestinationIpUnroutable,
            Error::ConnectionRefused => Self::ConnectionRefused,
            Error::ConnectionTerminated => Self::ConnectionTerminated,
            Error::ConnectionTimeout => Self::ConnectionTimeout,
            Error::ConnectionReadTimeout => Self::ConnectionReadTimeout,
            Error::ConnectionLimitReached => Self::ConnectionLimitReached,
            Error::TlsProtocolError | Error::Tls(_) => Self::TlsProtocolError,
            Error::TlsCertificateError => Self::TlsCertificateError,
            Error::TlsAlertReceived { alert_id: Some(id), .. } => Self::TlsAlertReceived(id),
            Error::HttpResponseIncomplete => Self::ResponseIncomplete,
            Error::HttpResponseHeaderSectionSize(cap) => Self::ResponseHeaderSectionSize(cap),
            Error::HttpResponseBodySize(cap) => Self::ResponseBodySize(cap),
            Error::HttpResponseTransferCoding(_) => Self::ResponseTransferCoding,
            Error::HttpResponseContentCoding(coding) => match coding.as_deref() {
                Some("partial") => Self::PartialResponse,
                Some("charset") => Self::ResponseCharset,
                _ => Self::ResponseContentCoding,
            },
            Error::HttpResponseTimeout => Self::ResponseTimeout,
            Error::HttpUpgradeFailed => Self::UpgradeFailed,
            Error::HttpProtocolError | Error::Hyper(_) => Self::ProtocolError,
            Error::ConfigurationError => Self::Configuration,
            _ => Self::Internal,
        }
    }
}

impl From<ExchangeError> for Error {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::RequestDenied => Self::HttpRequestDenied,
            ExchangeError::RequestUriInvalid => Self::HttpRequestUriInvalid,
            ExchangeError::RequestBodySize(cap) => Self::HttpRequestBodySize(cap),
            ExchangeError::RequestTrailerSectionSize(cap) => Self::HttpRequestTrailerSectionSize(cap),
            ExchangeError::DnsTimeout => Self::DnsTimeout,
            ExchangeError::NameNotFound => Self::DnsError { rcode: None, info_code: None },
            ExchangeError::DestinationNotFound => Self::DestinationNotFound,
            ExchangeError::DestinationUnavailable => Self::DestinationUnavailable,
            ExchangeError::DestinationIpProhibited => Self::DestinationIpProhibited,
            ExchangeError::DestinationIpUnroutable => Self::DestinationIpUnroutable,
            ExchangeError::ConnectionRefused => Self::ConnectionRefused,
            ExchangeError::ConnectionTerminated => Self::ConnectionTerminated,
            ExchangeError::ConnectionTimeout => Self::ConnectionTimeout,
            ExchangeError::ConnectionReadTimeout => Self::ConnectionReadTimeout,
            ExchangeError::ConnectionLimitReached => Self::ConnectionLimitReached,
            ExchangeError::TlsProtocolError => Self::TlsProtocolError,
            ExchangeError::TlsCertificateError => Self::TlsCertificateError,
            ExchangeError::TlsAlertReceived(id) => Self::TlsAlertReceived {
                alert_id: Some(id),
                alert_message: Some(format!("{:?}", rustls::AlertDescription::from(id))),
            },
            ExchangeError::ResponseIncomplete => Self::HttpResponseIncomplete,
            ExchangeError::ResponseHeaderSectionSize(cap) => Self::HttpResponseHeaderSectionSize(cap),
            ExchangeError::ResponseBodySize(cap) => Self::HttpResponseBodySize(cap),
            ExchangeError::ResponseTransferCoding => Self::HttpResponseTransferCoding(None),
            ExchangeError::ResponseContentCoding => Self::HttpResponseContentCoding(None),
            ExchangeError::PartialResponse => Self::HttpResponseContentCoding(Some("partial".to_owned())),
            ExchangeError::ResponseCharset => Self::HttpResponseContentCoding(Some("charset".to_owned())),
            ExchangeError::ResponseTimeout => Self::HttpResponseTimeout,
            ExchangeError::UpgradeFailed => Self::HttpUpgradeFailed,
            ExchangeError::ProtocolError => Self::HttpProtocolError,
            ExchangeError::Configuration => Self::ConfigurationError,
            ExchangeError::Internal => Self::InternalError(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)], length: Option<u64>) -> RequestHead {
        let field = |(name, value): &(&str, &str)| ((*name).to_owned(), BytePiece(Bytes::from(value.to_string())));
        RequestHead {
            method: "POST".to_owned(),
            uri: "http://example.test/".to_owned(),
            fields: HeaderFields(fields.iter().map(field).collect()),
            length,
            connect_timeout: None,
            first_byte_timeout: None,
            between_bytes_timeout: None,
        }
    }

    #[test]
    fn malformed_heads_are_refused() {
        assert!(head(&[("a", "b"), ("content-length", "3")], Some(3)).into_request().is_ok());
        for (fields, length) in [
            (&[("content-length", "3"), ("content-length", "3")][..], None),
            (&[("content-length", "+3")], None),
            (&[("content-length", "3")], Some(4)),
            (&[("a b", "c")], None),
            (&[("a", "b\r\nc: d")], None),
            (&[("", "b")], None),
        ] {
            assert!(head(fields, length).into_request().is_err(), "{fields:?} {length:?}");
        }
        for (method, uri) in [("G T", "http://x/"), ("", "http://x/"), ("GET", "http://x y/"), ("GET", "")] {
            let (method, uri) = (method.to_owned(), uri.to_owned());
            assert!(RequestHead { method, uri, ..head(&[], None) }.into_request().is_err());
        }
    }

    #[test]
    fn errors_keep_their_meaning_and_lose_the_text_of_others() {
        let sent = |error: Error| format!("{:?}", Error::from(ExchangeError::from(error)));
        for error in [
            || Error::HttpRequestDenied,
            || Error::HttpRequestBodySize(Some(7)),
            || Error::DnsError { rcode: None, info_code: None },
            || Error::HttpResponseContentCoding(Some("charset".to_owned())),
            || Error::HttpResponseContentCoding(None),
            || Error::TlsAlertReceived { alert_id: Some(42), alert_message: Some("BadCertificate".to_owned()) },
            || Error::ConnectionReadTimeout,
        ] {
            assert_eq!(sent(error()), format!("{:?}", error()));
        }
        let text = || "text of the upstream".to_owned();
        for error in [
            Error::InternalError(Some(text())),
            Error::HttpResponseTransferCoding(Some(text())),
            Error::HttpResponseContentCoding(Some(text())),
            Error::DnsError { rcode: Some(text()), info_code: None },
            Error::TlsAlertReceived { alert_id: Some(42), alert_message: Some(text()) },
        ] {
            assert!(!sent(error).contains("upstream"));
        }
    }
}
