//! Readings that more than one request receives: requests that arrive during the same read, and requests that arrive
//! while the reading is fresh.
//!
//! Only principals of the same class of access share: the same rules allowed them the read. A mount with secrets of its
//! own for each principal shares nothing between two principals. A mount that may ask a person reads for each caller
//! separately.
//!
//! A change makes the cached readings of all classes invalid, and also detaches the reads in flight. A client that is
//! notified of a change therefore reads the new contents.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use crate::catalog::{Mount, MountKey};
use crate::limits::memory_budget::{self, MemoryBudget};
use crate::model::{ReadError, Reading};
use crate::policy::{Access, AccessClass, Principal};
use crate::store::{CachedValue, MemoryReadCache, ReadCache};

/// Fresh readings may use one part in this many of the memory budget of all calls.
const BUDGET_DIVISOR: u64 = 8;

/// The largest reading in bytes that is shared. All waiting requests get their copies at the same moment. A larger
/// reading is read by each request in turn, within the mount's limits.
const MAX_SHARED_BYTES: usize = 1 << 20;

/// Bytes that one entry costs in addition to its contents.
const ENTRY_OVERHEAD: usize = 512;

/// The most changed references that are remembered. Beyond this number, every cached reading is forgotten.
const MAX_CHANGES: usize = 16 << 10;

/// Identifies a reading, and the principals who may share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadKey {
    mount: MountKey,
    /// The generation of the mount's answers.
    generation: u64,
    reference: Arc<str>,
    /// The number of the last change of this reference.
    change: u64,
    class: AccessClass,
    /// The only principal, if the mount has secrets of its own for each.
    principal: Option<Principal>,
}

/// The last change of each reference. A change invalidates the readings of all classes, without a search for them.
#[derive(Default)]
struct Changes {
    last: AtomicU64,
    /// The number of every reference that is not in the map. Zero: nothing changed yet.
    others: AtomicU64,
    numbers: Mutex<HashMap<(MountKey, Arc<str>), u64>>,
}

impl Changes {
    fn numbers(&self) -> MutexGuard<'_, HashMap<(MountKey, Arc<str>), u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the last change of a reference.
    fn of(&self, mount: MountKey, reference: &Arc<str>) -> u64 {
        // Without any change there is nothing to look up.
        if self.last.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let number = self.numbers().get(&(mount, Arc::clone(reference))).copied();
        number.unwrap_or_else(|| self.others.load(Ordering::Acquire))
    }

    fn add(&self, mount: MountKey, reference: Arc<str>) {
        let mut numbers = self.numbers();
        let number = self.last.load(Ordering::Acquire) + 1;
        if numbers.len() >= MAX_CHANGES {
            numbers.clear();
            self.others.store(number, Ordering::Release);
        }
        numbers.insert((mount, reference), number);
        self.last.store(number, Ordering::Release);
    }
}

/// A read in flight, and its result for the requests that wait for it. The result is `None` if the reading is too large
/// to share.
pub(super) type InFlightRead = OnceCell<Result<Option<Arc<Reading>>, ReadError>>;

/// The size of a reading in bytes, with an overhead for each of its contents.
pub(super) fn size(reading: &Reading) -> usize {
    reading.contents.iter().map(|contents| contents.body.len() + ENTRY_OVERHEAD).sum()
}

/// The reading in shared form, or the reading itself if it is too large.
pub(super) fn share(reading: Reading) -> Result<Arc<Reading>, Reading> {
    if size(&reading) <= MAX_SHARED_BYTES { Ok(Arc::new(reading)) } else { Err(reading) }
}

/// The cache of fresh readings. Its entries count against the memory budget of all calls.
type FreshReads = MemoryReadCache<ReadKey, Reading, memory_budget::Reservation>;

/// Reads in flight and fresh readings. See the module.
pub(super) struct SharedReads<C = FreshReads> {
    in_flight: Mutex<HashMap<ReadKey, Arc<InFlightRead>>>,
    fresh: C,
    changes: Changes,
}

/// One request's part in a read that may be shared, until the read is finished or the request is dropped.
pub(super) struct JoinedRead<'a> {
    in_flight: &'a Mutex<HashMap<ReadKey, Arc<InFlightRead>>>,
    key: &'a ReadKey,
    read: Option<Arc<InFlightRead>>,
}

