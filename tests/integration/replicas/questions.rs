//! A question that one replica asks is answered at another one, and once.

use belljar_tests::http::Http;
use belljar_tests::{Client, RpcError, wait_until};
use serde_json::Value;

use super::Group;
use crate::consent::questions::{answer, chosen, params, question, text};
use crate::support::kind;

/// Sends a read with these parameters, and again while the store does not answer.
fn ask(client: &mut Client<Http>, params: Value) -> Result<Value, RpcError> {
    wait_until("the store", || match crate::consent::questions::ask(client, params.clone()) {
        Err(error) if error.message.contains("send the answer again") => Err(error),
        other => Ok(other),
    })
}

const COMPONENT: &[(&str, &str)] = &[("guest_hostile", "hostile.wasm")];

const CONFIG: &str = "[mounts.hostile]\ncomponent = \"hostile.wasm\"\nask = true\n\
                      fs = { \"/notes\" = { path = \"{shared}notes\", ask = true } }\n";

/// The URI that makes the hostile guest read `/notes/plan`.
const PLAN: &str = "belljar://hostile/need/%252Fnotes%252Fplan";

#[test]
fn an_answer_is_valid_at_any_replica_and_once() {
    let Some(group) = Group::start(3, COMPONENT, CONFIG, |shared| drop(shared.write("notes/plan", "the plan"))) else {
        return;
    };
    let [mut one, mut two, mut three] = [0, 1, 2].map(|at| group.client(at));
    let asked = question(&ask(&mut one, params(PLAN)).unwrap());
    let accepted = answer(PLAN, &asked.state, chosen("once"));
    let result = ask(&mut two, accepted.clone()).unwrap();
    assert!(text(&result).contains("the plan"), "{result}");
    for client in [&mut one, &mut two, &mut three] {
        let again = ask(client, accepted.clone()).unwrap_err();
        assert!(again.message.contains("was used already"), "{again}");
    }
}

#[test]
fn without_the_store_no_answer_is_accepted_twice() {
    let Some(mut group) = Group::start(2, COMPONENT, CONFIG, |shared| drop(shared.write("notes/plan", "the plan")))
    else {
        return;
    };
    let [mut one, mut two] = [0, 1].map(|at| group.client(at));
    let asked = question(&ask(&mut one, params(PLAN)).unwrap());
    let accepted = answer(PLAN, &asked.state, chosen("once"));
    group.redis.kill();
    for client in [&mut one, &mut two] {
        let unknown = crate::consent::questions::ask(client, accepted.clone()).unwrap_err();
        assert_eq!(kind(&unknown), "busy", "{unknown}");
        assert!(unknown.message.contains("send the answer again"), "{unknown}");
        assert!(unknown.data["retryAfterMs"].is_u64(), "{}", unknown.data);
    }
    group.redis.restart();
    group.await_store();
    // The answer was not lost.
    let result = ask(&mut two, accepted.clone()).unwrap();
    assert!(text(&result).contains("the plan"), "{result}");
    assert!(ask(&mut one, accepted).unwrap_err().message.contains("was used already"));
}

#[test]
fn without_a_store_only_the_replica_that_asked_accepts_an_answer() {
    let Some(group) = Group::start(0, COMPONENT, CONFIG, |shared| drop(shared.write("notes/plan", "the plan"))) else {
        return;
    };
    let sites = [0, 1].map(|_| {
        let site = crate::support::empty();
        site.mount_as("guest_hostile", "hostile.wasm");
        let config = group.config(&site, CONFIG);
        let alone = config.lines().filter(|line| !line.starts_with("store =")).collect::<Vec<_>>().join("\n");
        site.config(&alone);
        site
    });
    let servers = sites.each_ref().map(belljar_tests::Site::http);
    let [mut one, mut two] = servers.each_ref().map(|server| server.client(belljar_tests::Era::Stateless));
    let asked = question(&ask(&mut one, params(PLAN)).unwrap());
    let accepted = answer(PLAN, &asked.state, chosen("once"));
    let foreign = ask(&mut two, accepted.clone()).unwrap_err();
    assert!(foreign.message.contains("was not given by this server"), "{foreign}");
    assert_eq!(foreign.code, -32602);
    assert!(text(&ask(&mut one, accepted).unwrap()).contains("the plan"));
}
