//! Looks at what is watched: each mount by a task of its own, in rounds, and at once when something changed in a directory
//! that it was granted. A mount that hangs holds up no other.
//!
//! A provider that tells revisions is asked for those of all its watched resources in one call; of others, the resources
//! are read and compared. Each look is a call like any other: within the mount's limits, on record, with `watch` as the
//! caller.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::due::{Due, Found};
use super::look::ROUNDS;
use super::walk::Walk;
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

/// For how long looks that saw nothing new are counted before they are on record.
const COUNTED: Duration = Duration::from_secs(600);

/// Ways of going wrong that are remembered for a mount.
const MOST_WRONGS: usize = 256;

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
        let snapshot = self.catalog.snapshot();
        uri.len() <= reference::MAX_URI && snapshot.route(uri).is_some_and(fits) && !snapshot.is_disguised(uri)
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
                if snapshot.is_disguised(&uri) {
                    return Err(NotWatched::NoMount);
                }
                let reference = reference.to_owned();
                if books.enter(subscriber.id(), &uri.into(), &mount.name)? {
                    let uri = format!("{}{reference}", mount.base).into();
                    let due = Due { uri, reference, watcher: subscriber.id(), is_known: false, is_suspect: false };
                    unseen.entry(&mount.name).or_insert_with(|| (mount, Vec::new())).1.push(due);
                }
            }
            books.start(self.starter());
        }
        let walk = Walk::new(&self.audit, &ROUNDS);
        let looks = unseen.into_values().map(async |(mount, due)| {
            self.look(&walk, mount, due, |one, found| self.watching.books().found_first(one, found)).await;
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
                let id = mount.loaded.id();
                let is_looked_at = group.looked_at == Some(id);
                if group.print.as_ref().is_none_or(|print| print.id != id) && !is_looked_at {
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

    /// One round: what is watched of `mount`, and its list if it is time for that. Says whether anything had changed.
    async fn round(&self, walk: &Walk, mount: &Arc<Mount>, with_list: bool) -> bool {
        let (due, wants_list) = {
            let mut books = self.watching.books();
            let wants_list = with_list && books.wants_lists();
            let Some(group) = books.groups.get_mut(&mount.name) else { return false };
            group.looked_at = wants_list.then(|| mount.loaded.id());
            (books.due(&mount.name, &mount.base, Instant::now()), wants_list)
        };
        // Another mount may have been put in its place, or into its base.
        let snapshot = self.catalog.snapshot();
        let due = due.into_iter().filter(|one| snapshot.name_in(mount, &one.reference).is_ok()).collect();
        let mut is_change = false;
        self.look(walk, mount, due, |one, found| {
            let mut books = self.watching.books();
            if let Found::Seen(seen) = found
                && books.differs(&one.uri, seen)
            {
                // Whoever is told reads anew.
                self.answers.forget(&answers::key(mount, &one.reference));
            }
            is_change |= books.found(one, found);
        })
        .await;
        if !wants_list {
            return is_change;
        }
        let before = self.watching.books().groups.get(&mount.name).and_then(|group| group.print.clone());
        let print = self.print(walk, mount, before.as_ref()).await;
        let mut books = self.watching.books();
        let Some(group) = books.groups.get_mut(&mount.name) else { return is_change };
        group.looked_at = None;
        let Some(print) = print else { return is_change };
        if group.print.replace(print.clone()).is_some_and(|before| before.digest != print.digest) {
            books.list_changed();
            is_change = true;
        }
        is_change
    }

    /// What is served of the list of `mount` now; none where that could not be found out.
    async fn print(&self, walk: &Walk, mount: &Arc<Mount>, before: Option<&Print>) -> Option<Print> {
        let by = Instant::now() + self.list_time.min(LIST_TIME);
        // The first print is of the list that clients are given now.
        if before.is_some_and(|before| before.id == mount.loaded.id()) {
            mount.lists.0.current().iter().for_each(|kept| kept.doubt());
            mount.lists.1.current().iter().for_each(|kept| kept.doubt());
        }
        let resources = self.listed_now::<Resource>(walk, mount, by).await?;
        let templates = self.listed_now::<Template>(walk, mount, by).await?;
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

    async fn listed_now<T: Listed>(&self, walk: &Walk, mount: &Arc<Mount>, by: Instant) -> Option<Arc<Kept<T>>> {
        let kept = self.listing::<T>(walk, mount, None, by).await;
        let is_filled = self.fill(walk, mount, &kept, COMPARED, by).await;
        (is_filled && !kept.has_failed()).then_some(kept)
    }
}

/// The looks at one mount, as they go on record: at once when something had changed, or something new went wrong; else they
/// are counted.
struct Looks {
    walk: Walk,
    /// What is known to go wrong.
    wrongs: HashSet<u64>,
    written: Instant,
}

impl Looks {
    fn new(gateway: &Gateway) -> Self {
        Self { walk: Walk::new(&gateway.audit, &ROUNDS), wrongs: HashSet::new(), written: Instant::now() }
    }

    fn end_round(&mut self, is_change: bool) {
        let is_due = self.written.elapsed() >= COUNTED;
        if is_due || self.wrongs.len() > MOST_WRONGS {
            self.wrongs.clear();
        }
        let before = self.wrongs.len();
        self.wrongs.extend(self.walk.wrongs());
        if is_change || is_due || self.wrongs.len() > before {
            self.walk.write();
            self.written = Instant::now();
        }
    }
}

/// Looks at one mount for as long as something of it is watched.
async fn attend(weak: Weak<Gateway>, name: MountName, wake: Arc<Notify>) {
    let mut directories = Directories { of: None, watched: Vec::new(), are_whole: false };
    let mut list_at = Instant::now();
    let mut looks: Option<Looks> = None;
    loop {
        let Some(gateway) = weak.upgrade() else { return };
        // Whatever woke this task is looked at in this round.
        let _ = wake.notified().now_or_never();
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
        let looks = looks.get_or_insert_with(|| Looks::new(&gateway));
        looks.walk.begin_round();
        let is_change = gateway.round(&looks.walk, &mount, with_list).await;
        looks.end_round(is_change);
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
