//! Hostile rows about leaks between principals: what a person may not see looks like what is not there, and no answer of
//! one reaches the other. Each row runs the real `belljar` binary on HTTP, with two keys and rules.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::{Era, Response};
use belljar_upstream::{Upstream, answer};
use serde_json::{Value, json};

use crate::http_grants::fetch;
use crate::people::{Person, SECRET_WORD, assert_nothing_of_bob, assert_same, normal, prepare, row};
use crate::row::{Guest, Row, RunMode, Stops};
use crate::running_site::RowContext;
use crate::tools::deadline;

/// Pairs of requests whose times are compared.
const PAIRS: usize = 150;

/// How many times longer than an absent resource a hidden one may take, by the median. Both take a fraction of a
/// millisecond; a call of the guest takes many times as long.
const RATIO: u32 = 4;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("errors: hidden mounts and hidden resources in every spelling, against ones that are not there")
            .act(errors)
            .stopped_by(&["policy"]),
        row("lists, templates, instructions and tools show what another person has").act(lists).stopped_by(&["policy"]),
        row("cursors of another person, and what an own cursor tells about hidden entries")
            .prepare(|site| {
                prepare(site);
                (0..1500).for_each(|at| drop(site.write(format!("notes/bob/{at}.md"), "# b")));
                (0..1200).for_each(|at| drop(site.write(format!("notes/shared/{at}.md"), "# s")));
            })
            .act(cursors)
            .stopped_by(&["policy"]),
        row("completions suggest hidden names").act(completions).stopped_by(&["policy"]),
        row("searches find hidden names and words").act(searches).stopped_by(&["policy"]),
        row("answers kept for another person, and calls shared with one")
            .time(60_000)
            .act(shared_answers)
            .stopped_by(&["policy"]),
        row("subscriptions to hidden resources, and notices of hidden changes")
            .act(subscriptions)
            .stopped_by(&["policy"]),
        row("the time until a hidden resource is refused").act(times).stopped_by(&["policy"]).measures(),
        row("sessions of another person").act(sessions).stopped_by(&["authentication", "policy"]),
        own_secrets(),
        consents(),
    ]
}

/// Two people, as a pair.
fn people<'a>(context: &'a RowContext<'a>) -> (Person<'a>, Person<'a>) {
    (Person::new(context, "alice"), Person::new(context, "bob"))
}

/// The text of a read that must succeed.
fn text_of(answer: &Response) -> String {
    let body = answer.json();
    let text = body.pointer("/result/contents/0/text").and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("HTTP {}: {}", answer.status, answer.text())).to_owned()
}

