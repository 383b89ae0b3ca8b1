//! Tests of the registry, without any mount.

use super::*;

fn name(name: &str) -> MountName {
    MountName::new(name).unwrap()
}

fn subscriptions() -> Arc<Subscriptions> {
    Subscriptions::new(config::Watch::default(), None)
}

fn subscribe(subscriber: &Subscriber, uri: &str) -> Result<bool, SubscribeError> {
    subscriber.subscriptions().registry().subscribe(subscriber.id(), &uri.into(), &name("m"))
}

fn present(n: u8) -> ResourceState {
    ResourceState::Present(blake3::Hash::from_bytes([n; 32]))
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_notified_once_of_changes() {
    let subscriptions = subscriptions();
    let [one, two] = [(); 2].map(|()| subscriptions.subscriber(false).unwrap());
    assert_eq!(subscribe(&one, "m://a"), Ok(true));
    let uri: Arc<str> = "m://a".into();
    subscriptions.registry().set_first_state(&uri, present(1));
    assert_eq!(subscribe(&two, "m://a"), Ok(false), "another subscriber watches the URI already");
    assert!(!subscriptions.registry().set_state(&uri, present(1)), "nothing changed");
    for n in 2..9 {
        assert!(subscriptions.registry().set_state(&uri, present(n)));
    }
    assert_eq!(one.next().await, [ChangeNotification::Updated(Arc::clone(&uri))]);
    assert_eq!(two.next().await, [ChangeNotification::Updated(Arc::clone(&uri))]);
    two.unwatch(&uri);
    assert!(subscriptions.registry().set_state(&uri, ResourceState::Absent));
    assert_eq!(one.next().await.len(), 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), two.next()).await.is_err());
    drop((one, two));
    assert_eq!(subscriptions.counts(), (0, 0));
    assert!(subscriptions.registry().mount_watches.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pending_notifications_survive_a_dropped_future() {
    let subscriptions = subscriptions();
    let one = subscriptions.subscriber(true).unwrap();
    subscriptions.registry().notify_list_changed();
    // The future is dropped while changes are collected.
    assert!(tokio::time::timeout(COLLECT_TIME / 2, one.next()).await.is_err());
    assert_eq!(one.next().await, [ChangeNotification::List]);
    let began = Instant::now();
    subscriptions.registry().notify_list_changed();
    assert_eq!(one.next().await, [ChangeNotification::List]);
    assert!(began.elapsed() >= LIST_NOTICE_INTERVAL.get());
    assert!(began.elapsed() < LIST_NOTICE_INTERVAL.get() + COLLECT_TIME, "it was not notified as soon as allowed");
}

#[test]
fn subscribers_and_uris_are_bounded() {
    let subscriptions = subscriptions();
    let all: Vec<Subscriber> = std::iter::from_fn(|| subscriptions.subscriber(false).ok()).collect();
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
    let one = subscriptions.subscriber(false).unwrap();
    subscribe(&one, "m://a").unwrap();
    subscriptions.registry().set_first_state("m://a", present(1));
    subscriptions.registry().reassign_mounts(|_| Some(name("other")));
    {
        let registry = subscriptions.registry();
        assert!(
            registry.mount_watches[&name("m")].uris.is_empty()
                && registry.mount_watches[&name("other")].uris.contains("m://a")
        );
    }
    assert!(
        one.queue.pending().updated.is_empty(),
        "a resource that moved to another mount is polled, and no notification is sent"
    );
    subscriptions.registry().reassign_mounts(|_| None);
    assert_eq!(one.queue.pending().updated.len(), 1, "a resource without a mount counts as changed");
    subscriptions.registry().reassign_mounts(|_| Some(name("m")));
    assert!(
        subscriptions.registry().mount_watches[&name("m")].uris.contains("m://a"),
        "a resource is polled again when a mount serves it"
    );
}
