//! What work costs the processor: work of the host for an answer of a mount's is charged to the mount.

use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

/// Bytes from which on work is measured by the processor's own clock. Below, the clock on the wall is right enough, and
/// much cheaper to look at.
pub const MUCH: usize = 64 << 10;

/// Bytes from which on other requests of this thread are handed to another one while work is done.
const LONG: usize = 256 << 10;

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

/// Does work on so many bytes, on this thread; also says what it cost. What takes long holds up nobody else.
pub fn measured<T>(bytes: usize, work: impl FnOnce() -> T) -> (T, Duration) {
    let work = || {
        let effort = Effort::begin(bytes);
        let done = work();
        (done, effort.cost())
    };
    if bytes >= LONG { aside(work) } else { work() }
}

/// Does what takes long on this thread, after another one has taken over the requests that were served by it.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
