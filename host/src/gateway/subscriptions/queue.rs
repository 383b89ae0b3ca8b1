//! The changes that one subscriber has still to be notified of. They are sets, so there are never more than watched
//! resources and mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::list_kind::{ListKind, WantedLists};
use crate::model::MountName;
use crate::model::bounds::LIST_NOTICE_INTERVAL;
use crate::policy::Principal;

/// Changes are collected for this time before a subscriber is notified.
pub(super) const COLLECT_TIME: Duration = Duration::from_millis(50);

/// The changes of one subscriber, and its principal.
pub(super) struct SubscriberQueue {
    pending: Mutex<CollectedChanges>,
    wake: Notify,
    wanted: WantedLists,
    principal: Mutex<Principal>,
    list_notified: Mutex<Option<Instant>>,
}

/// Changes since the last notification.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::gateway) struct CollectedChanges {
    /// The resources that changed.
    pub(in crate::gateway) updated: BTreeSet<Arc<str>>,
    /// The mounts whose lists changed, and their bases.
    pub(in crate::gateway) lists: BTreeMap<(ListKind, MountName), String>,
    /// True if the policy changed what the principal may list.
    pub(in crate::gateway) is_policy_changed: bool,
}

impl CollectedChanges {
    fn has_lists(&self) -> bool {
        self.is_policy_changed || !self.lists.is_empty()
    }
}

impl SubscriberQueue {
    pub(super) fn new(principal: &Principal, wanted: WantedLists) -> Self {
        Self {
            pending: Mutex::default(),
            wake: Notify::new(),
            wanted,
            principal: Mutex::new(principal.clone()),
            list_notified: Mutex::default(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, CollectedChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lists of which the subscriber wants to know changes.
    pub(super) fn wanted(&self) -> WantedLists {
        self.wanted
    }

    /// The principal of the subscriber.
    pub(super) fn principal(&self) -> Principal {
        self.principal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `principal` that of the subscriber.
    pub(super) fn set_principal(&self, principal: &Principal) {
        *self.principal.lock().unwrap_or_else(PoisonError::into_inner) = principal.clone();
    }

    /// Adds a resource that changed.
    pub(super) fn add_updated(&self, uri: &Arc<str>) {
        self.pending().updated.insert(Arc::clone(uri));
        self.wake.notify_one();
    }

    /// Adds a mount whose list changed.
    pub(super) fn add_list(&self, kind: ListKind, mount: &MountName, base: &str) {
        self.pending().lists.insert((kind, mount.clone()), base.to_owned());
        self.wake.notify_one();
    }

    /// Adds a change of the policy.
    pub(super) fn add_policy_change(&self) {
        self.pending().is_policy_changed = true;
        self.wake.notify_one();
    }

    /// The number of changed resources that are pending.
    #[cfg(test)]
    pub(super) fn pending_updates(&self) -> usize {
        self.pending().updated.len()
    }

    /// Waits for changes and returns all that are collected. Cancellation-safe: dropping the future loses nothing.
    pub(super) async fn next(&self) -> CollectedChanges {
        loop {
            let time = self.collect_time();
            match time {
                None => self.wake.notified().await,
                Some(time) => {
                    tokio::time::sleep(time).await;
                    return self.take();
                }
            }
        }
    }

    /// The time to collect the pending changes. `None` if none is pending.
    fn collect_time(&self) -> Option<Duration> {
        let pending = self.pending();
        match (pending.updated.is_empty(), pending.has_lists()) {
            (true, false) => None,
            (true, true) => Some(COLLECT_TIME.max(self.list_delay())),
            (false, _) => Some(COLLECT_TIME),
        }
    }

    fn list_notified(&self) -> MutexGuard<'_, Option<Instant>> {
        self.list_notified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until the next notification of a list change is allowed.
    fn list_delay(&self) -> Duration {
        let listed = *self.list_notified();
        listed.map_or(Duration::ZERO, |at| LIST_NOTICE_INTERVAL.get().saturating_sub(at.elapsed()))
    }

    fn take(&self) -> CollectedChanges {
        let mut pending = self.pending();
        let updated = std::mem::take(&mut pending.updated);
        let (lists, is_policy_changed) = match self.list_delay().is_zero() {
            true => (std::mem::take(&mut pending.lists), std::mem::take(&mut pending.is_policy_changed)),
            false => Default::default(),
        };
        let changes = CollectedChanges { updated, lists, is_policy_changed };
        if changes.has_lists() {
            *self.list_notified() = Some(Instant::now());
        }
        changes
    }
}
