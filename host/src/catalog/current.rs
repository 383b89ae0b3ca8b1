//! The current snapshot, notifications of its changes, and the state that outlives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use super::listing_memory::ListingMemory;
use super::mount_cache::MountCaches;
use super::snapshot::Snapshot;
use crate::limits::gate_registry::GateRegistry;
use crate::limits::memory_budget::MemoryBudget;

/// The current snapshot.
pub struct Catalog {
    snapshot: ArcSwap<Snapshot>,
    /// True once the first load is complete. Sent again with every new snapshot, to wake waiting tasks.
    loaded: Sender<bool>,
    /// How many times the configuration had been read when the snapshot was made.
    config_version: AtomicU64,
    caches: MountCaches,
    gates: GateRegistry,
}

impl Catalog {
    /// An empty catalog. Its listings count against `budget`.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self {
            snapshot: ArcSwap::default(),
            loaded: Sender::new(false),
            config_version: AtomicU64::new(0),
            caches: MountCaches::new(ListingMemory::new(budget)),
            gates: GateRegistry::default(),
        }
    }

    /// The gates of all mounts, including mounts that are not served any more.
    pub fn gates(&self) -> &GateRegistry {
        &self.gates
    }

    /// The caches of the served mounts.
    pub fn caches(&self) -> &MountCaches {
        &self.caches
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Replaces the current snapshot.
    pub fn publish(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        let before = self.snapshot.swap(Arc::clone(&snapshot));
        snapshot.clear_changed_listings(&before);
        self.caches.replace(snapshot.mounts().iter().map(|mount| (&mount.name, &mount.cached)));
        // Wakes waiting tasks, without a change of the value.
        self.loaded.send_modify(|_| {});
    }

    /// Stores the number of the configuration that the snapshot was made from.
    pub(super) fn set_config_version(&self, version: u64) {
        self.config_version.store(version, Ordering::Release);
    }

    /// The number of the configuration that the snapshot was made from: how many times it had been read by then.
    pub fn config_version(&self) -> u64 {
        self.config_version.load(Ordering::Acquire)
    }

    /// Notifies on every new snapshot. The value is that of [`Catalog::is_loaded`].
    pub fn changes(&self) -> Receiver<bool> {
        self.loaded.subscribe()
    }

    /// Marks the first load as complete: every file that was present at the start is served or refused.
    pub fn mark_loaded(&self) {
        self.loaded.send_replace(true);
    }

    /// True if the first load is complete.
    pub fn is_loaded(&self) -> bool {
        *self.loaded.borrow()
    }

    /// Waits for [`Catalog::mark_loaded`] until `by`. Returns true if the first load is complete.
    pub async fn wait_loaded(&self, by: Instant) -> bool {
        self.wait_loaded_or(by, |_| false).await
    }

    /// Waits until the first load is complete or `is_enough` holds, but not beyond `by`. Returns true if one of them
    /// happened.
    pub async fn wait_loaded_or(&self, by: Instant, is_enough: impl Fn(&Snapshot) -> bool) -> bool {
        let mut loaded = self.loaded.subscribe();
        let waited = timeout_at(by, loaded.wait_for(|loaded| *loaded || is_enough(&self.snapshot()))).await;
        waited.is_ok_and(|waited| waited.is_ok())
    }

    /// Waits until `condition` holds for the snapshot, but not beyond `by`. Returns true if it does.
    pub async fn wait_until(&self, by: Instant, condition: impl Fn(&Snapshot) -> bool) -> bool {
        let mut changes = self.changes();
        let waited = timeout_at(by, changes.wait_for(|_| condition(&self.snapshot()))).await;
        waited.is_ok_and(|waited| waited.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::cached_listing::CachedListing;
    use crate::catalog::mount::Mount;

    fn snapshot(bases: &[(&str, &str)]) -> Snapshot {
        Snapshot::new(
            bases.iter().map(|(name, base)| Arc::new(crate::catalog::mount::tests::mount(name, base))).collect(),
            Vec::new(),
        )
    }

    #[test]
    fn listings_are_cleared_when_a_mount_below_the_base_appears_or_disappears() {
        let catalog = Catalog::new(MemoryBudget::new(1 << 30));
        let bases = [("a", "x://h/"), ("b", "x://h/b/"), ("c", "x://h/b/c/"), ("d", "x://j/"), ("e", "x://i/")];
        let [a, b, c, d, e] = bases.map(|(name, base)| Arc::new(crate::catalog::mount::tests::mount(name, base)));
        let forgotten = |served: &[&Arc<Mount>]| -> String {
            for mount in [&a, &b, &c, &d, &e] {
                mount.cached.shared.resources.set_current(CachedListing::new(catalog.caches().memory(), None));
                mount.cached.shared.templates.set_current(CachedListing::new(catalog.caches().memory(), None));
            }
            catalog.publish(Snapshot::new(served.iter().map(|mount| Arc::clone(mount)).collect(), Vec::new()));
            let is_forgotten = |mount: &&&Arc<Mount>| {
                let kept = (
                    mount.cached.shared.resources.current().is_some(),
                    mount.cached.shared.templates.current().is_some(),
                );
                assert_eq!(kept.0, kept.1, "{}", mount.name);
                !kept.0
            };
            served.iter().filter(is_forgotten).map(|mount| mount.name.as_str()).collect()
        };
        assert_eq!(forgotten(&[&a, &d, &e]), "");
        assert_eq!(forgotten(&[&a, &b, &d, &e]), "a", "b appeared below a");
        assert_eq!(forgotten(&[&a, &b, &c, &d, &e]), "ab", "c appeared below a and b");
        assert_eq!(forgotten(&[&a, &b, &c, &e]), "", "d disappeared, and no base is above or below it");
        assert_eq!(forgotten(&[&a, &c, &e]), "a", "b disappeared below a, and c stays");
        assert_eq!(forgotten(&[&a, &e]), "a");
    }

    #[tokio::test]
    async fn wait_loaded_waits_for_the_first_load() {
        let catalog = Catalog::new(MemoryBudget::new(1 << 30));
        assert!(!catalog.wait_loaded(Instant::now()).await);
        catalog.mark_loaded();
        assert!(catalog.wait_loaded(Instant::now()).await);
    }

    #[tokio::test]
    async fn waiting_for_a_mount_ends_when_the_mount_is_served() {
        let catalog = Arc::new(Catalog::new(MemoryBudget::new(1 << 30)));
        let (own, is_there) = (Arc::clone(&catalog), |snapshot: &Snapshot| snapshot.route("a://x").is_some());
        let by = Instant::now() + std::time::Duration::from_secs(60);
        let waiting = tokio::spawn(async move { own.wait_loaded_or(by, is_there).await });
        catalog.publish(snapshot(&[("b", "b://")]));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        catalog.publish(snapshot(&[("a", "a://")]));
        assert!(waiting.await.unwrap());
        assert!(!catalog.wait_loaded(Instant::now()).await, "others may still be loading");
    }
}
