//! Verifies access tokens: signed ones (RFC 9068) with the keys of their issuer, opaque ones by asking it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::checks::is_met;
use super::claims::{AcceptedClaims, ClaimRules};
use super::credentials::{AuthError, Credentials};
use super::introspection::{ANSWER_AGE, Introspection};
use super::issuer_keys::IssuerKeys;
use super::key_set::{KeySet, KeySetError};
use super::signed_token::{SignedToken, is_signed};
use super::token_error::TokenError;
use super::verified_tokens::{MAX_AGE, VerifiedTokens};
use crate::config::{AuthConfig, IssuerConfig, KeySetFiles, KeySetSource, TokenAlgorithm};
use crate::grants::http::service_client::ServiceClient;
use crate::grants::network::Network;
use crate::grants::secrets::{SecretError, SecretTemplate, Secrets};
use crate::model::bounds::MAX_TOKEN;
use crate::model::{Digest, text};
use crate::policy::{Evidence, Principal, authenticate};

/// Verifies the access tokens of all configured issuers.
pub struct TokenVerifier {
    issuers: Vec<Issuer>,
    introspection: Option<Introspection>,
    verified: VerifiedTokens,
}

/// One issuer.
struct Issuer {
    keys: Arc<IssuerKeys>,
    audience: String,
}

/// What a verifier is made from, beside the issuers.
pub struct TokenVerifierInput<'a> {
    /// The public URL of this server: the audience of issuers without one of their own.
    pub url: Option<&'a str>,
    /// The contents of the files with key sets.
    pub key_sets: &'a KeySetFiles,
    /// The operator's secrets.
    pub secrets: &'a Secrets,
    /// What connections need. `None`: no issuer is connected to.
    pub network: Option<&'a Arc<Network>>,
}

/// Why tokens cannot be verified with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum TokenVerifierError {
    /// It is not known for which audience the tokens are.
    #[error(
        "auth.issuers: \"{0}\": the audience of its tokens is unknown; set  url  in [serve], or  audience  for this issuer"
    )]
    NoAudience(String),
    /// The file with the keys was not read.
    #[error("auth.issuers: \"{issuer}\": the key set \"{}\" is not there", path.display())]
    NoKeySetFile {
        /// The issuer.
        issuer: String,
        /// The path.
        path: PathBuf,
    },
    /// The file with the keys cannot be used.
    #[error("auth.issuers: \"{issuer}\": the key set \"{}\" cannot be used: {error}", path.display())]
    KeySetFile {
        /// The issuer.
        issuer: String,
        /// The path.
        path: PathBuf,
        /// The reason.
        error: KeySetError,
    },
    /// belljar's password for introspection cannot be used.
    #[error("auth.issuers: \"{issuer}\": {error}")]
    Secret {
        /// The issuer.
        issuer: String,
        /// The reason.
        error: SecretError,
    },
    /// An issuer must be connected to, and the second wall was raised without a network.
    #[error("auth.issuers: belljar was started without connections to other hosts; restart it")]
    NoNetwork,
}

impl TokenVerifier {
    /// A verifier for the issuers of `config`. Connects to nothing. The fetched keys of `previous` are kept for issuers
    /// whose configuration is the same; verified tokens are forgotten.
    ///
    /// # Errors
    /// The first issuer that cannot be used.
    pub fn new(
        config: &AuthConfig,
        input: &TokenVerifierInput<'_>,
        previous: Option<&Self>,
    ) -> Result<Self, TokenVerifierError> {
        let client = input.network.map(|network| Arc::new(ServiceClient::new(Arc::clone(network))));
        let client = || client.clone().ok_or(TokenVerifierError::NoNetwork);
        let mut issuers = Vec::new();
        let mut introspection = None;
        for issuer in &config.issuers {
            let audience = audience(issuer, input.url)?;
            if let Some(endpoint) = &issuer.introspection {
                let failed = |error| TokenVerifierError::Secret { issuer: shown(issuer), error };
                let secret = SecretTemplate::of(&endpoint.secret).fill(input.secrets).map_err(failed)?.0;
                let endpoint = endpoint.clone();
                let own = Introspection::new(issuer.clone(), endpoint, audience.clone(), &secret, client()?);
                introspection = Some(own);
            }
            let keys = match &issuer.keys {
                KeySetSource::File(path) => IssuerKeys::fixed(issuer.clone(), read(issuer, path, input.key_sets)?),
                KeySetSource::Discover | KeySetSource::Url(_) => IssuerKeys::fetched(issuer.clone(), client()?),
            };
            let known = previous.iter().flat_map(|previous| &previous.issuers);
            let known = known.map(|known| &known.keys).find(|known| known.has_same_source(&keys));
            issuers.push(Issuer { keys: known.map_or_else(|| Arc::new(keys), Arc::clone), audience });
        }
        Ok(Self { issuers, introspection, verified: VerifiedTokens::new() })
    }

    /// True if any issuer's tokens are accepted.
    pub fn has_issuers(&self) -> bool {
        !self.issuers.is_empty()
    }

