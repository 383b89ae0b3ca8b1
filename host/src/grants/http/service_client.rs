//! The HTTP client for requests of belljar itself: to key sets, metadata and introspection of token issuers, and to the
//! receiver of traces.
//!
//! The rules for connections are those of a grant: every address is checked after the DNS lookup, addresses that are
//! not public must be named, redirects are not followed. Size and time of a response are bounded. No connection is used
//! twice.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT,
};
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use ipnet::IpNet;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi_http::Error;

use super::client_connection::exchange;
use super::connect::{ConnectError, connect};
use super::origin_grant::OriginGrant;
use super::service_url::ServiceUrl;
use crate::grants::network::{Network, Resolver, ResolverError};
use crate::model::bounds::MAX_SERVICE_RESPONSE;

/// The media type of a form.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Sends requests of belljar itself.
pub struct ServiceClient {
    network: Arc<Network>,
    /// Made for the first request: a client is made before the tokio runtime, and a resolver needs one.
    resolver: OnceCell<Resolver>,
}

/// One request.
pub struct ServiceRequest<'a> {
    /// The URL.
    pub url: &'a ServiceUrl,
    /// The networks that may be connected to although they are not public.
    pub networks: &'a [IpNet],
    /// The body of a POST request, and its media type. `None`: a GET request.
    pub body: Option<(Bytes, &'static str)>,
    /// The header `Authorization`.
    pub authorization: Option<HeaderValue>,
    /// The end of the time for the whole exchange.
    pub deadline: Instant,
}

/// A response.
#[derive(Debug)]
pub struct ServiceResponse {
    /// The status.
    pub status: StatusCode,
    /// How long the response may be cached, if it says so. Zero: not at all.
    pub max_age: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no response. Contains nothing that the service sent.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The host has no public address, and the configuration names none of its addresses.
    #[error(
        "its host has the address {0}, which is not public; if that is right, name it:  networks = [\"{0}\"]  for this issuer"
    )]
    Prohibited(IpAddr),
    /// belljar itself listens on the address.
    #[error("belljar itself listens there")]
    Own,
    /// The response redirects to another URL.
    #[error("the response is a redirect, and belljar follows none; write the final URL")]
    Redirect,
    /// The response is too large.
    #[error("the response has more than {} bytes", MAX_SERVICE_RESPONSE.get())]
    TooLarge,
    /// The response did not arrive in time.
    #[error("the response did not arrive in time")]
    TimedOut,
    /// Names cannot be resolved.
    #[error("{0}")]
    Resolver(#[source] Box<ResolverError>),
    /// The connection or the exchange failed.
    #[error("{0}")]
    Failed(Error),
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl ServiceClient {
    /// A client with a DNS cache of its own. Needs no tokio runtime.
    pub fn new(network: Arc<Network>) -> Self {
        Self { network, resolver: OnceCell::new() }
    }

    /// Sends a request and receives its response.
    ///
    /// # Errors
    /// If there is no response, or one that is not allowed.
    pub async fn send(&self, request: ServiceRequest<'_>) -> Result<ServiceResponse, ServiceError> {
        let ServiceRequest { url, networks, body, authorization, deadline } = request;
        let grant = OriginGrant::own(url.origin.clone(), networks, &self.network);
        let resolver = self.resolver.get_or_try_init(async || self.network.resolver()).await;
        let resolver = resolver.map_err(|why| ServiceError::Resolver(Box::new(why)))?;
        let connection = connect(&self.network, resolver, &grant, &url.origin, deadline).await;
        let connection = connection.map_err(|error| match error {
            ConnectError::Prohibited(address) => ServiceError::Prohibited(address),
            ConnectError::Own => ServiceError::Own,
            ConnectError::Failed(error) => error.into(),
        })?;
        let request = outgoing(url, body, authorization, connection.1)?;
        let (response, driver) = exchange(connection, request, deadline).await?;
        let (parts, body) = response.into_parts();
        if parts.status.is_redirection() {
            return Err(ServiceError::Redirect);
        }
        let body = Box::pin(read(body));
        let mut driver = Box::into_pin(driver);
        let read = async {
            // The driver delivers the body. It may end before the body is read.
            match futures_util::future::select(body, &mut driver).await {
                futures_util::future::Either::Left((body, _)) => body,
                futures_util::future::Either::Right((_, body)) => body.await,
            }
        };
        let body = timeout_at(deadline, read).await.map_err(|_| ServiceError::TimedOut)??;
        Ok(ServiceResponse { status: parts.status, max_age: max_age(&parts.headers), body })
    }
}

/// Builds the request.
fn outgoing(
    url: &ServiceUrl,
    body: Option<(Bytes, &'static str)>,
    authorization: Option<HeaderValue>,
    is_h2: bool,
) -> Result<Request<Full<Bytes>>, Error> {
    let path = url.path_and_query();
    let uri = match is_h2 {
        true => Uri::builder()
            .scheme(url.origin.scheme.as_str())
            .authority(url.origin.authority())
            .path_and_query(path)
            .build(),
        false => Uri::builder().path_and_query(path).build(),
    };
    let mut request = Request::new(Full::new(body.as_ref().map(|(body, _)| body.clone()).unwrap_or_default()));
    *request.uri_mut() = uri.map_err(|_| Error::HttpRequestUriInvalid)?;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("belljar/", env!("CARGO_PKG_VERSION"))));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/jwk-set+json;q=0.9"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if !is_h2 {
        let host = HeaderValue::try_from(url.origin.authority()).map_err(|_| Error::HttpRequestUriInvalid)?;
        headers.insert(HOST, host);
    }
    if let Some((_, kind)) = body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some(authorization) = authorization {
        headers.insert(AUTHORIZATION, authorization);
    }
    if body.is_some() {
        *request.method_mut() = Method::POST;
    }
    *request.version_mut() = if is_h2 { Version::HTTP_2 } else { Version::HTTP_11 };
    Ok(request)
}

/// Receives a body, up to [`MAX_SERVICE_RESPONSE`].
async fn read(mut body: Incoming) -> Result<Vec<u8>, ServiceError> {
    let most = MAX_SERVICE_RESPONSE.get();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(Error::from)?;
        let Some(piece) = frame.data_ref() else { continue };
        if all.len().saturating_add(piece.len()) > most {
            return Err(ServiceError::TooLarge);
        }
        all.extend_from_slice(piece);
    }
    Ok(all)
}

/// The `max-age` of `Cache-Control` (RFC 9111, 5.2.2). `no-store` and `no-cache` are zero.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> =
        values.flat_map(|value| value.split(',')).map(|directive| directive.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| directive == "no-store" || directive.starts_with("no-cache")) {
        return Some(Duration::ZERO);
    }
    let seconds = directives.iter().find_map(|directive| directive.strip_prefix("max-age="))?;
    seconds.trim_matches('"').parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_response() {
        for (value, age) in [
            ("max-age=60", Some(60)),
            ("public, MAX-AGE=\"3600\"", Some(3600)),
            ("no-store", Some(0)),
            ("max-age=60, no-cache", Some(0)),
            ("private", None),
            ("max-age=-1", None),
            ("max-age=99999999999999999999999", None),
        ] {
            let headers = HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_static(value))]);
            assert_eq!(max_age(&headers), age.map(Duration::from_secs), "{value}");
        }
        assert_eq!(max_age(&HeaderMap::new()), None);
    }
}
