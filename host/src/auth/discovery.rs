//! The metadata of an issuer, which say where its keys are (RFC 8414, OpenID Connect Discovery).

use serde_json::Value;
use tokio::time::Instant;

use super::checks::is_met;
use crate::config::IssuerConfig;
use crate::grants::http::service_client::{ServiceClient, ServiceError, ServiceRequest};
use crate::grants::http::service_metadata::places;
use crate::grants::http::service_url::{ServiceUrl, ServiceUrlError};
use crate::grants::network::host::Host;
use crate::model::strict_json;

/// Why the metadata of an issuer do not lead to its keys. Contains nothing that the issuer sent, except a checked URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiscoveryError {
    /// None of the places has metadata.
    #[error("it has no metadata; name its key set:  jwks = \"URL\"")]
    Absent,
    /// The metadata cannot be fetched.
    #[error("its metadata at \"{0}\" cannot be fetched: {1}")]
    Unreachable(ServiceUrl, #[source] Box<ServiceError>),
    /// The server answers with another status.
    #[error("its metadata at \"{0}\" cannot be fetched: the status is {1}")]
    Status(ServiceUrl, u16),
    /// The response is not metadata.
    #[error("its metadata at \"{0}\" are not a JSON object with \"issuer\" and \"jwks_uri\"")]
    Malformed(ServiceUrl),
    /// The metadata are those of another issuer.
    #[error("its metadata at \"{0}\" are those of another issuer; write  issuer  exactly as in them")]
    OtherIssuer(ServiceUrl),
    /// The URL of the key set is not one that belljar asks.
    #[error("the \"jwks_uri\" of its metadata cannot be used: {0}; name the key set:  jwks = \"URL\"")]
    KeySetUrl(#[from] ServiceUrlError),
    /// The key set is on a private address of another origin.
    #[error(
        "the \"jwks_uri\" of its metadata leads to \"{0}\", which is not public; if that is right, name it:  jwks = \"URL\""
    )]
    Private(ServiceUrl),
    /// The key set is on another port. The second wall opens the ports in the configuration only.
    #[error(
        "the \"jwks_uri\" of its metadata leads to \"{0}\", another port; if that is right, name it:  jwks = \"{0}\""
    )]
    Port(ServiceUrl),
}

/// Finds the URL of an issuer's key set.
///
/// # Errors
/// If the issuer has no metadata, or they cannot be used. If no place has metadata, names the first place whose answer
/// was neither metadata nor "not found": some servers answer every path with a page.
pub(super) async fn key_set_url(
    client: &ServiceClient,
    issuer: &IssuerConfig,
    deadline: Instant,
) -> Result<ServiceUrl, DiscoveryError> {
    let mut first = None;
    for place in places(issuer.issuer.url()) {
        let request =
            ServiceRequest { url: &place, networks: &issuer.networks, body: None, authorization: None, deadline };
        let response = client.send(request).await;
        let failed = match response {
            Err(error @ (ServiceError::Redirect | ServiceError::TooLarge)) => {
                DiscoveryError::Unreachable(place, Box::new(error))
            }
            Err(error) => return Err(DiscoveryError::Unreachable(place, Box::new(error))),
            Ok(response) => match response.status.as_u16() {
                200 => match read(issuer, place, &response.body) {
                    Err(malformed @ DiscoveryError::Malformed(_)) => malformed,
                    decided => return decided,
                },
                400..=499 => continue,
                other => DiscoveryError::Status(place, other),
            },
        };
        first.get_or_insert(failed);
    }
    Err(first.unwrap_or(DiscoveryError::Absent))
}

/// The URL of the key set in metadata from `place`.
fn read(issuer: &IssuerConfig, place: ServiceUrl, body: &[u8]) -> Result<ServiceUrl, DiscoveryError> {
    let metadata = strict_json::parse_object(body).ok();
    let text = |name: &str| metadata.as_ref().and_then(|metadata| metadata.get(name)).and_then(Value::as_str);
    let (Some(own), Some(keys)) = (text("issuer"), text("jwks_uri")) else {
        return Err(DiscoveryError::Malformed(place));
    };
    // RFC 8414, 3.3: otherwise one issuer could name the keys of another.
    if !is_met(own == issuer.issuer.as_str()) {
        return Err(DiscoveryError::OtherIssuer(place));
    }
    let keys: ServiceUrl = keys.parse()?;
    let origin = &issuer.issuer.url().origin;
    // The operator named the issuer's own host. Any other private one could be a service that trusts this machine.
    let is_named = |host: &Host| matches!(host, Host::Ip(ip) if issuer.networks.iter().any(|net| net.contains(ip)));
    let is_allowed = keys.origin == *origin || !keys.names_private_host() || is_named(&keys.origin.host);
    if !is_met(is_allowed) {
        return Err(DiscoveryError::Private(keys));
    }
    if !is_met(keys.origin.port == origin.port) {
        return Err(DiscoveryError::Port(keys));
    }
    Ok(keys)
}
