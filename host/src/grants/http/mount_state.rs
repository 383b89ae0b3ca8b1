//! The state of the grant `http` in a mount.

use std::sync::{Arc, OnceLock};

use ::http::HeaderName;
use tokio::sync::Semaphore;

use super::origin::Origin;
use super::origin_grant::OriginGrant;
use crate::grants::network::upstream_breaker::UpstreamBreaker;
use crate::grants::network::{Network, Resolver};

/// The state of the grant `http` in one mount.
pub struct HttpMountState {
    pub(super) grants: Vec<Arc<OriginGrant>>,
    pub(super) network: Option<Arc<Network>>,
    pub(super) resolver: Option<Resolver>,
    /// Limits the simultaneous requests of the mount, over all principals.
    pub(super) connection_slots: Arc<OnceLock<Arc<Semaphore>>>,
    pub(super) upstreams: UpstreamBreaker<Origin>,
    /// The headers that a guest can neither set nor read.
    pub(super) hidden_headers: Arc<[HeaderName]>,
}

impl HttpMountState {
    pub(super) fn connection_slots(&self, most: usize) -> Arc<Semaphore> {
        Arc::clone(self.connection_slots.get_or_init(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))))
    }
}
