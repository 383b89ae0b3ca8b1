//! Errors of the configuration of `http` grants, and of requests that cannot be parsed.

use http::HeaderName;

use super::oauth::config::OAuthProblem;
use super::origin::{OriginPattern, OriginPatternError};
use super::path::{GlobError, PathError};
use crate::grants::network::ResolverError;
use crate::grants::network::host::HostError;
use crate::grants::secrets::SecretError;

/// Why the `http` grants of a mount cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// One of the grants is malformed.
    #[error(transparent)]
    Grant(#[from] OriginGrantError),
    /// belljar cannot make a resolver.
    #[error(transparent)]
    Resolver(#[from] ResolverError),
}

/// Why the grant of an origin is malformed.
#[derive(Debug, thiserror::Error)]
pub enum OriginGrantError {
    /// The origin is malformed.
    #[error("origin = \"{written}\": {error}")]
    Origin {
        /// The configured origin, shortened for display.
        written: String,
        /// The problem of the origin.
        error: OriginPatternError,
    },
    /// The origin is fine, but another key is wrong.
    #[error("\"{pattern}\": {problem}")]
    In {
        /// The origin.
        pattern: OriginPattern,
        /// The problem.
        problem: Box<OriginGrantProblem>,
    },
}

/// The problem of a grant with a well-formed origin.
#[derive(Debug, thiserror::Error)]
pub enum OriginGrantProblem {
    /// One of the methods is not allowed.
    #[error("methods: {0}")]
    Method(#[from] MethodError),
    /// The list of methods is empty.
    #[error("methods is empty; remove it for GET and HEAD")]
    NoMethods,
    /// One of the paths is malformed.
    #[error("paths: {0}")]
    Path(#[from] GlobError),
    /// The list of paths is empty.
    #[error("paths is empty; remove it for every path")]
    NoPaths,
    /// The name of a header is malformed. Holds the name, shortened for display.
    #[error("\"{0}\" is not the name of a header")]
    HeaderName(String),
    /// The header belongs to the framing of the message.
    #[error("the header \"{0}\" is made by belljar; remove it")]
    OwnHeader(HeaderName),
    /// The value of this header contains a forbidden character.
    #[error("the header \"{0}\" has a character that no header can have")]
    HeaderValue(HeaderName),
    /// A secret of the grant cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The table `oauth` is malformed.
    #[error("oauth: {0}")]
    OAuth(#[from] OAuthProblem),
    /// Two parts of the grant want to set the header `authorization`.
    #[error("oauth adds the header \"authorization\"; remove it from  headers  and  allow-headers")]
    TwoAuthorizations,
    /// The grant would send a secret to another machine without TLS.
    #[error("a secret is not sent without TLS to another machine; write \"https://\"")]
    Unencrypted,
}

/// Why a method cannot be granted. Each variant holds the method, quoted for display.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// The method is malformed.
    #[error("{0} is not a method; write it in capitals, as in \"GET\"")]
    Unknown(String),
    /// The method changes the connection (CONNECT), or returns the request with its credentials (TRACE).
    #[error("{0} is never allowed")]
    Never(String),
}

/// Why the URI of a request is refused. The messages contain no part of the URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The scheme is neither `http` nor `https`.
    #[error("its scheme is neither \"https\" nor \"http\"")]
    Scheme,
    /// The authority is missing or ambiguous.
    #[error(transparent)]
    Origin(#[from] HostError),
    /// The path or the query is malformed or ambiguous.
    #[error(transparent)]
    Path(#[from] PathError),
}
