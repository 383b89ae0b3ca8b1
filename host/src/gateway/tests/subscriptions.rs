//! Subscriptions: only for what may be watched, as long as it may be.

use tokio::time::timeout;

use super::*;
use crate::gateway::subscriptions::{ChangeNotification, ListKind, SubscribeError, Subscriber, WantedLists};

fn site() -> Site {
    let notes = TestMount { revisions: true, ..TestMount::new("notes", "belljar://notes/", &["public", "secret"]) };
    let hidden = TestMount { revisions: true, ..TestMount::new("hidden", "belljar://hidden/", &["x"]) };
    let rules = vec![TestRule::all("key:a", "belljar://notes/public"), TestRule::all("key:b", "belljar://")];
    Site::new(vec![notes, hidden], rules)
}

fn subscriber(site: &Site, who: &str) -> Subscriber {
    site.gateway.subscriber(&caller(who).principal, WantedLists::NONE).unwrap()
}

async fn watch(site: &Site, subscriber: &Subscriber, uri: &str) -> Result<(), SubscribeError> {
    site.gateway.watch(subscriber, vec![uri.to_owned()]).await
}

/// The changes that a subscriber is notified of within a minute.
async fn changes(site: &Site, subscriber: &Subscriber) -> Vec<String> {
    let next = timeout(Duration::from_secs(60), site.gateway.next_changes(subscriber)).await.unwrap_or_default();
    let shown = |change: ChangeNotification| match change {
        ChangeNotification::Updated(uri) => uri.to_string(),
        ChangeNotification::List(ListKind::Resources) => "list".to_owned(),
        ChangeNotification::List(kind) => format!("{kind:?}"),
    };
    next.into_iter().map(shown).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hidden_resource_cannot_be_watched_and_is_not_polled() {
    let site = site();
    let own = subscriber(&site, "a");
    for uri in ["belljar://notes/secret", "belljar://hidden/x", "belljar://absent/x", "belljar://notes/../x"] {
        assert_eq!(watch(&site, &own, uri).await, Err(SubscribeError::UnknownUri), "{uri}");
        assert!(!site.gateway.can_watch(&caller("a").principal, uri), "{uri}");
    }
    assert_eq!(site.calls(), []);
    assert_eq!(watch(&site, &own, "belljar://notes/public").await, Ok(()));
    assert!(site.gateway.can_watch(&caller("a").principal, "belljar://notes/public"));
    assert!(site.gateway.can_watch(&caller("b").principal, "belljar://notes/secret"));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_quietly_when_policy_refuses_it() {
    let site = site();
    let [a, b] = ["a", "b"].map(|who| subscriber(&site, who));
    for one in [&a, &b] {
        watch(&site, one, "belljar://notes/public").await.unwrap();
    }
    site.change("two");
    assert_eq!(changes(&site, &a).await, ["belljar://notes/public"]);
    assert_eq!(changes(&site, &b).await, ["belljar://notes/public"]);
    site.set_rules(&[TestRule::all("key:b", "belljar://")]);
    site.change("three");
    assert_eq!(changes(&site, &a).await, Vec::<String>::new());
    assert_eq!(changes(&site, &b).await, ["belljar://notes/public"], "another subscriber keeps its subscription");
    // Nobody may watch it any more, so nothing polls it.
    site.set_rules(&[]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    site.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(site.calls_of("resource-revisions"), 0);
    site.set_rules(&[TestRule::all("key:a", "belljar://")]);
    site.change("four");
    assert_eq!(changes(&site, &a).await, Vec::<String>::new(), "it ended");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_waits_is_judged_before_it_is_told() {
    let site = site();
    let a = subscriber(&site, "a");
    watch(&site, &a, "belljar://notes/public").await.unwrap();
    let uri: Arc<str> = "belljar://notes/public".into();
    site.gateway.subscriptions().registry().set_state(&uri, crate::gateway::poll_target::ResourceState::Absent);
    site.set_rules(&[]);
    assert_eq!(changes(&site, &a).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_mount_is_told_only_to_who_may_watch_it() {
    let site = site();
    let [a, b] = ["a", "b"].map(|who| subscriber(&site, who));
    for one in [&a, &b] {
        watch(&site, one, "belljar://notes/public").await.unwrap();
    }
    site.gateway.follow_catalog();
    tokio::time::sleep(Duration::from_secs(1)).await;
    site.set_rules(&[TestRule::all("key:b", "belljar://")]);
    site.catalog.publish(Snapshot::new(Vec::new(), Vec::new()));
    assert_eq!(changes(&site, &a).await, Vec::<String>::new());
    assert_eq!(changes(&site, &b).await, ["belljar://notes/public"]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_told_only_to_who_sees_some_of_the_mount() {
    let site = site();
    let [a, b] = ["a", "b"].map(|who| {
        site.gateway.subscriber(&caller(who).principal, WantedLists { resources: true, ..WantedLists::NONE }).unwrap()
    });
    site.gateway.follow_catalog();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let only = |wanted: &str| {
        let snapshot = site.catalog.snapshot();
        let mounts = snapshot.mounts().iter().filter(|mount| mount.name.as_str() == wanted).cloned();
        Snapshot::new(mounts.collect(), Vec::new())
    };
    site.catalog.publish(only("notes"));
    assert_eq!(changes(&site, &a).await, Vec::<String>::new(), "a hidden mount disappeared");
    assert_eq!(changes(&site, &b).await, ["list"]);
    site.catalog.publish(only("none"));
    assert_eq!(changes(&site, &a).await, ["list"]);
    assert_eq!(changes(&site, &b).await, ["list"]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_told_only_to_who_sees_the_change() {
    let mount = TestMount::new("notes", "belljar://notes/", &["public/a", "secret/a"]);
    let rules = [TestRule::all("key:a", "belljar://notes/public/"), TestRule::all("key:b", "belljar://")];
    let site = Site::new(vec![mount], rules.to_vec());
    let list = |who: &str| {
        site.gateway.subscriber(&caller(who).principal, WantedLists { resources: true, ..WantedLists::NONE }).unwrap()
    };
    let [a, b] = ["a", "b"].map(list);
    site.gateway.follow_catalog();
    tokio::time::sleep(Duration::from_secs(60)).await;
    site.add("secret/b");
    assert_eq!(changes(&site, &b).await, ["list"]);
    assert_eq!(changes(&site, &a).await, Vec::<String>::new(), "only a hidden resource was added");
    // One that came later, of a class that no poll has seen.
    site.set_rules(&[&rules[..], &[TestRule::all("key:c", "belljar://notes/public/")]].concat());
    assert_eq!(changes(&site, &a).await, ["list"], "the policy changed");
    assert_eq!(changes(&site, &b).await, ["list"], "the policy changed");
    let c = list("c");
    tokio::time::sleep(Duration::from_millis(10)).await;
    site.add("secret/c");
    assert_eq!(changes(&site, &b).await, ["list"]);
    for one in [&a, &c] {
        assert_eq!(changes(&site, one).await, Vec::<String>::new(), "only a hidden resource was added");
    }
    site.add("public/b");
    for one in [&a, &b, &c] {
        assert_eq!(changes(&site, one).await, ["list"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_counts_against_the_rate_of_its_rule() {
    let notes = TestMount { revisions: true, ..TestMount::new("notes", "belljar://notes/", &["a", "b"]) };
    let rate = TestRule { rate: Some("1/min per caller"), ..TestRule::all("key:a", "belljar://notes/") };
    let site = Site::new(vec![notes], vec![rate]);
    let own = subscriber(&site, "a");
    let both = ["a", "b"].map(|path| format!("belljar://notes/{path}")).to_vec();
    assert_eq!(site.gateway.watch(&own, both).await, Ok(()), "one request, whatever it names");
    assert!(matches!(watch(&site, &own, "belljar://notes/a").await, Err(SubscribeError::Busy(_))));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(watch(&site, &own, "belljar://notes/a").await, Ok(()));
}

#[tokio::test]
async fn one_principal_cannot_hold_all_subscriptions() {
    let site = site();
    let all: Vec<_> = (0..96).map(|_| subscriber(&site, "a")).collect();
    let more = site.gateway.subscriber(&caller("a").principal, WantedLists::NONE);
    assert_eq!(more.err(), Some(SubscribeError::TooMany(96)));
    subscriber(&site, "b");
    drop(all);
    subscriber(&site, "a");
}
