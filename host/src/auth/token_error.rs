//! Why an access token is refused.

use super::credentials::AuthError;

/// Why an access token is refused. No text contains anything of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.description())]
pub enum TokenError {
    /// The token is too long, or not a signed token in its only spelling.
    Malformed,
    /// The algorithm is not one of the issuer's.
    Algorithm,
    /// The token is signed, but is no access token.
    Type,
    /// The issuer is not configured.
    Issuer,
    /// The issuer has no such key.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// The token is for another server.
    Audience,
    /// The token has expired.
    Expired,
    /// The token is not yet valid.
    NotYetValid,
    /// A claim is missing or malformed.
    Claims,
    /// Only the holder of a key may use the token (RFC 7800), and belljar cannot check that.
    Bound,
    /// The issuer does not know the token, or has revoked it.
    Inactive,
    /// The issuer cannot be reached, and the token cannot be checked without it.
    Unavailable,
}

impl TokenError {
    /// The `error_description` of the refusal (RFC 6750, section 3). Has only the characters that are
    /// allowed there.
    pub fn description(self) -> &'static str {
        match self {
            Self::Malformed => "the access token is malformed",
            Self::Algorithm => "the algorithm of the access token is not accepted",
            Self::Type => "the token is not an access token (typ at+jwt)",
            Self::Issuer => "the issuer of the access token is not accepted",
            Self::UnknownKey => "the key of the access token is unknown",
            Self::Signature => "the signature of the access token is wrong",
            Self::Audience => "the access token is for another audience",
            Self::Expired => "the access token has expired",
            Self::NotYetValid => "the access token is not yet valid",
            Self::Claims => "a claim of the access token is missing or malformed",
            Self::Bound => "the access token is bound to a key, and only bearer tokens are accepted",
            Self::Inactive => "the access token is unknown or revoked",
            Self::Unavailable => "the access token cannot be checked now; try again later",
        }
    }
}

impl From<TokenError> for AuthError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Unavailable => Self::Unavailable,
            // The signature was right.
            TokenError::Expired | TokenError::NotYetValid => Self::Lapsed(error.description()),
            other => Self::Invalid(other.description()),
        }
    }
}
