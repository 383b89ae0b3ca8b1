//! Listings that are kept: what a provider listed, cleaned, packed, and served page by page for as long as its list stands.
//!
//! An entry takes its texts and about 14 bytes more (postcard: a byte for each field's length or absence, four for its
//! place). All listings together have a bound, and count against the memory of all calls; the one that was walked longest
//! ago gives way. Filled by the gateway, as far as somebody walks; knows nothing of calls.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::listing::Listed;
use super::paging::Paging;
use super::{Mount, Snapshot};
use crate::admission::budget::{self, Budget};
use crate::model::error::show_bytes;
use crate::model::{Guard, Resource, text};

/// For how long a listing is served without asking whether it still stands: no client sees two lists in one moment, and a
/// crowd of them costs one call.
pub const KEEP: Duration = Duration::from_secs(1);

/// Reasons that a listing keeps for what it left out.
const NOTICES: usize = 16;

/// The memory of all listings.
pub struct Shelves {
    cap: u64,
    used: AtomicU64,
    budget: Arc<Budget>,
    clock: AtomicU64,
}

impl Shelves {
    /// A quarter of `budget`: what an operator gives belljar is for calls first.
    pub fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { cap: budget.cap() / 4, used: AtomicU64::new(0), budget, clock: AtomicU64::new(1) })
    }

    /// Whether some listing has to give way.
    pub fn is_over(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.cap
    }
}

/// The listings of one mount, of one kind of entries: the one that is walked now, and the one before it, in which walks
/// that began in it go on.
pub struct Slot<T> {
    both: RwLock<Both<T>>,
    /// The turn of whoever finds out whether the list still stands.
    pub turn: tokio::sync::Mutex<()>,
}

/// Two listings, either of which may be there.
struct Both<T> {
    current: Option<Arc<Kept<T>>>,
    previous: Option<Arc<Kept<T>>>,
}

impl<T> Both<T> {
    const NONE: Self = Self { current: None, previous: None };

    fn iter(&self) -> impl Iterator<Item = &Arc<Kept<T>>> {
        self.current.iter().chain(&self.previous)
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { both: RwLock::new(Both::NONE), turn: tokio::sync::Mutex::default() }
    }
}

impl<T> Slot<T> {
    fn read(&self) -> RwLockReadGuard<'_, Both<T>> {
        self.both.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Both<T>> {
        self.both.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listing that is walked now.
    pub fn current(&self) -> Option<Arc<Kept<T>>> {
        self.read().current.clone()
    }

    /// The listing of that number.
    pub fn find(&self, id: u32) -> Option<Arc<Kept<T>>> {
        self.read().iter().find(|kept| kept.id == id).cloned()
    }

    /// Puts a new listing in place.
    pub fn put(&self, kept: Arc<Kept<T>>) {
        let mut both = self.write();
        both.previous = both.current.replace(kept);
    }

    /// Forgets everything; whoever walks goes on with what it holds.
    pub fn clear(&self) {
        *self.write() = Both::NONE;
    }

    /// When the listing that was walked longest ago was walked, if there is one.
    pub fn oldest(&self) -> Option<u64> {
        self.read().iter().map(|kept| kept.walked.load(Ordering::Relaxed)).min()
    }

    /// Forgets the listing that was walked longest ago.
    pub fn drop_oldest(&self) {
        let mut both = self.write();
        let oldest = both.iter().min_by_key(|kept| kept.walked.load(Ordering::Relaxed)).cloned();
        let is_oldest = |one: &mut Arc<Kept<T>>| oldest.as_ref().is_some_and(|oldest| Arc::ptr_eq(one, oldest));
        if both.current.take_if(is_oldest).is_none() {
            both.previous.take_if(is_oldest);
        }
    }
}

/// What comes next of the provider's list.
#[derive(Default)]
pub struct Filling {
    /// The provider's pages so far.
    pub paging: Paging,
    /// Hashes of the references that it gave, to find those that it gives twice.
    seen: HashSet<u64>,
}

/// How a list came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The provider has no more, or no more of it is served.
    Whole,
    /// The provider failed: it is asked again before long.
    Failed,
}

/// Entries, one after the other.
#[derive(Default)]
struct Shelf {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// What was left out, and after how many entries.
    notices: Vec<(usize, String)>,
    end: Option<End>,
    held: Option<budget::Held>,
}

/// One listing of one mount.
pub struct Kept<T> {
    id: u32,
    revision: Option<String>,
    shelves: Arc<Shelves>,
    shelf: RwLock<Shelf>,
    /// The turn of whoever asks the provider for more.
    pub filling: tokio::sync::Mutex<Filling>,
    standing: Mutex<Instant>,
    walked: AtomicU64,
    hasher: RandomState,
    kind: PhantomData<fn() -> T>,
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        self.shelves.used.fetch_sub(self.write().weight(), Ordering::Relaxed);
    }
}

