//! Slots for threads that may hang.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::mount_state::MountState;

/// Slots for threads that may hang: as many as turns, and separate from them, so that a thread that hangs takes no turn
/// from others. A quarter is reserved for mounts that hold none.
pub(super) struct DetachedThreads {
    most: usize,
    used: Mutex<HashMap<usize, usize>>,
}

/// A slot for a thread, released when dropped.
pub(super) struct ThreadSlot {
    threads: Arc<DetachedThreads>,
    mount: usize,
}

impl DetachedThreads {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: Mutex::default() })
    }

    /// Takes a slot, if one is free for this mount.
    pub(super) fn enter(self: &Arc<Self>, mount: &Arc<MountState>) -> Option<ThreadSlot> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, mount) = (used.values().sum::<usize>(), Arc::as_ptr(mount).addr());
        let most = if used.contains_key(&mount) { self.most - self.most / 4 } else { self.most };
        if all >= most {
            return None;
        }
        *used.entry(mount).or_default() += 1;
        Some(ThreadSlot { threads: Arc::clone(self), mount })
    }
}

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        let mut used = self.threads.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = used.get_mut(&self.mount) {
            *count -= 1;
            if *count == 0 {
                used.remove(&self.mount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Limits, MountName};

    fn mount() -> Arc<MountState> {
        Arc::new(MountState::new(MountName::new("m").unwrap(), &Limits::default()))
    }

    #[test]
    fn hanging_threads_leave_slots_for_mounts_without_any() {
        let threads = DetachedThreads::new(8);
        let (bad, good) = (mount(), mount());
        let held: Vec<_> = std::iter::from_fn(|| threads.enter(&bad)).collect();
        assert_eq!(held.len(), 6);
        assert!(threads.enter(&good).is_some());
        drop(held);
        assert!(threads.used.lock().unwrap().is_empty());
    }
}
