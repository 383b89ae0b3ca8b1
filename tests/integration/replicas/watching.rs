//! Resources that clients of several replicas watch: one replica looks, and all clients are told.

use std::time::{Duration, SystemTime};

use belljar_tests::{DEADLINE, Era, Site, wait_until};
use serde_json::Value;

use super::Group;
use crate::subscriptions::notifications::Watcher;

const COMPONENT: &[(&str, &str)] = &[("files", "files.wasm")];

const CONFIG: &str = "[watch]\npoll = \"500ms\"\nreread = \"1s\"\nlists = \"500ms\"\n\
                      [mounts.files]\nfs = { \"/\" = \"{shared}notes\" }\n";

const URI: &str = "belljar://files/a.md";

fn write_file(shared: &Site) {
    shared.write("notes/a.md", "first");
}

/// Replaces a file by a rename, so that it changes once.
fn replace(group: &Group, name: &str, text: &str) {
    let new = group.shared.write("next", text);
    std::fs::rename(new, group.shared.path(format!("notes/{name}"))).unwrap();
}

/// The records of belljar's own polls since `time` that found a change, over all replicas. A record may be written later.
fn polls_since(group: &Group, time: SystemTime) -> Vec<Value> {
    let time = humantime::format_rfc3339_millis(time).to_string();
    let is_poll = |record: &Value| {
        record["caller"]["transport"] == "watch" && record["time"].as_str().is_some_and(|of| of >= time.as_str())
    };
    group.replicas.iter().flat_map(|replica| replica.site.audit()).filter(is_poll).collect()
}

#[test]
fn one_replica_looks_and_all_clients_are_told() {
    let Some(group) = Group::start(3, COMPONENT, CONFIG, write_file) else { return };
    let mut watchers: Vec<_> = group
        .replicas
        .iter()
        .flat_map(|replica| (0..5).map(|_| Watcher::http(&replica.server, Era::Stateless, &[URI], false)))
        .collect();
    // The first polls are of each replica. Then one of them looks for all.
    let leaders =
        || -> Vec<f64> { group.replicas.iter().map(|replica| replica.metric("belljar_watch_leases")).collect() };
    wait_until("one leader", || {
        let leaders = leaders();
        if leaders.iter().sum::<f64>() == 1.0 { Ok(()) } else { Err(format!("{leaders:?}")) }
    });
    for text in ["second", "third", "fourth"] {
        let mut attempt = 0;
        let records = group.undisturbed(|| {
            attempt += 1;
            let text = format!("{text} {attempt}");
            let before = SystemTime::now();
            replace(&group, "a.md", &text);
            for watcher in &mut watchers {
                assert_eq!(watcher.next(DEADLINE).as_deref(), Some(URI), "{text}");
            }
            // A client that was told reads the new contents, at any replica.
            for at in 0..3 {
                assert_eq!(group.client(at).text(URI), text);
            }
            wait_until("a record of the poll", || {
                Some(polls_since(&group, before)).filter(|all| !all.is_empty()).ok_or("none")
            })
        });
        assert_eq!(records.len(), 1, "looks for {text}: {records:#?}");
    }
    watchers.iter_mut().for_each(|watcher| watcher.settles(URI, "after all changes"));
}

#[test]
fn another_replica_looks_when_the_leader_dies() {
    let Some(mut group) = Group::start(3, COMPONENT, CONFIG, write_file) else { return };
    let mut watchers: Vec<_> =
        group.replicas.iter().map(|replica| Watcher::http(&replica.server, Era::Stateless, &[URI], false)).collect();
    let leader = wait_until("a leader", || {
        let leads = |replica: &super::Replica| replica.metric("belljar_watch_leases") == 1.0;
        group.replicas.iter().position(leads).ok_or("none")
    });
    drop(watchers.remove(leader));
    let dead = group.replicas.remove(leader);
    dead.server.process.kill();
    replace(&group, "a.md", "second");
    for watcher in &mut watchers {
        assert_eq!(watcher.next(DEADLINE).as_deref(), Some(URI));
    }
}

#[test]
fn news_are_not_missed_when_the_store_goes_away() {
    let Some(mut group) = Group::start(2, COMPONENT, CONFIG, write_file) else { return };
    let mut watchers: Vec<_> =
        group.replicas.iter().map(|replica| Watcher::http(&replica.server, Era::Stateless, &[URI], false)).collect();
    for round in 0..3 {
        group.redis.kill();
        replace(&group, "a.md", &format!("while it is down {round}"));
        if round == 1 {
            // Long enough that each replica looks for itself.
            std::thread::sleep(Duration::from_secs(2));
        }
        group.redis.restart();
        for watcher in &mut watchers {
            assert_eq!(watcher.next(DEADLINE).as_deref(), Some(URI), "round {round}");
        }
        group.await_store();
    }
}

#[test]
fn changes_of_a_list_are_told_to_all() {
    let Some(group) = Group::start(2, COMPONENT, CONFIG, write_file) else { return };
    let mut watchers: Vec<_> =
        group.replicas.iter().map(|replica| Watcher::http(&replica.server, Era::Stateless, &[], true)).collect();
    // The first list is what clients know. A later one is a change.
    wait_until("one leader", || {
        let leads: f64 = group.replicas.iter().map(|replica| replica.metric("belljar_watch_leases")).sum();
        if leads == 1.0 { Ok(()) } else { Err(leads) }
    });
    std::thread::sleep(Duration::from_secs(2));
    replace(&group, "b.md", "new");
    for watcher in &mut watchers {
        assert_eq!(watcher.next(DEADLINE).as_deref(), Some(""));
    }
    for at in 0..2 {
        let uris = group.client(at).uris();
        assert!(uris.contains(&"belljar://files/b.md".to_owned()), "{uris:?}");
    }
}
