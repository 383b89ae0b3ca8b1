//! This process as one of several replicas: what the others tell, and what a newer configuration of theirs took back.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::pipeline::Gateway;
use super::poll_target::ResourceState;
use super::round::{PollRole, Rounds};
use super::shared_answers::is_worth_sharing;
use super::subscriptions::{ListFingerprint, ListKind};
use crate::catalog::Mount;
use crate::config::ConfigFingerprint;
use crate::config::fingerprint::hash;
use crate::model::{MountName, ReadError};
use crate::store::{Generation, GenerationContents, Heard, News, Replicas, RoundNews, RoundRole, SharedStore};

/// Stands for the list among the names that a replica watches. It is no reference.
const LIST: &str = "\0list";

impl Gateway {
    pub(super) fn store(&self) -> Option<&Arc<SharedStore>> {
        self.replicas.as_ref().map(|link| &link.store)
    }

    /// Checks that no newer configuration of another replica took back a grant of this mount.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] if one did.
    pub(super) fn check_not_withheld(&self, mount: &MountName) -> Result<(), ReadError> {
        let is_withheld = self.replicas.as_ref().is_some_and(|link| link.withheld.load().contains(mount));
        match is_withheld {
            false => Ok(()),
            true => Err(ReadError::Unavailable(
                "another replica has a newer configuration, which takes back a grant of this mount; it is served again \
                 when this replica has that configuration"
                    .to_owned(),
            )),
        }
    }

    /// Notes which configuration is in force.
    pub fn set_configuration(&self, fingerprint: ConfigFingerprint) {
        self.fingerprint.store(Arc::new(fingerprint));
    }

    /// The generation that [`Gateway::find_generation`] found last.
    pub fn generation(&self) -> Arc<Generation> {
        self.generation.load_full()
    }

