//! The endpoints of an authorization server: from the configuration, or from the server's metadata.

use ipnet::IpNet;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::checks::is_fine;
use super::config::OAuthSettings;
use crate::grants::http::service_client::{ServiceClient, ServiceError, ServiceRequest};
use crate::grants::http::service_metadata::places;
use crate::grants::http::service_url::{ServiceUrl, ServiceUrlError};
use crate::grants::network::host::Host;
use crate::model::strict_json;

/// How the client proves its identity (RFC 6749, 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientProof {
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
    /// It has no secret.
    Nothing,
}

/// The endpoints of a server.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    pub(super) token: ServiceUrl,
    pub(super) device: Option<ServiceUrl>,
    pub(super) proof: ClientProof,
}

/// Why the endpoints of a server cannot be found. Contains nothing that the server sent, except a checked URL.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// None of the places has metadata.
    #[error("the authorization server has no metadata")]
    Absent,
    /// The metadata cannot be fetched.
    #[error("the metadata of the authorization server at \"{0}\" cannot be fetched: {1}")]
    Unreachable(ServiceUrl, #[source] Box<ServiceError>),
    /// The server answers with another status.
    #[error("the metadata of the authorization server at \"{0}\" cannot be fetched: the status is {1}")]
    Status(ServiceUrl, u16),
    /// The response is not metadata.
    #[error("the metadata of the authorization server at \"{0}\" are not a JSON object with \"issuer\"")]
    Malformed(ServiceUrl),
    /// The metadata are those of another issuer.
    #[error("the metadata of the authorization server at \"{0}\" are those of another issuer")]
    OtherIssuer(ServiceUrl),
    /// The metadata lack an endpoint. Holds its name.
    #[error("the metadata of the authorization server name no \"{0}\"")]
    NoEndpoint(&'static str),
    /// The endpoint is not a URL that belljar asks. Holds its name.
    #[error("the \"{0}\" of the authorization server cannot be used: {1}")]
    Url(&'static str, #[source] ServiceUrlError),
    /// The endpoint is on a private address of another origin. Holds the key that names it.
    #[error("the authorization server names the endpoint \"{1}\", which is not public")]
    Private(&'static str, ServiceUrl),
    /// The endpoint is on a port that the configuration does not name. The second wall opens no other ports. Holds the key
    /// that names it.
    #[error("the authorization server names the endpoint \"{1}\", on a port that the configuration does not name")]
    Port(&'static str, ServiceUrl),
    /// The server takes no proof of identity that belljar can give.
    #[error("the authorization server takes neither \"client_secret_basic\" nor \"client_secret_post\"")]
    Proof,
}

/// The endpoints of the server that `settings` name.
///
/// # Errors
/// If the server has no usable metadata and the configuration does not name the endpoints.
pub(super) async fn find(
    client: &ServiceClient,
    settings: &OAuthSettings,
    deadline: Instant,
) -> Result<Endpoints, EndpointError> {
    let has_secret = settings.password.is_some();
    let named = settings.token_endpoint.clone();
    let Some((issuer, url)) = &settings.issuer else {
        let token = named.ok_or(EndpointError::NoEndpoint("token_endpoint"))?;
        let proof = if has_secret { ClientProof::Basic } else { ClientProof::Nothing };
        return Ok(Endpoints { token, device: settings.device_endpoint.clone(), proof });
    };
    let metadata = fetch(client, (issuer, url), &settings.networks, deadline).await?;
    read(settings, &metadata)
}

/// Fetches the metadata of `issuer`. If no place has them, names the first place whose answer was neither metadata nor
/// "not found": some servers answer every path with a page.
async fn fetch(
    client: &ServiceClient,
    (issuer, url): (&str, &ServiceUrl),
    networks: &[IpNet],
    deadline: Instant,
) -> Result<Map<String, Value>, EndpointError> {
    let mut first = None;
    for place in places(url) {
        let request = ServiceRequest { url: &place, networks, body: None, authorization: None, deadline };
        let failed = match client.send(request).await {
            Err(error @ (ServiceError::Redirect | ServiceError::TooLarge)) => {
                EndpointError::Unreachable(place, Box::new(error))
            }
            Err(error) => return Err(EndpointError::Unreachable(place, Box::new(error))),
            Ok(response) => match response.status.as_u16() {
                200 => match strict_json::parse_object(&response.body) {
                    // RFC 8414, 3.3: otherwise one server could name the endpoints of another, and get its secret.
                    Ok(metadata) => match metadata.get("issuer").and_then(Value::as_str) {
                        Some(own) if is_fine(own == issuer) => return Ok(metadata),
                        Some(_) => return Err(EndpointError::OtherIssuer(place)),
                        None => EndpointError::Malformed(place),
                    },
                    Err(_) => EndpointError::Malformed(place),
                },
                400..=499 => continue,
                other => EndpointError::Status(place, other),
            },
        };
        first.get_or_insert(failed);
    }
    Err(first.unwrap_or(EndpointError::Absent))
}

/// The endpoints in checked metadata. Those in the configuration take precedence.
fn read(settings: &OAuthSettings, metadata: &Map<String, Value>) -> Result<Endpoints, EndpointError> {
    let found = |name: &'static str, key: &'static str| {
        let Some(text) = metadata.get(name).and_then(Value::as_str) else { return Ok(None) };
        let url = text.parse().map_err(|error| EndpointError::Url(name, error))?;
        check(settings, key, url).map(Some)
    };
    let token = match &settings.token_endpoint {
        Some(named) => named.clone(),
        None => found("token_endpoint", "token-endpoint")?.ok_or(EndpointError::NoEndpoint("token_endpoint"))?,
    };
    let device = match &settings.device_endpoint {
        Some(named) => Some(named.clone()),
        None if settings.needs_login => found("device_authorization_endpoint", "device-endpoint")?,
        None => None,
    };
    let methods = metadata.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
    let takes = |name: &str| methods.is_some_and(|all| all.iter().any(|method| method == name));
    let proof = match settings.password {
        None => ClientProof::Nothing,
        Some(_) if methods.is_none() || takes("client_secret_basic") => ClientProof::Basic,
        Some(_) if takes("client_secret_post") => ClientProof::Post,
        Some(_) => return Err(EndpointError::Proof),
    };
    Ok(Endpoints { token, device, proof })
}

/// Checks an endpoint that metadata name: it gets belljar's secret.
fn check(settings: &OAuthSettings, key: &'static str, url: ServiceUrl) -> Result<ServiceUrl, EndpointError> {
    let Some((_, issuer)) = &settings.issuer else { return Ok(url) };
    // The operator named the issuer's own host. Any other private one could be a service that trusts this machine.
    let is_named = |host: &Host| matches!(host, Host::Ip(ip) if settings.networks.iter().any(|net| net.contains(ip)));
    let is_allowed = url.origin.host == issuer.origin.host || !url.names_private_host() || is_named(&url.origin.host);
    let named = [Some(issuer), settings.token_endpoint.as_ref(), settings.device_endpoint.as_ref()];
    let has_port = named.into_iter().flatten().any(|own| own.origin.port == url.origin.port);
    match () {
        () if !is_fine(is_allowed) => Err(EndpointError::Private(key, url)),
        () if !is_fine(has_port) => Err(EndpointError::Port(key, url)),
        () => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::http::oauth::config::OAuthConfig;
    use crate::grants::secrets::{Secret, Secrets};

    fn endpoints(table: &str, metadata: Value) -> Result<Endpoints, String> {
        let secret = Secret::new("s", zeroize::Zeroizing::new("a-long-secret".to_owned()));
        let secrets = Secrets::from_secrets([std::sync::Arc::new(secret.unwrap_or_else(|why| panic!("{why}")))]);
        let config: OAuthConfig = toml::from_str(table).unwrap_or_else(|why| panic!("{why}"));
        let settings = config.checked(&secrets).unwrap_or_else(|why| panic!("{why}"));
        let Value::Object(metadata) = metadata else { panic!("an object") };
        read(&settings, &metadata).map_err(|why| why.to_string())
    }

    const SECRET: &str = "issuer = 'https://a.example'\nclient = 'c'\nsecret = '${secret:s}'\n";
    const LOGIN: &str = "issuer = 'https://a.example'\nclient = 'c'\n";

    #[test]
    fn the_client_proves_its_identity_as_the_server_wants() {
        let token = "https://a.example/token";
        for (methods, proof) in [
            (Value::Null, Some(ClientProof::Basic)),
            (serde_json::json!(["client_secret_post", "client_secret_basic"]), Some(ClientProof::Basic)),
            (serde_json::json!(["private_key_jwt", "client_secret_post"]), Some(ClientProof::Post)),
            (serde_json::json!(["private_key_jwt"]), None),
        ] {
            let metadata =
                serde_json::json!({ "token_endpoint": token, "token_endpoint_auth_methods_supported": methods });
            assert_eq!(endpoints(SECRET, metadata).ok().map(|found| found.proof), proof, "{methods}");
        }
        let found =
            endpoints(LOGIN, serde_json::json!({ "token_endpoint": token })).unwrap_or_else(|why| panic!("{why}"));
        assert!(found.proof == ClientProof::Nothing && found.device.is_none());
    }

    #[test]
    fn an_endpoint_that_the_operator_would_not_expect_is_refused() {
        for (url, says) in [
            ("https://a.example/token", None),
            ("https://other.example/token", None),
            ("https://a.example:8443/token", Some("a port that the configuration does not name")),
            ("https://10.0.0.1/token", Some("not public")),
            ("http://127.0.0.1:443/token", Some("not public")),
            ("http://a.example/token", Some("not encrypted")),
            ("/token", Some("expected a URL")),
        ] {
            let read = endpoints(SECRET, serde_json::json!({ "token_endpoint": url }));
            match says {
                None => assert_eq!(read.map(|found| found.token.to_string()), Ok(url.to_owned())),
                Some(says) => assert!(read.as_ref().is_err_and(|why| why.contains(says)), "{url}: {read:?}"),
            }
        }
        let named = format!("{SECRET}token-endpoint = 'https://a.example:8443/t'");
        let read = endpoints(&named, serde_json::json!({ "token_endpoint": "https://evil.example:1/" }));
        assert_eq!(read.map(|found| found.token.to_string()), Ok("https://a.example:8443/t".to_owned()));
        assert!(endpoints(SECRET, serde_json::json!({})).is_err_and(|why| why.contains("no \"token_endpoint\"")));
    }
}
