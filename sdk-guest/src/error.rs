//! Why a provider did not answer. Knows nothing of the wire: the host decides what each kind becomes there.

use std::fmt;
use std::io;

/// What the methods of a provider return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a provider did not answer.
///
/// The kind decides how the failure is reported and whether a retry makes sense, so choose it with care; the text is
/// shown to people as the provider's words, and should say what to do. It must not hold anything that the caller may
/// not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// There is no such resource, or none that this caller may know of.
    NotFound,
    /// The reference, cursor or argument is malformed; the text says how.
    Invalid(String),
    /// Refused, or a capability that it needs was not granted; the text says which.
    Denied(String),
    /// Something that it depends on is down or busy; the same call may succeed later.
    Unavailable(String),
    /// Anything else.
    Failed(String),
}

impl Error {
    /// There is no such resource.
    pub fn not_found() -> Self {
        Error::NotFound
    }

    /// The reference, cursor or argument is malformed.
    pub fn invalid(why: impl fmt::Display) -> Self {
        Error::Invalid(why.to_string())
    }

    /// Refused, or not granted.
    pub fn denied(why: impl fmt::Display) -> Self {
        Error::Denied(why.to_string())
    }

    /// Down or busy; may succeed later.
    pub fn unavailable(why: impl fmt::Display) -> Self {
        Error::Unavailable(why.to_string())
    }

    /// Anything else, also as `.map_err(Error::failed)`.
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
    /// Keeps the kind where there is one. A path that goes on below a file is as absent as any other, and what the
    /// sandbox refuses is denied.
    fn from(error: io::Error) -> Self {
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
    }

    #[test]
    fn display_says_the_kind() {
        assert_eq!(Error::NotFound.to_string(), "not found");
        assert_eq!(Error::invalid("no such zone").to_string(), "invalid: no such zone");
    }
}
