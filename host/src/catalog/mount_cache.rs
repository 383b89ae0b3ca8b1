//! Caches of listings by mount name and [`MountKey`]. The mount does not own them: a reload that changes nothing visible
//! to the provider keeps them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cached_listing::ListingSlot;
use super::definitions::DefinitionSlot;
use super::listing_memory::ListingMemory;
use super::mount_key::MountKey;
use super::skills::SkillSlot;
use crate::interfaces::tools::ToolDefinition;
use crate::model::{MountName, Prompt, Resource, Template};
use crate::policy::PrincipalId;

/// The most principals whose own listings of one mount are remembered.
const MAX_PRINCIPALS: usize = 256;

/// Values of [`MountCache::is_worth_sharing`].
const WORTH_SHARING: u8 = 1;
const NOT_WORTH_SHARING: u8 = 2;

/// The cache of one version of a mount.
pub struct MountCache {
    key: MountKey,
    generation: AtomicU64,
    /// [`WORTH_SHARING`], [`NOT_WORTH_SHARING`], or 0 if that is not known.
    sharing: AtomicU8,
    /// True after a change was seen, until the other replicas are told.
    is_changing: AtomicBool,
    /// The listings that all principals share.
    pub shared: Arc<Listings>,
    /// The listings of a mount that answers each principal with secrets of its own.
    of_principals: Mutex<HashMap<PrincipalId, Arc<Listings>>>,
}

/// The cached listings of a mount, of all kinds.
#[derive(Default)]
pub struct Listings {
    /// Its listings of resources.
    pub resources: ListingSlot<Resource>,
    /// Its listings of templates.
    pub templates: ListingSlot<Template>,
    /// Its tools.
    pub tools: DefinitionSlot<ToolDefinition>,
    /// Its prompts.
    pub prompts: DefinitionSlot<Prompt>,
    /// Its skills.
    pub skills: SkillSlot,
}

impl Listings {
    /// The last use of the least recently used listing, by [`ListingMemory::tick`].
    fn oldest(&self) -> Option<u64> {
        [self.resources.oldest(), self.templates.oldest(), self.skills.oldest()].into_iter().flatten().min()
    }

    /// Forgets the least recently used listing.
    fn drop_oldest(&self) {
        if self.skills.oldest().is_some_and(|at| Some(at) == self.oldest()) {
            return self.skills.clear();
        }
        let (resources, templates) = (self.resources.oldest(), self.templates.oldest());
        if templates.is_none_or(|at| resources.is_some_and(|other| other <= at)) {
            self.resources.drop_oldest();
        } else {
            self.templates.drop_oldest();
        }
    }
}

impl MountCache {
    /// An empty cache.
    pub(super) fn new(key: MountKey) -> Self {
        let generation = AtomicU64::new(random_generation());
        let (sharing, is_changing) = (AtomicU8::new(0), AtomicBool::new(false));
        Self { key, generation, sharing, is_changing, shared: Arc::default(), of_principals: Mutex::default() }
    }

    /// The version of the mount.
    pub fn key(&self) -> MountKey {
        self.key
    }

    /// The generation of cached answers: answers of another generation are invalid.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// True after a change was seen, until the other replicas are told. Answers that replicas share may be outdated.
    pub fn is_changing(&self) -> bool {
        self.is_changing.load(Ordering::Acquire)
    }

    /// Notes that a change was seen, or that the other replicas are told.
    pub fn set_changing(&self, is_changing: bool) {
        self.is_changing.store(is_changing, Ordering::Release);
    }

    /// True if the last answer was worth to be shared with other replicas. `None` before the first one.
    pub fn is_worth_sharing(&self) -> Option<bool> {
        match self.sharing.load(Ordering::Relaxed) {
            WORTH_SHARING => Some(true),
            NOT_WORTH_SHARING => Some(false),
            _ => None,
        }
    }

    /// Notes whether an answer was worth to be shared with other replicas.
    pub fn note_worth(&self, is_worth: bool) {
        if self.is_worth_sharing() != Some(is_worth) {
            self.sharing.store(if is_worth { WORTH_SHARING } else { NOT_WORTH_SHARING }, Ordering::Relaxed);
        }
    }

