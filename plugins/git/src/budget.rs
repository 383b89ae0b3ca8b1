//! The work that one call may do: time, and fuel as far as `objects` counts it.

use std::time::{Duration, Instant};

use crate::objects::Objects;

/// How long a call searches or compares. A slow processor stays far below the host's time limit for a call.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1_500 });

/// About the fuel that a call uses before it stops searching. The default limit of a call is 5,000 million; one more step of
/// a search may need several hundred.
const WORK: u64 = 2_000_000_000;

/// The work that one call may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    until: Instant,
    work: u64,
}

impl Budget {
    /// The budget of a call that begins now.
    pub(crate) fn new() -> Budget {
        Budget { until: Instant::now() + TIME, work: WORK }
    }

    /// A budget of so much fuel, without a limit of time.
    #[cfg(test)]
    pub(crate) fn of_work(work: u64) -> Budget {
        Budget { work, ..Budget::new() }
    }

    /// True if the call should stop searching.
    pub(crate) fn is_spent(&self, objects: &Objects) -> bool {
        objects.work() > self.work || Instant::now() > self.until
    }
}
