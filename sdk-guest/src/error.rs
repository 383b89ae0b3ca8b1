//! The reason why a provider failed. Independent of MCP: the host maps each kind to a protocol error.

use std::fmt;
use std::io;

/// The result of a provider's methods.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a provider failed.
///
/// The kind decides how the host reports the failure, and whether a retry makes sense. People read the text as the
/// provider's words. It should say what to do, and must not contain anything that the caller may not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The resource does not exist, or this caller must not know of it.
    NotFound,
    /// The reference, cursor or argument is malformed; the text says how.
    Invalid(String),
    /// The provider refuses, or a grant is missing; the text says which.
    Denied(String),
    /// A backend is down or busy; the same call may succeed later.
    Unavailable(String),
    /// Any other failure.
    Failed(String),
}

impl Error {
    /// The resource does not exist.
    pub fn not_found() -> Self {
        Error::NotFound
    }

    /// The reference, cursor or argument is malformed.
    pub fn invalid(why: impl fmt::Display) -> Self {
        Error::Invalid(why.to_string())
    }

    /// The provider refuses, or a grant is missing.
    pub fn denied(why: impl fmt::Display) -> Self {
        Error::Denied(why.to_string())
    }

    /// A backend is down or busy; the same call may succeed later.
    pub fn unavailable(why: impl fmt::Display) -> Self {
        Error::Unavailable(why.to_string())
    }

    /// Any other failure; also as `.map_err(Error::failed)`.
    pub fn failed(why: impl fmt::Display) -> Self {
        Error::Failed(why.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound => f.write_str("not found"),
            Error::Invalid(why) => write!(f, "invalid: {why}"),
            Error::Denied(why) => write!(f, "denied: {why}"),
            Error::Unavailable(why) => write!(f, "unavailable: {why}"),
            Error::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    /// Converts an I/O error to the kind with the same meaning. A path below a file is `NotFound`, and a refusal of the
    /// sandbox is `Denied`. An error of this type that an I/O error wraps stays as it is.
    fn from(error: io::Error) -> Self {
        let error = match error.downcast::<Error>() {
            Ok(own) => return own,
            Err(error) => error,
        };
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound | Kind::NotADirectory => Error::NotFound,
            Kind::PermissionDenied => Error::denied(error),
            Kind::TimedOut
            | Kind::WouldBlock
            | Kind::Interrupted
            | Kind::ResourceBusy
            | Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown => Error::unavailable(error),
            _ => Error::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_keep_their_kind() {
        let of = |kind: io::ErrorKind| Error::from(io::Error::new(kind, "why"));
        assert_eq!(of(io::ErrorKind::NotFound), Error::NotFound);
        assert_eq!(of(io::ErrorKind::NotADirectory), Error::NotFound);
        assert_eq!(of(io::ErrorKind::PermissionDenied), Error::denied("why"));
        assert_eq!(of(io::ErrorKind::ConnectionRefused), Error::unavailable("why"));
        assert_eq!(of(io::ErrorKind::InvalidData), Error::failed("why"));
        assert_eq!(Error::from(io::Error::other(Error::unavailable("why"))), Error::unavailable("why"));
    }

    #[test]
    fn display_says_the_kind() {
        assert_eq!(Error::NotFound.to_string(), "not found");
        assert_eq!(Error::invalid("no such zone").to_string(), "invalid: no such zone");
    }
}
