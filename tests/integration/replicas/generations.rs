//! Replicas with different configurations: the difference is seen, and what a newer one took back is served by none.

use belljar_tests::{Era, wait_until};
use serde_json::json;

use super::{Group, restrict};
use crate::support::kind;

const COMPONENT: &[(&str, &str)] = &[("files", "files.wasm"), ("guest_fixture", "fixture.wasm")];

const GRANTED: &str = "[mounts.files]\nfs = { \"/\" = \"{shared}notes\" }\n";

const NOT_GRANTED: &str = "[mounts.files]\nlimits = { time = \"60s\" }\n";

const URI: &str = "belljar://files/a.md";

/// The generation that a replica tells in an answer to `server/discover`.
fn generation(group: &Group, at: usize) -> String {
    let discovered = group.client(at).request("server/discover", json!({})).unwrap();
    discovered["_meta"]["dev.belljar/generation"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn replicas_with_different_configurations_are_seen() {
    let Some(mut group) = Group::start(2, COMPONENT, GRANTED, |shared| drop(shared.write("notes/a.md", "text"))) else {
        return;
    };
    let [one, equal] = [0, 1].map(|at| {
        wait_until("a generation", || match generation(&group, at) {
            name if name.is_empty() => Err("none"),
            name => Ok(name),
        })
    });
    assert_eq!(equal, one, "equal configurations are one generation");
    assert!(group.replicas[0].admin("/readyz").contains(&format!("\"generation\":\"{one}\"")));
    let count = |group: &Group, at: usize, generation: &str| {
        let text = group.replicas[at].admin("/metrics");
        let name = format!("belljar_replicas{{generation=\"{generation}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<usize>().ok()).unwrap_or(0)
    };
    wait_until("two equal replicas", || match count(&group, 0, &one) {
        2 => Ok(()),
        other => Err(other),
    });
    let other = group.replica(COMPONENT, &format!("{GRANTED}cache = \"off\"\n"));
    group.replicas.push(other);
    group.await_store();
    let two = wait_until("the generation of the new replica", || match generation(&group, 2) {
        name if name.is_empty() => Err("none"),
        name => Ok(name),
    });
    assert_ne!(one, two);
    for at in 0..3 {
        wait_until("both generations in the metrics", || {
            let found = (count(&group, at, &one), count(&group, at, &two));
            if found == (2, 1) { Ok(()) } else { Err(format!("{found:?}")) }
        });
    }
}

#[test]
fn a_grant_that_one_replica_took_back_is_served_by_none() {
    let Some(mut group) = Group::start(2, COMPONENT, GRANTED, |shared| drop(shared.write("notes/a.md", "text"))) else {
        return;
    };
    for at in 0..2 {
        assert_eq!(group.client(at).text(URI), "text");
    }
    // The first replica gets the new configuration, as in a rolling change.
    let new = group.config(&group.replicas[0].site, NOT_GRANTED);
    group.replicas[0].site.config(&new);
    let refused = wait_until("a refusal of the replica with the old configuration", || {
        group.client(1).read(URI).map_or_else(Ok, |_| Err("it still serves the grant"))
    });
    assert_eq!(kind(&refused), "unavailable", "{refused}");
    assert!(refused.message.contains("takes back a grant of this mount"), "{refused}");
    // Its list is not served either. Another mount of the same replica is.
    let uris = group.client(1).uris();
    assert!(!uris.iter().any(|uri| uri.starts_with("belljar://files/")), "{uris:?}");
    group.client(1).text("belljar://fixture/static-text");
    // The other replica follows. Then it serves the mount again, without the grant.
    let new = group.config(&group.replicas[1].site, NOT_GRANTED);
    group.replicas[1].site.config(&new);
    wait_until("the end of the refusal", || match group.client(1).read(URI) {
        Err(error) if !error.message.contains("takes back a grant") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    // Who gives the grant again gives it at once: nobody waits for the others.
    let again = group.config(&group.replicas[0].site, GRANTED);
    group.replicas[0].site.config(&again);
    wait_until("the grant", || group.client(0).read(URI).map(drop));
    // A replica that is started with the old configuration has no grant to lose.
    let third = group.replica(COMPONENT, GRANTED);
    group.replicas.push(third);
    wait_until("the grant at a new replica", || group.client(2).read(URI).map(drop));
}

#[test]
fn a_key_that_one_replica_revoked_is_refused_by_all() {
    const CONFIG: &str = "[auth]\n";
    let Some(group) = Group::start(0, COMPONENT, CONFIG, |_| {}) else { return };
    let mut group = group;
    let site = crate::support::empty();
    let key = |site: &belljar_tests::Site, verb: &[&str]| {
        let output = site.run(verb);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    site.config("[auth]\n");
    let printed = key(&site, &["key", "new", "ana"]);
    let secret = printed.split_whitespace().find(|word| word.starts_with("bj_")).unwrap().to_owned();
    let kept = key(&site, &["key", "new", "ben"]);
    let kept = kept.split_whitespace().find(|word| word.starts_with("bj_")).unwrap().to_owned();
    let keys = std::fs::read(site.path("keys.toml")).unwrap();
    for _ in 0..2 {
        let own = crate::support::empty();
        own.mount_as("guest_fixture", "fixture.wasm");
        restrict(own.write("keys.toml", &keys));
        own.config(&group.config(&own, CONFIG));
        let server = own.http();
        group.replicas.push(super::Replica { site: own, server });
    }
    group.await_store();
    let status = |group: &Group, at: usize, key: &str| {
        let server = &group.replicas[at].server;
        let mut wire = server.wire(Era::Stateless);
        wire.authorization = Some(format!("Bearer {key}"));
        let message = Era::Stateless.message(1, "resources/list", json!({}));
        let mut connection = belljar_tests::KeepAliveConnection::to(server);
        connection.exchange(&server.request(&wire, &message)).status
    };
    for at in 0..2 {
        assert_eq!((status(&group, at, &secret), status(&group, at, &kept)), (200, 200));
    }
    let output = group.replicas[0].site.run(&["key", "revoke", "ana"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for at in 0..2 {
        wait_until("the refusal of the key", || match status(&group, at, &secret) {
            401 => Ok(()),
            other => Err(other),
        });
        assert_eq!(status(&group, at, &kept), 200);
    }
}
