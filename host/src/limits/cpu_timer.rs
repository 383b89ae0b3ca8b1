//! Processor time of the host's own work. Work on a result is charged to its mount.

use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

/// From this many bytes on, the thread's CPU clock is used. Below, the wall clock is accurate enough and much cheaper
/// to read.
pub const CPU_CLOCK_MIN: usize = 64 << 10;

/// From this many bytes on, other requests of this thread move to another one during the work.
const BLOCKING_MIN: usize = 256 << 10;

/// The processor time of this thread since its start.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A timer for work on the current thread. It must stop on the same thread.
pub struct CpuTimer {
    began: Instant,
    thread: Option<Duration>,
}

impl CpuTimer {
    /// Starts a timer for work on `bytes`.
    pub fn start(bytes: usize) -> Self {
        Self { began: Instant::now(), thread: (bytes >= CPU_CLOCK_MIN).then(thread_time) }
    }

    /// The processor time since the start.
    pub fn elapsed(&self) -> Duration {
        match self.thread {
            Some(before) => thread_time().saturating_sub(before),
            None => self.began.elapsed(),
        }
    }
}

/// Runs `work` on `bytes` on this thread and returns its processor time. Long work does not delay other requests.
pub fn measure<T>(bytes: usize, work: impl FnOnce() -> T) -> (T, Duration) {
    let work = || {
        let effort = CpuTimer::start(bytes);
        let done = work();
        (done, effort.elapsed())
    };
    if bytes >= BLOCKING_MIN { run_blocking(work) } else { work() }
}

/// Runs long work on this thread. On a multi-thread runtime, another thread takes over its requests first.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