fn errors(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    assert!(text_of(&bob.read("belljar://notes/bob/plan.md")).contains(SECRET_WORD));
    assert!(text_of(&alice.read("belljar://notes/alice/plan.md")).contains("lisbon"));
    // Each pair: a hidden name, and one of the same length that is not there.
    let pairs = [
        ("belljar://vault/ok", "belljar://vapor/ok"),
        ("belljar://vault/", "belljar://vapor/"),
        ("belljar://vault/../notes/alice/plan.md", "belljar://vapor/../notes/alice/plan.md"),
        ("belljar://vault/trap", "belljar://vapor/trap"),
        ("belljar://notes/bob/plan.md", "belljar://notes/bob/none.md"),
        ("belljar://notes/bob/plan.md", "belljar://notes/xyz/none.md"),
        ("belljar://notes/bob/plan.md", "belljar://notes/alice/x.md"),
        ("belljar://notes/bob", "belljar://notes/xyz"),
        ("belljar://notes/bob/", "belljar://notes/xyz/"),
        ("belljar://notes/", "belljar://notes/x"),
        ("belljar://notes/bob/plan.md?x=1", "belljar://notes/bob/none.md?x=1"),
        ("belljar://notes/%62ob/plan.md", "belljar://notes/%62ob/none.md"),
        ("belljar://notes/bob%2Fplan.md", "belljar://notes/bob%2Fnone.md"),
        ("belljar://notes//bob/plan.md", "belljar://notes//bob/none.md"),
        ("belljar://notes/bob//plan.md", "belljar://notes/bob//none.md"),
        ("belljar://notes/BOB/plan.md", "belljar://notes/BOB/none.md"),
        ("belljar://notes/alice/../bob/plan.md", "belljar://notes/alice/../bob/none.md"),
        ("belljar://notes/alice/%2e%2e/bob/plan.md", "belljar://notes/alice/%2e%2e/bob/none.md"),
        ("belljar://notes/shared/..%2Fbob/plan.md", "belljar://notes/shared/..%2Fbob/none.md"),
        ("belljar://notes/bob/plan.md/", "belljar://notes/bob/none.md/"),
    ];
    for (hidden, absent) in pairs {
        let (one, other) = (alice.read(hidden), alice.read(absent));
        assert_same("resources/read", (&one, hidden), (&other, absent));
        assert_nothing_of_bob("resources/read", &one.text(), hidden);
        let read = |uri: &str| alice.tool("read_resource", json!({ "uri": uri }));
        let (one, other) = (read(hidden), read(absent));
        assert_same("read_resource", (&one, hidden), (&other, absent));
        let mut client = alice.client(Era::Session);
        let [one, other] = [hidden, absent].map(|uri| {
            let error = client.read(uri).expect_err("a hidden resource");
            normal(&format!("{} {} {}", error.code, error.message, error.data), uri)
        });
        assert_eq!(one, other, "in a session: {hidden} and {absent}");
    }
    for name in ["list_resources", "search_resources"] {
        let call = |mount: &str| {
            let query = if name == "search_resources" {
                json!({ "query": "plan", "mount": mount })
            } else {
                json!({ "mount": mount })
            };
            alice.tool(name, query)
        };
        assert_same(name, (&call("vault"), "vault"), (&call("vapor"), "vapor"));
    }
    // The record says that nothing was called: such a line has no usage.
    let records = context.records();
    let hidden: Vec<&str> =
        records.lines().filter(|line| line.contains("\"key:alice\"") && line.contains("vault")).collect();
    assert!(!hidden.is_empty(), "the refusals are not on record");
    for line in hidden {
        let line: Value = serde_json::from_str(line).expect("a record");
        assert!(line["usage"].is_null() || line["usage"]["fuel"].as_u64().unwrap_or(0) == 0, "a call was made: {line}");
    }
    format!("{} pairs with the same bytes, by three ways", pairs.len())
}

