//! File descriptors of the process, shared by the calls that can open files. Each call has a part that nobody else can take;
//! the rest goes to whoever comes first, so that a few calls have as many handles as the limit says even where the system
//! would not give all calls as many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Handles that a call has at the least: directories that it was granted, a file, a stream.
const LEAST: usize = 8;

/// The descriptors of all calls.
pub(super) struct Descriptors {
    /// What each call has in any case.
    own: usize,
    /// What nobody has now.
    spare: AtomicUsize,
}

impl Descriptors {
    /// `all` descriptors for at most `calls` calls at once.
    pub(super) fn new(all: usize, calls: u32) -> Arc<Self> {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX).max(1);
        let own = (all / calls / 2).max(LEAST);
        Arc::new(Self { own, spare: AtomicUsize::new(all.saturating_sub(own.saturating_mul(calls))) })
    }

    /// As many as one call may hold, at most `wanted`. One call leaves half of what is spare to others.
    pub(super) fn reserve(self: &Arc<Self>, wanted: usize) -> Reserved {
        let more = wanted.saturating_sub(self.own);
        let left = |spare: usize| Some(spare - more.min(spare / 2));
        let before = match more {
            0 => 0,
            _ => self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default(),
        };
        let more = more.min(before / 2);
        Reserved { count: self.own.min(wanted) + more, more, of: Arc::clone(self) }
    }
}

/// The descriptors that one call may hold, until this is dropped.
pub(super) struct Reserved {
    count: usize,
    more: usize,
    of: Arc<Descriptors>,
}

impl Reserved {
    /// How many.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.more > 0 {
            self.of.spare.fetch_add(self.more, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_calls_have_all_that_they_want_and_each_has_its_own() {
        // What a process gets that may have 20,000 files open.
        let all = Descriptors::new(15_000, 32);
        let held: Vec<_> = (0..32).map(|_| all.reserve(1024)).collect();
        assert!(held.iter().take(8).all(|one| one.count() == 1024));
        assert!(held.iter().all(|one| one.count() >= 234));
        assert!(held.iter().map(Reserved::count).sum::<usize>() <= 15_000);
        drop(held);
        assert_eq!(all.reserve(1024).count(), 1024, "all is given back");
        assert_eq!(all.reserve(10).count(), 10);
    }

    #[test]
    fn a_system_that_gives_enough_never_limits() {
        let all = Descriptors::new(1 << 19, 32);
        let held: Vec<_> = (0..32).map(|_| all.reserve(1024)).collect();
        assert!(held.iter().all(|one| one.count() == 1024));
    }

    #[test]
    fn where_there_is_little_a_call_still_has_some() {
        let all = Descriptors::new(12, 8);
        assert_eq!(all.reserve(1024).count(), LEAST);
    }
}
