//! Which mounts there are, and which one a URI belongs to. A snapshot never changes; a change makes a new one.
//!
//! Knows names, bases and states. Must not know MCP, nor call a guest: listings are fetched by the gateway and
//! checked by `catalog::listing`.

pub mod kept;
pub mod listing;
pub mod mount;
pub mod paging;
mod plan;
pub mod quarantine;
pub mod reload;
pub mod unserved;
pub mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use crate::admission::budget::Budget;
use crate::admission::gates::Gates;
use crate::config::Ask;
use crate::model::{Guard, MountName, reference, text};
use kept::Shelves;
pub use mount::{Mount, Refused, Source};
pub use plan::{Found, find};
pub use quarantine::Quarantined;
pub use unserved::Unserved;

/// All mounts at one moment.
#[derive(Default)]
pub struct Snapshot {
    /// Sorted by name.
    mounts: Vec<Arc<Mount>>,
    bases: HashMap<String, Place>,
    /// Files and mounts that are not served, with the reason, sorted.
    refused: Vec<Refused>,
    /// Mounts that wait for the operator's trust, sorted by name.
    quarantined: Vec<Quarantined>,
    /// Mounts that are not there yet, sorted by name.
    compiling: Vec<Compiling>,
    /// Mounts that are configured and none of these, sorted by name.
    unserved: Vec<Unserved>,
    /// Whether every file and mount is in one of these.
    is_whole: bool,
}

/// A mount whose component is being compiled for the first time, or waits for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiling {
    /// Its name.
    pub name: MountName,
    /// Its base.
    pub base: String,
}

impl Compiling {
    /// What whoever lists is told.
    pub fn notice(&self) -> String {
        "not there yet: its component is being compiled; list again in a moment".to_owned()
    }
}

/// Whose a base is.
#[derive(Clone, Copy)]
enum Place {
    /// A mount's, by its place in the list.
    Mount(usize),
    /// One's in quarantine. It keeps its names, so that no other mount can answer in its stead.
    Quarantined(usize),
    /// One's that is being compiled, or cannot be served. It keeps its names as well.
    Absent,
}

impl Snapshot {
    /// A snapshot of `mounts`, whose names and bases must be distinct.
    pub fn new(mut mounts: Vec<Arc<Mount>>, mut refused: Vec<Refused>) -> Self {
        mounts.sort_by(|a, b| a.name.cmp(&b.name));
        refused.sort();
        let absent = refused.iter().filter_map(|one| Some((one.base.clone()?, Place::Absent)));
        let mut bases: HashMap<_, _> = absent.collect();
        // A mount that goes on as it was may be refused what it was given since.
        bases.extend(mounts.iter().enumerate().map(|(at, mount)| (mount.base.clone(), Place::Mount(at))));
        Self { mounts, bases, refused, ..Self::default() }
    }

    /// The same with these in quarantine; their names and bases are distinct too.
    #[must_use]
    pub fn with_quarantined(mut self, mut quarantined: Vec<Quarantined>) -> Self {
        quarantined.sort_by(|a, b| a.name.cmp(&b.name));
        let places = quarantined.iter().enumerate().map(|(at, one)| (one.base.clone(), Place::Quarantined(at)));
        self.bases.extend(places);
        Self { quarantined, ..self }
    }

    /// The same with these on their way.
    #[must_use]
    pub fn with_compiling(mut self, mut compiling: Vec<Compiling>) -> Self {
        compiling.sort_by(|a, b| a.name.cmp(&b.name));
        for one in &compiling {
            self.bases.entry(one.base.clone()).or_insert(Place::Absent);
        }
        Self { compiling, ..self }
    }

    /// The same with these that are configured and not served, but for those that are something else here.
    #[must_use]
    pub fn with_unserved(self, mut unserved: Vec<Unserved>) -> Self {
        unserved.sort_by(|a, b| a.name.cmp(&b.name));
        unserved.dedup_by(|a, b| a.name == b.name);
        let is_known = |name: &MountName| {
            self.find(name).is_some()
                || self.quarantined.iter().any(|one| one.name == *name)
                || self.compiling.iter().any(|one| one.name == *name)
        };
        unserved.retain(|one| !is_known(&one.name));
        Self { unserved, ..self }
    }