fn lists(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    let mut seen = Vec::new();
    for (method, params) in [
        ("server/discover", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/list", json!({})),
    ] {
        let (of_alice, of_bob) = (alice.ask(method, params.clone()), bob.ask(method, params));
        assert_nothing_of_bob(method, &of_alice.text(), "");
        assert_eq!(of_alice.status, 200, "{method}");
        seen.push((method, of_alice.text() == of_bob.text()));
    }
    assert_eq!(
        seen,
        [
            ("server/discover", false),
            ("resources/list", false),
            ("resources/templates/list", false),
            ("tools/list", true)
        ],
        "bob sees more, and both have the same tools"
    );
    for (name, arguments) in [
        ("list_resources", json!({})),
        ("list_resources", json!({ "templates": true })),
        ("list_resources", json!({ "mount": "notes" })),
    ] {
        let answer = alice.tool(name, arguments.clone()).text();
        assert_nothing_of_bob(name, &answer, "");
        assert!(answer.contains("notes"), "{name} {arguments}: {answer}");
    }
    let mut client = alice.client(Era::Session);
    assert_nothing_of_bob("initialize", &client.greeting.to_string(), "");
    let uris = client.uris();
    assert_eq!(uris, ["belljar://notes/alice/plan.md", "belljar://notes/shared/plan.md"]);
    assert_nothing_of_bob("templates of a session", &client.templates().join(" "), "");
    let list = alice.ask("resources/list", json!({})).json();
    assert_eq!(list["result"]["cacheScope"], "private", "{list}");
    "own entries only: instructions, resources, templates, tools; cacheScope is private".to_owned()
}

fn cursors(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    let next = |answer: &Response| answer.json()["result"]["nextCursor"].as_str().map(str::to_owned);
    let list = |who: &Person<'_>, cursor: &str| who.ask("resources/list", json!({ "cursor": cursor }));
    let of_bob = next(&bob.ask("resources/list", json!({}))).expect("a second page of bob");
    let first = alice.ask("resources/list", json!({}));
    assert_nothing_of_bob("the first page", &first.text(), "");
    let of_alice = next(&first).expect("a second page of alice");
    // A cursor of bob is as good as one that nobody gave.
    let forged: String = of_bob.chars().rev().collect();
    assert_same("a cursor of bob", (&list(&alice, &of_bob), &of_bob), (&list(&alice, &forged), &forged));
    let refused = list(&alice, &of_bob).json();
    assert!(refused["error"].is_object(), "bob's cursor is accepted: {refused}");
    let second = list(&alice, &of_alice);
    assert_nothing_of_bob("the second page", &second.text(), "");
    assert!(second.json()["result"]["resources"].as_array().is_some_and(|all| !all.is_empty()), "{}", second.text());
    // The position in the cursor counts hidden entries, so it must not be readable.
    let tool =
        |who: &Person<'_>, cursor: Option<&str>| who.tool("list_resources", json!({ "limit": 20, "cursor": cursor }));
    assert_eq!(of_alice.len(), of_bob.len(), "the length of a cursor tells the number of hidden entries");
    let page = bob.tool("list_resources", json!({ "limit": 20 })).json();
    let own = page.pointer("/result/structuredContent/nextCursor").and_then(Value::as_str);
    if let Some(own) = own {
        let forged: String = own.chars().rev().collect();
        assert_same("a tool's cursor of bob", (&tool(&alice, Some(own)), own), (&tool(&alice, Some(&forged)), &forged));
    }
    "a cursor of bob is refused like a forged one; alice's pages have no entry of bob".to_owned()
}

fn completions(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    let notes = "belljar://notes/{+path}";
    let values = |answer: &Response| answer.json()["result"]["completion"]["values"].to_string();
    assert!(values(&bob.complete(notes, "path", "bo")).contains("bob"), "bob completes his own names");
    for (value, absent) in [("bo", "zz"), ("bob/", "zzz/"), ("bob/p", "zzz/p"), ("bob/plan.md", "zzz/plan.md")] {
        let (hidden, other) = (alice.complete(notes, "path", value), alice.complete(notes, "path", absent));
        assert_eq!(values(&hidden), values(&other), "{value} and {absent}");
        assert_nothing_of_bob("completion", &hidden.text(), "");
    }
    let all = alice.complete(notes, "path", "");
    assert_nothing_of_bob("all completions", &all.text(), "");
    assert!(all.text().contains("alice") && all.text().contains("shared"), "{}", all.text());
    let total = &all.json()["result"]["completion"]["total"];
    assert!(total.is_null() || total == 2, "the total counts hidden names: {total}");
    let (hidden, absent) = ("belljar://vault/{+path}", "belljar://vapor/{+path}");
    let [one, other] = [hidden, absent].map(|template| alice.complete(template, "path", ""));
    assert_same("the template of a hidden mount", (&one, hidden), (&other, absent));
    "own names only".to_owned()
}

fn searches(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    let search = |who: &Person<'_>, query: &str, content: bool| {
        who.tool("search_resources", json!({ "query": query, "content": content }))
    };
    let found = search(&bob, SECRET_WORD, true).text();
    assert!(found.contains("belljar://notes/bob/plan.md"), "bob does not find his own word: {found}");
    let absent: String = SECRET_WORD.chars().rev().collect();
    for (word, other) in [(SECRET_WORD, absent.as_str()), ("bob", "bxb"), ("vault", "vapor")] {
        for content in [true, false] {
            let (hidden, none) = (search(&alice, word, content), search(&alice, other, content));
            assert_same("search_resources", (&hidden, word), (&none, other));
        }
    }
    let own = search(&alice, "plan", true).text();
    assert_nothing_of_bob("search_resources", &own, "");
    assert!(own.contains("belljar://notes/alice/plan.md"), "{own}");
    assert!(own.contains("Looked at 2 resources"), "alice has 2 resources, and the search counts others: {own}");
    "own words only, and the same bytes for hidden words as for absent ones".to_owned()
}

