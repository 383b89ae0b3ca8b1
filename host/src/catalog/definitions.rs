//! The cached definitions of one mount: its tools or its prompts.
//!
//! They are few and small, so they are kept whole. A call uses the definitions that clients were shown, and a list asks
//! the provider again when they are old.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::listing_memory::ListingMemory;
use crate::interfaces::definitions::CheckedDefinitions;
use crate::limits::memory_budget::Reservation;

/// Definitions are served for this time without asking the provider whether they are current.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// A compiled schema takes about this many times its text.
const MEMORY_FACTOR: u64 = 8;

/// The definitions of one kind, once they were listed.
pub struct DefinitionSlot<D> {
    current: RwLock<Option<Arc<CachedDefinitions<D>>>>,
    /// Held by the one request that asks the provider.
    pub check_lock: tokio::sync::Mutex<()>,
}

impl<D> Default for DefinitionSlot<D> {
    fn default() -> Self {
        Self { current: RwLock::new(None), check_lock: tokio::sync::Mutex::default() }
    }
}

impl<D> DefinitionSlot<D> {
    /// The definitions that were listed last.
    pub fn current(&self) -> Option<Arc<CachedDefinitions<D>>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them.
    pub fn set(&self, definitions: Option<Arc<CachedDefinitions<D>>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = definitions;
    }
}

/// Definitions as they were listed at one time.
pub struct CachedDefinitions<D> {
    /// The definitions.
    pub list: CheckedDefinitions<D>,
    /// Why the provider could not list them; sanitised.
    pub failure: Option<String>,
    /// The revision of the mount's list at that time.
    pub revision: Option<String>,
    current_at: Mutex<Option<Instant>>,
    memory: Arc<ListingMemory>,
    _reservation: Reservation,
}

impl<D> CachedDefinitions<D> {
    /// Definitions that are current now. They count against `memory`.
    pub fn new(
        list: CheckedDefinitions<D>,
        failure: Option<String>,
        revision: Option<String>,
        memory: &Arc<ListingMemory>,
    ) -> Arc<Self> {
        let bytes = list.bytes as u64 * MEMORY_FACTOR;
        memory.grow(bytes);
        let mut reservation = memory.reserve();
        reservation.add(bytes);
        let current_at = Mutex::new(Some(Instant::now()));
        let memory = Arc::clone(memory);
        Arc::new(Self { list, failure, revision, current_at, memory, _reservation: reservation })
    }

    fn current_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.current_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a list may serve them without asking the provider.
    pub fn is_current(&self) -> bool {
        self.current_at().is_some_and(|at| at.elapsed() < RECHECK_AFTER)
    }

    /// Marks them as current from now on.
    pub fn mark_current(&self) {
        *self.current_at() = Some(Instant::now());
    }

    /// Marks them as possibly outdated.
    pub fn mark_outdated(&self) {
        *self.current_at() = None;
    }
}

impl<D> Drop for CachedDefinitions<D> {
    fn drop(&mut self) {
        self.memory.shrink(self.list.bytes as u64 * MEMORY_FACTOR);
    }
}