    /// Finds out the generation of the configuration that this gateway serves. `keys`: the API keys. Replicas with the same
    /// one serve the same components with the same grants to the same principals. `None` until everything is loaded.
    pub fn find_generation(&self, keys: Vec<u64>) -> Option<Arc<Generation>> {
        if !self.catalog.is_loaded() {
            return None;
        }
        let (snapshot, fingerprint) = (self.catalog.snapshot(), self.fingerprint.load_full());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&fingerprint.settings);
        for (mount, grants) in &fingerprint.mounts {
            [mount].into_iter().chain(grants).for_each(|hash| {
                hasher.update(&hash.to_le_bytes());
            });
        }
        keys.iter().for_each(|key| {
            hasher.update(&key.to_le_bytes());
        });
        let mut mounts: Vec<[u8; 32]> = snapshot.mounts().iter().map(|mount| mount.cached.key().bytes()).collect();
        mounts.sort_unstable();
        mounts.iter().for_each(|key| {
            hasher.update(key);
        });
        let contents = Arc::new(GenerationContents { mounts: fingerprint.mounts.clone(), keys });
        let name = hasher.finalize().to_hex().chars().take(16).collect();
        let generation = Arc::new(Generation { name, contents });
        self.generation.store(Arc::clone(&generation));
        Some(generation)
    }

    /// Withholds the mounts of which a newer configuration of another replica took back a grant. `own`: the configuration
    /// of this gateway.
    pub fn follow_replicas(&self, own: &Generation, replicas: &Replicas) {
        let Some(link) = &self.replicas else { return };
        link.count.store(replicas.generations.values().sum(), Ordering::Relaxed);
        let taken: HashSet<u64> =
            replicas.newer.iter().flat_map(|newer| newer.taken_back(&own.contents).collect::<Vec<_>>()).collect();
        let snapshot = self.catalog.snapshot();
        let withheld: HashSet<MountName> = snapshot
            .mounts()
            .iter()
            .map(|mount| &mount.name)
            .filter(|name| taken.contains(&hash(&[name.as_str()])))
            .cloned()
            .collect();
        let before = link.withheld.swap(Arc::new(withheld.clone()));
        for name in withheld.difference(&before) {
            tracing::warn!(
                mount = %name,
                "not served: another replica has a newer configuration, which takes back a grant of this mount"
            );
        }
        for name in before.difference(&withheld) {
            tracing::info!(mount = %name, "served again: this replica has the newest configuration");
        }
    }

    /// Tells the other replicas that this one has another configuration.
    pub async fn tell_configuration(&self) {
        if let Some(store) = self.store() {
            store.tell(&News::Configuration).await;
        }
    }

    /// True if replicas share a store.
    pub(super) fn has_store(&self) -> bool {
        self.replicas.is_some()
    }

    /// Begins a poll of `mount`, or only renews the lease unless a poll `is_due`. True if this replica looks at once, because it
    /// has just become the leader, or must look.
    pub(super) async fn begin_poll(&self, mount: &Mount, rounds: &mut Rounds, is_due: bool) -> bool {
        if self.replicas.is_none() {
            return false;
        }
        let mut role = self.begin_round(mount, is_due).await;
        if !is_due && rounds.is_new_leader(&role) {
            role = self.begin_round(mount, true).await;
        }
        let (must_repeat, must_look) = {
            let mut registry = self.subscriptions.registry();
            let mount_watch = registry.mount_watches.get_mut(&mount.name);
            mount_watch.map_or((false, false), |watch| {
                (std::mem::take(&mut watch.must_repeat), std::mem::take(&mut watch.must_look))
            })
        };
        rounds.begin(mount.cached.key().bytes(), role, must_repeat, must_look) || must_look
    }

    /// Asks for the lease of `mount`. With `names`, a leader is told what all replicas watch.
    async fn begin_round(&self, mount: &Mount, names: bool) -> PollRole {
        let Some(store) = self.store() else { return PollRole::Alone };
        // Its resources differ for each principal, or its lists: nothing to share.
        if mount.is_per_principal() {
            return PollRole::Alone;
        }
        let watched = {
            let registry = self.subscriptions.registry();
            let references = registry.watched_references(&mount.name, &mount.base);
            references.into_iter().chain(registry.wants_lists().then(|| LIST.to_owned())).collect::<Vec<_>>()
        };
        let role = match store.begin_round(&mount.cached.key().bytes(), &watched, names).await {
            RoundRole::Alone => PollRole::Alone,
            RoundRole::Follower => PollRole::Follower,
            RoundRole::Leader { fence, watched } => {
                let (list, references): (Vec<String>, Vec<String>) = watched.into_iter().partition(|name| name == LIST);
                PollRole::Leader { fence, references, wants_list: !list.is_empty() }
            }
        };
        if let Some(mount_watch) = self.subscriptions.registry().mount_watches.get_mut(&mount.name) {
            mount_watch.is_leader = matches!(role, PollRole::Leader { .. });
        }
        role
    }

    /// Tells the other replicas what a round found.
    pub(super) async fn tell_round(&self, mut news: RoundNews) {
        /// States in one message.
        const AT_ONCE: usize = 500;
        let Some(store) = self.store() else { return };
        // Also if nothing changed: then the others know that this replica looked.
        if news.fence == 0 {
            return;
        }
        while news.states.len() > AT_ONCE {
            let states = news.states.split_off(news.states.len() - AT_ONCE);
            store.tell(&News::Round(RoundNews { states, list: None, ..news })).await;
        }
        store.tell(&News::Round(news)).await;
    }

    /// Tells the other replicas that the files of a mount changed here. If another one is to look and does not do so by
    /// itself, asks for it: on some file systems only this machine sees the change.
    pub(super) async fn share_change_of_files(&self, mount: &Mount) {
        /// The leader looks within this time if it saw the change, too.
        const LOOK_TIME: Duration = Duration::from_millis(400);
        let Some(store) = self.store() else { return };
        let changed_at = Instant::now();
        self.change_shared_answers(mount).await;
        store.tell(&News::Stale { mount: mount.cached.key().bytes() }).await;
        tokio::time::sleep(LOOK_TIME).await;
        let is_looked_at = {
            let registry = self.subscriptions.registry();
            let mount_watch = registry.mount_watches.get(&mount.name);
            mount_watch.is_none_or(|watch| watch.is_leader || watch.has_heard_since(changed_at))
        };
        if !is_looked_at {
            self.ask_for_look(mount, false).await;
        }
    }

    /// Asks the replica that holds the lease of `mount` to look at once. With `all`, to say again what it knows.
    async fn ask_for_look(&self, mount: &Mount, all: bool) {
        let Some(store) = self.store() else { return };
        store.tell(&News::Look { mount: mount.cached.key().bytes(), all }).await;
    }

    /// Takes what was heard from the store. True if the configuration of another replica changed.
    pub fn hear(self: &Arc<Self>, heard: Heard) -> bool {
        match heard {
            Heard::Anything => {
                self.doubt_everything();
                return true;
            }
            Heard::News(News::Configuration) => return true,
            Heard::News(News::Round(news)) => self.hear_round(&news),
            Heard::News(News::Stale { mount }) => {
                self.mount_of_key(&mount).into_iter().for_each(|mount| mount.cached.invalidate_answers());
            }
            Heard::News(News::Look { mount, all }) => {
                let Some(mount) = self.mount_of_key(&mount) else { return false };
                let mut registry = self.subscriptions.registry();
                if let Some(mount_watch) =
                    registry.mount_watches.get_mut(&mount.name).filter(|mount_watch| mount_watch.is_leader)
                {
                    mount_watch.must_repeat |= all;
                    mount_watch.wake.notify_one();
                }
            }
        }
        false
    }

    fn mount_of_key(&self, key: &[u8; 32]) -> Option<Arc<Mount>> {
        self.catalog.snapshot().mounts().iter().find(|mount| mount.cached.key().bytes() == *key).cloned()
    }

    /// News may have been lost: nothing that is kept counts as current.
    fn doubt_everything(self: &Arc<Self>) {
        let snapshot = self.catalog.snapshot();
        for mount in snapshot.mounts() {
            mount.cached.invalidate_answers();
            if is_worth_sharing(mount) {
                // A change that this replica saw while the store was away.
                let (own, mount) = (Arc::clone(self), Arc::clone(mount));
                tokio::spawn(async move { own.change_shared_answers(&mount).await });
            }
            let is_watched = {
                let mut registry = self.subscriptions.registry();
                let mount_watch = registry.mount_watches.get_mut(&mount.name);
                mount_watch.map(|mount_watch| {
                    mount_watch.must_repeat = true;
                    mount_watch.wake.notify_one();
                })
            };
            if is_watched.is_some() {
                let (own, mount) = (Arc::clone(self), Arc::clone(mount));
                tokio::spawn(async move { own.ask_after_loss(&mount).await });
            }
        }
    }

    /// Asks for a look after news may have been lost, unless the replica that looks has told everything since. All replicas
    /// may have lost the store at once, and each question is heard by all. So each waits for a random time, which is longer
    /// the more replicas there are.
    async fn ask_after_loss(&self, mount: &Mount) {
        const FOR_EACH: Duration = Duration::from_millis(5);
        const LONGEST: Duration = Duration::from_secs(1);
        let Some(link) = &self.replicas else { return };
        let lost_at = Instant::now();
        let count = u32::try_from(link.count.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        let longest = FOR_EACH.saturating_mul(count).min(LONGEST);
        let mut random = [0; 2];
        // Without randomness, all wait as long as the last one.
        let part = getrandom::fill(&mut random).map_or(u16::MAX, |()| u16::from_le_bytes(random));
        tokio::time::sleep(longest.mul_f64(f64::from(part) / f64::from(u16::MAX))).await;
        let is_told = {
            let registry = self.subscriptions.registry();
            registry.mount_watches.get(&mount.name).is_none_or(|watch| watch.has_heard_all_since(lost_at))
        };
        if !is_told {
            self.ask_for_look(mount, true).await;
        }
    }

    fn hear_round(self: &Arc<Self>, news: &RoundNews) {
        let Some(mount) = self.mount_of_key(&news.mount) else { return };
        let mut changed = Vec::new();
        {
            let mut registry = self.subscriptions.registry();
            if let Some(mount_watch) = registry.mount_watches.get_mut(&mount.name)
                && !mount_watch.takes_news(news)
            {
                return;
            }
            for one in &news.states {
                let state = one
                    .state
                    .map_or(ResourceState::Absent, |hash| ResourceState::Present(blake3::Hash::from_bytes(hash)));
                let uri: Arc<str> = format!("{}{}", mount.base, one.reference).into();
                if one.is_change || registry.differs(&uri, state) {
                    changed.push((uri, state, &one.reference));
                }
            }
        }
        // A client that is notified must read the new contents.
        changed.iter().for_each(|(_, _, reference)| self.shared_reads.forget(&mount, reference));
        {
            let mut registry = self.subscriptions.registry();
            changed.iter().for_each(|(uri, state, _)| {
                registry.set_state(uri, *state);
            });
        }
        if let Some(list) = news.list {
            self.hear_list(&mount, list.map(blake3::Hash::from_bytes));
        }
    }

    /// Another replica found that the list of `mount` has this hash.
    fn hear_list(&self, mount: &Arc<Mount>, digest: Option<blake3::Hash>) {
        let mut registry = self.subscriptions.registry();
        let Some(mount_watch) = registry.mount_watches.get_mut(&mount.name) else { return };
        let Some(known) = mount_watch.fingerprint.as_mut().filter(|known| known.digest != digest) else { return };
        mount.cached.mark_listings_outdated();
        if self.has_rules() {
            // Who sees a part of the list is told of changes of this part only, so this replica has to look itself.
            mount_watch.must_look = true;
            mount_watch.wake.notify_one();
            return;
        }
        *known = ListFingerprint { digest, ..known.clone() };
        registry.notify_list_changed(ListKind::Resources, &mount.name, &mount.base, |_| true);
    }
}
