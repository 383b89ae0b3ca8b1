//! What a principal that sees a part of a mount saw of its list. A change of the rest is no news for that principal: a
//! notice of it would tell that there is more, and when it changes.

use std::collections::HashSet;

use tokio::task::spawn_blocking;

use super::pipeline::Gateway;
use super::subscriptions::{PolledListings, VisibleList};
use crate::catalog::Mount;
use crate::policy::{AccessClass, Action};

impl Gateway {
    /// Compares what each class of list subscribers saw of `mount` with these listings, and remembers the new ones. Returns
    /// the classes for which something changed. A class that is not remembered saw nothing. `is_same`: the listings are
    /// those of the last time, so only classes that are not remembered are looked at.
    pub(super) async fn changed_classes(
        &self,
        mount: &Mount,
        listings: &PolledListings,
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
                registry.mount_watches.get(&mount.name).is_some_and(|watch| watch.visible.has(class))
            };
            if is_same && is_known() {
                continue;
            }
            let (base, listings) = (mount.base.clone(), listings.clone());
            // No work for the threads that serve requests.
            let seen_list = spawn_blocking(move || VisibleList::of(base, &listings, &visible)).await;
            let Ok(list) = seen_list else { continue };
            let mut registry = self.subscriptions.registry();
            let Some(mount_watch) = registry.mount_watches.get_mut(&mount.name) else { break };
            if mount_watch.visible.replace(class, list) {
                changed.insert(class);
            }
        }
        if let Some(mount_watch) = self.subscriptions.registry().mount_watches.get_mut(&mount.name) {
            mount_watch.visible.make_room(&seen);
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
