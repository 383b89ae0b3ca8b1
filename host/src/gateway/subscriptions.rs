//! The subscriptions of all clients: the watched resources, and the notifications that each subscriber has still to
//! receive.
//!
//! `gateway::poller` polls the watched resources. No instance of a provider is kept alive for a subscription.
//!
//! A notification says that a resource or a list changed, once for all changes since the last notification. It never
//! carries the new contents: the client reads them.
//!
//! Each subscriber has a principal. `gateway::watch` asks policy for it: when a subscription begins, before each poll and
//! before each notification.

mod error;
mod last_lists;
mod list_kind;
mod mount_watch;
mod queue;
mod share;
mod visible_list;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::poll_target::{CrashBackoff, PollResult, PollTarget, ResourceState};
use crate::catalog::watch::Watcher;
use crate::config;
use crate::model::bounds::{MAX_WATCHED_URIS, MAX_WATCHED_URIS_TOTAL, MAX_WATCHERS};
use crate::model::{Guard, MountName};
use crate::policy::{AccessClass, Principal};
use queue::SubscriberQueue;

pub use error::SubscribeError;
pub(super) use last_lists::{DefiningMount, ListFingerprint};
pub use list_kind::{ListKind, WantedLists};
use mount_watch::MountWatch;
pub(super) use queue::CollectedChanges;
pub(super) use visible_list::{PolledListings, VisibleList, VisibleLists};

/// A watched resource.
struct WatchedResource {
    subscribers: Vec<u64>,
    state: Option<ResourceState>,
    mount: Option<MountName>,
    /// The last mount that served it.
    last_mount: MountName,
    backoff: Option<CrashBackoff>,
}

/// One call asks for at least this many resources, even after calls for more of them crashed.
const MIN_CHUNK: usize = 32;

/// A subscriber's entry in the registry.
struct SubscriberEntry {
    queue: Arc<SubscriberQueue>,
    uris: HashSet<Arc<str>>,
    /// See [`SubscriptionRegistry::update_classes`].
    classes: HashMap<MountName, AccessClass>,
}

/// The registry of all subscribers and of all watched resources.
#[derive(Default)]
pub(super) struct SubscriptionRegistry {
    next: u64,
    subscribers: HashMap<u64, SubscriberEntry>,
    uris: HashMap<Arc<str>, WatchedResource>,
    pub(super) mount_watches: HashMap<MountName, MountWatch>,
    /// Subscribers that want to know changes of the lists of resources.
    list_subscribers: usize,
    /// The mounts with tools or prompts as they were served last.
    pub(super) defining: BTreeMap<MountName, DefiningMount>,
}

/// See the module.
pub struct Subscriptions {
    registry: Mutex<SubscriptionRegistry>,
    /// The intervals between polls.
    pub(super) settings: config::Watch,
    /// Reports changes in granted directories. `None` if the system does not support watching.
    pub(super) watcher: Option<Watcher>,
    closing: CancellationToken,
}

/// One subscriber. Dropping it ends its subscriptions.
pub struct Subscriber {
    subscriptions: Arc<Subscriptions>,
    id: u64,
    queue: Arc<SubscriberQueue>,
}

/// A notification for a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeNotification {
    /// This resource changed.
    Updated(Arc<str>),
    /// A list changed.
    List(ListKind),
}

impl Subscriptions {
    /// Without any subscription.
    pub fn new(settings: config::Watch, watcher: Option<Watcher>) -> Arc<Self> {
        Arc::new(Self { registry: Mutex::default(), settings, watcher, closing: CancellationToken::new() })
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, SubscriptionRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every subscriber that no further notifications will come.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Cancelled by [`Subscriptions::close`], before any subscriber notices.
    pub fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Waits for [`Subscriptions::close`].
    pub async fn closed(&self) {
        self.closing.cancelled().await;
    }

    /// A new subscriber for `principal`. It is also notified when lists of the kinds `wanted` change.
    ///
    /// # Errors
    /// When there are too many subscribers.
    pub(super) fn subscriber(
        self: &Arc<Self>,
        principal: &Principal,
        wanted: WantedLists,
    ) -> Result<Subscriber, SubscribeError> {
        let mut registry = self.registry();
        if registry.subscribers.len() >= MAX_WATCHERS.get() {
            return Err(SubscribeError::TooMany(MAX_WATCHERS.get()));
        }
        registry.check_subscribers(principal)?;
        let id = registry.next;
        registry.next += 1;
        let queue = Arc::new(SubscriberQueue::new(principal, wanted));
        let (uris, classes) = (HashSet::new(), HashMap::new());
        registry.subscribers.insert(id, SubscriberEntry { queue: Arc::clone(&queue), uris, classes });
        registry.list_subscribers += usize::from(wanted.resources);
        drop(registry);
        Ok(Subscriber { subscriptions: Arc::clone(self), id, queue })
    }

    /// The number of mounts for which this replica looks for all replicas.
    pub fn leases(&self) -> usize {
        self.registry().mount_watches.values().filter(|mount_watch| mount_watch.is_leader).count()
    }

    /// The number of watched resources, and the number of subscribers.
    pub fn counts(&self) -> (usize, usize) {
        let registry = self.registry();
        (registry.uris.len(), registry.subscribers.len())
    }
}

impl SubscriptionRegistry {
    /// True if a subscriber wants to be notified when lists change.
    pub(super) fn wants_lists(&self) -> bool {
        self.list_subscribers > 0
    }

