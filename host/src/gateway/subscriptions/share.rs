//! The share of one principal in all subscriptions. Without it, one key could hold all of them, and nobody else could
//! subscribe.
//!
//! Only principals with a credential have a share. All anonymous clients are one principal.
//!
//! Also remembers which class of access each subscriber has at each mount. A schedule changes it with the time.

use std::collections::HashSet;

use super::{SubscribeError, SubscriberEntry, SubscriptionRegistry};
use crate::model::MountName;
use crate::model::bounds::{MAX_WATCHED_URIS_OF_PRINCIPAL, MAX_WATCHERS_OF_PRINCIPAL};
use crate::policy::{AccessClass, Principal, PrincipalKind};

impl SubscriptionRegistry {
    /// Checks that `principal` may have one more subscriber.
    ///
    /// # Errors
    /// [`SubscribeError::TooMany`] with its maximum.
    pub(super) fn check_subscribers(&self, principal: &Principal) -> Result<(), SubscribeError> {
        let most = MAX_WATCHERS_OF_PRINCIPAL.get();
        check(principal, most, || self.held_by(principal).count())
    }

    /// Checks that `principal` may watch one more resource.
    ///
    /// # Errors
    /// [`SubscribeError::TooMany`] with its maximum.
    pub(super) fn check_uris(&self, principal: &Principal) -> Result<(), SubscribeError> {
        let most = MAX_WATCHED_URIS_OF_PRINCIPAL.get();
        check(principal, most, || self.held_by(principal).sum())
    }

    /// The principals of the subscribers that want lists, each once.
    pub(in crate::gateway) fn list_principals(&self) -> HashSet<Principal> {
        let wanting = self.subscribers.values().filter(|entry| entry.queue.wanted().resources);
        wanting.map(|entry| entry.queue.principal()).collect()
    }

    /// Stores the class that each subscriber of lists has at `mount` now, and notifies those that have another one than at
    /// the last time.
    pub(in crate::gateway) fn update_classes(
        &mut self,
        mount: &MountName,
        class_of: impl Fn(&Principal) -> AccessClass,
    ) {
        for SubscriberEntry { queue, classes, .. } in
            self.subscribers.values_mut().filter(|one| one.queue.wanted().resources)
        {
            let class = class_of(&queue.principal());
            if classes.insert(mount.clone(), class).is_some_and(|before| before != class) {
                queue.add_policy_change();
            }
        }
    }

    /// Forgets all classes, because other rules have others.
    pub(in crate::gateway) fn forget_classes(&mut self) {
        self.subscribers.values_mut().for_each(|one| one.classes.clear());
    }

    /// The number of watched resources of each subscriber of `principal`.
    fn held_by(&self, principal: &Principal) -> impl Iterator<Item = usize> {
        let id = principal.id();
        self.subscribers.values().filter(move |entry| entry.queue.principal().id() == id).map(|entry| entry.uris.len())
    }
}

fn check(principal: &Principal, most: usize, held: impl FnOnce() -> usize) -> Result<(), SubscribeError> {
    let has_share = matches!(principal.kind(), PrincipalKind::Key | PrincipalKind::Token);
    if has_share && held() >= most { Err(SubscribeError::TooMany(most)) } else { Ok(()) }
}
