//! The question of a transport: whose credential is this?

use std::time::SystemTime;

use futures_util::future::BoxFuture;

use crate::policy::Principal;

/// Checks credentials.
pub trait Credentials: Send + Sync {
    /// The principal of a credential that is known already: of an API key, or of a token that was verified a short time
    /// ago. Looks into memory only. `None`: [`Credentials::check`] decides.
    fn find_known(&self, credential: &str, at: SystemTime) -> Option<Principal>;

    /// The principal whose credential this is, at the time `at`. `credential` is the text after `Bearer `.
    fn check<'a>(&'a self, credential: &'a str, at: SystemTime) -> BoxFuture<'a, Result<Principal, AuthError>>;
}

/// Why a credential is refused. Its text goes to the client, so it contains nothing of the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The credential is no valid one. The text says why, in the words of `error_description` (RFC 6750, section 3).
    #[error("{0}")]
    Invalid(&'static str),
    /// The credential is genuine, but it was revoked, has expired, or is not yet valid. So nobody guessed it. The text is as
    /// for `Invalid`.
    #[error("{0}")]
    Lapsed(&'static str),
    /// The credential cannot be checked now. The same request may succeed later.
    #[error("the credential cannot be checked now; try again later")]
    Unavailable,
}
