//! What a principal that sees a part of a mount saw of its list. A change of the rest is no news for that principal: a
//! notice of it would tell that there is more, and when it changes.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::{Arc, LazyLock};

use tokio::task::spawn_blocking;

use super::pipeline::Gateway;
use crate::catalog::listing::Listed;
use crate::catalog::{CachedListing, Mount};
use crate::model::{Resource, Template};
use crate::policy::{AccessClass, Action, Visibility};

/// The most entries of a list that are looked at.
const COMPARED_ENTRIES: usize = 10_000;

/// When more classes than these are remembered, those without a subscriber are forgotten.
const MAX_CLASSES: usize = 64;

/// Entries that are copied at once, so that nobody who adds to the list waits for policy.
const CHUNK: usize = 256;

/// The hashes of entries are compared within this process only.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What the principals of one class see of a mount's list.
#[derive(Debug, PartialEq, Eq)]
struct VisibleList {
    base: String,
    resources: VisibleEntries,
    templates: VisibleEntries,
}

/// The hashes of visible entries, in their order.
#[derive(Debug, PartialEq, Eq)]
struct VisibleEntries {
    hashes: Vec<u32>,
    /// True if there are no more.
    is_whole: bool,
}

impl VisibleEntries {
    fn of<T: Listed>(listing: &CachedListing<T>, visible: &Visibility) -> Self {
        let mut hashes = Vec::new();
        for from in (0..COMPARED_ENTRIES).step_by(CHUNK) {
            let (entries, is_whole) = listing.hashes(from, CHUNK, &*HASHER);
            let is_end = is_whole || entries.len() < CHUNK;
            let shown = entries.into_iter().filter(|(name, _)| T::is_visible(name, visible));
            #[expect(
                clippy::cast_possible_truncation,
                reason = "32 bits suffice: nobody chooses entries by their hashes"
            )]
            hashes.extend(shown.map(|(_, hash)| hash as u32));
            if is_end {
                return Self { hashes, is_whole };
            }
        }
        Self { hashes, is_whole: false }
    }

    /// True if both cannot be the beginning of the same list. How much of a list was fetched depends on hidden entries too,
    /// so it is no difference.
    fn differs(&self, other: &Self) -> bool {
        let common = self.hashes.len().min(other.hashes.len());
        self.hashes.get(..common) != other.hashes.get(..common)
            || (self.hashes.len() > common && other.is_whole)
            || (other.hashes.len() > common && self.is_whole)
    }
}

impl VisibleList {
    fn differs(&self, other: &Self) -> bool {
        self.base != other.base || self.resources.differs(&other.resources) || self.templates.differs(&other.templates)
    }

    fn is_empty(&self) -> bool {
        self.resources.hashes.is_empty() && self.templates.hashes.is_empty()
    }
}

/// The visible lists of one mount, for each class of principals that sees a part of it and wants lists.
#[derive(Debug, Default)]
pub(super) struct VisibleLists(HashMap<AccessClass, VisibleList>);

/// A mount's cached lists.
pub(super) type Listings = (Arc<CachedListing<Resource>>, Arc<CachedListing<Template>>);

impl Gateway {
    /// Compares what each class of list subscribers saw of `mount` with these listings, and remembers the new ones. Returns
    /// the classes for which something changed. A class that is not remembered saw nothing. `is_same`: the listings are
    /// those of the last time, so only classes that are not remembered are looked at.
    pub(super) async fn changed_classes(
        &self,
        mount: &Mount,
        listings: &Listings,
        is_same: bool,
    ) -> HashSet<AccessClass> {
        let principals = self.subscriptions.registry().list_principals();
        let (mut seen, mut changed) = (HashSet::new(), HashSet::new());
        for principal in principals {
            let visible = self.visibility(&principal, Action::List, mount);
            let class = visible.class();
            if visible.is_all() || visible.is_nothing() || !seen.insert(class) {
                continue;
            }
            let is_known = || {
                let registry = self.subscriptions.registry();
                registry.mount_watches.get(&mount.name).is_some_and(|watch| watch.visible.0.contains_key(&class))
            };
            if is_same && is_known() {
                continue;
            }
            let Some(list) = visible_list(mount, listings.clone(), visible).await else { continue };
            let mut registry = self.subscriptions.registry();
            let Some(mount_watch) = registry.mount_watches.get_mut(&mount.name) else { break };
            let known = &mut mount_watch.visible.0;
            if known.get(&class).map_or(!list.is_empty(), |before| before.differs(&list)) {
                changed.insert(class);
            }
            known.insert(class, list);
        }
        if let Some(mount_watch) = self.subscriptions.registry().mount_watches.get_mut(&mount.name)
            && mount_watch.visible.0.len() > MAX_CLASSES
        {
            mount_watch.visible.0.retain(|class, _| seen.contains(class));
        }
        changed
    }

    /// Remembers what the classes of new list subscribers see of each mount, so that the next change is compared with it.
    /// Makes no call: it looks only at the lists of the last polls.
    pub(super) async fn remember_visible_lists(&self) {
        if !self.has_rules() {
            return;
        }
        for mount in self.catalog.snapshot().mounts().iter().filter(|mount| !mount.is_per_principal()) {
            let lists = {
                let registry = self.subscriptions.registry();
                let fingerprint = registry.mount_watches.get(&mount.name).and_then(|watch| watch.fingerprint.as_ref());
                fingerprint.filter(|fingerprint| fingerprint.id == mount.loaded.id()).map(|one| one.lists)
            };
            let Some((resources, templates)) = lists else { continue };
            let found = (mount.cached.shared.resources.find(resources), mount.cached.shared.templates.find(templates));
            if let (Some(resources), Some(templates)) = found {
                self.changed_classes(mount, &(resources, templates), true).await;
            }
        }
    }
}

/// Policies may take long for each entry, so this is no work for the threads that serve requests.
async fn visible_list(mount: &Mount, listings: Listings, visible: Visibility) -> Option<VisibleList> {
    let base = mount.base.clone();
    let compared = spawn_blocking(move || VisibleList {
        base,
        resources: VisibleEntries::of(&listings.0, &visible),
        templates: VisibleEntries::of(&listings.1, &visible),
    });
    compared.await.ok()
}

#[cfg(test)]
mod tests {
    use super::VisibleEntries;

    #[test]
    fn the_length_of_what_was_fetched_is_no_difference() {
        let entries = |hashes: &[u32], is_whole| VisibleEntries { hashes: hashes.to_vec(), is_whole };
        for (one, other, expected) in [
            (entries(&[1, 2], true), entries(&[1, 2], true), false),
            (entries(&[1, 2], true), entries(&[1, 3], true), true),
            (entries(&[1, 2], true), entries(&[1], true), true),
            (entries(&[1, 2], false), entries(&[1], false), false),
            (entries(&[1, 2], true), entries(&[1], false), false),
            (entries(&[1], true), entries(&[1, 2], false), true),
            (entries(&[], true), entries(&[1], true), true),
            (entries(&[], false), entries(&[1], true), false),
        ] {
            assert_eq!((one.differs(&other), other.differs(&one)), (expected, expected), "{one:?} {other:?}");
        }
    }
}
