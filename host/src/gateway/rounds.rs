//! Looks at what is watched: each mount by a task of its own, in rounds, and at once when something changed in a directory
//! that it was granted. A mount that hangs holds up no other.
//!
//! A provider that tells revisions is asked for those of all its watched resources in one call; of others, the resources
//! are read and compared. Each look is a call like any other: within the mount's limits, on record, with `watch` as the
//! caller.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::due::{Due, Found};
use super::look::ROUNDS;
use super::watching::{NotWatched, Print, Subscriber};
use super::{FIRST_LOAD, Gateway, answers};
use crate::catalog::kept::Kept;
use crate::catalog::listing::Listed;
use crate::catalog::watch::{Watched, any_changed};
use crate::catalog::{Mount, Snapshot};
use crate::model::{MountName, Resource, Template, reference};
use crate::sandbox::MountId;

/// How long whoever begins to watch waits until what is watched has been looked at for the first time.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// Entries of a mount's list that are compared to see whether it has changed.
const COMPARED: usize = 10_000;

/// How long a look at a list may take at the most: nobody waits for it.
const LIST_TIME: Duration = Duration::from_secs(3);

/// A directory is quiet when nothing changed in it for so long.
const QUIET: Duration = Duration::from_millis(100);

/// How long quiet is waited for.
const RESTLESS: Duration = Duration::from_millis(400);

/// The granted directories of a mount that are watched.
struct Directories {
    of: Option<MountId>,
    watched: Vec<Watched>,
    /// Whether nothing can change in any granted directory without being told.
    are_whole: bool,
}

impl Directories {
    async fn of(gateway: &Gateway, mount: &Arc<Mount>) -> Self {
        let (of, watcher) = (Some(mount.loaded.id()), gateway.watching.watcher.clone());
        let Some(watcher) = watcher.filter(|_| mount.has_directories()) else {
            return Self { of, watched: Vec::new(), are_whole: false };
        };
        let own = Arc::clone(mount);
        // A look at every directory below takes its time.
        let watched = tokio::task::spawn_blocking(move || own.watch(&watcher)).await;
        match watched.unwrap_or_else(|_| Err("its watch panicked".to_owned())) {
            Ok(watched) => {
                let are_whole = watched.iter().all(Watched::is_whole);
                Self { of, watched, are_whole }
            }
            Err(why) => {
                tracing::info!(mount = %mount.name, "it is asked from time to time, because {why}");
                Self { of, watched: Vec::new(), are_whole: false }
            }
        }
    }

    /// Waits for a change, and then for quiet.
    async fn changed(&self) {
        any_changed(&self.watched).await;
        let restless = async { while timeout(QUIET, any_changed(&self.watched)).await.is_ok() {} };
        let _ = timeout(RESTLESS, restless).await;
    }
}

/// About `time`: rounds of many mounts do not fall together.
fn jittered(time: Duration) -> Duration {
    let tenths = u32::try_from(RandomState::new().hash_one(()) % 40).unwrap_or_default();
    time / 100 * (80 + tenths)
}

impl Gateway {
    /// A new watcher; of lists, if it `wants_lists`.
    ///
    /// # Errors
    /// When there are too many.
    pub fn subscriber(self: &Arc<Self>, wants_lists: bool) -> Result<Subscriber, NotWatched> {
        let subscriber = self.watching.subscriber(wants_lists)?;
        if wants_lists && self.catalog.is_settled() {
            self.attend_lists(&self.catalog.snapshot(), false);
        }
        Ok(subscriber)
    }

    /// Whether `uri` can be watched: whether a mount has it.
    pub fn can_watch(&self, uri: &str) -> bool {
        let fits = |(_, reference): (_, &str)| reference::check(reference).is_ok();
        uri.len() <= reference::MAX_URI && self.catalog.snapshot().route(uri).is_some_and(fits)
    }

