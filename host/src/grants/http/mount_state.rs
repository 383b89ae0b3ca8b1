//! The state of the grant `http` in a mount.

use std::sync::Arc;

use super::oauth::tokens::AccessTokens;
use super::origin::Origin;
use super::origin_grant::OriginGrant;
use crate::grants::network::connection_slots::ConnectionSlots;
use crate::grants::network::upstream_breaker::UpstreamBreaker;
use crate::grants::network::{Network, Resolver};
use crate::grants::network_handover::NetworkHandover;
use ::http::HeaderName;

/// The state of the grant `http` in one mount.
pub struct HttpMountState {
    pub(super) grants: Vec<Arc<OriginGrant>>,
    /// The access tokens of those of the grants that add them.
    pub(super) tokens: Vec<(Arc<OriginGrant>, Arc<AccessTokens>)>,
    pub(super) network: Option<Arc<Network>>,
    pub(super) resolver: Option<Resolver>,
    /// Limits the simultaneous requests of the mount, over all principals.
    pub(super) connection_slots: ConnectionSlots,
    pub(super) upstreams: UpstreamBreaker<Origin>,
    /// The headers that a guest can neither set nor read.
    pub(super) hidden_headers: Arc<[HeaderName]>,
}

impl HttpMountState {
    /// The state of a mount in a worker process, where the front decides and connects.
    pub(in crate::grants) fn of_worker(handover: &NetworkHandover) -> Self {
        let hidden = handover.hidden_headers.iter().filter_map(|name| name.parse().ok());
        Self {
            grants: Vec::new(),
            tokens: Vec::new(),
            network: None,
            resolver: None,
            connection_slots: ConnectionSlots::default(),
            upstreams: UpstreamBreaker::default(),
            hidden_headers: hidden.collect(),
        }
    }

    /// The names of the headers that a guest can neither set nor read.
    pub(in crate::grants) fn hidden_headers(&self) -> Vec<String> {
        self.hidden_headers.iter().map(|name| name.as_str().to_owned()).collect()
    }

    /// The access tokens of a grant. `None`: it adds none.
    pub(super) fn tokens_of(&self, grant: &Arc<OriginGrant>) -> Option<&Arc<AccessTokens>> {
        self.tokens.iter().find(|(own, _)| Arc::ptr_eq(own, grant)).map(|(_, tokens)| tokens)
    }
}
