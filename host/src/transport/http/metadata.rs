//! The metadata of the protected resource (RFC 9728): tells clients which issuers give out tokens for this server.

use axum::body::Body;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};

use super::cors;
use super::front_door::{Advertised, Authentication};
use super::reply::{json, text};
use crate::config::serve::{METADATA_PATH, PublicUrl};
use crate::transport::http::names::PATH;

/// Clients may keep the metadata for an hour.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("max-age=3600");

/// The metadata, as JSON.
#[derive(serde::Serialize)]
struct Metadata<'a> {
    resource: String,
    authorization_servers: &'a [String],
    /// Absent if there are none (RFC 9728, section 3.2).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// True for the paths of the metadata: of the whole server, of belljar's own path, and of the path in the public URL.
pub(super) fn is_metadata(path: &str, url: Option<&PublicUrl>) -> bool {
    match path.strip_prefix(METADATA_PATH) {
        None => false,
        Some(rest) => rest.is_empty() || rest == PATH || url.is_some_and(|url| rest == url.path()),
    }
}

/// The answer to a request for the metadata. Any web page may read it: it is the same for everyone, without
/// authentication.
pub(super) fn answer(head: &Parts, url: Option<&PublicUrl>, by: Option<&Authentication>) -> Response<Body> {
    let mut response = match (&head.method, url, by.map(|by| by.advertised.load())) {
        _ if cors::is_preflight(head) => {
            cors::preflight(HeaderValue::from_static("GET"), HeaderValue::from_static("mcp-protocol-version, accept"))
        }
        (&Method::GET, Some(url), Some(advertised)) if !advertised.issuers.is_empty() => found(url, &advertised),
        (&Method::GET, ..) => {
            text(StatusCode::NOT_FOUND, "there is nothing here: this server has no issuers of tokens\n")
        }
        _ => {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "expected the method GET\n");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            response
        }
    };
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

fn found(url: &PublicUrl, advertised: &Advertised) -> Response<Body> {
    let metadata = Metadata {
        resource: url.to_string(),
        authorization_servers: &advertised.issuers,
        scopes_supported: advertised.scopes(),
        bearer_methods_supported: ["header"],
        resource_name: "belljar",
    };
    // A struct of strings always serializes.
    let mut response = json(StatusCode::OK, Body::from(serde_json::to_vec(&metadata).unwrap_or_default()));
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE_CONTROL);
    response
}
