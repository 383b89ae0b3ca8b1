//! Subscriptions as their principals may have them: policy is asked when one begins, before each poll and before each
//! notification.
//!
//! A subscription that policy refuses later ends without a word, as if the resource were gone: a notification would tell
//! that the resource still exists. Nothing polls a resource on behalf of a principal who may not watch it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use tokio::time::timeout;

use super::call_group::CallGroup;
use super::pipeline::Gateway;
use super::poll::POLL_CALLER;
use super::poll_target::PollTarget;
use super::subscriptions::{ChangeNotification, CollectedChanges, ListKind, SubscribeError, Subscriber, WantedLists};
use crate::catalog::{Mount, Snapshot};
use crate::model::{MountName, reference};
use crate::policy::{Action, Decider, Principal, Refusal, Target};

/// Time that a new subscription waits for the first poll of its resources.
const FIRST_POLL: Duration = Duration::from_secs(5);

/// The mount that `uri` belongs to and the checked reference, if the URI can be watched at all.
fn watchable<'s, 'u>(snapshot: &'s Snapshot, uri: &'u str) -> Option<(&'s Arc<Mount>, &'u str)> {
    let (mount, reference) = snapshot.route(uri).filter(|_| uri.len() <= reference::MAX_URI)?;
    (reference::check(reference).is_ok() && !snapshot.has_ambiguous_escapes(uri)).then_some((mount, reference))
}

impl Gateway {
    /// A new subscriber for `principal`. It is also notified when lists of the kinds `wanted` change.
    ///
    /// # Errors
    /// When there are too many subscribers.
    pub fn subscriber(
        self: &Arc<Self>,
        principal: &Principal,
        wanted: WantedLists,
    ) -> Result<Subscriber, SubscribeError> {
        let subscriber = self.subscriptions.subscriber(principal, wanted)?;
        if wanted.resources && self.catalog.is_loaded() {
            self.wake_list_pollers(&self.catalog.snapshot(), false);
            self.remember_visible_lists_soon();
        }
        Ok(subscriber)
    }

    /// See [`Gateway::remember_visible_lists`].
    fn remember_visible_lists_soon(self: &Arc<Self>) {
        if self.has_rules() {
            let gateway = Arc::clone(self);
            tokio::spawn(async move { gateway.remember_visible_lists().await });
        }
    }

    /// True if `principal` can watch `uri`.
    pub fn can_watch(&self, principal: &Principal, uri: &str) -> bool {
        let snapshot = self.catalog.snapshot();
        watchable(&snapshot, uri).is_some_and(|(mount, reference)| {
            !mount.is_per_principal() && self.decide(principal, Action::Watch, mount, Some(reference)).is_ok()
        })
    }

    /// Watches `uris` for `subscriber` and polls them once. The subscriber is notified of every change from now on.
    ///
    /// # Errors
    /// If one of the URIs cannot be watched, or a rate is used up. Then none is watched. At the maximum of watched
    /// resources, those before it are watched.
    pub async fn watch(self: &Arc<Self>, subscriber: &Subscriber, uris: Vec<String>) -> Result<(), SubscribeError> {
        let snapshot = self.loaded_snapshot().await;
        let principal = &subscriber.principal();
        let mut watched = Vec::new();
        let mut rates = Vec::new();
        for uri in &uris {
            let (mount, reference) = watchable(&snapshot, uri).ok_or(SubscribeError::UnknownUri)?;
            let access = self.decide(principal, Action::Watch, mount, Some(reference));
            let access = access.map_err(|refusal| match refusal {
                Refusal::Hidden => SubscribeError::UnknownUri,
                Refusal::Scope(scopes) => SubscribeError::InsufficientScope(scopes),
            })?;
            if mount.is_per_principal() {
                return Err(SubscribeError::PerPrincipal);
            }
            rates.extend(access.rates().iter().cloned());
            watched.push((uri, mount, reference.to_owned()));
        }
        // One request, however many resources it names. It counts once for each rule that allows it.
        // It has no contents whose bytes would count.
        let _ = self.admission.count_rules(principal, rates.iter()).await.map_err(SubscribeError::Busy)?;
        let mut unpolled: HashMap<&MountName, (&Arc<Mount>, Vec<PollTarget>)> = HashMap::new();
        {
            let mut registry = self.subscriptions.registry();
            for (uri, mount, reference) in watched {
                if registry.subscribe(subscriber.id(), &uri.as_str().into(), (&mount.name, &mount.base))? {
                    let uri = format!("{}{reference}", mount.base).into();
                    let target =
                        PollTarget { uri, reference, subscriber: subscriber.id(), is_known: false, is_suspect: false };
                    unpolled.entry(&mount.name).or_insert_with(|| (mount, Vec::new())).1.push(target);
                }
            }
            registry.start_pollers(self.poller_starter());
        }
        let group = CallGroup::new(&self.audit, &POLL_CALLER);
        let polls = unpolled.into_values().map(async |(mount, targets)| {
            self.poll_resources(&group, mount, targets, |target, result| {
                self.subscriptions.registry().record_first_result(target, result)
            })
            .await;
        });
        // A resource that was not polled in this time is polled by the mount's task.
        let _ = timeout(FIRST_POLL, join_all(polls)).await;
        Ok(())
    }

