//! What an answer costs until it is on its way: the host's work for it after its call has ended is charged to its mount,
//! and stands in its record, which is written when the bill goes out of scope.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::effort::Effort;
use crate::audit::{Record, Sink};
use crate::catalog::Mount;

/// See the module.
pub struct Bill {
    audit: Arc<Sink>,
    mount: Arc<Mount>,
    /// None where none is kept.
    record: Option<Record>,
}

impl Bill {
    /// For an answer of `mount`.
    pub(super) fn new(audit: &Arc<Sink>, mount: &Arc<Mount>, record: Option<Record>) -> Self {
        Self { audit: Arc::clone(audit), mount: Arc::clone(mount), record }
    }

    /// Does work on so many bytes of the answer, on this thread, and charges it.
    pub fn charge<T>(&mut self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let effort = Effort::begin(bytes);
        let done = work();
        let cost = effort.cost();
        self.add(cost);
        done
    }

    /// Charges work that was done.
    pub fn add(&mut self, cost: Duration) {
        self.mount.gate.charge(cost);
        if let Some(record) = &mut self.record {
            record.usage.cpu += cost;
        }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.audit.record(record);
        }
    }
}
