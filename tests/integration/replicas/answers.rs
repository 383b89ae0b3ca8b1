//! Expensive answers, which replicas share.

use belljar_tests::{Era, wait_until};
use belljar_upstream::{Upstream, answer};

use super::Group;

const COMPONENT: &[(&str, &str)] = &[("web", "web.wasm")];

/// A configuration with a page of the upstream that stays fresh.
fn config(upstream: &Upstream, more: &str) -> String {
    let host = upstream.address();
    format!(
        "{more}[mounts.web]\nenv = {{ WEB = \"\"\"\n[page]\nurl = \"http://{host}/{{+path}}\"\nkind = \"raw\"\nfresh = \"10m\"\n\
         \"\"\" }}\n[[mounts.web.http]]\norigin = \"http://{host}\"\nnetworks = [\"127.0.0.1\"]\n"
    )
}

fn upstream() -> Upstream {
    Upstream::plain(|asked| {
        // Long enough that all clients ask meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(300));
        answer("200 OK", "content-type: text/plain\r\n", format!("the page {}", asked.path()))
    })
}

#[test]
fn one_replica_asks_the_upstream_for_all() {
    let upstream = upstream();
    let Some(group) = Group::start(3, COMPONENT, &config(&upstream, ""), |_| {}) else { return };
    let read_by_all = |name: &str| -> Vec<String> {
        let uri = format!("belljar://web/page/{name}");
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..9)
                .map(|at| {
                    scope.spawn({
                        let (group, uri) = (&group, uri.clone());
                        move || group.client(at % 3).text(&uri)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    };
    let mut attempt = 0;
    for _ in 0..2 {
        let requests = group.undisturbed(|| {
            attempt += 1;
            let name = format!("number-{attempt}");
            let before = upstream.requests().len();
            let texts = read_by_all(&name);
            let is_right = |text: &String| *text == texts[0] && text.contains(&format!("the page /{name}"));
            assert!(texts.iter().all(is_right), "{texts:?}");
            upstream.requests().len() - before
        });
        assert_eq!(requests, 1, "one request for nine readers at three replicas");
    }
    // One record says that another replica had the answer.
    let from_replica = |group: &Group| {
        let records = group.replicas.iter().flat_map(|replica| replica.site.audit());
        records.filter(|record| record["served_from"] == "replica").count()
    };
    wait_until("records", || if from_replica(&group) >= 2 { Ok(()) } else { Err("none") });
    // The store has neither the page nor its name.
    for key in group.redis.keys() {
        let value = group.redis.ask(&["DUMP", &key]);
        assert!(!value.is_empty() && !key.contains("page") && !key.contains("web"), "{key}");
        assert!(!value.contains("the page"), "{key}: {value}");
    }
}

#[test]
fn readers_whom_other_rules_allow_share_nothing() {
    let upstream = upstream();
    let rules = "[[allow]]\nwho = \"anyone\"\n";
    let Some(mut group) = Group::start(1, COMPONENT, &config(&upstream, ""), |_| {}) else { return };
    // A replica with other rules.
    let other = group.replica(COMPONENT, &config(&upstream, rules));
    group.replicas.push(other);
    group.await_store();
    for at in [0, 1, 0, 1] {
        group.replicas[at].server.client(Era::Stateless).text("belljar://web/page/one");
    }
    assert_eq!(upstream.requests().len(), 2, "one request of each replica");
}

#[test]
fn a_flight_of_a_replica_that_died_ends() {
    let upstream = upstream();
    let Some(mut group) = Group::start(2, COMPONENT, &config(&upstream, "[limits]\ntime = \"5s\"\n"), |_| {}) else {
        return;
    };
    let dead = group.replicas.remove(0);
    let mut client = dead.server.client(Era::Stateless);
    client.send("resources/read", serde_json::json!({ "uri": "belljar://web/page/one" }));
    wait_until("the request", || if upstream.requests().is_empty() { Err("none") } else { Ok(()) });
    dead.server.process.kill();
    let text = group.client(0).text("belljar://web/page/one");
    assert!(text.contains("the page /one"), "{text}");
}
