//! The state of the grant `http` in a mount.

use std::sync::Arc;

use super::origin::Origin;
use super::origin_grant::OriginGrant;
use crate::grants::network::connection_slots::ConnectionSlots;
use crate::grants::network::upstream_breaker::UpstreamBreaker;
use crate::grants::network::{Network, Resolver};
use ::http::HeaderName;

/// The state of the grant `http` in one mount.
pub struct HttpMountState {
    pub(super) grants: Vec<Arc<OriginGrant>>,
    pub(super) network: Option<Arc<Network>>,
    pub(super) resolver: Option<Resolver>,
    /// Limits the simultaneous requests of the mount, over all principals.
    pub(super) connection_slots: ConnectionSlots,
    pub(super) upstreams: UpstreamBreaker<Origin>,
    /// The headers that a guest can neither set nor read.
    pub(super) hidden_headers: Arc<[HeaderName]>,
}
