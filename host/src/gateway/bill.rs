//! What an answer costs until it is on its way: the host's work for it after its call has ended is charged to its mount,
//! and stands in its record, which is written when the bill goes out of scope.

use std::sync::Arc;
use std::time::Duration;

use super::walk::Walk;
use crate::admission::effort::Effort;
use crate::audit::{Record, Sink};
use crate::catalog::Mount;

/// See the module.
pub struct Bill {
    audit: Sink,
    /// The walk that the call was a part of.
    walk: Option<Walk>,
    mount: Arc<Mount>,
    /// None where none is kept.
    record: Option<Record>,
}

impl Bill {
    /// For an answer of `mount`.
    pub(super) fn new(audit: &Sink, mount: &Arc<Mount>, record: Option<Record>) -> Self {
        Self { audit: audit.clone(), walk: None, mount: Arc::clone(mount), record }
    }

    /// The same in a walk, whose record has it in it.
    pub(super) fn in_walk(walk: &Walk, mount: &Arc<Mount>, record: Option<Record>) -> Self {
        let mut bill = Self::new(walk.audit(), mount, record);
        bill.walk = Some(walk.clone());
        bill
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
        match (self.record.take(), &self.walk) {
            (Some(record), Some(walk)) => walk.add(record),
            (Some(record), None) => self.audit.record(record),
            (None, _) => {}
        }
    }
}