fn shared_answers(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    // The list of a folder, which the provider answers with the names in it.
    for folder in ["belljar://notes/bob", "belljar://notes/bob/"] {
        let absent = folder.replace("bob", "xyz");
        assert_same("a hidden folder", (&alice.read(folder), folder), (&alice.read(&absent), &absent));
    }
    // An answer that may be kept for ever.
    let (kept, absent) = ("belljar://vault/fresh/0", "belljar://vapor/fresh/0");
    assert_eq!(text_of(&bob.read(kept)), "fresh");
    assert_eq!(text_of(&bob.read(kept)), "fresh");
    assert_same("a kept answer", (&alice.read(kept), kept), (&alice.read(absent), absent));
    // Both may see it, by different rules: a call each.
    let shared = "belljar://notes/shared/plan.md";
    assert_eq!(text_of(&alice.read(shared)), text_of(&bob.read(shared)));
    // A call that runs for bob is not joined by alice.
    let (slow, absent) = ("belljar://vault/sleep/10000", "belljar://vapor/sleep/10000");
    thread::scope(|scope| {
        let running = scope.spawn(|| bob.read(slow));
        thread::sleep(Duration::from_millis(300));
        let refused = alice.read(slow);
        let is_running = !running.is_finished();
        assert_same("a running call", (&refused, slow), (&alice.read(absent), absent));
        assert!(is_running, "alice waited for the call of bob");
        assert_eq!(running.join().expect("an answer").status, 200);
    });
    let records = context.records();
    let served = |who: &str| {
        let own = records
            .lines()
            .filter(|line| line.contains(&format!("\"principal\":\"{who}\"")) && line.contains("\"ok\""));
        own.filter(|line| line.contains("\"mount\":\"vault\"")).count()
    };
    assert!(served("key:bob") >= 3 && served("key:alice") == 0, "alice was served by the vault");
    "no kept answer and no running call reaches another class of access".to_owned()
}

fn subscriptions(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    let first = |events: &belljar_tests::Events| events.next(deadline(Duration::from_secs(10)));
    // Hidden and absent URIs: the same messages.
    let messages = |uri: &str| -> String {
        match alice.listen(&[uri]) {
            Ok(events) => {
                let mut all = vec![first(&events)];
                all.push(events.next(Duration::from_millis(500)));
                format!("{all:?}").replace(uri, "URI")
            }
            Err(answer) => format!("{} {}", answer.status, answer.text()).replace(uri, "URI"),
        }
    };
    for (hidden, absent) in [
        ("belljar://vault/ok", "belljar://vapor/ok"),
        ("belljar://notes/bob/plan.md", "belljar://notes/xyz/plan.md"),
        ("belljar://notes/bob/plan.md", "belljar://notes/bob/none.md"),
    ] {
        assert_eq!(messages(hidden), messages(absent), "{hidden} and {absent}");
    }
    // A change of bob's file reaches bob only.
    let own = alice.listen(&["belljar://notes/alice/plan.md"]).expect("a stream of alice");
    let of_bob = bob.listen(&["belljar://notes/bob/plan.md"]).expect("a stream of bob");
    let acknowledged = first(&own).map(|message| message["method"].clone());
    assert_eq!(acknowledged, Some(json!("notifications/subscriptions/acknowledged")));
    first(&of_bob).expect("an acknowledgement");
    replace(context, "notes/bob/plan.md", "# Plan of bob, changed\n");
    replace(context, "notes/bob/new.md", "# A new file of bob\n");
    let noticed = first(&of_bob).expect("a notice of bob's own change");
    assert!(noticed["method"].as_str().is_some_and(|method| method.starts_with("notifications/")), "{noticed}");
    // Nor does a notice tell alice that some list has changed: hers has not.
    let noticed = own.next(Duration::from_millis(1500));
    assert!(noticed.is_none(), "a notice of a change that alice cannot see: {noticed:?}");
    // Alice's own change is the first resource on her stream.
    replace(context, "notes/alice/plan.md", "# Plan of alice, changed\n");
    loop {
        let noticed = first(&own).expect("a notice of alice's own change");
        if noticed["method"] != "notifications/resources/list_changed" {
            assert_eq!(
                noticed["params"]["uri"], "belljar://notes/alice/plan.md",
                "a notice of bob's change: {noticed}"
            );
            break;
        }
        assert_nothing_of_bob("a notice", &noticed.to_string(), "");
    }
    "hidden URIs are answered as absent ones; changes of bob are no news for alice".to_owned()
}

