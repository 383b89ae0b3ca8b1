//! The caller of a request.

use std::net::IpAddr;
use std::sync::Arc;

use super::principal::{Principal, PrincipalId, PrincipalKind};
use crate::model::RequestInfo;

/// The caller of a request: the proven principal, and unproven statements of the transport and the client about
/// themselves.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The proven identity.
    pub principal: Principal,
    /// `stdio`, `http` or `cli`.
    pub transport: &'static str,
    /// The client's name and version, sanitised. Not proven.
    pub client: Option<Arc<str>>,
    /// The connection, or the session of an older client; 0 is belljar itself. Distinguishes callers; never shown.
    pub peer: u64,
    /// The address of an HTTP client, for the record only. `None` unless the endpoint authenticates its clients.
    pub address: Option<IpAddr>,
    /// The `traceparent` of the request (W3C Trace Context), for the record only. Not proven.
    pub trace: Option<Arc<str>>,
    /// The request of a client. `None` for belljar's own calls, and for those of the command line.
    pub request: Option<Arc<RequestInfo>>,
}

/// The party that shares quotas and turns: what one of them uses, the others do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallerId {
    /// A connection, or the session of an older client. Opening one costs nothing, so it proves nothing.
    Connection(u64),
    /// The holder of a key or the subject of a token, over all its connections.
    Principal(PrincipalId),
}

impl Default for CallerId {
    /// belljar's own connection.
    fn default() -> Self {
        Self::Connection(0)
    }
}

impl Caller {
    /// A caller without client information, on belljar's own connection.
    pub fn new(principal: Principal, transport: &'static str) -> Self {
        Self { principal, transport, client: None, peer: 0, address: None, trace: None, request: None }
    }

    /// The party that the caller's requests count for: the principal if a credential proved it, and otherwise the
    /// connection.
    pub fn id(&self) -> CallerId {
        match self.principal.kind() {
            PrincipalKind::Key | PrincipalKind::Token => CallerId::Principal(self.principal.id()),
            PrincipalKind::Local | PrincipalKind::Anonymous | PrincipalKind::Belljar => CallerId::Connection(self.peer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Evidence, KeyIdentity, authenticate};

    #[test]
    fn the_connections_of_a_key_are_one_caller() {
        let key = authenticate(Evidence::Key(KeyIdentity { name: "ci".to_owned(), ..KeyIdentity::default() }));
        let id = |principal: &Principal, peer| Caller { peer, ..Caller::new(principal.clone(), "http") }.id();
        assert_eq!(id(&key, 1), id(&key, 2));
        let anonymous = authenticate(Evidence::Loopback);
        assert_ne!(id(&anonymous, 1), id(&anonymous, 2), "nothing proves that they are one");
    }
}
