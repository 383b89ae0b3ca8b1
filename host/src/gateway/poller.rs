//! Polls watched resources and lists. Each mount has a task of its own, which polls at intervals and at once after a
//! change in a granted directory. A mount that hangs delays no other mount.
//!
//! A provider that exports the revisions interface gives the revisions of all its watched resources in one call. The
//! resources of other providers are read and compared. Each poll is an ordinary call: within the mount's limits and
//! recorded, with `watch` as the caller.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::call_group::CallGroup;
use super::pipeline::{FIRST_LOAD_WAIT, Gateway};
use super::poll::POLL_CALLER;
use super::poll_target::{PollResult, PollTarget};
use super::round::Rounds;
use super::subscriptions::{DefiningMount, ListFingerprint, ListKind, PolledListings, VisibleLists};
use crate::catalog::listing::Listed;
use crate::catalog::watch::{DirectoryWatch, WatchError, any_changed};
use crate::catalog::{CachedListing, Mount, Snapshot};
use crate::model::{MountName, Resource, Template};
use crate::policy::{Action, Principal};
use crate::sandbox::MountId;
use crate::store::RENEW_INTERVAL;

/// Entries of a mount's list that are compared to detect a change.
const COMPARED_ENTRIES: usize = 10_000;

/// The longest time of one poll of a list. No client waits for it.
const MAX_LIST_TIME: Duration = Duration::from_secs(3);

/// A directory counts as quiet when nothing changed in it for this time.
const QUIET_TIME: Duration = Duration::from_millis(100);

/// The longest time to wait until a directory is quiet.
const MAX_QUIET_WAIT: Duration = Duration::from_millis(400);

/// Polls that found nothing new are counted for this time before they are recorded.
const RECORD_INTERVAL: Duration = Duration::from_secs(600);

/// The most problems that are remembered for a mount.
const MAX_PROBLEMS: usize = 256;

/// The granted directories of a mount, and the watches on them.
struct WatchedDirectories {
    mount_id: Option<MountId>,
    watched: Vec<DirectoryWatch>,
    /// True if every change in every granted directory is reported.
    are_complete: bool,
}

impl WatchedDirectories {
    async fn of(gateway: &Gateway, mount: &Arc<Mount>) -> Self {
        let (mount_id, watcher) = (Some(mount.loaded.id()), gateway.subscriptions.watcher.clone());
        let Some(watcher) = watcher.filter(|_| mount.has_directories()) else {
            return Self { mount_id, watched: Vec::new(), are_complete: false };
        };
        let own = Arc::clone(mount);
        // Walking all directories takes time and blocks.
        let watched = tokio::task::spawn_blocking(move || own.watch(&watcher)).await;
        match watched.unwrap_or(Err(WatchError::Panicked)) {
            Ok(watched) => {
                let are_complete = watched.iter().all(DirectoryWatch::is_complete);
                Self { mount_id, watched, are_complete }
            }
            Err(why) => {
                tracing::info!(mount = %mount.name, "its resources are polled, because {why}");
                Self { mount_id, watched: Vec::new(), are_complete: false }
            }
        }
    }

    /// Waits for a change, and then until the directories are quiet.
    async fn changed(&self) {
        any_changed(&self.watched).await;
        let until_quiet = async { while timeout(QUIET_TIME, any_changed(&self.watched)).await.is_ok() {} };
        let _ = timeout(MAX_QUIET_WAIT, until_quiet).await;
    }
}

/// A random time of 80 % to 120 % of `time`, so that the polls of many mounts do not coincide.
fn jittered(time: Duration) -> Duration {
    let tenths = u32::try_from(RandomState::new().hash_one(()) % 40).unwrap_or_default();
    time / 100 * (80 + tenths)
}

