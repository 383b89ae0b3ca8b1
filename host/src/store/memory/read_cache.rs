//! Fresh values in memory.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moka::Expiry;
use moka::sync::Cache;
use tokio::time::Instant;

use crate::store::read_cache::{CachedValue, ReadCache};

/// Bytes that one entry costs in addition to its value.
const ENTRY_OVERHEAD: usize = 512;

/// Fresh values in memory under keys `K`. Each entry holds a guard `H` while it is cached, such as a reservation of memory.
pub struct MemoryReadCache<K, V, H> {
    entries: Cache<K, Arc<CacheEntry<V, H>>>,
    /// True once a value was stored. Few providers allow caching, and while nothing is stored, lookups are skipped.
    has_entries: AtomicBool,
    hold: Box<dyn Fn(u64) -> H + Send + Sync>,
}

struct CacheEntry<V, H> {
    value: Arc<V>,
    until: Instant,
    bytes: usize,
    _guard: H,
}

/// Gives each entry its own expiry.
struct EntryExpiry;

impl<K, V, H> Expiry<K, Arc<CacheEntry<V, H>>> for EntryExpiry {
    fn expire_after_create(&self, _: &K, entry: &Arc<CacheEntry<V, H>>, _: std::time::Instant) -> Option<Duration> {
        Some(entry.until.saturating_duration_since(Instant::now()))
    }
}

impl<K, V, H> MemoryReadCache<K, V, H>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    H: Send + Sync + 'static,
{
    /// An empty cache of at most `cap` bytes. `hold` creates the `H` of an entry from its size in bytes.
    pub fn new(cap: u64, hold: impl Fn(u64) -> H + Send + Sync + 'static) -> Self {
        let weigh =
            |_: &K, entry: &Arc<CacheEntry<V, H>>| u32::try_from(entry.bytes + ENTRY_OVERHEAD).unwrap_or(u32::MAX);
        let entries = Cache::builder().max_capacity(cap).weigher(weigh).expire_after(EntryExpiry).build();
        Self { entries, has_entries: AtomicBool::new(false), hold: Box::new(hold) }
    }
}

impl<K, V, H> ReadCache<K, V> for MemoryReadCache<K, V, H>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    H: Send + Sync + 'static,
{
    async fn get(&self, key: &K) -> Option<CachedValue<V>> {
        if !self.has_entries.load(Ordering::Relaxed) {
            return None;
        }
        let entry = self.entries.get(key)?;
        let fresh_for = entry.until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())?;
        Some(CachedValue { value: Arc::clone(&entry.value), fresh_for })
    }

    async fn put(&self, key: K, value: V, bytes: usize, fresh_for: Duration) {
        let entry = CacheEntry {
            value: Arc::new(value),
            until: Instant::now() + fresh_for,
            bytes,
            _guard: (self.hold)(bytes as u64),
        };
        self.has_entries.store(true, Ordering::Relaxed);
        self.entries.insert(key, Arc::new(entry));
    }

    fn forget(&self, key: &K) {
        self.entries.invalidate(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// moka reads the clock of the machine, which the tests cannot pause. No test runs for a minute.
    const MINUTE: Duration = Duration::from_secs(60);

    /// Counts the bytes of all entries.
    struct ByteCount(Arc<AtomicU64>, u64);

    impl Drop for ByteCount {
        fn drop(&mut self) {
            self.0.fetch_sub(self.1, Ordering::Relaxed);
        }
    }

    fn cache(cap: u64) -> (MemoryReadCache<u32, &'static str, ByteCount>, Arc<AtomicU64>) {
        let held = Arc::<AtomicU64>::default();
        let own = Arc::clone(&held);
        let hold = move |bytes| {
            own.fetch_add(bytes, Ordering::Relaxed);
            ByteCount(Arc::clone(&own), bytes)
        };
        (MemoryReadCache::new(cap, hold), held)
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_returned_while_it_is_fresh() {
        let (cache, held) = cache(1 << 20);
        assert!(cache.get(&1).await.is_none());
        cache.put(1, "one", 3, 10 * MINUTE).await;
        cache.put(2, "two", 3, MINUTE).await;
        let found = cache.get(&1).await.unwrap();
        assert_eq!(*found.value, "one");
        assert_eq!(found.fresh_for, 10 * MINUTE);
        assert_eq!(held.load(Ordering::Relaxed), 6);
        assert!(cache.get(&3).await.is_none());
        tokio::time::advance(MINUTE - Duration::from_millis(1)).await;
        assert!(cache.get(&2).await.is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(cache.get(&2).await.is_none());
        assert_eq!(cache.get(&1).await.unwrap().fresh_for, 9 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_value_is_not_returned() {
        let (cache, held) = cache(1 << 20);
        cache.put(1, "one", 3, MINUTE).await;
        cache.put(1, "other", 5, MINUTE).await;
        assert_eq!(*cache.get(&1).await.unwrap().value, "other");
        cache.forget(&1);
        assert!(cache.get(&1).await.is_none());
        cache.entries.run_pending_tasks();
        assert_eq!(held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded() {
        let (cache, held) = cache(100 * 1024);
        for key in 0..1000 {
            cache.put(key, "", 1024, MINUTE).await;
        }
        // Each run evicts only some entries.
        (0..100).for_each(|_| cache.entries.run_pending_tasks());
        assert!(held.load(Ordering::Relaxed) <= 100 * 1024, "{held:?}");
    }
}
