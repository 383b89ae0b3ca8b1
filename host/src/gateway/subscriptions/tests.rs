//! Tests of the registry, without any mount.

use std::time::Duration;

use super::queue::COLLECT_TIME;
use super::*;
use crate::model::bounds::LIST_NOTICE_INTERVAL;
use crate::policy::{Evidence, authenticate};

fn name(name: &str) -> MountName {
    MountName::new(name).unwrap()
}

fn subscriptions() -> Arc<Subscriptions> {
    Subscriptions::new(config::Watch::default(), None)
}

fn subscribe(subscriber: &Subscriber, uri: &str) -> Result<bool, SubscribeError> {
    subscriber.subscriptions().registry().subscribe(subscriber.id(), &uri.into(), (&name("m"), "m://"))
}

fn own() -> Principal {
    authenticate(Evidence::OwnUser)
}

/// The changed resources of the next notifications, and the number of changed lists.
async fn next(subscriber: &Subscriber) -> (Vec<String>, usize) {
    let CollectedChanges { updated, lists, .. } = subscriber.next().await;
    (updated.iter().map(|uri| uri.to_string()).collect(), lists.len())
}

fn notify_list_changed(subscriptions: &Subscriptions) {
    subscriptions.registry().notify_list_changed(ListKind::Resources, &name("m"), "m://", |_| true);
}

fn present(n: u8) -> ResourceState {
    ResourceState::Present(blake3::Hash::from_bytes([n; 32]))
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_notified_once_of_changes() {
    let subscriptions = subscriptions();
    let [one, two] = [(); 2].map(|()| subscriptions.subscriber(&own(), WantedLists::NONE).unwrap());
    assert_eq!(subscribe(&one, "m://a"), Ok(true));
    let uri: Arc<str> = "m://a".into();
    subscriptions.registry().set_first_state(&uri, present(1));
    assert_eq!(subscribe(&two, "m://a"), Ok(false), "another subscriber watches the URI already");
    assert!(!subscriptions.registry().set_state(&uri, present(1)), "nothing changed");
    for n in 2..9 {
        assert!(subscriptions.registry().set_state(&uri, present(n)));
    }
    assert_eq!(next(&one).await, (vec![uri.to_string()], 0));
    assert_eq!(next(&two).await, (vec![uri.to_string()], 0));
    two.unwatch(&uri);
    assert!(subscriptions.registry().set_state(&uri, ResourceState::Absent));
    assert_eq!(next(&one).await.0.len(), 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), two.next()).await.is_err());
    drop((one, two));
    assert_eq!(subscriptions.counts(), (0, 0));
    assert!(subscriptions.registry().mount_watches.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pending_notifications_survive_a_dropped_future() {
    let subscriptions = subscriptions();
    let one = subscriptions.subscriber(&own(), WantedLists { resources: true, ..WantedLists::NONE }).unwrap();
    notify_list_changed(&subscriptions);
    // The future is dropped while changes are collected.
    assert!(tokio::time::timeout(COLLECT_TIME / 2, one.next()).await.is_err());
    assert_eq!(next(&one).await, (Vec::new(), 1));
    let began = Instant::now();
    notify_list_changed(&subscriptions);
    assert_eq!(next(&one).await, (Vec::new(), 1));
    assert!(began.elapsed() >= LIST_NOTICE_INTERVAL.get());
    assert!(began.elapsed() < LIST_NOTICE_INTERVAL.get() + COLLECT_TIME, "it was not notified as soon as allowed");
}

#[test]
fn subscribers_and_uris_are_bounded() {
    let subscriptions = subscriptions();
    let all: Vec<Subscriber> =
        std::iter::from_fn(|| subscriptions.subscriber(&own(), WantedLists::NONE).ok()).collect();
    assert_eq!(all.len(), MAX_WATCHERS.get());
    let watched = |subscriber: &Subscriber, of: usize| {
        let subscribed = (0..2 * MAX_WATCHED_URIS.get()).map(|n| subscribe(subscriber, &format!("m://{of}/{n}")));
        subscribed.take_while(Result::is_ok).count()
    };
    assert_eq!(watched(&all[0], 0), MAX_WATCHED_URIS.get());
    let total: usize = all.iter().enumerate().map(|(of, one)| watched(one, of)).sum();
    assert_eq!(subscriptions.counts().0, MAX_WATCHED_URIS_TOTAL.get());
    assert_eq!(total, MAX_WATCHED_URIS_TOTAL.get(), "a URI counts once for all its subscribers");
    drop(all);
    assert_eq!(subscriptions.counts(), (0, 0));
}

#[test]
fn watched_resources_move_to_the_mount_that_serves_them() {
    let subscriptions = subscriptions();
    let one = subscriptions.subscriber(&own(), WantedLists::NONE).unwrap();
    subscribe(&one, "m://a").unwrap();
    subscriptions.registry().set_first_state("m://a", present(1));
    subscriptions.registry().reassign_mounts(|_| Some((name("other"), "m://".to_owned())));
    {
        let registry = subscriptions.registry();
        assert!(
            registry.mount_watches[&name("m")].uris.is_empty()
                && registry.mount_watches[&name("other")].uris.contains("m://a")
        );
    }
    assert!(
        one.queue.pending_updates() == 0,
        "a resource that moved to another mount is polled, and no notification is sent"
    );
    subscriptions.registry().reassign_mounts(|_| None);
    assert_eq!(one.queue.pending_updates(), 1, "a resource without a mount counts as changed");
    subscriptions.registry().reassign_mounts(|_| Some((name("m"), "m://".to_owned())));
    assert!(
        subscriptions.registry().mount_watches[&name("m")].uris.contains("m://a"),
        "a resource is polled again when a mount serves it"
    );
}
