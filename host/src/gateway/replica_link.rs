//! What a gateway keeps about other replicas.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::model::MountName;
use crate::store::SharedStore;

/// What a gateway keeps about other replicas.
pub(super) struct ReplicaLink {
    pub(super) store: Arc<SharedStore>,
    /// Mounts of which a newer configuration took back a grant.
    pub(super) withheld: ArcSwap<HashSet<MountName>>,
}

impl ReplicaLink {
    /// The link through `store`.
    pub(super) fn new(store: Arc<SharedStore>) -> Self {
        Self { store, withheld: ArcSwap::default() }
    }
}
