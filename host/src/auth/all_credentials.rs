//! All credentials that the configuration accepts: API keys and access tokens.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;

use super::api_key;
use super::credentials::{AuthError, Credentials};
use super::key_store::CurrentKeys;
use super::token_verifier::TokenVerifier;
use crate::policy::Principal;

/// All credentials that are accepted.
pub struct AllCredentials {
    keys: CurrentKeys,
    tokens: ArcSwap<TokenVerifier>,
}

impl AllCredentials {
    /// These keys, and the tokens that `tokens` accepts.
    pub fn new(keys: CurrentKeys, tokens: TokenVerifier) -> Self {
        Self { keys, tokens: ArcSwap::from_pointee(tokens) }
    }

    /// The verifier of tokens in force.
    pub fn tokens(&self) -> Arc<TokenVerifier> {
        self.tokens.load_full()
    }

    /// Puts another verifier of tokens in force.
    pub fn set_tokens(&self, tokens: TokenVerifier) {
        self.tokens.store(Arc::new(tokens));
    }
}

impl Credentials for AllCredentials {
    fn find_known(&self, credential: &str, at: SystemTime) -> Option<Principal> {
        match credential.starts_with(api_key::PREFIX) {
            true => self.keys.find_known(credential, at),
            false => self.tokens.load().find_known(credential, at),
        }
    }

    /// A credential with the prefix of API keys is a key and nothing else. Others are tokens, if tokens are accepted.
    fn check<'a>(&'a self, credential: &'a str, at: SystemTime) -> BoxFuture<'a, Result<Principal, AuthError>> {
        let tokens = self.tokens.load_full();
        if credential.starts_with(api_key::PREFIX) || !tokens.has_issuers() {
            return self.keys.check(credential, at);
        }
        Box::pin(async move { tokens.check(credential, at).await })
    }
}
