//! The network traffic of one call, over all kinds of grants.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::model::error::{Limit, LimitKind};
use crate::model::limits::Traffic;

/// The number of bytes or requests that a limit allows was exceeded. Holds the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrafficExceeded(pub(super) u64);

/// What one call has sent and received.
#[derive(Default)]
pub(super) struct TrafficUsage {
    requests: AtomicU64,
    upload: AtomicU64,
    download: AtomicU64,
    reached_limit: Mutex<Option<Limit>>,
}

impl TrafficUsage {
    /// Counts an HTTP request or a connection.
    pub(super) fn count_request(&self, traffic: &Traffic) -> Result<(), TrafficExceeded> {
        self.count(&self.requests, 1, LimitKind::Requests, traffic.requests)
    }

    /// Counts bytes that the guest sends.
    pub(super) fn count_upload(&self, bytes: u64, cap: u64) -> Result<(), TrafficExceeded> {
        self.count(&self.upload, bytes, LimitKind::Upload, cap)
    }

    /// Counts bytes that the guest receives.
    pub(super) fn count_download(&self, bytes: u64, cap: u64) -> Result<(), TrafficExceeded> {
        self.count(&self.download, bytes, LimitKind::Download, cap)
    }

    fn count(&self, counter: &AtomicU64, more: u64, kind: LimitKind, cap: u64) -> Result<(), TrafficExceeded> {
        let used = counter.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if used <= cap {
            return Ok(());
        }
        let mut reached = self.reached_limit.lock().unwrap_or_else(PoisonError::into_inner);
        reached.get_or_insert(Limit { kind, used, cap });
        Err(TrafficExceeded(cap))
    }

    /// Notes a limit that was reached in the front.
    pub(super) fn note_limit(&self, limit: Limit) {
        self.reached_limit.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(limit);
    }

    /// The first limit that was reached. `None`: no limit was reached.
    pub(super) fn reached_limit(&self) -> Option<Limit> {
        *self.reached_limit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
