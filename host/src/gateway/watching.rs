//! Who watches what, and what each watcher has to be told: the books of subscriptions. What is watched is looked at by
//! `gateway::rounds`; nothing of a provider is kept alive for it.
//!
//! A watcher is told that something changed, once for however many changes since it was told last, and never what changed
//! in it: it reads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::due::{Due, Found, Seen, Trouble};
use crate::catalog::watch::Watcher;
use crate::config;
use crate::model::{Guard, MountName};
use crate::sandbox::MountId;

/// Watchers at once, over all clients. Over HTTP each holds a connection.
pub const SUBSCRIBERS: usize = 256;

/// URIs of one watcher.
pub const URIS: usize = 1024;

/// URIs that are watched in all. Each takes about 300 bytes beside its name.
pub const ALL_URIS: usize = 16_384;

/// For how long changes are gathered before a watcher is told of them.
const GATHER: Duration = Duration::from_millis(50);

/// How far apart two notices are that the list has changed.
const LISTS_APART: Duration = Duration::from_millis(250);

/// What was seen of a mount's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Print {
    /// Of which mount of that name.
    pub(super) id: MountId,
    /// Which listings that was, of resources and of templates.
    pub(super) lists: (u32, u32),
    /// What is served of it: its base and its entries. None: nothing.
    pub(super) digest: Option<blake3::Hash>,
}

impl Print {
    /// Of a list that has nothing in it, and of what is no mount.
    pub(super) fn empty() -> Self {
        Self { id: MountId::none(), lists: (0, 0), digest: None }
    }
}

/// A watched resource.
struct Watched {
    who: Vec<u64>,
    seen: Option<Seen>,
    mount: Option<MountName>,
    trouble: Option<Trouble>,
}

/// The fewest resources that are asked for in one call, whatever a call with more of them came to.
const FEWEST: usize = 32;

/// What is watched of one mount, and the task that looks at it.
pub(super) struct Group {
    pub(super) uris: HashSet<Arc<str>>,
    pub(super) print: Option<Print>,
    /// The mount whose list is being looked at now.
    pub(super) looked_at: Option<MountId>,
    /// How many resources are asked for in one call.
    chunk: usize,
    pub(super) wake: Arc<Notify>,
    task: Option<AbortHandle>,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

/// What waits to be told to one watcher. It is a set, so it is no larger than what is watched.
#[derive(Default)]
struct Mailbox {
    letters: Mutex<Letters>,
    wake: Notify,
    wants_lists: bool,
}

#[derive(Default)]
struct Letters {
    updated: BTreeSet<Arc<str>>,
    list: bool,
}

impl Mailbox {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watcher as the books have it.
struct Reader {
    mailbox: Arc<Mailbox>,
    uris: HashSet<Arc<str>>,
}

/// The books.
#[derive(Default)]
pub(super) struct Books {
    next: u64,
    subscribers: HashMap<u64, Reader>,
    uris: HashMap<Arc<str>, Watched>,
    pub(super) groups: HashMap<MountName, Group>,
    lists: usize,
}

/// See the module.
pub struct Watching {
    books: Mutex<Books>,
    /// How often what is looked at.
    pub(super) settings: config::Watch,
    /// Tells of changes in granted directories; none where the system lets nothing be watched.
    pub(super) watcher: Option<Watcher>,
    closing: CancellationToken,
}

/// A watcher, until it is dropped.
pub struct Subscriber {
    watching: Arc<Watching>,
    id: u64,
    mailbox: Arc<Mailbox>,
    listed: Mutex<Option<Instant>>,
}

/// What a watcher is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This resource is not what it was.
    Updated(Arc<str>),
    /// The list is not what it was.
    List,
}

/// Why something is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWatched {
    /// No mount has a URI like this.
    NoMount,
    /// There are too many already.
    TooMany(usize),
}

impl Watching {
    /// Books without an entry.
    pub fn new(settings: config::Watch, watcher: Option<Watcher>) -> Arc<Self> {
        Arc::new(Self { books: Mutex::default(), settings, watcher, closing: CancellationToken::new() })
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says to every watcher that there is no more to come.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for [`Watching::close`].
    pub async fn closed(&self) {
        self.closing.cancelled().await;
    }

    /// A new watcher, of lists if it `wants_lists`.
    ///
    /// # Errors
    /// When there are too many.
    pub fn subscriber(self: &Arc<Self>, wants_lists: bool) -> Result<Subscriber, NotWatched> {
        let mut books = self.books();
        if books.subscribers.len() >= SUBSCRIBERS && Guard::Watchers.is_on() {
            return Err(NotWatched::TooMany(SUBSCRIBERS));
        }
        let id = books.next;
        books.next += 1;
        let mailbox = Arc::new(Mailbox { wants_lists, ..Mailbox::default() });
        books.subscribers.insert(id, Reader { mailbox: Arc::clone(&mailbox), uris: HashSet::new() });
        books.lists += usize::from(wants_lists);
        drop(books);
        Ok(Subscriber { watching: Arc::clone(self), id, mailbox, listed: Mutex::default() })
    }

    /// How many resources are watched, and by how many watchers.
    #[cfg(test)]
    fn counts(&self) -> (usize, usize) {
        let books = self.books();
        (books.uris.len(), books.subscribers.len())
    }
}

impl Books {
    /// Whether anybody wants to know of changes of the list.
    pub(super) fn wants_lists(&self) -> bool {
        self.lists > 0
    }

