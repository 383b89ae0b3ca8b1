//! What the kernel knows of this process.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// What the kernel knows of this process.
pub(super) struct ProcessStats {
    /// `/proc/self/statm`. The second wall forbids opening it later.
    statm: Option<File>,
    started_at: SystemTime,
}

impl ProcessStats {
    /// Opens the files.
    pub(super) fn open() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a file of the kernel about this process")]
        let statm = File::open("/proc/self/statm").ok();
        Self { statm, started_at: SystemTime::now() }
    }

    /// The resident memory in bytes.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages.saturating_mul(rustix::param::page_size() as u64))
    }

    /// The processor time of all threads.
    pub(super) fn cpu(&self) -> Duration {
        Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
    }

    /// The start of the process.
    pub(super) fn start(&self) -> SystemTime {
        self.started_at
    }
}