    /// Adds a subscription of `subscriber` to `uri`, a resource of `mount` with this base. Returns true if the resource must be polled
    /// for the first time.
    pub(super) fn subscribe(
        &mut self,
        subscriber: u64,
        uri: &Arc<str>,
        (mount, base): (&MountName, &str),
    ) -> Result<bool, SubscribeError> {
        let is_new = !self.uris.contains_key(uri);
        if is_new && self.uris.len() >= MAX_WATCHED_URIS_TOTAL.get() {
            return Err(SubscribeError::TooMany(MAX_WATCHED_URIS_TOTAL.get()));
        }
        let Some(own) = self.subscribers.get(&subscriber) else { return Ok(false) };
        self.check_uris(&own.queue.principal())?;
        let Some(entry) = self.subscribers.get_mut(&subscriber) else { return Ok(false) };
        if !entry.uris.contains(uri) && entry.uris.len() >= MAX_WATCHED_URIS.get() {
            return Err(SubscribeError::TooMany(MAX_WATCHED_URIS.get()));
        }
        let is_known = !entry.uris.insert(Arc::clone(uri));
        if let Some(watched) = self.uris.get_mut(uri) {
            if !is_known {
                watched.subscribers.push(subscriber);
            }
            return Ok(watched.state.is_none());
        }
        let watched = WatchedResource {
            subscribers: vec![subscriber],
            state: None,
            mount: Some(mount.clone()),
            last_mount: mount.clone(),
            backoff: None,
        };
        self.uris.insert(Arc::clone(uri), watched);
        self.mount_watch(mount, base).uris.insert(Arc::clone(uri));
        Ok(true)
    }

    /// The watches of a mount. Creates them if they are missing.
    pub(super) fn mount_watch(&mut self, mount: &MountName, base: &str) -> &mut MountWatch {
        let mount_watch = self.mount_watches.entry(mount.clone()).or_default();
        if mount_watch.base != base {
            base.clone_into(&mut mount_watch.base);
        }
        mount_watch
    }

    /// Starts the poller of each mount that has none.
    pub(super) fn start_pollers(&mut self, start: impl Fn(MountName, Arc<Notify>) -> AbortHandle) {
        for (name, mount_watch) in self.mount_watches.iter_mut().filter(|(_, mount_watch)| mount_watch.task.is_none()) {
            mount_watch.task = Some(start(name.clone(), Arc::clone(&mount_watch.wake)));
        }
    }

    /// Removes the subscription of `subscriber` to `uri`.
    pub(super) fn unsubscribe(&mut self, subscriber: u64, uri: &str) {
        if let Some(entry) = self.subscribers.get_mut(&subscriber) {
            entry.uris.remove(uri);
        }
        let Some(watched) = self.uris.get_mut(uri) else { return };
        watched.subscribers.retain(|id| *id != subscriber);
        if !watched.subscribers.is_empty() {
            return;
        }
        let mount = watched.mount.take();
        self.uris.remove(uri);
        if let Some(mount_watch) = mount.as_ref().and_then(|mount| self.mount_watches.get_mut(mount)) {
            mount_watch.uris.remove(uri);
        }
        self.remove_unwatched();
    }

    /// Removes the mounts of which nothing is watched any more, and so ends their pollers.
    fn remove_unwatched(&mut self) {
        if self.list_subscribers == 0 {
            self.mount_watches.retain(|_, mount_watch| !mount_watch.uris.is_empty());
            self.mount_watches.values_mut().for_each(|mount_watch| mount_watch.fingerprint = None);
        }
    }