    /// Whether it serves, refuses, compiles and keeps in quarantine what `other` does: the very same mounts.
    fn is_same(&self, other: &Self) -> bool {
        let same = |(own, other): (&Arc<Mount>, &Arc<Mount>)| Arc::ptr_eq(own, other);
        self.mounts.len() == other.mounts.len()
            && self.mounts.iter().zip(&other.mounts).all(same)
            && self.refused == other.refused
            && self.quarantined == other.quarantined
            && self.compiling == other.compiling
            && self.unserved == other.unserved
            && self.is_whole == other.is_whole
    }

    /// The mounts of `before` that may do more than those in their place here, or that are gone.
    fn takes_back<'b>(&self, before: &'b Self) -> impl Iterator<Item = &'b Arc<Mount>> {
        let holds = |mount: &Mount| !mount.written.is_empty() || mount.ask != Ask::Never;
        before.mounts.iter().filter(move |old| {
            holds(old) && self.find(&old.name).is_none_or(|new| !Arc::ptr_eq(old, new) && !old.is_within(new))
        })
    }

    /// The absolute name that `reference` has in `mount`: every name that leaves for a client comes from here.
    ///
    /// # Errors
    /// When that name, in any spelling, does not lead back to this very mount: whose it is.
    pub fn name_in(&self, mount: &Mount, reference: &str) -> Result<String, String> {
        let uri = [mount.base.as_str(), reference].concat();
        if uri.len() > reference::MAX_URI {
            return Err(format!("the URI \"{}\" is longer than {} bytes", text::excerpt(&uri, 80), reference::MAX_URI));
        }
        match self.owner(&uri) {
            Owner::Mount(owner) if owner.name == mount.name && owner.base == mount.base => Ok(uri),
            // Other bytes of the same mount, which wait for trust.
            Owner::Quarantined(one) if one.name == mount.name && one.base == mount.base => Ok(uri),
            _ if !Guard::Namespace.is_on() => Ok(uri),
            Owner::Mount(owner) => Err(format!("\"{}\" belongs to mount \"{}\"", text::excerpt(&uri, 80), owner.name)),
            Owner::Quarantined(one) => {
                Err(format!("\"{}\" belongs to mount \"{}\"", text::excerpt(&uri, 80), one.name))
            }
            // Its mount was taken away meanwhile: nobody has the name since, or it is kept for that very mount.
            Owner::Nobody if self.nearest(&uri).is_none_or(|base| base == mount.base) => Ok(uri),
            Owner::Nobody => {
                Err(format!("\"{}\" belongs to another mount, which is not served now", text::excerpt(&uri, 80)))
            }
        }
    }

    /// The longest base that `uri` begins with, however it is spelled.
    fn nearest(&self, uri: &str) -> Option<&str> {
        let plain = reference::unescaped(uri);
        let nearest = ends(&plain).rev().find_map(|at| self.bases.get_key_value(plain.get(..=at)?));
        nearest.map(|(base, _)| base.as_str())
    }

    /// Whose name `uri` is, however it is spelled: letters that are escaped without need name the same (RFC 3986, 6.2.2.2).
    fn owner(&self, uri: &str) -> Owner<'_> {
        let plain = reference::unescaped(uri);
        let place = self.place(plain.as_ref());
        match place.map(|(place, _)| place) {
            Some(Place::Mount(at)) => self.mounts.get(at).map_or(Owner::Nobody, Owner::Mount),
            Some(Place::Quarantined(at)) => self.quarantined.get(at).map_or(Owner::Nobody, Owner::Quarantined),
            Some(Place::Absent) | None => Owner::Nobody,
        }
    }

    /// Whether `uri` is spelled so that it is routed to another mount than the one whose name it is.
    pub fn is_disguised(&self, uri: &str) -> bool {
        let plain = reference::unescaped(uri);
        let base = |uri: &str| self.place(uri).map(|(_, reference)| uri.len() - reference.len());
        plain.as_ref() != uri && base(uri) != base(plain.as_ref()) && Guard::Namespace.is_on()
    }

    /// The mount with the longest base that `uri` begins with, and the rest of `uri`.
    pub fn route<'u>(&self, uri: &'u str) -> Option<(&Arc<Mount>, &'u str)> {
        match self.place(uri)? {
            (Place::Mount(at), reference) => Some((self.mounts.get(at)?, reference)),
            (Place::Quarantined(_) | Place::Absent, _) => None,
        }
    }

    /// The mount in quarantine that `uri` belongs to.
    pub fn quarantined_at(&self, uri: &str) -> Option<&Quarantined> {
        match self.place(uri)? {
            (Place::Quarantined(at), _) => self.quarantined.get(at),
            (Place::Mount(_) | Place::Absent, _) => None,
        }
    }

    /// The longest base that `uri` begins with, and the rest of `uri`.
    fn place<'u>(&self, uri: &'u str) -> Option<(Place, &'u str)> {
        ends(uri).rev().find_map(|at| {
            let (base, reference) = uri.split_at_checked(at + 1)?;
            Some((*self.bases.get(base)?, reference))
        })
    }

    /// Forgets the listings of mounts in whose base another mount's has appeared since `before`, or from which one has gone:
    /// other entries of theirs are served now.
    fn forget_lists(&self, before: &Self) {
        let one_sided = |a: &Self, b: &Self| -> Vec<String> {
            a.bases.keys().filter(|base| !b.bases.contains_key(*base)).cloned().collect()
        };
        for changed in [one_sided(self, before), one_sided(before, self)].concat() {
            for at in ends(&changed).filter(|at| at + 1 < changed.len()) {
                let around = changed.get(..=at).and_then(|base| self.bases.get(base));
                if let Some(Place::Mount(at)) = around
                    && let Some(mount) = self.mounts.get(*at)
                {
                    mount.lists.0.clear();
                    mount.lists.1.clear();
                }
            }
        }
    }

    /// All mounts, sorted by name.
    pub fn mounts(&self) -> &[Arc<Mount>] {
        &self.mounts
    }

    /// The mounts from `name` on (whether it exists or not), sorted by name.
    pub fn from(&self, name: Option<&MountName>) -> &[Arc<Mount>] {
        let start = name.map_or(0, |name| self.mounts.partition_point(|mount| mount.name < *name));
        self.mounts.get(start..).unwrap_or_default()
    }

    /// The mount of that name.
    pub fn find(&self, name: &MountName) -> Option<&Arc<Mount>> {
        self.from(Some(name)).first().filter(|mount| mount.name == *name)
    }

    /// What is not served.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// What is not served until the operator trusts it.
    pub fn quarantined(&self) -> &[Quarantined] {
        &self.quarantined
    }

    /// What is on its way.
    pub fn compiling(&self) -> &[Compiling] {
        &self.compiling
    }

    /// What is configured and not served.
    pub fn unserved(&self) -> &[Unserved] {
        &self.unserved
    }

    /// The mount that `uri` would belong to if it were served.
    pub fn unserved_at(&self, uri: &str) -> Option<&Unserved> {
        self.unserved.iter().filter(|one| uri.starts_with(&one.base)).max_by_key(|one| one.base.len())
    }

    /// The same, of which it is known that every file and mount is in it.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { is_whole: true, ..self }
    }

    /// Whether every file and mount is in it: nothing else is known of that is served, or about to be.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The mounts that answer for a base of their own, with it, those in quarantine too; sorted by name.
    pub fn bases(&self) -> impl Iterator<Item = (&MountName, &str)> {
        let quarantined = self.quarantined.iter().map(|one| (&one.name, one.base.as_str()));
        self.mounts.iter().map(|mount| (&mount.name, mount.base.as_str())).chain(quarantined)
    }

    /// Whether `uri` belongs to a mount that is on its way.
    pub fn is_compiling(&self, uri: &str) -> bool {
        self.compiling.iter().any(|one| uri.starts_with(&one.base))
    }

    /// Whether `mount` was given something since that takes a restart of belljar.
    pub fn needs_restart(&self, mount: &MountName) -> bool {
        self.refused.iter().any(|one| one.needs_restart && one.name == mount.as_str())
    }
}