    /// Watches `uris` for `subscriber`, and looks at them for the first time: what changes from now on is told.
    ///
    /// # Errors
    /// At the first URI that cannot be watched; those before it are.
    pub async fn watch(self: &Arc<Self>, subscriber: &Subscriber, uris: Vec<String>) -> Result<(), NotWatched> {
        let snapshot = self.settled().await;
        let mut unseen: HashMap<&MountName, (&Arc<Mount>, Vec<Due>)> = HashMap::new();
        {
            let mut books = self.watching.books();
            for uri in uris {
                let (mount, reference) = snapshot.route(&uri).ok_or(NotWatched::NoMount)?;
                reference::check(reference).map_err(|_| NotWatched::NoMount)?;
                let reference = reference.to_owned();
                if books.enter(subscriber.id(), &uri.into(), &mount.name)? {
                    let uri = format!("{}{reference}", mount.base).into();
                    let due = Due { uri, reference, watcher: subscriber.id(), is_known: false, is_suspect: false };
                    unseen.entry(&mount.name).or_insert_with(|| (mount, Vec::new())).1.push(due);
                }
            }
            books.start(self.starter());
        }
        let looks = unseen.into_values().map(async |(mount, due)| {
            self.look(mount, due, |one, found| self.watching.books().found_first(one, found)).await;
        });
        // What was not seen by then is seen for the first time in a round.
        let _ = timeout(FIRST_LOOK, join_all(looks)).await;
        Ok(())
    }

