//! The admission state of a mount, shared by all versions of its limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::cpu_share;
use super::memory_budget::MountUsage;
use crate::model::busy::BusyReason;
use crate::model::{Limits, MountName, ReadError};

/// The average time of a call below which a mount is quick. A quick mount may also take turns that are closed to slow
/// ones.
pub(super) const QUICK: Duration = Duration::from_millis(10);

/// The turns and slots that a mount holds now. Written only under the lock of the scheduler, [`super::turns`].
#[derive(Default)]
pub(super) struct Counts {
    /// Turns of the host held by the mount.
    pub(super) turns: AtomicUsize,
    /// Slots of the mount in use. More than `turns` if threads hang whose calls were answered.
    pub(super) slots: AtomicUsize,
    /// Number of slots of the mount.
    pub(super) max_slots: AtomicUsize,
    /// Sequence number of the last returned turn. Waiting calls that are older count as waiting since then.
    pub(super) last_returned: AtomicU64,
}

/// The admission state of a mount.
pub(super) struct MountState {
    pub(super) name: MountName,
    pub(super) share: cpu_share::CpuShare,
    pub(super) memory: Arc<MountUsage>,
    pub(super) counts: Counts,
    pub(super) waiting: AtomicUsize,
    /// Reads, and all other calls. Kept apart so that listing a mount with long reads stays prompt.
    times: [CallTimes; 2],
}

/// The running average of the time of calls, in nanoseconds.
#[derive(Default)]
pub(super) struct AverageTime(AtomicU64);

impl AverageTime {
    pub(super) fn is_quick(&self) -> bool {
        self.average() <= QUICK
    }

    pub(super) fn average(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Adds a call with a weight of one fourth: one long call makes a mount slow, a dozen short ones make it quick
    /// again. If two calls end at once, one of them may be lost.
    pub(super) fn add(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(self.0.load(Ordering::Relaxed) / 4 * 3 + took / 4, Ordering::Relaxed);
    }
}

/// Times of calls of one kind.
#[derive(Default)]
pub(super) struct CallTimes {
    /// The time for which a call holds a turn, including waits for upstreams.
    pub(super) held: AverageTime,
    /// The processor time of a call.
    pub(super) computed: AverageTime,
}

impl MountState {
    pub(super) fn new(name: MountName, limits: &Limits) -> Self {
        let mount = Self {
            name,
            share: cpu_share::CpuShare::new(limits.cpu),
            memory: MountUsage::new(),
            counts: Counts::default(),
            waiting: AtomicUsize::new(0),
            times: Default::default(),
        };
        mount.set_limits(limits);
        mount
    }

    /// Applies other limits from now on.
    pub(super) fn set_limits(&self, limits: &Limits) {
        self.counts.max_slots.store(limits.concurrency, Ordering::Relaxed);
        self.share.set_percent(Instant::now(), limits.cpu);
    }

    pub(super) fn times(&self, is_read: bool) -> &CallTimes {
        let [reads, others] = &self.times;
        if is_read { reads } else { others }
    }

    /// The average time for which calls of the slower kind hold a turn.
    pub(super) fn slowest_average(&self) -> Duration {
        let [reads, others] = &self.times;
        reads.held.average().max(others.held.average())
    }

    /// True if the mount exceeded its CPU share.
    pub(super) fn is_overdrawn(&self, now: Instant) -> bool {
        !self.share.time_until_available(now).is_zero()
    }

    /// The error for a call that must wait for `rest` because of the CPU share.
    pub(super) fn cpu_share_error(&self, cpu: u64, rest: Duration) -> ReadError {
        let rest = Duration::from_secs(rest.as_secs() + 1);
        let why = format!(
            "mount \"{0}\" used more than its share of {1}% of a processor over {2}; its next call can run in {3}; to allow more, set cpu = \"{4}%\" under [mounts.{0}.limits]",
            self.name,
            cpu,
            humantime::format_duration(cpu_share::WINDOW),
            humantime::format_duration(rest),
            cpu.saturating_mul(2).min(crate::model::limits::MAX_CPU),
        );
        ReadError::Busy(BusyReason::from(why).retry_after(rest))
    }
}