    /// Waits for changes that the subscriber's principal may know of, and returns all that are collected.
    /// Cancellation-safe: dropping the future loses nothing.
    pub async fn next_changes(&self, subscriber: &Subscriber) -> Vec<ChangeNotification> {
        loop {
            let CollectedChanges { updated, lists, is_policy_changed } = subscriber.next().await;
            let principal = &subscriber.principal();
            let mut changes = Vec::new();
            for uri in updated {
                match self.may_watch(principal, &uri) {
                    true => changes.push(ChangeNotification::Updated(uri)),
                    false => subscriber.unwatch(&uri),
                }
            }
            let is_told = |kind: &ListKind| {
                is_policy_changed
                    || lists
                        .iter()
                        .any(|((of, mount), base)| of == kind && self.sees_any(principal, *kind, mount, base))
            };
            changes.extend(subscriber.wanted().kinds().filter(is_told).map(ChangeNotification::List));
            if !changes.is_empty() {
                return changes;
            }
        }
    }

    /// True if `principal` may watch `uri` now. Policy is asked about the mount that serves it, or served it last.
    fn may_watch(&self, principal: &Principal, uri: &str) -> bool {
        if !self.has_rules() {
            return true;
        }
        if let Some((mount, reference)) = self.catalog.snapshot().route(uri) {
            return self.decide(principal, Action::Watch, mount, Some(reference)).is_ok();
        }
        let Some(mount) = self.subscriptions.registry().last_mount(uri) else { return false };
        // The base is gone with the mount. Policy judges the whole URI.
        let target = Target { mount: &mount, base: uri, reference: Some("") };
        self.policy.authorize(principal, Action::Watch, target, SystemTime::now()).is_ok()
    }

    /// Ends the subscriptions to resources of `mount` whose principals may not watch them any more.
    pub(super) fn end_refused_subscriptions(&self, mount: &Mount) {
        if !self.has_rules() {
            return;
        }
        let subscriptions = self.subscriptions.registry().subscriptions_of(&mount.name);
        let refused: Vec<_> =
            subscriptions.into_iter().filter(|(_, principal, uri)| !self.may_watch(principal, uri)).collect();
        let mut registry = self.subscriptions.registry();
        refused.iter().for_each(|(subscriber, _, uri)| registry.unsubscribe(*subscriber, uri));
    }

    /// Puts other rules in force: see [`Policy::replace`](crate::policy::Policy::replace). Judges what is open anew: ends
    /// the subscriptions whose principals may not watch their resources any more, and tells subscribers that their list
    /// changed. Who could list nothing and still cannot is told nothing.
    pub fn set_policy(self: &Arc<Self>, decider: impl Into<Decider>) {
        let snapshot = self.catalog.snapshot();
        let sees = |principal: &Principal| {
            snapshot.mounts().iter().any(|mount| self.lists_any(principal, &mount.name, &mount.base))
        };
        let mut concerned = self.subscriptions.registry().list_subscribers(sees);
        if !self.policy.replace(decider) {
            return;
        }
        snapshot.mounts().iter().for_each(|mount| self.end_refused_subscriptions(mount));
        {
            let mut registry = self.subscriptions.registry();
            registry.forget_classes();
            concerned.extend(registry.list_subscribers(sees));
            registry.notify_policy_changed(&concerned);
        }
        // Other rules make other classes.
        self.remember_visible_lists_soon();
    }

    /// True if `principal` may list any part of the mount.
    pub(super) fn lists_any(&self, principal: &Principal, mount: &MountName, base: &str) -> bool {
        self.sees_any(principal, ListKind::Resources, mount, base)
    }

    /// True if `principal` may see any part of this list of the mount.
    pub(super) fn sees_any(&self, principal: &Principal, kind: ListKind, mount: &MountName, base: &str) -> bool {
        let target = Target { mount, base, reference: None };
        !self.policy.visibility(principal, kind.action(), target, SystemTime::now()).is_nothing()
    }
}