    /// The principal of an access token, at the time `at`.
    ///
    /// # Errors
    /// Why the token is refused.
    pub async fn verify(&self, token: &str, at: SystemTime) -> Result<Principal, TokenError> {
        if token.len() > MAX_TOKEN.get() {
            return Err(TokenError::Malformed);
        }
        let digest = Digest::of(token.as_bytes());
        if let Some(principal) = self.find_verified(&digest, at) {
            return Ok(principal);
        }
        let (AcceptedClaims { identity, expires }, keys, age) = match &self.introspection {
            Some(introspection) if !is_signed(token) => (introspection.ask(token, at).await?, None, ANSWER_AGE),
            _ => {
                let (claims, keys) = self.verify_signed(token, at).await?;
                (claims, Some(keys), MAX_AGE)
            }
        };
        let principal = authenticate(Evidence::Token(identity));
        self.verified.remember(digest, principal.clone(), keys, at, expires, age);
        Ok(principal)
    }

    /// The principal of a token that was verified a short time ago.
    fn find_verified(&self, digest: &Digest, at: SystemTime) -> Option<Principal> {
        let key_version = |issuer: usize| self.issuers.get(issuer).map_or(0, |issuer| issuer.keys.version());
        self.verified.find(digest, at, key_version)
    }

    /// Verifies a signed token. Returns its claims, the index of its issuer, and the version of the issuer's keys.
    async fn verify_signed(&self, token: &str, at: SystemTime) -> Result<(AcceptedClaims, (usize, u64)), TokenError> {
        let token = SignedToken::parse(token)?;
        let named = token.claims.get("iss").and_then(serde_json::Value::as_str);
        let mut issuers = self.issuers.iter().enumerate();
        let issuer = issuers.find(|(_, issuer)| is_met(Some(issuer.config().issuer.as_str()) == named));
        let (index, issuer) = issuer.ok_or(TokenError::Issuer)?;
        let config = issuer.config();
        let algorithm = config.algorithms.iter().find(|algorithm| algorithm.name() == token.header.alg);
        if !is_met(algorithm.is_some()) {
            return Err(TokenError::Algorithm);
        }
        if !is_met(has_type(token.header.typ.as_deref(), config.allows_plain_jwt)) {
            return Err(TokenError::Type);
        }
        let version = match algorithm {
            Some(algorithm) => issuer.check_signature(&token, *algorithm).await?,
            None => issuer.keys.version(),
        };
        let rules = ClaimRules {
            issuer: config.issuer.as_str(),
            audience: &issuer.audience,
            groups: &config.groups,
            is_answer: false,
        };
        Ok((rules.accept(&token.claims, at)?, (index, version)))
    }
}

impl Credentials for TokenVerifier {
    fn find_known(&self, credential: &str, at: SystemTime) -> Option<Principal> {
        if credential.len() > MAX_TOKEN.get() {
            return None;
        }
        self.find_verified(&Digest::of(credential.as_bytes()), at)
    }

    fn check<'a>(&'a self, credential: &'a str, at: SystemTime) -> BoxFuture<'a, Result<Principal, AuthError>> {
        Box::pin(async move { Ok(self.verify(credential, at).await?) })
    }
}

impl Issuer {
    fn config(&self) -> &IssuerConfig {
        self.keys.issuer()
    }

    /// Checks the signature. Returns the version of the keys.
    async fn check_signature(&self, token: &SignedToken<'_>, algorithm: TokenAlgorithm) -> Result<u64, TokenError> {
        let found = match self.keys.find(token.header.kid.as_deref(), algorithm).await {
            Err(_) if is_met(false) => return Ok(self.keys.version()),
            found => found?,
        };
        let verifies = found.keys.iter().any(|key| key.verifies(algorithm, token.message.as_bytes(), &token.signature));
        if is_met(verifies) { Ok(found.version) } else { Err(TokenError::Signature) }
    }
}

/// True if `typ` is the type of access tokens (RFC 9068, 2.1). With `allows_plain` also `JWT` or none. Other types are
/// other kinds of tokens, such as proofs and logouts, and never accepted (RFC 8725, 3.11).
fn has_type(typ: Option<&str>, allows_plain: bool) -> bool {
    let is = |typ: &str, known: [&str; 2]| known.iter().any(|known| typ.eq_ignore_ascii_case(known));
    match typ {
        Some(typ) => is(typ, ["at+jwt", "application/at+jwt"]) || (allows_plain && is(typ, ["JWT", "application/jwt"])),
        None => allows_plain,
    }
}

/// The audience of an issuer's tokens.
fn audience(issuer: &IssuerConfig, url: Option<&str>) -> Result<String, TokenVerifierError> {
    let audience = issuer.audience.as_deref().or(url);
    audience.map(str::to_owned).ok_or_else(|| TokenVerifierError::NoAudience(shown(issuer)))
}

/// Reads a key set from its file.
fn read(issuer: &IssuerConfig, path: &PathBuf, files: &KeySetFiles) -> Result<KeySet, TokenVerifierError> {
    let Some(text) = files.get(path) else {
        return Err(TokenVerifierError::NoKeySetFile { issuer: shown(issuer), path: path.clone() });
    };
    let failed = |error| TokenVerifierError::KeySetFile { issuer: shown(issuer), path: path.clone(), error };
    KeySet::parse(text.as_bytes()).map_err(failed)
}

/// The issuer, for messages.
fn shown(issuer: &IssuerConfig) -> String {
    text::excerpt(issuer.issuer.as_str(), 200)
}

/// The only trace of a credential in logs and records: the first eight hexadecimal digits of its SHA-256.
pub fn fingerprint(credential: &str) -> String {
    Digest::of(credential.as_bytes()).hex().chars().take(8).collect()
}

#[cfg(test)]
mod tests;