impl JoinedRead<'_> {
    /// The read in flight.
    pub(super) fn read(&self) -> Option<&InFlightRead> {
        self.read.as_deref()
    }

    /// The reading of the finished read, if it is shared. Moves it if no other request waits for it, and clones it
    /// otherwise.
    pub(super) fn into_reading(mut self) -> Result<Option<Reading>, ReadError> {
        let shared = match self.read.take().map(Arc::try_unwrap) {
            Some(Ok(own)) => own.into_inner(),
            Some(Err(shared)) => shared.get().cloned(),
            None => None,
        };
        let reading =
            shared.unwrap_or_else(|| Err(ReadError::Internal("a shared read ended without a result".to_owned())))?;
        Ok(reading.map(|reading| Arc::try_unwrap(reading).unwrap_or_else(|shared| shared.as_ref().clone())))
    }
}

impl Drop for JoinedRead<'_> {
    fn drop(&mut self) {
        let Some(read) = self.read.take() else { return };
        // The request was cancelled. If no other request waits for the read, remove it. One of the two references is in
        // the map.
        let mut in_flight = lock(self.in_flight);
        let is_current = in_flight.get(self.key).is_some_and(|own| Arc::ptr_eq(own, &read));
        if is_current && Arc::strong_count(&read) <= 2 {
            in_flight.remove(self.key);
        }
    }
}

fn lock(in_flight: &Mutex<HashMap<ReadKey, Arc<InFlightRead>>>) -> MutexGuard<'_, HashMap<ReadKey, Arc<InFlightRead>>> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedReads {
    pub(super) fn new(budget: &Arc<MemoryBudget>) -> Self {
        let (cap, budget) = (budget.cap() / BUDGET_DIVISOR, Arc::clone(budget));
        let fresh = MemoryReadCache::new(cap, move |bytes| budget.reserve(bytes));
        Self { in_flight: Mutex::default(), fresh, changes: Changes::default() }
    }
}

impl<C: ReadCache<ReadKey, Reading>> SharedReads<C> {
    /// The key of a reading of `mount` for those who have this access.
    pub(super) fn key(&self, mount: &Mount, reference: &str, access: &Access) -> ReadKey {
        let reference = reference.into();
        ReadKey {
            change: self.changes.of(mount.cached.key(), &reference),
            mount: mount.cached.key(),
            generation: mount.cached.generation(),
            reference,
            class: access.class(),
            principal: mount.is_per_principal().then(|| access.principal().clone()),
        }
    }

    /// A reading that is still fresh, with the remaining time in `fresh_for`.
    pub(super) async fn fresh(&self, key: &ReadKey) -> Option<Reading> {
        let CachedValue { value, fresh_for } = self.fresh.get(key).await?;
        Some(Reading { fresh_for: Some(fresh_for), ..value.as_ref().clone() })
    }

    /// The read of `key` that is in flight, or a new one.
    pub(super) fn join<'a>(&'a self, key: &'a ReadKey) -> JoinedRead<'a> {
        let read = Arc::clone(lock(&self.in_flight).entry(key.clone()).or_default());
        JoinedRead { in_flight: &self.in_flight, key, read: Some(read) }
    }

    /// Ends a joined read: no further request can join it. Caches the reading if it stays fresh for some time, unless
    /// the key was forgotten during the read.
    pub(super) async fn finish(&self, mount: &Mount, joined: &JoinedRead<'_>) {
        let (key, Some(read)) = (joined.key, &joined.read) else { return };
        {
            let mut in_flight = lock(&self.in_flight);
            let Some(own) = in_flight.remove(key) else { return };
            if !Arc::ptr_eq(&own, read) {
                in_flight.insert(key.clone(), own);
                return;
            }
        }
        let Some(Ok(Some(reading))) = read.get() else { return };
        let fresh = reading.fresh_for.unwrap_or_default();
        if fresh.is_zero() || mount.cached.generation() != key.generation {
            return;
        }
        let bytes = size(reading) + key.reference.len();
        self.fresh.put(key.clone(), reading.as_ref().clone(), bytes, fresh).await;
    }

