//! Principals, and the evidence for them.

/// The evidence of a transport about the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The operating system user who runs this belljar: on standard input, or at the command line.
    OwnUser,
    /// An HTTP connection. It is known only to come from this machine.
    Loopback,
    /// belljar itself, when it polls resources for its watchers.
    Polling,
}

/// The proven identity of a caller. Only [`authenticate`] creates one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Principal(PrincipalName);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PrincipalName {
    Local,
    Anonymous,
    Belljar,
}

impl Principal {
    /// `local`, `anonymous` or `belljar`.
    pub fn as_str(&self) -> &'static str {
        match self.0 {
            PrincipalName::Local => "local",
            PrincipalName::Anonymous => "anonymous",
            PrincipalName::Belljar => "belljar",
        }
    }
}

/// The principal that `evidence` proves.
pub const fn authenticate(evidence: Evidence) -> Principal {
    Principal(match evidence {
        Evidence::OwnUser => PrincipalName::Local,
        Evidence::Loopback => PrincipalName::Anonymous,
        Evidence::Polling => PrincipalName::Belljar,
    })
}
