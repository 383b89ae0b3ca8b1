//! Hostile rows about rights that end while a client holds something open: streams and sessions of a revoked key, of an
//! expired token, and of a person whose rule was removed. Each row runs the real `belljar` binary on HTTP.

use std::fs;
use std::time::Duration;

use belljar_tests::{Era, Events};
use serde_json::{Value, json};

use crate::cases;
use crate::mint::{now, token};
use crate::people::{Person, RULES, row};
use crate::row::{Guest, Row};
use crate::running_site::RowContext;
use crate::tools::{deadline, within};

/// The longest time until a stream ends.
const SOON: Duration = Duration::from_secs(10);

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("the streams and the session of a key go on after the key is revoked")
            .act(revoked_key)
            .stopped_by(&["authentication", "policy"]),
        row("a stream goes on after the rule that allowed it is removed").act(removed_rule).stopped_by(&["policy"]),
        cases::row("MCP-13", "a stream goes on after its token has expired", "")
            .mount("=notes", Guest::Built("files"))
            .config("fs = { \"/\" = \"notes\" }")
            .prepare(|site| {
                cases::prepare(site);
                site.write("notes/a.md", "# a");
            })
            .act(expired_token)
            .stopped_by(&["authentication"]),
    ]
}

/// The first message of a stream: its acknowledgement.
fn acknowledged(events: &Events) {
    let first = events.next(deadline(SOON)).expect("an acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
}

/// The error that ends a stream.
fn end_of(events: &Events) -> Value {
    events.next(deadline(SOON)).expect("the stream goes on with a credential that is no longer valid")
}

/// Asserts that a stream ended with the error of a refused credential.
fn assert_ended(events: &Events) {
    let last = end_of(events);
    assert_eq!(last["error"]["data"]["kind"], "unauthenticated", "{last}");
    assert!(events.is_over(deadline(SOON)), "the stream stays open after its error");
}

fn revoked_key(context: &RowContext<'_>) -> String {
    let (alice, bob) = (Person::new(context, "alice"), Person::new(context, "bob"));
    let other = alice.listen(&["belljar://notes/alice/plan.md"]).expect("a stream of alice");
    acknowledged(&other);
    let listening = bob.listen(&["belljar://notes/bob/plan.md"]).expect("a stream of bob");
    acknowledged(&listening);
    let mut client = bob.client(Era::Session);
    client.request("resources/subscribe", json!({ "uri": "belljar://notes/bob/plan.md" })).expect("a subscription");
    let of_session = client.wire().events();
    let output = context.site().run(&["key", "revoke", "bob", "--keys", "keys.toml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ended(&listening);
    assert!(of_session.is_over(deadline(SOON)), "the stream of the session goes on");
    let refused = || bob.read("belljar://notes/bob/plan.md").status == 401;
    assert!(within(SOON, refused), "the key is still accepted");
    // The same name with a new key does not get the old session, nor its subscriptions.
    let session = client.wire().session().expect("a session").to_owned();
    let key = cases::new_key(context.site(), "bob");
    context.site().write("bob.key", key);
    let again = Person::new(context, "bob");
    assert!(within(SOON, || again.read("belljar://notes/bob/plan.md").status == 200), "the new key is not accepted");
    let authorization = again.wire(Era::Session).authorization.expect("a key");
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Session-Id", session.as_str()),
        ("Authorization", authorization.as_str()),
    ];
    let list = Era::Session.message(9, "resources/list", json!({})).to_string();
    let answer = context.server().exchange("POST", "/mcp", &headers, list.as_bytes());
    assert_eq!(answer.status, 404, "the session of the revoked key goes on: {}", answer.text());
    assert_eq!(other.next(Duration::from_millis(100)), None, "the stream of alice is disturbed");
    let config = context.site().write("next", "# Plan of alice, changed\n");
    fs::rename(config, context.site().path("notes/alice/plan.md")).expect("a rename");
    let noticed = other.next(deadline(SOON)).expect("a notice for alice");
    assert_eq!(noticed["params"]["uri"], "belljar://notes/alice/plan.md", "{noticed}");
    "both streams and the session ended; others go on".to_owned()
}

fn removed_rule(context: &RowContext<'_>) -> String {
    let (alice, bob) = (Person::new(context, "alice"), Person::new(context, "bob"));
    let (uri, shared) = ("belljar://notes/bob/plan.md", "belljar://notes/shared/plan.md");
    let of_bob = bob.listen(&[uri, shared]).expect("a stream of bob");
    acknowledged(&of_bob);
    let of_alice = alice.listen(&[shared]).expect("a stream of alice");
    acknowledged(&of_alice);
    let mut client = bob.client(Era::Session);
    client.request("resources/subscribe", json!({ "uri": uri })).expect("a subscription");
    let of_session = client.wire().events();
    let site = context.site();
    let config = fs::read_to_string(site.path("belljar.toml")).expect("the configuration");
    let without = RULES.replace("what = [\"belljar://notes/bob/**\", ", "what = [");
    assert_ne!(without, RULES);
    let next = site.write("belljar.toml.new", config.replace(RULES.trim_end(), without.trim_end()));
    fs::rename(next, site.path("belljar.toml")).expect("a rename");
    let is_hidden = || bob.read(uri).json()["error"].is_object();
    assert!(within(SOON, is_hidden), "the rule is still in force");
    let write = |path: &str, text: &str| {
        let next = site.write("next", text);
        fs::rename(next, site.path(path)).expect("a rename");
    };
    write("notes/bob/plan.md", "# Plan of bob, changed\n");
    std::thread::sleep(Duration::from_millis(1500));
    write("notes/shared/plan.md", "# Plan of all, changed\n");
    // The streams may have ended. If not, the next news is about what their holders may see.
    for (whose, events) in [("alice", &of_alice), ("bob", &of_bob)] {
        while let Some(message) = events.next(if whose == "alice" { deadline(SOON) } else { Duration::from_secs(3) }) {
            assert!(!message.to_string().contains(uri), "{whose} gets news of a hidden resource: {message}");
            if message["params"]["uri"] == shared {
                break;
            }
        }
    }
    while let Some(message) = of_session.next(Duration::from_secs(2)) {
        assert!(!message.to_string().contains(uri), "the session gets news of a hidden resource: {message}");
    }
    "no news of what the removed rule allowed".to_owned()
}

fn expired_token(context: &RowContext<'_>) -> String {
    let listen = |token: &str| {
        let mut wire = context.server().wire(Era::Stateless);
        wire.authorization = Some(format!("Bearer {token}"));
        let wanted = json!({ "notifications": { "resourceSubscriptions": ["belljar://notes/a.md"] } });
        let events = wire.open(&Era::Stateless.message(7, "subscriptions/listen", wanted));
        let events = events.unwrap_or_else(|answer| panic!("HTTP {}: {}", answer.status, answer.text()));
        acknowledged(&events);
        events
    };
    let lasting = listen(&token(|claims| claims["jti"] = json!("lasting")));
    // A token is accepted for a minute more than it says.
    let ending = listen(&token(|claims| claims["exp"] = json!(now() - 30)));
    assert_ended(&ending);
    let next = context.site().write("next", "# changed");
    fs::rename(next, context.site().path("notes/a.md")).expect("a rename");
    let noticed = lasting.next(deadline(SOON)).expect("a notice");
    assert_eq!(noticed["params"]["uri"], "belljar://notes/a.md", "{noticed}");
    "the stream of the expired token ended; that of another token goes on".to_owned()
}