    /// Invalidates all cached answers. For changes of unknown extent.
    pub fn invalidate_answers(&self) {
        self.generation.store(random_generation(), Ordering::Release);
    }

    fn of_principals(&self) -> MutexGuard<'_, HashMap<PrincipalId, Arc<Listings>>> {
        self.of_principals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listings of one principal alone. When there are many, those of the principal that listed longest ago are
    /// forgotten.
    pub(super) fn of_principal(&self, principal: PrincipalId) -> Arc<Listings> {
        let mut all = self.of_principals();
        let is_full = all.len() >= MAX_PRINCIPALS && !all.contains_key(&principal);
        let oldest = all.iter().filter(|_| is_full).min_by_key(|(_, listings)| listings.oldest());
        if let Some(oldest) = oldest.map(|(principal, _)| *principal) {
            all.remove(&oldest);
        }
        match all.entry(principal) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(new) => Arc::clone(new.insert(Arc::default())),
        }
    }

    /// All listings.
    fn listings(&self) -> Vec<Arc<Listings>> {
        self.of_principals().values().chain([&self.shared]).cloned().collect()
    }

    /// Marks the listings as possibly outdated: the provider is asked before they are served again.
    pub fn mark_listings_outdated(&self) {
        for listings in self.listings() {
            listings.resources.current().iter().for_each(|listing| listing.mark_outdated());
            listings.templates.current().iter().for_each(|listing| listing.mark_outdated());
            listings.tools.current().iter().for_each(|tools| tools.mark_outdated());
            listings.prompts.current().iter().for_each(|prompts| prompts.mark_outdated());
        }
    }

    /// Forgets the listings.
    pub(super) fn clear_listings(&self) {
        self.of_principals().clear();
        self.shared.resources.clear();
        self.shared.templates.clear();
        self.shared.tools.set(None);
        self.shared.prompts.set(None);
        self.shared.skills.clear();
    }

    /// The last use of the least recently used listing, by [`ListingMemory::tick`].
    fn oldest(&self) -> Option<u64> {
        self.listings().iter().filter_map(|listings| listings.oldest()).min()
    }

    /// Forgets the least recently used listing.
    fn drop_oldest(&self) {
        let all = self.listings();
        let oldest = all.iter().filter_map(|listings| Some((listings.oldest()?, listings))).min_by_key(|(at, _)| *at);
        oldest.iter().for_each(|(_, listings)| listings.drop_oldest());
    }
}

/// A random generation. A cache that was dropped and created again for the same key must not find the old answers.
fn random_generation() -> u64 {
    RandomState::new().hash_one(0)
}

/// The caches of all served mounts.
pub struct MountCaches {
    memory: Arc<ListingMemory>,
    all: Mutex<HashMap<MountName, Arc<MountCache>>>,
}

