//! Cached listings: the entries that a provider listed, checked and serialised, and served page by page while the list
//! is current.
//!
//! An entry takes the bytes of its texts and about 14 more: postcard writes one byte for each field's length or absence,
//! and the entry's end takes four.
//!
//! This module neither calls providers nor interprets entries: `catalog::cached_entries` adds entries and reads them.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::listing_memory::ListingMemory;
use super::notice::Notice;
use crate::interfaces::paging::Paging;
use crate::limits::memory_budget;

/// A listing is served for this time without asking the provider whether it is current. Clients that list at the same
/// moment therefore see the same list and cost one call.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// See [`CachedListing::hash_of_first_steps`].
const HASH_STEP: usize = 256;

/// The most notices that one listing keeps about entries that were left out.
const MAX_NOTICES: usize = 16;

/// The cached listings of one mount for one kind of entries: the current one, and the previous one for list operations
/// that began in it.
pub struct ListingSlot<T> {
    listings: RwLock<SlotListings<T>>,
    /// Held by the one request that checks whether the list is still current.
    pub check_lock: tokio::sync::Mutex<()>,
}

/// The two listings of a slot.
struct SlotListings<T> {
    current: Option<Arc<CachedListing<T>>>,
    previous: Option<Arc<CachedListing<T>>>,
}

impl<T> SlotListings<T> {
    const NONE: Self = Self { current: None, previous: None };

    fn iter(&self) -> impl Iterator<Item = &Arc<CachedListing<T>>> {
        self.current.iter().chain(&self.previous)
    }
}

impl<T> Default for ListingSlot<T> {
    fn default() -> Self {
        Self { listings: RwLock::new(SlotListings::NONE), check_lock: tokio::sync::Mutex::default() }
    }
}

impl<T> ListingSlot<T> {
    fn read(&self) -> RwLockReadGuard<'_, SlotListings<T>> {
        self.listings.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, SlotListings<T>> {
        self.listings.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listing in which new list operations begin.
    pub fn current(&self) -> Option<Arc<CachedListing<T>>> {
        self.read().current.clone()
    }

    /// The listing with this id.
    pub fn find(&self, id: u32) -> Option<Arc<CachedListing<T>>> {
        self.read().iter().find(|listing| listing.id == id).cloned()
    }

    /// Makes `listing` the current one.
    pub fn set_current(&self, listing: Arc<CachedListing<T>>) {
        let mut listings = self.write();
        listings.previous = listings.current.replace(listing);
    }

    /// Forgets both listings. A list operation that holds one of them continues in it.
    pub(super) fn clear(&self) {
        *self.write() = SlotListings::NONE;
    }

    /// The last use of the least recently used listing, by [`ListingMemory::tick`]. `None` if the slot is empty.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.read().iter().map(|listing| listing.last_used.load(Ordering::Relaxed)).min()
    }

    /// Forgets the least recently used listing.
    pub(super) fn drop_oldest(&self) {
        let mut listings = self.write();
        let oldest = listings.iter().min_by_key(|listing| listing.last_used.load(Ordering::Relaxed)).cloned();
        let is_oldest =
            |one: &mut Arc<CachedListing<T>>| oldest.as_ref().is_some_and(|oldest| Arc::ptr_eq(one, oldest));
        if listings.current.take_if(is_oldest).is_none() {
            listings.previous.take_if(is_oldest);
        }
    }
}

/// How much of the provider's list was fetched.
#[derive(Default)]
pub struct FetchState {
    /// The provider's pages so far.
    pub paging: Paging,
    /// Hashes of the references so far, to find duplicates.
    pub(super) seen: HashSet<u64>,
}

/// The way a list ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListEnd {
    /// The provider has no more entries, or the rest is not served.
    Complete,
    /// The provider failed. It is asked again soon.
    Failed,
}

/// Packed entries, one after the other.
#[derive(Default)]
pub(super) struct PackedEntries {
    pub(super) bytes: Vec<u8>,
    /// The end of each entry in `bytes`.
    pub(super) ends: Vec<u32>,
    /// Notices about entries that were left out, each with the number of entries before it.
    notices: Vec<(usize, Notice)>,
    pub(super) end: Option<ListEnd>,
    pub(super) reservation: Option<memory_budget::Reservation>,
}

impl PackedEntries {
    /// The memory of the entries in bytes.
    pub(super) fn weight(&self) -> u64 {
        (self.bytes.len() + self.ends.len() * size_of::<u32>()) as u64
    }

    /// Adds a notice. A notice that is the same on every page is stored once.
    pub(super) fn add_notice(&mut self, notice: Notice) {
        let at = self.ends.len();
        if self.notices.len() < MAX_NOTICES && !self.notices.iter().any(|(_, known)| *known == notice) {
            self.notices.push((at, notice));
        }
    }

    /// Ends the list with a notice, which is stored even if there are [`MAX_NOTICES`] already.
    pub(super) fn end_with(&mut self, end: ListEnd, notice: Notice) {
        self.end = Some(end);
        self.notices.push((self.ends.len(), notice));
    }
}

/// One listing of one mount.
pub struct CachedListing<T> {
    id: u32,
    revision: Option<String>,
    pub(super) memory: Arc<ListingMemory>,
    entries: RwLock<PackedEntries>,
    /// Held by the one request that fetches more from the provider.
    pub fetching: tokio::sync::Mutex<FetchState>,
    /// The last time at which the list was known to be current.
    current_at: Mutex<Instant>,
    last_used: AtomicU64,
    /// Hashes of the first [`HASH_STEP`] entries, of twice as many, and so on.
    hash_steps: Mutex<Vec<blake3::Hash>>,
    pub(super) hasher: RandomState,
    kind: PhantomData<fn() -> T>,
}

