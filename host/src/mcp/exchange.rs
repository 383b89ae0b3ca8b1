//! What the transport and the handler tell each other of one request that goes through rmcp: which connection it is from,
//! and what its answer is charged to, which rmcp encodes where neither can see it done.

use std::sync::{Arc, Mutex, PoisonError};

use crate::gateway::bill::Bill;

/// See the module. The transport puts it into the extensions of the request, and keeps a copy.
#[derive(Clone, Default)]
pub struct Exchange {
    peer: Option<u64>,
    bill: Arc<Mutex<Option<Bill>>>,
}

impl Exchange {
    /// Of a request that comes over connection `peer`.
    pub fn new(peer: u64) -> Self {
        Self { peer: Some(peer), bill: Arc::default() }
    }

    /// The connection, where it is not the handler's own.
    pub(super) fn peer(&self) -> Option<u64> {
        self.peer
    }

    /// Leaves the bill of the answer to whoever encodes it.
    pub(super) fn leave(&self, bill: Bill) {
        *self.bill.lock().unwrap_or_else(PoisonError::into_inner) = Some(bill);
    }

    /// The bill of the answer, once there is one.
    pub fn bill(&self) -> Option<Bill> {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