    /// Enters that `subscriber` watches `uri`, of `mount`. Says whether it has to be looked at first.
    pub(super) fn enter(&mut self, subscriber: u64, uri: &Arc<str>, mount: &MountName) -> Result<bool, NotWatched> {
        let is_new = !self.uris.contains_key(uri);
        if is_new && self.uris.len() >= ALL_URIS && Guard::Watchers.is_on() {
            return Err(NotWatched::TooMany(ALL_URIS));
        }
        let Some(reader) = self.subscribers.get_mut(&subscriber) else { return Ok(false) };
        if !reader.uris.contains(uri) && reader.uris.len() >= URIS && Guard::Watchers.is_on() {
            return Err(NotWatched::TooMany(URIS));
        }
        let is_own = !reader.uris.insert(Arc::clone(uri));
        if let Some(watched) = self.uris.get_mut(uri) {
            if !is_own {
                watched.who.push(subscriber);
            }
            return Ok(watched.seen.is_none());
        }
        let watched = Watched { who: vec![subscriber], seen: None, mount: Some(mount.clone()), trouble: None };
        self.uris.insert(Arc::clone(uri), watched);
        self.group(mount).uris.insert(Arc::clone(uri));
        Ok(true)
    }

    /// The group of a mount, made where it is missing.
    pub(super) fn group(&mut self, mount: &MountName) -> &mut Group {
        let new = || Group {
            uris: HashSet::new(),
            print: None,
            looked_at: None,
            chunk: ALL_URIS,
            wake: Arc::default(),
            task: None,
        };
        self.groups.entry(mount.clone()).or_insert_with(new)
    }

    /// Starts the task of each group that has none.
    pub(super) fn start(&mut self, start: impl Fn(MountName, Arc<Notify>) -> AbortHandle) {
        for (name, group) in self.groups.iter_mut().filter(|(_, group)| group.task.is_none()) {
            group.task = Some(start(name.clone(), Arc::clone(&group.wake)));
        }
    }

    /// Strikes out that `subscriber` watches `uri`.
    fn strike(&mut self, subscriber: u64, uri: &str) {
        if let Some(reader) = self.subscribers.get_mut(&subscriber) {
            reader.uris.remove(uri);
        }
        let Some(watched) = self.uris.get_mut(uri) else { return };
        watched.who.retain(|who| *who != subscriber);
        if !watched.who.is_empty() {
            return;
        }
        let mount = watched.mount.take();
        self.uris.remove(uri);
        if let Some(group) = mount.as_ref().and_then(|mount| self.groups.get_mut(mount)) {
            group.uris.remove(uri);
        }
        self.tidy();
    }

    /// Ends the groups in which nothing is watched any more.
    fn tidy(&mut self) {
        if self.lists == 0 {
            self.groups.retain(|_, group| !group.uris.is_empty());
            self.groups.values_mut().for_each(|group| group.print = None);
        }
    }

    /// Sorts every watched resource to the mount that has it now. Gives the groups of mounts that are gone, and tells those
    /// who watched something in them.
    pub(super) fn regroup(&mut self, mount_of: impl Fn(&str) -> Option<MountName>) {
        let mut moved = Vec::new();
        for (uri, watched) in &mut self.uris {
            let now = mount_of(uri);
            if now != watched.mount {
                moved.push((Arc::clone(uri), std::mem::replace(&mut watched.mount, now.clone()), now));
            }
        }
        for (uri, before, now) in moved {
            if let Some(group) = before.as_ref().and_then(|before| self.groups.get_mut(before)) {
                group.uris.remove(&uri);
            }
            match now {
                Some(now) => {
                    self.group(&now).uris.insert(uri);
                }
                None => {
                    self.saw(&uri, Seen::Gone);
                }
            }
        }
    }

    /// What of a mount is to be looked at now.
    pub(super) fn due(&self, mount: &MountName, base: &str, now: Instant) -> Vec<Due> {
        let Some(group) = self.groups.get(mount) else { return Vec::new() };
        let due = group.uris.iter().filter_map(|uri| {
            let watched = self.uris.get(uri)?;
            if watched.trouble.is_some_and(|trouble| trouble.until > now) && Guard::Suspects.is_on() {
                return None;
            }
            let watches = |who: &&u64| self.subscribers.get(*who).map_or(0, |reader| reader.uris.len());
            let watcher = *watched.who.iter().min_by_key(watches)?;
            let is_suspect = watched.trouble.is_some();
            let is_known = (watched.seen.is_some() && !is_suspect) || !Guard::Suspects.is_on();
            let reference = uri.strip_prefix(base)?.to_owned();
            Some(Due { uri: Arc::clone(uri), reference, watcher, is_known, is_suspect })
        });
        due.collect()
    }