impl<T> Drop for CachedListing<T> {
    fn drop(&mut self) {
        self.memory.shrink(self.write().weight());
    }
}

impl<T> CachedListing<T> {
    /// An empty listing of a list with this revision.
    pub fn new(memory: &Arc<ListingMemory>, revision: Option<String>) -> Arc<Self> {
        // Ids are random, so that a cursor of an earlier process does not match by chance.
        let id = u32::try_from(RandomState::new().hash_one(0) & u64::from(u32::MAX)).unwrap_or_default();
        let entries = PackedEntries { reservation: Some(memory.reserve()), ..PackedEntries::default() };
        Arc::new(Self {
            id,
            revision,
            memory: Arc::clone(memory),
            entries: RwLock::new(entries),
            fetching: tokio::sync::Mutex::default(),
            current_at: Mutex::new(Instant::now()),
            last_used: AtomicU64::new(memory.tick()),
            hash_steps: Mutex::default(),
            hasher: RandomState::new(),
            kind: PhantomData,
        })
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, PackedEntries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, PackedEntries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn current_at(&self) -> MutexGuard<'_, Instant> {
        self.current_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id, for cursors.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The revision of the list when the listing was begun.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// True if it may be served without asking the provider: it was current less than `RECHECK_AFTER` ago, and did not fail.
    pub fn is_current(&self) -> bool {
        self.current_at().elapsed() < RECHECK_AFTER && self.read().end != Some(ListEnd::Failed)
    }

    /// True if the provider failed while the listing was fetched.
    pub fn has_failed(&self) -> bool {
        self.read().end == Some(ListEnd::Failed)
    }

    /// Marks it as current from now on.
    pub fn mark_current(&self) {
        *self.current_at() = Instant::now();
    }

    /// Marks it as possibly outdated.
    pub fn mark_outdated(&self) {
        let past = Instant::now().checked_sub(RECHECK_AFTER);
        past.into_iter().for_each(|past| *self.current_at() = past);
    }

    /// Marks it as used now.
    pub(super) fn mark_used(&self) {
        self.last_used.store(self.memory.tick(), Ordering::Relaxed);
    }

    /// The number of entries so far.
    pub fn len(&self) -> usize {
        self.read().ends.len()
    }

    /// True if there are no entries so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if no more entries will be added.
    pub fn is_ended(&self) -> bool {
        self.read().end.is_some()
    }

    /// The notices between the entries `from` and `to`. Includes the last notices if `to` is the end of the list.
    pub fn notices(&self, from: usize, to: usize) -> Vec<Notice> {
        let entries = self.read();
        let is_last = entries.end.is_some() && to >= entries.ends.len();
        let here = entries.notices.iter().filter(|(at, _)| *at >= from && (*at < to || is_last));
        here.map(|(_, notice)| notice.clone()).collect()
    }

    /// A hash of the first `count` entries, which is made in steps: the next one of the same listing costs what is new.
    pub fn hash_of_first_steps(&self, count: usize) -> blake3::Hash {
        let entries = self.read();
        let end =
            |count: usize| count.checked_sub(1).and_then(|last| entries.ends.get(last)).map_or(0, |end| *end as usize);
        let bytes = |from: usize, to: usize| entries.bytes.get(end(from)..end(to)).unwrap_or_default();
        let mut steps = self.hash_steps.lock().unwrap_or_else(PoisonError::into_inner);
        let (whole, count) = (count.min(entries.ends.len()) / HASH_STEP, count.min(entries.ends.len()));
        let next = |before: Option<&blake3::Hash>, new: &[u8]| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(before.map_or([0; 32].as_slice(), |hash| hash.as_bytes())).update(new);
            hasher.finalize()
        };
        while steps.len() < whole {
            let from = steps.len() * HASH_STEP;
            let step = next(steps.last(), bytes(from, from + HASH_STEP));
            steps.push(step);
        }
        let before = whole.checked_sub(1).and_then(|last| steps.get(last));
        next(before, bytes(whole * HASH_STEP, count))
    }

    /// A hash of the first `most` entries.
    pub fn hash_of_first(&self, most: usize) -> blake3::Hash {
        let entries = self.read();
        let count = most.min(entries.ends.len());
        let bytes = count.checked_sub(1).and_then(|last| entries.ends.get(last)).map_or(0, |end| *end as usize);
        blake3::hash(entries.bytes.get(..bytes).unwrap_or_default())
    }

    /// The names and hashes of at most `count` entries, starting at `from`. True: there are no more in the whole list.
    pub fn hashes(&self, from: usize, count: usize, hasher: &impl BuildHasher) -> (Vec<(String, u64)>, bool) {
        let entries = self.read();
        let mut start = from.checked_sub(1).map_or(Some(0), |last| entries.ends.get(last).copied()).unwrap_or(u32::MAX);
        let ends = entries.ends.get(from..).unwrap_or_default();
        let hashes = ends.iter().take(count).filter_map(|end| {
            let packed = entries.bytes.get(start as usize..*end as usize).unwrap_or_default();
            start = *end;
            // The name is the first field of an entry.
            let (name, _) = postcard::take_from_bytes::<&str>(packed).ok()?;
            Some((name.to_owned(), hasher.hash_one(packed)))
        });
        (hashes.collect(), ends.len() <= count && entries.end.is_some())
    }

    /// Ends the list because the provider failed with `why`.
    pub fn fail(&self, why: String) {
        self.write().end_with(ListEnd::Failed, Notice::LeftOut(why));
    }

    /// Ends the list because the rest is not served. `why` says how to get the rest.
    pub fn truncate(&self, why: String) -> Notice {
        let notice = Notice::Cut(why);
        self.write().end_with(ListEnd::Complete, notice.clone());
        notice
    }
}
