//! Credentials of HTTP requests: API keys and access tokens. A valid one becomes a [`Principal`](crate::policy::Principal).
//!
//! A transport takes the credential from the request and asks [`Credentials`]. Nothing else looks at credentials, and no
//! credential gets further than this module.

pub mod api_key;
pub mod key_entry;
pub mod key_store;
pub mod keys_file;

mod all_credentials;
mod checks;
mod claims;
mod credentials;
mod discovery;
mod introspection;
mod issuer_keys;
mod key_set;
mod signature;
mod signed_token;
mod token_error;
mod token_verifier;
mod verified_tokens;

pub use all_credentials::AllCredentials;
pub use credentials::{AuthError, Credentials};
pub use key_set::KeySetError;
pub use token_error::TokenError;
pub use token_verifier::{TokenVerifier, TokenVerifierError, TokenVerifierInput, fingerprint};
