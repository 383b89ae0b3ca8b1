//! The pool of file descriptors, shared by the calls that can open files. Each call has a reserved number; the rest is
//! first come, first served. Thus a few calls can use as many handles as the limit says, even if the system could not
//! provide that for all calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::model::bounds;

/// The least number of handles of a call: granted directories, a file, a stream.
const MIN_HANDLES: usize = 8;

/// The file descriptors of all calls.
pub(super) struct DescriptorPool {
    /// Descriptors reserved for each call.
    per_call: usize,
    /// Free descriptors beyond the reserved ones.
    spare: AtomicUsize,
}

impl DescriptorPool {
    /// `all` descriptors for at most `calls` calls at once.
    pub(super) fn new(all: usize, calls: u32) -> Arc<Self> {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX).max(1);
        let all = bounds::of_descriptors(all);
        let per_call = (all / calls / 2).max(MIN_HANDLES);
        Arc::new(Self { per_call, spare: AtomicUsize::new(all.saturating_sub(per_call.saturating_mul(calls))) })
    }

    /// Reserves descriptors for one call, at most `wanted`. Leaves half of the free ones to other calls.
    pub(super) fn reserve(self: &Arc<Self>, wanted: usize) -> ReservedDescriptors {
        let more = wanted.saturating_sub(self.per_call);
        let left = |spare: usize| Some(spare - more.min(spare / 2));
        let before = match more {
            0 => 0,
            _ => self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default(),
        };
        let more = more.min(before / 2);
        ReservedDescriptors { count: self.per_call.min(wanted) + more, more, pool: Arc::clone(self) }
    }
}

/// The descriptors of one call, released when dropped.
pub(super) struct ReservedDescriptors {
    count: usize,
    more: usize,
    pool: Arc<DescriptorPool>,
}

impl ReservedDescriptors {
    /// Number of descriptors.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

impl Drop for ReservedDescriptors {
    fn drop(&mut self) {
        if self.more > 0 {
            self.pool.spare.fetch_add(self.more, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_calls_get_all_they_want_and_each_keeps_its_reserved_number() {
        // The numbers of a process that may open 20,000 files.
        let all = DescriptorPool::new(15_000, 32);
        let held: Vec<_> = (0..32).map(|_| all.reserve(1024)).collect();
        assert!(held.iter().take(8).all(|one| one.count() == 1024));
        assert!(held.iter().all(|one| one.count() >= 234));
        assert!(held.iter().map(ReservedDescriptors::count).sum::<usize>() <= 15_000);
        drop(held);
        assert_eq!(all.reserve(1024).count(), 1024, "all descriptors are released");
        assert_eq!(all.reserve(10).count(), 10);
    }

    #[test]
    fn enough_descriptors_never_limit_a_call() {
        let all = DescriptorPool::new(1 << 19, 32);
        let held: Vec<_> = (0..32).map(|_| all.reserve(1024)).collect();
        assert!(held.iter().all(|one| one.count() == 1024));
    }

    #[test]
    fn a_call_always_gets_the_minimum() {
        let all = DescriptorPool::new(12, 8);
        assert_eq!(all.reserve(1024).count(), MIN_HANDLES);
    }
}
