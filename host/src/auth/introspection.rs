//! Introspection of opaque tokens (RFC 7662): belljar asks the issuer about a token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use percent_encoding::utf8_percent_encode;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

use super::checks::is_met;
use super::claims::{AcceptedClaims, ClaimRules};
use super::token_error::TokenError;
use crate::config::{IntrospectionConfig, IssuerConfig};
use crate::grants::http::service_client::{FORM, ServiceClient, ServiceError, ServiceRequest};
use crate::model::reference::NOT_UNRESERVED;
use crate::model::strict_json;

/// The time for one question. A request waits for its turn for as long.
const ASK_TIME: Duration = Duration::from_secs(10);

/// The most questions at once. Anyone can send unknown tokens; the transport bounds how many of these are of one address.
const MAX_QUESTIONS: usize = 16;

/// How long a positive answer is remembered. A revoked token is accepted for that long.
pub(super) const ANSWER_AGE: Duration = Duration::from_secs(60);

/// Asks one issuer.
pub(super) struct Introspection {
    issuer: IssuerConfig,
    endpoint: IntrospectionConfig,
    audience: String,
    client: Arc<ServiceClient>,
    authorization: HeaderValue,
    questions: Semaphore,
    is_failing: AtomicBool,
}

/// Why the issuer gave no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Unreachable(#[from] ServiceError),
    #[error("the status is 401; check  client-id  and  client-secret")]
    NotAuthorized,
    #[error("the status is {0}")]
    Status(u16),
    #[error("the response is not a JSON object with \"active\"")]
    Malformed,
}

impl Introspection {
    /// Prepares questions to `endpoint` of `issuer`. `secret` is belljar's password there.
    pub(super) fn new(
        issuer: IssuerConfig,
        endpoint: IntrospectionConfig,
        audience: String,
        secret: &Zeroizing<String>,
        client: Arc<ServiceClient>,
    ) -> Self {
        // RFC 6749, 2.3.1.
        let [user, password] = [&endpoint.client, &**secret].map(|text| utf8_percent_encode(text, NOT_UNRESERVED));
        let both = Zeroizing::new(format!("{user}:{password}"));
        let basic = Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes())));
        // Base64 has no character that headers do not have.
        let mut authorization = HeaderValue::from_str(&basic).unwrap_or(HeaderValue::from_static("Basic"));
        authorization.set_sensitive(true);
        let (questions, is_failing) = (Semaphore::new(MAX_QUESTIONS), AtomicBool::new(false));
        Self { issuer, endpoint, audience, client, authorization, questions, is_failing }
    }

    /// The claims of an opaque token, at the time `at`.
    ///
    /// # Errors
    /// If the token is not active, or not for belljar, or the issuer does not answer.
    pub(super) async fn ask(&self, token: &str, at: SystemTime) -> Result<AcceptedClaims, TokenError> {
        // RFC 6750, 2.1.
        let is_of_token = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
        if token.is_empty() || !token.bytes().all(is_of_token) {
            return Err(TokenError::Malformed);
        }
        let slot = timeout(ASK_TIME, self.questions.acquire()).await;
        let _slot = slot.ok().and_then(Result::ok).ok_or(TokenError::Unavailable)?;
        let answer = self.send(token, Instant::now() + ASK_TIME).await;
        let was_failing = self.is_failing.swap(answer.is_err(), Ordering::Relaxed);
        let answer = answer.map_err(|error| {
            // Logged once, not at every try.
            if !was_failing {
                let (issuer, url) = (self.issuer.issuer.as_str(), &self.endpoint.url);
                tracing::warn!("the issuer \"{issuer}\": its introspection at \"{url}\" does not answer: {error}");
            }
            TokenError::Unavailable
        })?;
        if !is_met(answer.get("active") == Some(&Value::Bool(true))) {
            return Err(TokenError::Inactive);
        }
        let is_bearer = |kind: &Value| kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
        if !is_met(answer.get("token_type").is_none_or(is_bearer)) {
            return Err(TokenError::Bound);
        }
        let rules = ClaimRules {
            issuer: self.issuer.issuer.as_str(),
            audience: &self.audience,
            groups: &self.issuer.groups,
            is_answer: true,
        };
        rules.accept(&answer, at)
    }

    async fn send(&self, token: &str, deadline: Instant) -> Result<serde_json::Map<String, Value>, AskError> {
        let form = format!("token={}&token_type_hint=access_token", utf8_percent_encode(token, NOT_UNRESERVED));
        let request = ServiceRequest {
            url: &self.endpoint.url,
            networks: &self.issuer.networks,
            body: Some((Bytes::from(form), FORM)),
            authorization: Some(self.authorization.clone()),
            deadline,
        };
        let response = self.client.send(request).await?;
        match response.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(AskError::NotAuthorized),
            other => return Err(AskError::Status(other.as_u16())),
        }
        let answer = strict_json::parse_object(&response.body).map_err(|_| AskError::Malformed)?;
        if answer.get("active").is_some_and(Value::is_boolean) { Ok(answer) } else { Err(AskError::Malformed) }
    }
}
