//! The end of a call for its caller: when it is answered at the latest, and with what.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::grants::CallRecord;
use crate::model::{Limit, ReadError};
use crate::sandbox::spec::Outcome;

/// Time after the deadline that the caller waits for the call's own timer.
pub(super) const GRACE: Duration = Duration::from_millis(25);

/// When the caller of a call is answered at the latest, and with what. A thread with the lowest priority may get no processor,
/// and one that hangs in the kernel does not return.
pub(in crate::sandbox) struct CallEnd {
    pub(in crate::sandbox) deadline: Instant,
    pub(in crate::sandbox) limit: Limit,
    pub(in crate::sandbox) record: CallRecord,
}

impl CallEnd {
    /// Waits for `outcome` until a moment after the deadline. `None` if there is none then.
    pub(super) async fn within<T>(&self, outcome: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.deadline + GRACE, outcome).await.ok()
    }

    /// The outcome of a call that has not ended: the limit, with the usage recorded so far.
    pub(super) fn late(self) -> Outcome {
        self.failed(ReadError::Exhausted(self.limit))
    }

    /// An error, with the usage recorded so far.
    pub(super) fn failed(&self, error: ReadError) -> Outcome {
        Outcome { result: Err(error), usage: self.record.usage(), decisions: self.record.take_decisions() }
    }
}
