//! The share of one principal in all subscriptions. Without it, one key could hold all of them, and nobody else could
//! subscribe.
//!
//! Only principals with a credential have a share. All anonymous clients are one principal.

use super::{SubscribeError, SubscriptionRegistry};
use crate::model::bounds::{MAX_WATCHED_URIS_OF_PRINCIPAL, MAX_WATCHERS_OF_PRINCIPAL};
use crate::policy::{Principal, PrincipalKind};

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
