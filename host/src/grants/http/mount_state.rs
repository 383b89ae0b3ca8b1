//! The state of the grant `http` in a mount.

use std::sync::{Arc, OnceLock};

use ::http::HeaderName;
use tokio::sync::Semaphore;

use super::oauth::tokens::AccessTokens;
use super::origin::Origin;
use super::origin_grant::OriginGrant;
use crate::grants::network::upstream_breaker::UpstreamBreaker;
use crate::grants::network::{Network, Resolver};

/// The state of the grant `http` in one mount.
pub struct HttpMountState {
    pub(super) grants: Vec<Arc<OriginGrant>>,
    /// The access tokens of those of the grants that add them.
    pub(super) tokens: Vec<(Arc<OriginGrant>, Arc<AccessTokens>)>,
    pub(super) network: Option<Arc<Network>>,
    pub(super) resolver: Option<Resolver>,
    /// Limits the simultaneous requests of the mount, over all principals.
    pub(super) connection_slots: Arc<OnceLock<Arc<Semaphore>>>,
    pub(super) upstreams: UpstreamBreaker<Origin>,
    /// The headers that a guest can neither set nor read.
    pub(super) hidden_headers: Arc<[HeaderName]>,
}

impl HttpMountState {
    /// The access tokens of a grant. `None`: it adds none.
    pub(super) fn tokens_of(&self, grant: &Arc<OriginGrant>) -> Option<&Arc<AccessTokens>> {
        self.tokens.iter().find(|(own, _)| Arc::ptr_eq(own, grant)).map(|(_, tokens)| tokens)
    }

    pub(super) fn connection_slots(&self, most: usize) -> Arc<Semaphore> {
        Arc::clone(self.connection_slots.get_or_init(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))))
    }
}