/// Replaces a file by a rename, so that it changes once.
fn replace(context: &RowContext<'_>, path: &str, text: &str) {
    let next = context.site().write("next", text);
    fs::rename(next, context.site().path(path)).expect("a rename");
}

fn times(context: &RowContext<'_>) -> String {
    let (alice, _) = people(context);
    let pairs = [
        ("belljar://vault/ok", "belljar://vapor/ok"),
        ("belljar://notes/bob/plan.md", "belljar://notes/bob/none.md"),
        ("belljar://vault/spin", "belljar://vapor/spin"),
    ];
    let mut ratios = Vec::new();
    for (hidden, absent) in pairs {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            for (uri, times) in [hidden, absent].into_iter().zip(&mut times) {
                let began = Instant::now();
                let answer = alice.read(uri);
                times.push(began.elapsed());
                assert!(answer.json()["error"].is_object(), "{uri} is served");
            }
        }
        let [of_hidden, of_absent] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        assert!(
            of_hidden < of_absent * RATIO && of_absent < of_hidden * RATIO,
            "{hidden} takes {of_hidden:?}, {absent} {of_absent:?}"
        );
        ratios.push(format!("{:.2}", of_hidden.as_secs_f64() / of_absent.as_secs_f64()));
    }
    format!("the median time of a hidden resource by that of an absent one: {}", ratios.join(", "))
}

fn sessions(context: &RowContext<'_>) -> String {
    let (alice, bob) = people(context);
    let mut of_bob = bob.client(Era::Session);
    let session = of_bob.wire().session().expect("a session").to_owned();
    let other = "00000000-0000-4000-8000-000000000000";
    let send = |session: &str, method: &str| {
        let wire = alice.wire(Era::Session);
        let message = Era::Session.message(7, "resources/list", json!({}));
        let headers = wire.headers(&message);
        let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("Mcp-Session-Id", session));
        let body = message.to_string();
        let body = if method == "POST" { body.as_bytes() } else { b"" };
        context.server().exchange(method, "/mcp", &headers, body)
    };
    for method in ["POST", "GET", "DELETE"] {
        let (foreign, unknown) = (send(&session, method), send(other, method));
        assert!(foreign.status >= 400 || method == "DELETE", "{method}: alice uses the session of bob");
        assert_same(method, (&foreign, &session), (&unknown, other));
    }
    assert_eq!(of_bob.text("belljar://vault/ok"), "fine", "bob's session goes on");
    "a session of bob is unknown to alice, for each method".to_owned()
}