impl MountCaches {
    /// No caches yet. Listings count against `memory`.
    pub(super) fn new(memory: Arc<ListingMemory>) -> Self {
        Self { memory, all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<MountName, Arc<MountCache>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of all listings.
    pub fn memory(&self) -> &Arc<ListingMemory> {
        &self.memory
    }

    /// The cache of the mount `name`, if it has this key. Otherwise an empty cache, which is registered by
    /// [`MountCaches::replace`].
    pub(super) fn find_or_create(&self, name: &MountName, key: MountKey) -> Arc<MountCache> {
        let found = self.all().get(name).filter(|cache| cache.key == key).cloned();
        found.unwrap_or_else(|| Arc::new(MountCache::new(key)))
    }

    /// Registers the caches of all served mounts, and drops all others.
    pub(super) fn replace<'m>(&self, served: impl Iterator<Item = (&'m MountName, &'m Arc<MountCache>)>) {
        *self.all() = served.map(|(name, cache)| (name.clone(), Arc::clone(cache))).collect();
    }

    /// Forgets listings, the least recently used first, until all fit into their memory.
    pub fn evict(&self) {
        while self.memory.is_over() {
            let all = self.all();
            let oldest = all.values().filter_map(|cache| Some((cache.oldest()?, cache))).min_by_key(|(at, _)| *at);
            let Some(cache) = oldest.map(|(_, cache)| Arc::clone(cache)) else { break };
            drop(all);
            cache.drop_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::cached_listing::CachedListing;
    use crate::catalog::mount::tests::mount;
    use crate::limits::memory_budget::MemoryBudget;
    use crate::policy::{Evidence, KeyIdentity, authenticate};

    fn caches() -> MountCaches {
        MountCaches::new(ListingMemory::new(MemoryBudget::new(1 << 30)))
    }

    #[test]
    fn a_cache_outlives_its_mount_while_its_key_is_served() {
        let (caches, old) = (caches(), mount("a", "a://"));
        let (name, key) = (&old.name, old.cached.key());
        assert!(!Arc::ptr_eq(&caches.find_or_create(name, key), &old.cached), "nothing is served yet");
        caches.replace([(name, &old.cached)].into_iter());
        let listing = CachedListing::new(caches.memory(), None);
        old.cached.shared.resources.set_current(Arc::clone(&listing));
        let new = caches.find_or_create(name, key);
        assert!(new.shared.resources.current().is_some_and(|found| Arc::ptr_eq(&found, &listing)));
        assert_eq!(new.generation(), old.cached.generation());

        let other = mount("a", "b://").cached.key();
        assert!(
            caches.find_or_create(name, other).shared.resources.current().is_none(),
            "another version has its own listings"
        );
        assert!(caches.find_or_create(&mount("b", "a://").name, key).shared.resources.current().is_none());

        caches.replace(std::iter::empty());
        let again = caches.find_or_create(name, key);
        assert!(again.shared.resources.current().is_none());
        assert_ne!(again.generation(), old.cached.generation(), "earlier answers are invalid");
    }

    #[test]
    fn each_principal_has_listings_of_its_own() {
        let (caches, mount) = (caches(), mount("a", "a://"));
        let id = |number: usize| {
            let key = KeyIdentity { name: number.to_string(), ..KeyIdentity::default() };
            authenticate(Evidence::Key(key)).id()
        };
        let list = |number| {
            let own = mount.cached.of_principal(id(number));
            own.resources.set_current(CachedListing::new(caches.memory(), None));
        };
        list(0);
        assert!(mount.cached.of_principal(id(0)).resources.current().is_some());
        assert!(mount.cached.of_principal(id(1)).resources.current().is_none());
        assert!(mount.cached.shared.resources.current().is_none());
        (1..=MAX_PRINCIPALS).for_each(list);
        assert_eq!(mount.cached.of_principals().len(), MAX_PRINCIPALS);
        assert!(mount.cached.of_principal(id(MAX_PRINCIPALS)).resources.current().is_some());
        mount.cached.clear_listings();
        assert!(mount.cached.of_principal(id(MAX_PRINCIPALS)).resources.current().is_none());
    }

    #[test]
    fn a_change_invalidates_earlier_answers() {
        let cache = mount("a", "a://").cached;
        let before = cache.generation();
        cache.invalidate_answers();
        assert_ne!(cache.generation(), before);
    }

    #[test]
    fn the_least_recently_used_listing_of_all_mounts_is_evicted_first() {
        let budget = MemoryBudget::new(1 << 10);
        let caches = MountCaches::new(ListingMemory::new(budget));
        let [a, b] = ["a", "b"].map(|name| mount(name, "x://"));
        caches.replace([&a, &b].into_iter().map(|mount| (&mount.name, &mount.cached)));
        let listing = || CachedListing::new(caches.memory(), None);
        a.cached.shared.templates.set_current(CachedListing::new(caches.memory(), None));
        let (first, second) = (listing(), listing());
        b.cached.shared.resources.set_current(Arc::clone(&first));
        a.cached.shared.resources.set_current(Arc::clone(&second));
        let is_there = || {
            [
                a.cached.shared.templates.current().is_some(),
                b.cached.shared.resources.current().is_some(),
                a.cached.shared.resources.current().is_some(),
            ]
        };
        caches.evict();
        assert_eq!(is_there(), [true, true, true], "there is room");
        // Entries count, empty listings do not: this adds bytes that no listing gives back.
        caches.memory().grow(1 << 10);
        a.cached.drop_oldest();
        assert_eq!(is_there(), [false, true, true]);
        caches.evict();
        assert_eq!(is_there(), [false, false, false], "evicts until everything fits");
    }
}