    /// Follows the catalog: which mounts there are to be looked at. Ends with the gateway.
    pub fn follow(self: &Arc<Self>) {
        let (weak, mut changes) = (Arc::downgrade(self), self.catalog.changes());
        tokio::spawn(async move {
            // Until everything is loaded, nobody was given a list.
            match weak.upgrade() {
                Some(gateway) => drop(gateway.catalog.settled(Instant::now() + FIRST_LOAD).await),
                None => return,
            }
            let mut is_first = true;
            loop {
                let Some(gateway) = weak.upgrade() else { return };
                gateway.regroup(std::mem::take(&mut is_first));
                drop(gateway);
                if changes.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn regroup(self: &Arc<Self>, is_first: bool) {
        let snapshot = self.catalog.snapshot();
        let mount_of = |uri: &str| snapshot.route(uri).map(|(mount, _)| mount.name.clone());
        self.watching.books().regroup(mount_of);
        self.attend_lists(&snapshot, !is_first);
    }

    /// Has the list of every mount looked at, while somebody wants that, and every mount that is another one than before.
    /// `is_change`: what is not known was not there before.
    fn attend_lists(self: &Arc<Self>, snapshot: &Snapshot, is_change: bool) {
        let mut books = self.watching.books();
        if books.wants_lists() {
            for mount in snapshot.mounts() {
                let is_known = books.groups.contains_key(&mount.name);
                let group = books.group(&mount.name);
                if is_change && !is_known {
                    group.print = Some(Print::empty());
                }
                if group.print.as_ref().is_none_or(|print| print.id != mount.loaded.id()) {
                    group.wake.notify_one();
                }
            }
            let is_gone = |name: &MountName| snapshot.find(name).is_none();
            let mut was_listed = false;
            for (_, group) in books.groups.iter_mut().filter(|(name, _)| is_gone(name)) {
                let before = group.print.replace(Print::empty());
                was_listed |= before.is_some_and(|before| before.digest.is_some());
            }
            if was_listed {
                books.list_changed();
            }
        } else {
            books.groups.values().for_each(|group| group.wake.notify_one());
        }
        books.groups.retain(|name, group| !group.uris.is_empty() || snapshot.find(name).is_some());
        books.start(self.starter());
    }

    fn starter(self: &Arc<Self>) -> impl Fn(MountName, Arc<Notify>) -> AbortHandle {
        let weak = Arc::downgrade(self);
        move |name, wake| tokio::spawn(attend(Weak::clone(&weak), name, wake)).abort_handle()
    }

    /// One round: what is watched of `mount`, and its list if it is time for that.
    async fn round(&self, mount: &Arc<Mount>, with_list: bool) {
        let (due, wants_list) = {
            let books = self.watching.books();
            if !books.groups.contains_key(&mount.name) {
                return;
            }
            (books.due(&mount.name, &mount.base, Instant::now()), books.wants_lists())
        };
        self.look(mount, due, |one, found| {
            let mut books = self.watching.books();
            if let Found::Seen(seen) = found
                && books.differs(&one.uri, seen)
            {
                // Whoever is told reads anew.
                self.answers.forget(&answers::key(mount, &one.reference));
            }
            books.found(one, found);
        })
        .await;
        if !with_list || !wants_list {
            return;
        }
        let before = self.watching.books().groups.get(&mount.name).and_then(|group| group.print.clone());
        let Some(print) = self.print(mount, before.as_ref()).await else { return };
        let mut books = self.watching.books();
        let Some(group) = books.groups.get_mut(&mount.name) else { return };
        if group.print.replace(print.clone()).is_some_and(|before| before.digest != print.digest) {
            books.list_changed();
        }
    }

    /// What is served of the list of `mount` now; none where that could not be found out.
    async fn print(&self, mount: &Arc<Mount>, before: Option<&Print>) -> Option<Print> {
        let by = Instant::now() + self.list_time.min(LIST_TIME);
        let resources = self.listed_anew::<Resource>(mount, by).await?;
        let templates = self.listed_anew::<Template>(mount, by).await?;
        let lists = (resources.id(), templates.id());
        if let Some(before) = before.filter(|before| before.id == mount.loaded.id() && before.lists == lists) {
            return Some(before.clone());
        }
        let digest = match resources.is_empty() && templates.is_empty() {
            true => None,
            false => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(resources.digest(COMPARED).as_bytes());
                hasher.update(templates.digest(COMPARED).as_bytes());
                hasher.update(mount.base.as_bytes());
                Some(hasher.finalize())
            }
        };
        Some(Print { id: mount.loaded.id(), lists, digest })
    }

    async fn listed_anew<T: Listed>(&self, mount: &Arc<Mount>, by: Instant) -> Option<Arc<Kept<T>>> {
        T::slot(mount).current().iter().for_each(|kept| kept.doubt());
        let kept = self.listing::<T>(&ROUNDS, mount, None, by).await;
        let is_filled = self.fill(&ROUNDS, mount, &kept, COMPARED, by).await;
        (is_filled && !kept.has_failed()).then_some(kept)
    }
}

/// Looks at one mount for as long as something of it is watched.
async fn attend(weak: Weak<Gateway>, name: MountName, wake: Arc<Notify>) {
    let mut directories = Directories { of: None, watched: Vec::new(), are_whole: false };
    let mut list_at = Instant::now();
    loop {
        let Some(gateway) = weak.upgrade() else { return };
        let Some(mount) = gateway.catalog.snapshot().find(&name).cloned() else {
            drop(gateway);
            wake.notified().await;
            continue;
        };
        if directories.of != Some(mount.loaded.id()) {
            directories = Directories::of(&gateway, &mount).await;
        }
        let settings = gateway.watching.settings.clone();
        let with_list = Instant::now() >= list_at;
        gateway.round(&mount, with_list).await;
        // Where nothing is told, the whole content is looked at, which costs more.
        let mut pauses =
            if mount.revises { (settings.poll, settings.lists) } else { (settings.reread, settings.reread) };
        if directories.are_whole {
            // What is in files is told at once; what is not, such as the time of day, is looked for as well.
            pauses = (pauses.0.max(settings.reread), pauses.1.max(settings.reread));
        }
        if with_list {
            list_at = Instant::now() + jittered(pauses.1);
        }
        drop((gateway, mount));
        let next = (Instant::now() + jittered(pauses.0)).min(list_at);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = wake.notified() => list_at = Instant::now(),
            () = directories.changed() => {
                list_at = Instant::now();
                // Answers from before count no more, also those that nobody watches.
                if let Some(mount) = weak.upgrade().and_then(|gateway| gateway.catalog.snapshot().find(&name).cloned()) {
                    mount.changes.fetch_add(1, Ordering::Release);
                }
            }
        }
    }
}