    /// Forgets the readings of one reference, of all classes. The cache drops their memory when they are no longer
    /// fresh.
    pub(super) fn forget(&self, mount: &Mount, reference: &str) {
        self.changes.add(mount.cached.key(), reference.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Duration;

    use super::*;
    use crate::catalog::mount::tests::mount;
    use crate::policy::test_rules::{TestRule, rule_set};
    use crate::policy::{Action, Evidence, KeyIdentity, Policy, Target, authenticate};

    /// The access of the key `name`. `a` and `b` have one class, `c` another.
    fn access(mount: &Mount, name: &str) -> Access {
        static POLICY: LazyLock<Policy> =
            LazyLock::new(|| Policy::new(rule_set(&[TestRule::all("@team", ""), TestRule::all("key:c", "")])));
        let (name, groups) = (name.into(), vec!["team".into()]);
        let principal = authenticate(Evidence::Key(KeyIdentity { name, groups, ..KeyIdentity::default() }));
        let target = Target { mount: &mount.name, base: &mount.base, reference: Some("a.md") };
        POLICY.authorize(&principal, Action::Read, target, std::time::SystemTime::UNIX_EPOCH).unwrap()
    }

    fn key(reads: &SharedReads, mount: &Mount, name: &str) -> ReadKey {
        reads.key(mount, "a.md", &access(mount, name))
    }

    async fn read(reads: &SharedReads, mount: &Mount, name: &str, fresh_for: Option<Duration>) {
        let key = key(reads, mount, name);
        let joined = reads.join(&key);
        let reading = Reading { fresh_for, ..Reading::default() };
        joined.read().unwrap().get_or_init(async || Ok(Some(Arc::new(reading)))).await;
        reads.finish(mount, &joined).await;
    }

    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    #[tokio::test]
    async fn a_fresh_answer_is_served_until_its_mount_changes() {
        let reads = SharedReads::new(&MemoryBudget::new(1 << 20));
        let (own, other) = (mount("a", "a://"), mount("a", "b://"));
        let is_fresh = async |mount: &Mount| reads.fresh(&key(&reads, mount, "a")).await.is_some();
        read(&reads, &own, "a", None).await;
        assert!(!is_fresh(&own).await, "its provider did not say that it stays fresh");
        read(&reads, &own, "a", MINUTE).await;
        assert!(is_fresh(&own).await);
        assert!(!is_fresh(&other).await, "another version of the mount may answer otherwise");
        reads.forget(&own, "a.md");
        assert!(!is_fresh(&own).await);
        read(&reads, &own, "a", MINUTE).await;
        assert!(is_fresh(&own).await);
        reads.forget(&own, "b.md");
        assert!(is_fresh(&own).await, "another reference changed");
        own.cached.invalidate_answers();
        assert!(!is_fresh(&own).await);
    }

    #[tokio::test]
    async fn only_one_class_of_access_shares_a_reading() {
        let reads = SharedReads::new(&MemoryBudget::new(1 << 20));
        let mount = mount("a", "a://");
        let is_fresh = async |name: &str| reads.fresh(&key(&reads, &mount, name)).await.is_some();
        assert_eq!(access(&mount, "a").class(), access(&mount, "b").class());
        assert_ne!(access(&mount, "a").class(), access(&mount, "c").class());
        read(&reads, &mount, "a", MINUTE).await;
        assert!(is_fresh("b").await, "the same rules allowed it");
        assert!(!is_fresh("c").await, "another rule allowed it");
        read(&reads, &mount, "c", MINUTE).await;
        assert!(is_fresh("c").await);
        let [one, other] = ["a", "c"].map(|name| key(&reads, &mount, name));
        let (one, other) = (reads.join(&one), reads.join(&other));
        assert!(!std::ptr::eq(one.read().unwrap(), other.read().unwrap()), "one read in flight for each class");
        reads.forget(&mount, "a.md");
        assert!(!is_fresh("a").await && !is_fresh("c").await, "a change concerns every class");
        let new = key(&reads, &mount, "a");
        assert!(!std::ptr::eq(reads.join(&new).read().unwrap(), one.read().unwrap()), "an older read is not joined");
    }

    #[tokio::test]
    async fn many_changes_forget_everything() {
        let reads = SharedReads::new(&MemoryBudget::new(1 << 20));
        let mount = mount("a", "a://");
        reads.forget(&mount, "a.md");
        let before = key(&reads, &mount, "a");
        for n in 0..MAX_CHANGES {
            reads.forget(&mount, &n.to_string());
        }
        assert!(reads.changes.numbers().len() <= MAX_CHANGES);
        assert_ne!(key(&reads, &mount, "a"), before);
    }
}
