//! Requests to the endpoints of an authorization server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::config::OAuthSettings;
use super::endpoints::{self, ClientProof, EndpointError, Endpoints};
use super::response::{self, GrantedTokens};
use super::token_error::AccessTokenError;
use crate::grants::http::service_client::{FORM, ServiceClient, ServiceRequest};
use crate::grants::http::service_url::ServiceUrl;
use crate::grants::http::wiped;
use crate::grants::network::Network;
use crate::model::reference::NOT_UNRESERVED;

/// How long the metadata of a server are used before they are fetched again.
const METADATA_AGE: Duration = Duration::from_secs(3600);

/// An authorization server, as the client of one grant sees it.
pub struct TokenServer {
    pub(super) settings: Arc<OAuthSettings>,
    client: ServiceClient,
    endpoints: Mutex<Option<(Endpoints, Instant)>>,
}

impl TokenServer {
    /// The server that `settings` name. Needs no tokio runtime.
    pub fn new(settings: Arc<OAuthSettings>, network: Arc<Network>) -> Self {
        Self { settings, client: ServiceClient::new(network), endpoints: Mutex::default() }
    }

    /// The endpoints of the server.
    pub(super) async fn endpoints(&self, deadline: Instant) -> Result<Endpoints, EndpointError> {
        let known = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((endpoints, since)) = known
            && since.elapsed() < METADATA_AGE
        {
            return Ok(endpoints);
        }
        let found = endpoints::find(&self.client, &self.settings, deadline).await?;
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = Some((found.clone(), Instant::now()));
        Ok(found)
    }

    /// Tokens for the client itself (RFC 6749, 4.4).
    pub(super) async fn client_credentials(&self, deadline: Instant) -> Result<GrantedTokens, AccessTokenError> {
        let mut form = vec![("grant_type", "client_credentials")];
        let scope = self.settings.scopes.join(" ");
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        self.tokens(&form, deadline).await
    }

    /// Tokens for a refresh token (RFC 6749, 6).
    pub(super) async fn refresh(&self, token: &str, deadline: Instant) -> Result<GrantedTokens, AccessTokenError> {
        self.tokens(&[("grant_type", "refresh_token"), ("refresh_token", token)], deadline).await
    }

    /// Tokens from the token endpoint.
    pub(super) async fn tokens(
        &self,
        form: &[(&str, &str)],
        deadline: Instant,
    ) -> Result<GrantedTokens, AccessTokenError> {
        let endpoints = self.endpoints(deadline).await?;
        let asked = self.ask(&endpoints.token, endpoints.proof, form, deadline).await;
        let tokens = asked.and_then(|object| {
            response::tokens(&object).map_err(|error| AccessTokenError::Malformed(endpoints.token.clone(), error))
        });
        if matches!(tokens, Err(AccessTokenError::Unreachable(..) | AccessTokenError::Status(..))) {
            // The server may have moved.
            self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        tokens
    }

    /// Posts a form, with the proof of the client's identity. The object of a response with the status 200.
    pub(super) async fn ask(
        &self,
        url: &ServiceUrl,
        proof: ClientProof,
        form: &[(&str, &str)],
        deadline: Instant,
    ) -> Result<Map<String, Value>, AccessTokenError> {
        let OAuthSettings { client, password, networks, .. } = &*self.settings;
        let password = password.as_ref().map_or("", |password| password.as_str());
        let own: &[(&str, &str)] = match proof {
            ClientProof::Basic => &[],
            ClientProof::Post => &[("client_id", client), ("client_secret", password)],
            ClientProof::Nothing => &[("client_id", client)],
        };
        let authorization = if proof == ClientProof::Basic { basic(client, password) } else { None };
        let form = Some(encoded(form.iter().chain(own)));
        let request = ServiceRequest { url, networks, body: form.map(|form| (form, FORM)), authorization, deadline };
        let response = self.client.send(request).await;
        let response = response.map_err(|error| AccessTokenError::Unreachable(url.clone(), Box::new(error)))?;
        let body = Zeroizing::new(response.body);
        let object = response::object(&body);
        // Some servers send errors with the status 200.
        if let Some(code) = object.as_ref().ok().and_then(response::error_code) {
            return Err(AccessTokenError::Refused(code));
        }
        if response.status != StatusCode::OK {
            return Err(AccessTokenError::Status(url.clone(), response.status.as_u16()));
        }
        object.map_err(|error| AccessTokenError::Malformed(url.clone(), error))
    }
}

/// A form (RFC 6749, appendix B).
fn encoded<'f>(pairs: impl Iterator<Item = &'f (&'f str, &'f str)>) -> Bytes {
    let mut form = String::new();
    for (name, value) in pairs {
        if !form.is_empty() {
            form.push('&');
        }
        form.extend([name, "="]);
        form.extend(utf8_percent_encode(value, NOT_UNRESERVED));
    }
    Bytes::from(form)
}

/// The header `Authorization` of a client with a password (RFC 6749, 2.3.1).
fn basic(client: &str, password: &str) -> Option<HeaderValue> {
    let [user, password] = [client, password].map(|text| utf8_percent_encode(text, NOT_UNRESERVED));
    let both = Zeroizing::new(format!("{user}:{password}"));
    let mut value = wiped::header_value(format!("Basic {}", STANDARD.encode(both.as_bytes())))?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_passwords_are_encoded() {
        let form = encoded([("scope", "a b"), ("x", "é&=+")].iter());
        assert_eq!(&form[..], b"scope=a%20b&x=%C3%A9%26%3D%2B");
        let header = basic("client:1", "p:w d");
        assert_eq!(header.unwrap().as_bytes(), format!("Basic {}", STANDARD.encode("client%3A1:p%3Aw%20d")).as_bytes());
    }
}
