//! The places for simultaneous connections of a mount, over all principals.

use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

/// The places of one mount. Clones share them.
#[derive(Clone, Default)]
pub(in crate::grants) struct ConnectionSlots(Arc<OnceLock<Arc<Semaphore>>>);

impl ConnectionSlots {
    /// The places. The first call makes `most` of them.
    pub(in crate::grants) fn get(&self, most: usize) -> Arc<Semaphore> {
        Arc::clone(self.0.get_or_init(|| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))))
    }
}