    /// The subscriptions to the resources of a mount: each subscriber, its principal and the URI.
    pub(super) fn subscriptions_of(&self, mount: &MountName) -> Vec<(u64, Principal, Arc<str>)> {
        let Some(mount_watch) = self.mount_watches.get(mount) else { return Vec::new() };
        let of_uri = |uri: &Arc<str>| {
            let subscribers = self.uris.get(uri).map(|watched| watched.subscribers.as_slice()).unwrap_or_default();
            let one = |id: &u64| Some((*id, self.subscribers.get(id)?.queue.principal(), Arc::clone(uri)));
            subscribers.iter().filter_map(one).collect::<Vec<_>>()
        };
        mount_watch.uris.iter().flat_map(of_uri).collect()
    }

    /// The last mount that served a watched resource.
    pub(super) fn last_mount(&self, uri: &str) -> Option<MountName> {
        self.uris.get(uri).map(|watched| watched.last_mount.clone())
    }

    /// Assigns every watched resource to the mount that serves it now, with its base. Notifies the subscribers of resources that no
    /// mount serves any more.
    pub(super) fn reassign_mounts(&mut self, mount_of: impl Fn(&str) -> Option<(MountName, String)>) {
        let mut moved = Vec::new();
        for (uri, watched) in &mut self.uris {
            let now = mount_of(uri);
            let name = now.as_ref().map(|(name, _)| name);
            if name != watched.mount.as_ref() {
                name.into_iter().for_each(|name| watched.last_mount = name.clone());
                moved.push((Arc::clone(uri), std::mem::replace(&mut watched.mount, name.cloned()), now));
            }
        }
        for (uri, before, now) in moved {
            if let Some(mount_watch) = before.as_ref().and_then(|before| self.mount_watches.get_mut(before)) {
                mount_watch.uris.remove(&uri);
            }
            match now {
                Some((now, base)) => {
                    self.mount_watch(&now, &base).uris.insert(uri);
                }
                None => {
                    self.set_state(&uri, ResourceState::Absent);
                }
            }
        }
    }

    /// The references of a mount that subscribers watch.
    pub(super) fn watched_references(&self, mount: &MountName, base: &str) -> Vec<String> {
        let uris = self.mount_watches.get(mount).into_iter().flat_map(|mount_watch| &mount_watch.uris);
        uris.filter_map(|uri| Some(uri.strip_prefix(base)?.to_owned())).collect()
    }

    /// The resources of a mount that are to be polled now.
    pub(super) fn poll_targets(&self, mount: &MountName, base: &str, now: Instant) -> Vec<PollTarget> {
        let Some(mount_watch) = self.mount_watches.get(mount) else { return Vec::new() };
        let targets = mount_watch.uris.iter().filter_map(|uri| {
            let watched = self.uris.get(uri)?;
            if !Guard::Suspects.is_on() {
                // With the guard off: as if one subscriber watched all of them, and none had crashed.
                let reference = uri.strip_prefix(base)?.to_owned();
                return Some(PollTarget {
                    uri: Arc::clone(uri),
                    reference,
                    subscriber: 0,
                    is_known: true,
                    is_suspect: false,
                });
            }
            if watched.backoff.is_some_and(|backoff| backoff.until > now) {
                return None;
            }
            let uri_count = |id: &&u64| self.subscribers.get(*id).map_or(0, |entry| entry.uris.len());
            let subscriber = *watched.subscribers.iter().min_by_key(uri_count)?;
            let is_suspect = watched.backoff.is_some();
            let is_known = watched.state.is_some() && !is_suspect;
            let reference = uri.strip_prefix(base)?.to_owned();
            Some(PollTarget { uri: Arc::clone(uri), reference, subscriber, is_known, is_suspect })
        });
        targets.collect()
    }

    /// The number of resources of a mount that one call asks for.
    pub(super) fn chunk(&self, mount: &MountName) -> usize {
        self.mount_watches.get(mount).map_or(MAX_WATCHED_URIS_TOTAL.get(), |mount_watch| mount_watch.chunk).max(1)
    }

    /// Adapts the number of resources per call after a call for `count` resources. `succeeded`: the call succeeded.
    pub(super) fn adapt_chunk(&mut self, mount: &MountName, count: usize, succeeded: bool) {
        if let Some(mount_watch) = self.mount_watches.get_mut(mount) {
            mount_watch.chunk = match succeeded {
                true => mount_watch.chunk.saturating_add(1).min(MAX_WATCHED_URIS_TOTAL.get()),
                false => (count / 2).max(MIN_CHUNK),
            };
        }
    }

    /// Stores the result of a poll and notifies the subscribers of a change. Returns true if the resource changed.
    pub(super) fn record_result(&mut self, target: &PollTarget, result: PollResult) -> bool {
        self.update_backoff(target, result);
        match result {
            PollResult::Known(state) => self.set_state(&target.uri, state),
            PollResult::Unknown { .. } | PollResult::Crashed => false,
        }
    }