    /// How many resources of a mount are asked for in one call.
    pub(super) fn chunk(&self, mount: &MountName) -> usize {
        self.groups.get(mount).map_or(ALL_URIS, |group| group.chunk).max(1)
    }

    /// Takes note of whether so many fitted into one call.
    pub(super) fn fits(&mut self, mount: &MountName, count: usize, does: bool) {
        if let Some(group) = self.groups.get_mut(mount) {
            group.chunk = match does {
                true => group.chunk.saturating_add(1).min(ALL_URIS),
                false => (count / 2).max(FEWEST),
            };
        }
    }

    /// Takes note of what was found out about a resource, and tells its watchers of a change.
    pub(super) fn found(&mut self, one: &Due, found: Found) -> bool {
        self.judge(one, found);
        match found {
            Found::Seen(seen) => self.saw(&one.uri, seen),
            Found::Nothing { .. } | Found::Crashed => false,
        }
    }

    /// The same by someone who begins to watch it: nothing that was seen before is overwritten.
    pub(super) fn found_first(&mut self, one: &Due, found: Found) {
        if let Found::Seen(seen) = found {
            self.saw_first(&one.uri, seen);
        }
        self.judge(one, found);
    }

    fn judge(&mut self, one: &Due, found: Found) {
        let Some(watched) = self.uris.get_mut(&one.uri) else { return };
        match found {
            Found::Seen(_) | Found::Nothing { is_answered: true } => watched.trouble = None,
            Found::Nothing { is_answered: false } => {}
            Found::Crashed => {
                watched.trouble = Some(Trouble::after(watched.trouble));
            }
        }
    }

    /// Whether a resource was never seen, or not like this.
    pub(super) fn differs(&self, uri: &str, seen: Seen) -> bool {
        self.uris.get(uri).is_some_and(|watched| watched.seen != Some(seen))
    }

    /// Notes how a resource was seen. Says whether that is a change, of which its watchers are told then.
    pub(super) fn saw(&mut self, uri: &Arc<str>, seen: Seen) -> bool {
        let Some(watched) = self.uris.get_mut(uri) else { return false };
        let is_change = watched.seen.replace(seen).is_some_and(|before| before != seen);
        if is_change {
            for Reader { mailbox, .. } in watched.who.iter().filter_map(|who| self.subscribers.get(who)) {
                mailbox.letters().updated.insert(Arc::clone(uri));
                mailbox.wake.notify_one();
            }
        }
        is_change
    }

    /// Notes how a resource was seen by someone who begins to watch it: nothing that was seen before is overwritten.
    pub(super) fn saw_first(&mut self, uri: &str, seen: Seen) {
        if let Some(watched) = self.uris.get_mut(uri) {
            watched.seen.get_or_insert(seen);
        }
    }

    /// Tells everybody who wants to know that the list has changed.
    pub(super) fn list_changed(&self) {
        for mailbox in self.subscribers.values().map(|reader| &reader.mailbox).filter(|mailbox| mailbox.wants_lists) {
            mailbox.letters().list = true;
            mailbox.wake.notify_one();
        }
    }
}

impl Subscriber {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Whose books it stands in.
    pub fn watching(&self) -> &Arc<Watching> {
        &self.watching
    }

    /// Ends watching `uri`.
    pub fn unwatch(&self, uri: &str) {
        self.watching.books().strike(self.id, uri);
    }

    /// Waits for something to be told, and gives all of it that came together. May be dropped at any await: nothing is lost.
    pub async fn next(&self) -> Vec<Change> {
        loop {
            let wait = self.wait();
            match wait {
                None => self.mailbox.wake.notified().await,
                Some(wait) => {
                    tokio::time::sleep(wait).await;
                    return self.take();
                }
            }
        }
    }

    /// How long what waits to be told is gathered; none where nothing waits.
    fn wait(&self) -> Option<Duration> {
        let letters = self.mailbox.letters();
        match (letters.updated.is_empty(), letters.list) {
            (true, false) => None,
            (true, true) => Some(GATHER.max(self.list_pause())),
            (false, _) => Some(GATHER),
        }
    }

    /// For how long nothing is told of the list.
    fn list_pause(&self) -> Duration {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner).filter(|_| Guard::Watchers.is_on());
        listed.map_or(Duration::ZERO, |at| LISTS_APART.saturating_sub(at.elapsed()))
    }

    fn take(&self) -> Vec<Change> {
        let mut letters = self.mailbox.letters();
        let mut all: Vec<Change> = std::mem::take(&mut letters.updated).into_iter().map(Change::Updated).collect();
        if letters.list && self.list_pause().is_zero() {
            letters.list = false;
            *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            all.push(Change::List);
        }
        all
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let mut books = self.watching.books();
        let own = books.subscribers.remove(&self.id).map(|reader| reader.uris).unwrap_or_default();
        books.lists -= usize::from(self.mailbox.wants_lists);
        own.iter().for_each(|uri| books.strike(self.id, uri));
        books.tidy();
    }
}

#[cfg(test)]
mod tests;