/// Whose a name is.
enum Owner<'a> {
    Mount(&'a Arc<Mount>),
    Quarantined(&'a Quarantined),
    Nobody,
}

/// The last bytes of what may be a base at the start of `uri`: a base ends in `/` or `:`.
fn ends(uri: &str) -> impl DoubleEndedIterator<Item = usize> + '_ {
    uri.bytes().enumerate().filter(|(_, b)| matches!(b, b'/' | b':')).map(|(at, _)| at)
}

/// The current snapshot.
pub struct Catalog {
    snapshot: ArcSwap<Snapshot>,
    settled: Sender<bool>,
    /// How often the configuration was read that the snapshot stands on.
    read: AtomicU64,
    shelves: Arc<Shelves>,
    gates: Gates,
}

impl Catalog {
    /// An empty one, whose listings count against `budget`.
    pub fn new(budget: Arc<Budget>) -> Self {
        Self {
            snapshot: ArcSwap::default(),
            settled: Sender::new(false),
            read: AtomicU64::new(0),
            shelves: Shelves::new(budget),
            gates: Gates::default(),
        }
    }

    /// The gates of all mounts, those included that are gone.
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// The memory of listings.
    pub fn shelves(&self) -> &Arc<Shelves> {
        &self.shelves
    }

    /// The mounts now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Puts a new snapshot in place.
    pub fn publish(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        let before = self.snapshot.swap(Arc::clone(&snapshot));
        snapshot.forget_lists(&before);
        // Whoever waits for a mount looks again.
        self.settled.send_modify(|_| {});
    }