    /// The same for the first poll of a new subscriber: it does not overwrite a known state.
    pub(super) fn record_first_result(&mut self, target: &PollTarget, result: PollResult) {
        if let PollResult::Known(state) = result {
            self.set_first_state(&target.uri, state);
        }
        self.update_backoff(target, result);
    }

    fn update_backoff(&mut self, target: &PollTarget, result: PollResult) {
        let Some(watched) = self.uris.get_mut(&target.uri) else { return };
        match result {
            PollResult::Known(_) | PollResult::Unknown { is_answered: true } => watched.backoff = None,
            PollResult::Unknown { is_answered: false } => {}
            PollResult::Crashed => {
                watched.backoff = Some(CrashBackoff::after(watched.backoff));
            }
        }
    }

    /// True if the state of a watched resource is known.
    pub(super) fn is_known(&self, uri: &str) -> bool {
        self.uris.get(uri).is_some_and(|watched| watched.state.is_some())
    }

    /// True if the state of a watched resource is unknown, or differs from `state`.
    pub(super) fn differs(&self, uri: &str, state: ResourceState) -> bool {
        self.uris.get(uri).is_some_and(|watched| watched.state != Some(state))
    }

    /// Stores the state of a resource. If it changed, notifies the subscribers and returns true.
    pub(super) fn set_state(&mut self, uri: &Arc<str>, state: ResourceState) -> bool {
        let Some(watched) = self.uris.get_mut(uri) else { return false };
        let is_change = watched.state.replace(state).is_some_and(|before| before != state);
        if is_change {
            for SubscriberEntry { queue, .. } in
                watched.subscribers.iter().filter_map(|subscriber| self.subscribers.get(subscriber))
            {
                queue.add_updated(uri);
            }
        }
        is_change
    }

    /// Stores the state that the first poll of a new subscriber found, unless a state is known already.
    pub(super) fn set_first_state(&mut self, uri: &str, state: ResourceState) {
        if let Some(watched) = self.uris.get_mut(uri) {
            watched.state.get_or_insert(state);
        }
    }

    /// Notifies every subscriber that wants lists of this kind, and for whose principal `sees` is true, that the list of a
    /// mount changed.
    pub(super) fn notify_list_changed(
        &self,
        kind: ListKind,
        mount: &MountName,
        base: &str,
        sees: impl Fn(&Principal) -> bool,
    ) {
        for queue in self.subscribers.values().map(|entry| &entry.queue).filter(|queue| queue.wanted().wants(kind)) {
            if sees(&queue.principal()) {
                queue.add_list(kind, mount, base);
            }
        }
    }

    /// The ids of the subscribers that want lists, and for whose principal `sees` is true.
    pub(super) fn list_subscribers(&self, sees: impl Fn(&Principal) -> bool) -> HashSet<u64> {
        let wanting = self.subscribers.iter().filter(|(_, entry)| entry.queue.wanted().is_any());
        wanting.filter(|(_, entry)| sees(&entry.queue.principal())).map(|(id, _)| *id).collect()
    }

    /// Notifies these subscribers that the policy changed what they may list.
    pub(super) fn notify_policy_changed(&self, subscribers: &HashSet<u64>) {
        let queues = self.subscribers.iter().filter(|(id, _)| subscribers.contains(id)).map(|(_, entry)| &entry.queue);
        queues.for_each(|queue| queue.add_policy_change());
    }
}

impl Subscriber {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The subscriptions that it belongs to.
    pub fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// The principal for whom policy is asked.
    pub(super) fn principal(&self) -> Principal {
        self.queue.principal()
    }

    /// Asks policy for `principal` from now on: the same account, with other scopes.
    pub fn set_principal(&self, principal: &Principal) {
        self.queue.set_principal(principal);
    }

    /// The lists of which it wants to know changes.
    pub(super) fn wanted(&self) -> WantedLists {
        self.queue.wanted()
    }

    /// Ends the subscription to `uri`.
    pub fn unwatch(&self, uri: &str) {
        self.subscriptions.registry().unsubscribe(self.id, uri);
    }

    /// Waits for changes and returns all that are collected. Cancellation-safe: dropping the future loses nothing.
    pub(super) async fn next(&self) -> CollectedChanges {
        self.queue.next().await
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let mut registry = self.subscriptions.registry();
        let uris = registry.subscribers.remove(&self.id).map(|entry| entry.uris).unwrap_or_default();
        registry.list_subscribers -= usize::from(self.queue.wanted().resources);
        uris.iter().for_each(|uri| registry.unsubscribe(self.id, uri));
        registry.remove_unwatched();
    }
}

#[cfg(test)]
mod tests;
