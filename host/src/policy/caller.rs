//! The caller of a request.

use std::sync::Arc;

use super::principal::Principal;

/// The caller of a request: the proven principal, and unproven statements of the transport and the client about
/// themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The proven identity.
    pub principal: Principal,
    /// `stdio`, `http` or `cli`.
    pub transport: &'static str,
    /// The client's name and version, sanitised. Not proven.
    pub client: Option<Arc<str>>,
    /// The connection, or the session of an older client; 0 is belljar itself. Distinguishes callers; never shown.
    pub peer: u64,
}

impl Caller {
    /// A caller without client information, on belljar's own connection.
    pub const fn new(principal: Principal, transport: &'static str) -> Self {
        Self { principal, transport, client: None, peer: 0 }
    }
}
