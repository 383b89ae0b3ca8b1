//! CORS: lets the web pages that the operator names read answers, and no other page.
//!
//! A page of another origin gets none of these headers, so its browser hides the answer from it. Credentials of the
//! browser (cookies) are never allowed: a client sends its key or token itself.

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use super::names::single_value;
use crate::config::serve::PageOrigin;

/// The methods that clients use.
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");

/// The request headers that clients set.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, accept, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, last-event-id",
);

/// The response headers that clients read.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("www-authenticate, mcp-session-id, mcp-protocol-version, retry-after");

/// A browser asks again after this number of seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The header that a browser sends with a preflight.
static ASKS_FOR_METHOD: HeaderName = header::ACCESS_CONTROL_REQUEST_METHOD;

/// The pages that may use the endpoint.
pub(super) struct Pages(Vec<HeaderValue>);

impl Pages {
    pub(super) fn new(origins: &[PageOrigin]) -> Self {
        Self(origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok()).collect())
    }

    /// The origin of the page that sends a request, if it is one of the pages.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<&HeaderValue> {
        let given = single_value(headers, &header::ORIGIN)?;
        self.0.iter().find(|page| page.as_bytes() == given)
    }

    /// The answer to a preflight of one of the pages. `None` for any other request.
    pub(super) fn preflight(&self, head: &Parts) -> Option<Response<Body>> {
        self.origin(&head.headers)?;
        is_preflight(head).then(|| preflight(METHODS, REQUEST_HEADERS))
    }

    /// Lets the page with this origin read the response.
    pub(super) fn add_to(&self, response: &mut Response<Body>, origin: Option<HeaderValue>) {
        if self.0.is_empty() {
            return;
        }
        let headers = response.headers_mut();
        // A cache must not give the answer to one page to another one.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        }
    }
}

/// True if a browser asks whether it may send a request.
pub(super) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(&ASKS_FOR_METHOD)
}

/// The answer to a preflight. The origin is added to it later.
pub(super) fn preflight(methods: HeaderValue, headers: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let all = response.headers_mut();
    all.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    all.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, headers);
    all.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}
