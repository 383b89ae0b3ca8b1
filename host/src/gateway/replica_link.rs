//! What a gateway keeps about other replicas.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arc_swap::ArcSwap;

use crate::model::MountName;
use crate::store::SharedStore;

/// What a gateway keeps about other replicas.
pub(super) struct ReplicaLink {
    pub(super) store: Arc<SharedStore>,
    /// Mounts of which a newer configuration took back a grant.
    pub(super) withheld: ArcSwap<HashSet<MountName>>,
    /// How many replicas lived at the last beat.
    pub(super) count: AtomicUsize,
}

impl ReplicaLink {
    /// The link through `store`.
    pub(super) fn new(store: Arc<SharedStore>) -> Self {
        Self { store, withheld: ArcSwap::default(), count: AtomicUsize::new(1) }
    }
}
