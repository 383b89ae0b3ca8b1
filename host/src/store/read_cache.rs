//! The cache of fresh values.

use std::sync::Arc;
use std::time::Duration;

/// A value from the cache.
#[derive(Debug)]
pub struct CachedValue<V> {
    /// The value.
    pub value: Arc<V>,
    /// The remaining time for which the value is fresh; never zero.
    pub fresh_for: Duration,
}

/// Keeps values while they are fresh, within a bound on their bytes. It may forget any of them at any time.
///
/// Every read asks the cache. Futures are therefore not boxed: a future that has nothing to wait for costs nothing.
pub trait ReadCache<K, V>: Send + Sync {
    /// The value under `key`, if it is fresh.
    fn get(&self, key: &K) -> impl Future<Output = Option<CachedValue<V>>> + Send;

    /// Stores `value`, of `bytes` bytes, under `key` for `fresh_for`. Replaces an earlier value.
    fn put(&self, key: K, value: V, bytes: usize, fresh_for: Duration) -> impl Future<Output = ()> + Send;

    /// Forgets the value under `key`. After the return, this process does not receive it any more. Other processes that
    /// share the cache are notified asynchronously.
    fn forget(&self, key: &K);
}