impl Shelf {
    fn weight(&self) -> u64 {
        (self.bytes.len() + self.ends.len() * size_of::<u32>()) as u64
    }
}

impl<T> Kept<T> {
    /// An empty one, of a list that has this revision.
    pub fn new(shelves: &Arc<Shelves>, revision: Option<String>) -> Arc<Self> {
        // Numbers are drawn, so that a cursor of another run does not fit by chance.
        let id = u32::try_from(RandomState::new().hash_one(0) & u64::from(u32::MAX)).unwrap_or_default();
        let shelf = Shelf { held: Some(shelves.budget.hold(0)), ..Shelf::default() };
        Arc::new(Self {
            id,
            revision,
            shelves: Arc::clone(shelves),
            shelf: RwLock::new(shelf),
            filling: tokio::sync::Mutex::default(),
            standing: Mutex::new(Instant::now()),
            walked: AtomicU64::new(shelves.clock.fetch_add(1, Ordering::Relaxed)),
            hasher: RandomState::new(),
            kind: PhantomData,
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, Shelf> {
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shelf> {
        self.shelf.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn standing(&self) -> MutexGuard<'_, Instant> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its number, for cursors.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The revision that the list had when this was begun.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// Whether it may be served without asking anybody.
    pub fn stands(&self) -> bool {
        self.standing().elapsed() < KEEP && self.read().end != Some(End::Failed)
    }

    /// Whether the provider failed in it.
    pub fn has_failed(&self) -> bool {
        self.read().end == Some(End::Failed)
    }

    /// Notes that it was seen to stand.
    pub fn stand(&self) {
        *self.standing() = Instant::now();
    }

    /// Notes that it may not stand any more.
    pub fn doubt(&self) {
        let past = Instant::now().checked_sub(KEEP);
        past.into_iter().for_each(|past| *self.standing() = past);
    }

    /// How many entries there are so far.
    pub fn len(&self) -> usize {
        self.read().ends.len()
    }

    /// Whether there is none so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing is added any more.
    pub fn is_ended(&self) -> bool {
        self.read().end.is_some()
    }

    /// What was left out behind `from` entries and before `to`, or up to the end where nothing follows.
    pub fn notices(&self, from: usize, to: usize) -> Vec<String> {
        let shelf = self.read();
        let is_last = shelf.end.is_some() && to >= shelf.ends.len();
        let here = shelf.notices.iter().filter(|(at, _)| *at >= from && (*at < to || is_last));
        here.map(|(_, why)| why.clone()).collect()
    }

    /// A digest of the first entries, `most` of them at the most.
    pub fn digest(&self, most: usize) -> blake3::Hash {
        let shelf = self.read();
        let count = most.min(shelf.ends.len());
        let bytes = count.checked_sub(1).and_then(|last| shelf.ends.get(last)).map_or(0, |end| *end as usize);
        blake3::hash(shelf.bytes.get(..bytes).unwrap_or_default())
    }

    /// Ends it where the provider failed.
    pub fn fail(&self, why: String) {
        self.write().end_with(End::Failed, why);
    }

    /// Ends it with a notice: more of it is not served.
    pub fn cut(&self, why: String) {
        self.write().end_with(End::Whole, why);
    }
}

impl Shelf {
    /// Notes why something was left out; once, where page after page has the same reason.
    fn notice(&mut self, why: String) {
        let at = self.ends.len();
        if self.notices.len() < NOTICES && !self.notices.iter().any(|(_, known)| *known == why) {
            self.notices.push((at, why));
        }
    }

    /// Ends it with a notice, for which there is always room.
    fn end_with(&mut self, end: End, why: String) {
        self.end = Some(end);
        self.notices.push((self.ends.len(), why));
    }
}

impl<T: Listed> Kept<T> {
    /// Adds a page of the provider's: what is fit to be shown, once each, up to what the mount's limits and the shelves
    /// take. `next`: the provider's next cursor. Gives why no more is fetched, where the provider does not page as it should.
    pub fn add(
        &self,
        (mount, snapshot): (&Mount, &Snapshot),
        filling: &mut Filling,
        entries: Vec<T>,
        next: Option<String>,
    ) -> Option<String> {
        let (mut bad, mut reason) = (0u32, None);
        let limits = mount.gate.limits();
        let mut shelf = self.write();
        let (before, there) = (shelf.weight(), shelf.ends.len());
        // The kind of growth that doubles would take twice what is counted.
        let more = entries.iter().map(Listed::weight).sum::<usize>() / 2;
        if shelf.bytes.capacity() - shelf.bytes.len() < more {
            let whole = shelf.bytes.len();
            shelf.bytes.reserve_exact(more.max(whole / 8));
        }
        let mut cut = None;
        for entry in entries {
            if shelf.ends.len() as u64 >= limits.resources && Guard::Entries.is_on() {
                cut = Some(format!(
                    "cut: it lists more than {} resources; to serve more, set resources under [mounts.{}.limits]",
                    limits.resources, mount.name
                ));
                break;
            }
            match entry.clean().and_then(|entry| entry.belongs(mount, snapshot).map(|()| entry)) {
                Ok(entry) if !filling.seen.insert(self.hasher.hash_one(entry.key())) && Guard::Duplicates.is_on() => {
                    bad += 1;
                    reason.get_or_insert_with(|| {
                        format!("{} is listed twice", text::quoted(&format!("{}{}", mount.base, entry.key()), 200))
                    });
                }
                Ok(entry) => {
                    // Texts and numbers always serialise, and memory takes whatever is written to it.
                    let _ = postcard::to_io(&entry, &mut shelf.bytes);
                    let end = u32::try_from(shelf.bytes.len()).unwrap_or(u32::MAX);
                    shelf.ends.push(end);
                }
                Err(why) => {
                    bad += 1;
                    reason.get_or_insert(why);
                }
            }
            if shelf.weight() > (self.shelves.cap / 2).min(u32::MAX.into()) {
                cut = Some(format!(
                    "cut: its listing takes more than {} of memory; to serve more, set a larger total-memory",
                    show_bytes(self.shelves.cap / 2)
                ));
                break;
            }
        }
        if let Some(reason) = reason {
            shelf.notice(format!("{bad} of its entries left out, the first because {reason}"));
        }
        let new = shelf.ends.len() - there;
        let turned = filling.paging.turn(new, next.filter(|_| cut.is_none()));
        if !matches!(turned, Ok(true)) {
            // Also where it does not page as it should: asked again, it would do the same.
            shelf.end = Some(End::Whole);
        }
        let fault = turned.err();
        cut = cut.or_else(|| {
            let cure = format!("to see what its author has to mend, run: belljar check --conformance {}", mount.file);
            Some(format!("cut: {}; {cure}", fault.as_ref()?))
        });
        cut.into_iter().for_each(|why| shelf.end_with(End::Whole, why));
        if shelf.end.is_some() {
            (filling.seen, filling.paging) = (HashSet::new(), Paging::default());
            shelf.bytes.shrink_to_fit();
            shelf.ends.shrink_to_fit();
        }
        let grown = shelf.weight() - before;
        self.shelves.used.fetch_add(grown, Ordering::Relaxed);
        shelf.held.iter_mut().for_each(|held| held.add(grown));
        fault
    }

    /// The entries from `from` on, until `take` has had enough of them (it says so), each made absolute; an entry that is not this mount's any more
    /// is left out, and told to `bad`. Gives where it stopped.
    pub fn walk(
        &self,
        (mount, snapshot): (&Mount, &Snapshot),
        from: usize,
        mut take: impl FnMut(T) -> bool,
        mut bad: impl FnMut(String),
    ) -> usize {
        self.walked.store(self.shelves.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let shelf = self.read();
        let mut start = from.checked_sub(1).map_or(Some(0), |last| shelf.ends.get(last).copied()).unwrap_or(u32::MAX);
        let mut at = from;
        for end in shelf.ends.get(from..).unwrap_or_default() {
            let packed = shelf.bytes.get(start as usize..*end as usize).unwrap_or_default();
            // What was packed here unpacks here.
            if let Ok(entry) = postcard::from_bytes::<T>(packed) {
                match entry.place(mount, snapshot) {
                    Ok(entry) => {
                        if !take(entry) {
                            return at;
                        }
                    }
                    Err(why) => bad(why),
                }
            }
            start = *end;
            at += 1;
        }
        at
    }
}

impl Kept<Resource> {
    /// The reference among the entries that is `reference`, or differs from it in the case of letters only.
    pub fn find_ignoring_case(&self, reference: &str) -> Option<String> {
        let shelf = self.read();
        let (mut start, mut alike) = (0, None);
        for end in &shelf.ends {
            let packed = shelf.bytes.get(start as usize..*end as usize).unwrap_or_default();
            start = *end;
            // The reference comes first in an entry: nothing else has to be unpacked.
            let Ok((given, _)) = postcard::take_from_bytes::<&str>(packed) else { continue };
            if given == reference {
                return Some(given.to_owned());
            }
            if alike.is_none() && given.eq_ignore_ascii_case(reference) {
                alike = Some(given.to_owned());
            }
        }
        alike
    }
}

#[cfg(test)]
mod tests;
