//! What work costs the processor: work of the host for an answer of a mount's is charged to the mount.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes from which on work is measured by the processor's own clock. Below, the clock on the wall is right enough, and
/// much cheaper to look at.
const MUCH: usize = 64 << 10;

/// What this thread took of a processor so far.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Work that has begun on this thread, and ends on it.
pub struct Effort {
    began: Instant,
    thread: Option<Duration>,
}

impl Effort {
    /// Begins work on so many bytes.
    pub fn begin(bytes: usize) -> Self {
        Self { began: Instant::now(), thread: (bytes >= MUCH).then(thread_time) }
    }

    /// What it cost until now.
    pub fn cost(&self) -> Duration {
        match self.thread {
            Some(before) => thread_time().saturating_sub(before),
            None => self.began.elapsed(),
        }
    }
}