    /// Notes which reading of the configuration the snapshot stands on.
    fn adopt(&self, read: u64) {
        self.read.store(read, Ordering::Release);
    }

    /// Which reading of the configuration the snapshot stands on.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Acquire)
    }

    /// Tells each time that a snapshot was put in place.
    pub fn changes(&self) -> Receiver<bool> {
        self.settled.subscribe()
    }

    /// Says that every file that was there at the start is now either served or refused.
    pub fn settle(&self) {
        self.settled.send_replace(true);
    }

    /// Whether it has.
    pub fn is_settled(&self) -> bool {
        *self.settled.borrow()
    }

    /// Waits for [`Catalog::settle`], but not beyond `by`. Says whether everything is loaded.
    pub async fn settled(&self, by: Instant) -> bool {
        self.settled_or(by, |_| false).await
    }

    /// Waits until everything is loaded or `is_enough` of what is, but not beyond `by`. Says whether one of both is so.
    pub async fn settled_or(&self, by: Instant, is_enough: impl Fn(&Snapshot) -> bool) -> bool {
        let mut settled = self.settled.subscribe();
        let waited = timeout_at(by, settled.wait_for(|settled| *settled || is_enough(&self.snapshot()))).await;
        waited.is_ok_and(|waited| waited.is_ok())
    }

    /// Waits until `is_so` of the mounts, but not beyond `by`. Says whether it is.
    pub async fn until(&self, by: Instant, is_so: impl Fn(&Snapshot) -> bool) -> bool {
        let mut changes = self.changes();
        let waited = timeout_at(by, changes.wait_for(|_| is_so(&self.snapshot()))).await;
        waited.is_ok_and(|waited| waited.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(bases: &[(&str, &str)]) -> Snapshot {
        Snapshot::new(bases.iter().map(|(name, base)| Arc::new(mount::tests::mount(name, base))).collect(), Vec::new())
    }

    #[test]
    fn the_longest_base_wins() {
        let snapshot = snapshot(&[("a", "x://h/"), ("b", "x://h/b/"), ("c", "test://"), ("d", "urn:d:")]);
        let route = |uri: &str| snapshot.route(uri).map(|(mount, rest)| (mount.name.to_string(), rest.to_owned()));
        let is = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(route("x://h/q"), is("a", "q"));
        assert_eq!(route("x://h/b/q"), is("b", "q"));
        assert_eq!(route("x://h/b"), is("a", "b"));
        assert_eq!(route("x://h/b/"), is("b", ""));
        assert_eq!(route("x://h/bb/q"), is("a", "bb/q"));
        assert_eq!(route("test://static-text"), is("c", "static-text"));
        assert_eq!(route("urn:d:1/2"), is("d", "1/2"));
        for none in ["", "x://h", "X://h/q", "y://h/q", "x:/h/q", "test:/x", "é://h/"] {
            assert_eq!(route(none), None, "{none}");
        }
    }

    #[test]
    fn mounts_from_a_name_on() {
        let snapshot = snapshot(&[("c", "c://c/"), ("a", "a://a/"), ("e", "e://e/")]);
        let from = |name: &str| {
            snapshot.from(Some(&MountName::new(name).unwrap())).iter().map(|m| m.name.to_string()).collect::<String>()
        };
        assert_eq!(
            (from("a"), from("b"), from("c"), from("f")),
            ("ace".into(), "ce".into(), "ce".into(), String::new())
        );
        assert_eq!(snapshot.from(None).len(), 3);
    }

    #[test]
    fn lists_are_forgotten_where_another_base_comes_or_goes_inside() {
        let catalog = Catalog::new(Budget::new(1 << 30));
        let bases = [("a", "x://h/"), ("b", "x://h/b/"), ("c", "x://h/b/c/"), ("d", "x://j/"), ("e", "x://i/")];
        let [a, b, c, d, e] = bases.map(|(name, base)| Arc::new(mount::tests::mount(name, base)));
        let forgotten = |served: &[&Arc<Mount>]| -> String {
            for mount in [&a, &b, &c, &d, &e] {
                mount.lists.0.put(kept::Kept::new(catalog.shelves(), None));
                mount.lists.1.put(kept::Kept::new(catalog.shelves(), None));
            }
            catalog.publish(Snapshot::new(served.iter().map(|mount| Arc::clone(mount)).collect(), Vec::new()));
            let is_forgotten = |mount: &&&Arc<Mount>| {
                let kept = (mount.lists.0.current().is_some(), mount.lists.1.current().is_some());
                assert_eq!(kept.0, kept.1, "{}", mount.name);
                !kept.0
            };
            served.iter().filter(is_forgotten).map(|mount| mount.name.as_str()).collect()
        };
        assert_eq!(forgotten(&[&a, &d, &e]), "");
        assert_eq!(forgotten(&[&a, &b, &d, &e]), "a", "one came inside");
        assert_eq!(forgotten(&[&a, &b, &c, &d, &e]), "ab", "one came inside of both");
        assert_eq!(forgotten(&[&a, &b, &c, &e]), "", "one that holds none of the others went");
        assert_eq!(forgotten(&[&a, &c, &e]), "a", "one went, and what is inside of it stays");
        assert_eq!(forgotten(&[&a, &e]), "a");
    }

    #[tokio::test]
    async fn settling_is_waited_for() {
        let catalog = Catalog::new(Budget::new(1 << 30));
        assert!(!catalog.settled(Instant::now()).await);
        catalog.settle();
        assert!(catalog.settled(Instant::now()).await);
    }

    #[tokio::test]
    async fn a_mount_is_waited_for_no_longer_than_until_it_is_there() {
        let catalog = Arc::new(Catalog::new(Budget::new(1 << 30)));
        let (own, is_there) = (Arc::clone(&catalog), |snapshot: &Snapshot| snapshot.route("a://x").is_some());
        let by = Instant::now() + std::time::Duration::from_secs(60);
        let waiting = tokio::spawn(async move { own.settled_or(by, is_there).await });
        catalog.publish(snapshot(&[("b", "b://")]));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        catalog.publish(snapshot(&[("a", "a://")]));
        assert!(waiting.await.unwrap());
        assert!(!catalog.settled(Instant::now()).await, "others may still be loading");
    }
}