/// The upstream gets the secret of the person who asks, and no answer goes to another person.
fn own_secrets() -> Row {
    let upstream = Upstream::plain(|request| {
        // Long enough that requests at the same time could share a call.
        thread::sleep(Duration::from_millis(200));
        let whose = if request.header("authorization") == Some("Bearer token-of-alice") { "alice" } else { "bob" };
        answer("200 OK", "cache-control: max-age=600\r\n", format!("mail for {whose}"))
    });
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    let grant =
        format!("http = [{{ origin = \"{origin}\", headers = {{ authorization = \"Bearer ${{secret:mail}}\" }} }}]");
    let all = "[[allow]]\nwho = { key = [\"alice\", \"bob\"] }\nwhat = \"belljar://mail/**\"\n[secrets]\nmail = { file = \"secrets/{principal}/mail\" }";
    row("a secret of each person: one person gets the answer to another's")
        .prepare(|site| {
            prepare(site);
            for name in ["alice", "bob"] {
                let file = site.write(format!("secrets/key%3a{name}/mail"), format!("token-of-{name}\n"));
                fs::set_permissions(file, PermissionsExt::from_mode(0o600)).expect("a file of our own");
            }
        })
        .settings(all)
        .run_mode(RunMode::Http)
        .mount("=mail", Guest::Built("guest_hostile"))
        .config(&format!("{grant}\nenv = {{ HOSTILE_FRESH = \"600000\", HOSTILE_LIST = \"{origin}/list\" }}"))
        .act(move |context| {
            let (alice, bob) = people(context);
            let uri = format!("belljar://mail/{}", fetch(&format!("GET {origin}/")));
            for _ in 0..5 {
                thread::scope(|scope| {
                    let of_alice = [(); 2].map(|()| scope.spawn(|| text_of(&alice.read(&uri))));
                    let of_bob = [(); 2].map(|()| scope.spawn(|| text_of(&bob.read(&uri))));
                    for (whose, texts) in [("alice", of_alice), ("bob", of_bob)] {
                        for text in texts.map(|text| text.join().expect("an answer")) {
                            assert!(text.contains(&format!("mail for {whose}")), "{whose} gets {text}");
                            assert!(!text.contains("token-of"), "{text}");
                        }
                    }
                });
            }
            // A list is made with the secret of the person who asks, and is for that person only.
            for _ in 0..2 {
                for (who, own, other) in [(&alice, "alice", "bob"), (&bob, "bob", "alice")] {
                    let list = who.ask("resources/list", json!({})).text();
                    assert!(list.contains(&format!("of-{own}")), "{own} does not get the own list: {list}");
                    assert!(!list.contains(&format!("of-{other}")), "{own} gets the list of {other}: {list}");
                }
            }
            fs::remove_file(context.site().path("secrets/key%3abob/mail")).expect("the secret of bob");
            // What bob got with his own secret stays his. Another resource needs the secret again.
            let other = format!("belljar://mail/{}", fetch(&format!("GET {origin}/other")));
            let refused = bob.read(&other).text();
            let is_refused = refused.contains("needs a secret") && !refused.contains("mail for");
            assert!(is_refused, "bob gets an answer without a secret: {refused}");
            assert!(!context.records().contains("token-of") && !context.server().process.stderr().contains("token-of"));
            // The token of belljar's own client goes no further than belljar.
            let requests = upstream.requests();
            let has_key = |request: &belljar_upstream::ReceivedRequest| {
                request.headers.iter().any(|(_, value)| value.contains("bj_"))
            };
            assert!(!requests.iter().any(has_key), "an upstream gets the key of a reader");
            format!("20 reads of two people, {} requests, no answer exchanged", requests.len())
        })
        .stopped(Stops::Structure("what a mount with own secrets answers is kept and shared for one principal only"))
}

/// A question that bob was asked, and the consent that he gave, are for bob only.
fn consents() -> Row {
    row("consents: a person answers the question of another, or reads with another's consent")
        .prepare(|site| {
            prepare(site);
            site.write("asked/file", "only with consent");
        })
        .settings("[[allow]]\nwho = { key = [\"alice\", \"bob\"] }\nwhat = \"belljar://ask/**\"")
        .run_mode(RunMode::Http)
        .mount("=ask", Guest::Built("guest_hostile"))
        .config("ask = true\nfs = { \"/0\" = { path = \"asked\", ask = true } }")
        .act(|context| {
            let (alice, bob) = people(context);
            let read = |who: &Person<'_>, state: Option<&str>| {
                let meta = json!({
                    "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
                    "io.modelcontextprotocol/clientInfo": { "name": "the same", "version": "1" },
                });
                let mut params = json!({ "uri": "belljar://ask/need/%252F0%252Ffile", "_meta": meta });
                if let Some(state) = state {
                    params["requestState"] = json!(state);
                    let once = json!({ "action": "accept", "content": { "consent": "once" } });
                    params["inputResponses"] = json!({ "consent": once });
                }
                who.ask("resources/read", params).json()
            };
            let asked = read(&bob, None);
            let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("no question: {asked}"));
            let stolen = read(&alice, Some(state));
            assert_eq!(stolen["error"]["data"]["kind"], "bad-state", "alice answers the question of bob: {stolen}");
            let given = read(&bob, Some(state));
            assert_eq!(given["result"]["contents"][0]["text"], "only with consent", "{given}");
            let after = read(&alice, None);
            assert!(after["result"]["contents"].is_null(), "alice reads with the consent of bob: {after}");
            "a question and a consent of bob are worthless to alice".to_owned()
        })
        .stopped_by(&["consent"])
}