impl Gateway {
    /// Follows the catalog and polls the mounts that it serves. Ends when the gateway is dropped.
    pub fn follow_catalog(self: &Arc<Self>) {
        let (weak, mut changes) = (Arc::downgrade(self), self.catalog.changes());
        tokio::spawn(async move {
            // No client receives a list before everything is loaded.
            match weak.upgrade() {
                Some(gateway) => drop(gateway.catalog.wait_loaded(Instant::now() + FIRST_LOAD_WAIT).await),
                None => return,
            }
            let mut is_first = true;
            loop {
                let Some(gateway) = weak.upgrade() else { return };
                gateway.follow_snapshot(std::mem::take(&mut is_first));
                drop(gateway);
                if changes.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn follow_snapshot(self: &Arc<Self>, is_first: bool) {
        let snapshot = self.catalog.snapshot();
        let mount_of = |uri: &str| snapshot.route(uri).map(|(mount, _)| (mount.name.clone(), mount.base.clone()));
        self.subscriptions.registry().reassign_mounts(mount_of);
        self.wake_list_pollers(&snapshot, !is_first);
        self.follow_definitions(&snapshot, is_first);
    }

    /// Tells clients that the lists of tools and of prompts changed, where a mount with some came, went or was replaced.
    fn follow_definitions(&self, snapshot: &Snapshot, is_first: bool) {
        let has_any = |mount: &&Arc<Mount>| mount.interfaces.tools || mount.interfaces.prompts;
        let now: BTreeMap<_, _> = snapshot
            .mounts()
            .iter()
            .filter(has_any)
            .map(|mount| {
                let (has_tools, has_prompts) = (mount.interfaces.tools, mount.interfaces.prompts);
                let defining =
                    DefiningMount { id: mount.loaded.id(), base: mount.base.clone(), has_tools, has_prompts };
                (mount.name.clone(), defining)
            })
            .collect();
        let mut registry = self.subscriptions.registry();
        let before = std::mem::replace(&mut registry.defining, now.clone());
        if is_first {
            return;
        }
        let gone_or_changed = before.iter().filter(|(name, mount)| now.get(*name) != Some(*mount));
        let new = now.iter().filter(|(name, _)| !before.contains_key(*name));
        for (name, DefiningMount { id: _, base, has_tools, has_prompts }) in gone_or_changed.chain(new) {
            for (kind, is_concerned) in [(ListKind::Tools, *has_tools), (ListKind::Prompts, *has_prompts)] {
                if is_concerned {
                    registry
                        .notify_list_changed(kind, name, base, |principal| self.sees_any(principal, kind, name, base));
                }
            }
        }
    }

    /// Wakes the poller of every mount whose list is unknown or that was replaced, if a subscriber wants lists.
    /// `is_change`: a mount that is not in the registry is new, so its list counts as a change.
    pub(super) fn wake_list_pollers(self: &Arc<Self>, snapshot: &Snapshot, is_change: bool) {
        let mut registry = self.subscriptions.registry();
        if registry.wants_lists() {
            // A list that is different for each principal cannot be polled for all.
            for mount in snapshot.mounts().iter().filter(|mount| !mount.is_per_principal()) {
                let is_known = registry.mount_watches.contains_key(&mount.name);
                let mount_watch = registry.mount_watch(&mount.name, &mount.base);
                if is_change && !is_known {
                    mount_watch.fingerprint = Some(ListFingerprint::empty());
                }
                let id = mount.loaded.id();
                let is_being_polled = mount_watch.polled == Some(id);
                if mount_watch.fingerprint.as_ref().is_none_or(|fingerprint| fingerprint.id != id) && !is_being_polled {
                    mount_watch.wake.notify_one();
                }
            }
            let is_gone = |name: &MountName| snapshot.find(name).is_none();
            let mut unlisted = Vec::new();
            for (name, mount_watch) in registry.mount_watches.iter_mut().filter(|(name, _)| is_gone(name)) {
                let before = mount_watch.fingerprint.replace(ListFingerprint::empty());
                mount_watch.visible = VisibleLists::default();
                if before.is_some_and(|before| before.digest.is_some()) {
                    unlisted.push((name.clone(), mount_watch.base.clone()));
                }
            }
            for (name, base) in unlisted {
                registry.notify_list_changed(ListKind::Resources, &name, &base, |principal| {
                    self.lists_any(principal, &name, &base)
                });
            }
        } else {
            registry.mount_watches.values().for_each(|mount_watch| mount_watch.wake.notify_one());
        }
        registry
            .mount_watches
            .retain(|name, mount_watch| !mount_watch.uris.is_empty() || snapshot.find(name).is_some());
        registry.start_pollers(self.poller_starter());
    }

    pub(super) fn poller_starter(self: &Arc<Self>) -> impl Fn(MountName, Arc<Notify>) -> AbortHandle {
        let weak = Arc::downgrade(self);
        move |name, wake| tokio::spawn(run_poller(Weak::clone(&weak), name, wake)).abort_handle()
    }

    /// Polls the watched resources of `mount`, and its list if `with_list`. Returns true if anything changed.
    async fn poll_mount(&self, group: &CallGroup, mount: &Arc<Mount>, with_list: bool, rounds: &mut Rounds) -> bool {
        self.end_refused_subscriptions(mount);
        let (others, others_want_list) = rounds.of_others();
        let (targets, wants_list) = {
            let mut registry = self.subscriptions.registry();
            let wants_list = with_list && (registry.wants_lists() || others_want_list) && !mount.is_per_principal();
            let Some(mount_watch) = registry.mount_watches.get_mut(&mount.name) else { return false };
            let is_known = mount_watch.fingerprint.as_ref().is_some_and(|known| known.id == mount.loaded.id());
            let wants_list = wants_list && (!rounds.is_follower() || rounds.must_look() || !is_known);
            mount_watch.polled = wants_list.then(|| mount.loaded.id());
            let mut targets = registry.poll_targets(&mount.name, &mount.base, Instant::now());
            if rounds.is_follower() {
                targets.retain(|target| !registry.is_known(&target.uri));
            }
            let own: HashSet<&str> = targets.iter().map(|target| target.reference.as_str()).collect();
            let is_own = |other: &&String| own.contains(other.as_str());
            let others: Vec<_> =
                others.iter().filter(|other| !is_own(other)).map(|other| of_others(mount, other)).collect();
            targets.extend(others);
            (targets, wants_list)
        };
        // Another mount may have taken its place, or a part of its base.
        let snapshot = self.catalog.snapshot();
        let targets = targets.into_iter().filter(|one| snapshot.absolute_name(mount, &one.reference).is_ok()).collect();
        let mut is_change = false;
        self.poll_resources(group, mount, targets, |target, result| {
            let mut registry = self.subscriptions.registry();
            if let PollResult::Known(state) = result {
                let is_news = rounds.note(&target.reference, state);
                if is_news || registry.differs(&target.uri, state) {
                    // A client that is notified must read the new contents.
                    mount.cached.set_changing(rounds.has_others());
                    self.shared_reads.forget(mount, &target.reference);
                }
            }
            is_change |= registry.record_result(target, result);
        })
        .await;
        if !wants_list {
            return is_change;
        }
        let before = self
            .subscriptions
            .registry()
            .mount_watches
            .get(&mount.name)
            .and_then(|mount_watch| mount_watch.fingerprint.clone());
        let polled = self.poll_list(group, mount, before.as_ref()).await;
        let changed = match &polled {
            Some((fingerprint, listings)) if self.has_rules() => {
                let is_same = before.as_ref() == Some(fingerprint);
                self.changed_classes(mount, listings, is_same).await
            }
            _ => HashSet::new(),
        };
        let mut registry = self.subscriptions.registry();
        if self.policy.has_schedule() {
            let class_of = |principal: &Principal| self.visibility(principal, Action::List, mount).class();
            registry.update_classes(&mount.name, class_of);
        }
        let Some(mount_watch) = registry.mount_watches.get_mut(&mount.name) else { return is_change };
        mount_watch.polled = None;
        let Some((fingerprint, _)) = polled else { return is_change };
        let digest = fingerprint.digest;
        rounds.note_list(digest);
        if mount_watch.fingerprint.replace(fingerprint).is_some_and(|before| before.digest != digest) {
            // Who sees a part of the mount is told of changes of this part only.
            registry.notify_list_changed(ListKind::Resources, &mount.name, &mount.base, |principal| {
                let visible = self.visibility(principal, Action::List, mount);
                visible.is_all() || changed.contains(&visible.class())
            });
            is_change = true;
        }
        is_change
    }

    /// The list that `mount` serves now, with its fingerprint. `None` if the list could not be fetched.
    async fn poll_list(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        before: Option<&ListFingerprint>,
    ) -> Option<(ListFingerprint, PolledListings)> {
        let by = Instant::now() + self.list_time.min(MAX_LIST_TIME);
        // The first fingerprint is that of the list that clients already received.
        if before.is_some_and(|before| before.id == mount.loaded.id()) {
            mount.cached.mark_listings_outdated();
        }
        let resources = self.current_listing::<Resource>(group, mount, by).await?;
        let templates = self.current_listing::<Template>(group, mount, by).await?;
        let lists = (resources.id(), templates.id());
        if let Some(before) = before.filter(|before| before.id == mount.loaded.id() && before.lists == lists) {
            return Some((before.clone(), (resources, templates)));
        }
        let digest = match resources.is_empty() && templates.is_empty() {
            true => None,
            false => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(resources.hash_of_first(COMPARED_ENTRIES).as_bytes());
                hasher.update(templates.hash_of_first(COMPARED_ENTRIES).as_bytes());
                hasher.update(mount.base.as_bytes());
                Some(hasher.finalize())
            }
        };
        Some((ListFingerprint { id: mount.loaded.id(), lists, digest }, (resources, templates)))
    }

    async fn current_listing<T: Listed>(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        by: Instant,
    ) -> Option<Arc<CachedListing<T>>> {
        let listing = self.listing::<T>(group, mount, None, by).await;
        let is_filled = self.fill(group, mount, &listing, COMPARED_ENTRIES, by).await;
        (is_filled && !listing.has_failed()).then_some(listing)
    }
}

/// A resource that subscribers of other replicas watch. Their policies allowed it.
fn of_others(mount: &Mount, reference: &str) -> PollTarget {
    let uri = format!("{}{reference}", mount.base).into();
    PollTarget { uri, reference: reference.to_owned(), subscriber: u64::MAX, is_known: true, is_suspect: false }
}

/// How the polls of one mount are recorded: at once if something changed or a new problem occurred, otherwise counted.
struct PollRecord {
    group: CallGroup,
    /// Hashes of the known problems.
    problems: HashSet<u64>,
    written: Instant,
}

impl PollRecord {
    fn new(gateway: &Gateway) -> Self {
        Self { group: CallGroup::new(&gateway.audit, &POLL_CALLER), problems: HashSet::new(), written: Instant::now() }
    }

    fn end_poll(&mut self, is_change: bool) {
        let is_due = self.written.elapsed() >= RECORD_INTERVAL;
        if is_due || self.problems.len() > MAX_PROBLEMS {
            self.problems.clear();
        }
        let before = self.problems.len();
        self.problems.extend(self.group.problems());
        if is_change || is_due || self.problems.len() > before {
            self.group.write();
            self.written = Instant::now();
        }
    }
}

/// Polls one mount until nothing of it is watched any more.
async fn run_poller(weak: Weak<Gateway>, name: MountName, wake: Arc<Notify>) {
    let mut directories = WatchedDirectories { mount_id: None, watched: Vec::new(), are_complete: false };
    let mut list_at = Instant::now();
    let mut poll_record: Option<PollRecord> = None;
    let mut rounds = Rounds::default();
    let mut poll_at = Instant::now();
    loop {
        let Some(gateway) = weak.upgrade() else { return };
        // This poll covers the event that woke the task.
        if wake.notified().now_or_never().is_some() {
            poll_at = Instant::now();
        }
        let Some(mount) = gateway.catalog.snapshot().find(&name).cloned() else {
            drop(gateway);
            wake.notified().await;
            continue;
        };
        if directories.mount_id != Some(mount.loaded.id()) {
            let is_rewatched = directories.mount_id.is_some();
            directories = WatchedDirectories::of(&gateway, &mount).await;
            if is_rewatched {
                // Changes between the old watches and the new ones were not reported.
                mount.cached.invalidate_answers();
            }
        }
        let settings = gateway.subscriptions.settings.clone();
        let mut is_due = Instant::now() >= poll_at.min(list_at);
        if gateway.begin_poll(&mount, &mut rounds, is_due).await {
            is_due = true;
            list_at = Instant::now();
        }
        let with_list = is_due && Instant::now() >= list_at;
        if is_due {
            let poll_record = poll_record.get_or_insert_with(|| PollRecord::new(&gateway));
            poll_record.group.clear_revisions();
            let is_change = gateway.poll_mount(&poll_record.group, &mount, with_list, &mut rounds).await;
            poll_record.end_poll(is_change);
            if is_change || mount.cached.is_changing() {
                gateway.change_shared_answers(&mount).await;
            }
            gateway.tell_round(rounds.take_news()).await;
        }
        // Without revisions, whole contents are read, which costs more.
        let mut pauses = if mount.interfaces.revisions {
            (settings.poll, settings.lists)
        } else {
            (settings.reread, settings.reread)
        };
        if directories.are_complete {
            // Changes of files are reported at once. Other changes, such as the time of day, still need polls.
            pauses = (pauses.0.max(settings.reread), pauses.1.max(settings.reread));
        }
        if with_list {
            list_at = Instant::now() + jittered(pauses.1);
        }
        if is_due {
            poll_at = Instant::now() + jittered(pauses.0);
        }
        let renew_at = gateway.has_store().then(|| Instant::now() + RENEW_INTERVAL);
        drop((gateway, mount));
        let next = renew_at.into_iter().fold(poll_at.min(list_at), Instant::min);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = wake.notified() => (poll_at, list_at) = (Instant::now(), Instant::now()),
            () = directories.changed() => {
                (poll_at, list_at) = (Instant::now(), Instant::now());
                let Some(gateway) = weak.upgrade() else { return };
                if let Some(mount) = gateway.catalog.snapshot().find(&name).cloned() {
                    // Answers from before the change are invalid, including those without subscribers.
                    mount.cached.set_changing(gateway.has_store());
                    mount.cached.invalidate_answers();
                    if gateway.has_store() {
                        tokio::spawn(async move { gateway.share_change_of_files(&mount).await });
                    }
                }
            }
        }
    }
}
