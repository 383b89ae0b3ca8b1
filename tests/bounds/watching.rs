//! Subscriptions: who watches something is told when it changes, once for each change, over both wires and in both eras;
//! who does not is not.

use std::fs;
use std::time::{Duration, Instant};

use belljar_tests::http::Http;
use belljar_tests::{Client, Era, Events, RpcError, Server, Site, Stdio};
use serde_json::{Value, json};

use crate::place::{bare, kind};

/// A change is told within this time.
const SOON: Duration = Duration::from_secs(1);

/// Nothing comes after this time that has not come: a change is told in less than half of it.
const QUIET: Duration = Duration::from_millis(1200);

/// Files in a granted directory, and how often what cannot be told at once is looked at.
fn notes(watch: &str) -> Site {
    let site = bare();
    site.mount("files");
    for name in ["a.md", "b.md", "deep/c.md"] {
        site.write(format!("notes/{name}"), format!("# {name}"));
    }
    let notes = site.path("notes");
    site.config(&format!(
        "audit = {:?}\n[watch]\n{watch}\n[mounts.files]\nuri = \"notes:///\"\nfs = {{ \"/notes\" = {notes:?} }}\nenv = {{ TITLE = \"Notes\" }}\n",
        site.path("audit.jsonl")
    ));
    site
}

/// A client that subscribes, whichever way its wire and era have.
pub(crate) enum Watcher {
    Stdio(Box<Client<Stdio>>, Option<u64>),
    Http(Box<Client<Http>>, Events),
}

impl Watcher {
    /// Starts to watch `uris`, and the list where `lists` says so.
    pub(crate) fn stdio(site: &Site, era: Era, uris: &[&str], lists: bool) -> Self {
        let mut client = site.stdio(era);
        let id = match era {
            Era::Older => {
                uris.iter().for_each(|uri| drop(subscribe(&mut client, uri).unwrap()));
                None
            }
            Era::Modern => {
                let id = client.send("subscriptions/listen", listen(uris, lists));
                acknowledged(&client.told(SOON * 10).unwrap(), uris);
                Some(id)
            }
        };
        Self::Stdio(Box::new(client), id)
    }

    pub(crate) fn http(server: &Server, era: Era, uris: &[&str], lists: bool) -> Self {
        let mut client = server.client(era);
        let events = match era {
            Era::Older => {
                let events = client.wire().events();
                uris.iter().for_each(|uri| drop(subscribe(&mut client, uri).unwrap()));
                events
            }
            Era::Modern => {
                let message = era.message(77, "subscriptions/listen", listen(uris, lists));
                let events = client.wire().open(&message).unwrap();
                acknowledged(&events.next(SOON * 10).unwrap(), uris);
                events
            }
        };
        Self::Http(Box::new(client), events)
    }

    /// What it is told next: the URI that changed, or "" for the list.
    pub(crate) fn next(&mut self, patience: Duration) -> Option<String> {
        let message = match self {
            Self::Stdio(client, _) => client.told(patience)?,
            Self::Http(_, events) => events.next(patience)?,
        };
        Some(match message["method"].as_str() {
            Some("notifications/resources/updated") => message["params"]["uri"].as_str().unwrap().to_owned(),
            Some("notifications/resources/list_changed") => String::new(),
            _ => panic!("{message}"),
        })
    }

    fn text(&mut self, uri: &str) -> String {
        match self {
            Self::Stdio(client, _) => client.text(uri),
            Self::Http(client, _) => client.text(uri),
        }
    }

    /// Asserts that these and no others are told, the list aside.
    fn is_told(&mut self, uris: &[&str], why: &str) {
        let began = Instant::now();
        let mut told = Vec::new();
        while let Some(uri) = self.next(QUIET.saturating_sub(began.elapsed())) {
            if !uri.is_empty() {
                assert!(began.elapsed() < SOON, "{why}: told after {:?}", began.elapsed());
                told.push(uri);
            }
        }
        told.sort();
        assert_eq!(told, uris, "{why}");
    }
}

fn subscribe<W: belljar_tests::Wire>(client: &mut Client<W>, uri: &str) -> Result<Value, RpcError> {
    client.request("resources/subscribe", json!({ "uri": uri }))
}

fn listen(uris: &[&str], lists: bool) -> Value {
    json!({ "notifications": { "resourceSubscriptions": uris, "resourcesListChanged": lists } })
}

fn acknowledged(message: &Value, uris: &[&str]) {
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    let accepted = &message["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(accepted.as_array().map_or(0, Vec::len), uris.len(), "{message}");
}

fn over_every_wire(site: &Site, uris: &[&str], lists: bool, mut check: impl FnMut(&mut Watcher, &str)) {
    for era in Era::ALL {
        check(&mut Watcher::stdio(site, era, uris, lists), &format!("stdio {era:?}"));
        let server = site.http();
        check(&mut Watcher::http(&server, era, uris, lists), &format!("http {era:?}"));
    }
}

#[test]
fn who_watches_a_file_is_told_once_for_each_change_and_of_no_other() {
    let site = notes("");
    over_every_wire(&site, &["notes:///a.md", "notes:///deep/c.md"], false, |watcher, how| {
        watcher.is_told(&[], &format!("{how}: nothing changed"));
        site.write("notes/b.md", "another");
        watcher.is_told(&[], &format!("{how}: nobody watches b.md"));
        for n in 0..5 {
            site.write("notes/a.md", format!("# {how} {n}"));
        }
        watcher.is_told(&["notes:///a.md"], &format!("{how}: five changes at once"));
        assert_eq!(watcher.text("notes:///a.md"), format!("# {how} 4"), "and reads what is new");
        site.write("notes/new.tmp", "# by rename");
        std::fs::rename(site.path("notes/new.tmp"), site.path("notes/deep/c.md")).unwrap();
        watcher.is_told(&["notes:///deep/c.md"], &format!("{how}: replaced"));
        std::fs::remove_file(site.path("notes/a.md")).unwrap();
        watcher.is_told(&["notes:///a.md"], &format!("{how}: gone"));
        site.write("notes/a.md", "# back");
        watcher.is_told(&["notes:///a.md"], &format!("{how}: back"));
    });
}

#[test]
fn a_change_right_after_the_acknowledgement_is_told() {
    let site = notes("");
    for n in 0..3 {
        over_every_wire(&site, &["notes:///a.md"], false, |watcher, how| {
            site.write("notes/a.md", format!("# {how} at once {n}"));
            // An older client is told of the list as well: the file has another size.
            let told = std::iter::from_fn(|| watcher.next(SOON)).find(|told| !told.is_empty());
            assert_eq!(told.as_deref(), Some("notes:///a.md"), "{how}");
        });
    }
}

/// Nothing tells when such a provider's answers change: they are read and compared.
#[test]
fn a_provider_without_revisions_is_read_and_compared() {
    let site = bare();
    site.mount("clock");
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("[watch]\nreread = \"200ms\"\n");
    over_every_wire(&site, &["belljar://clock/utc", "belljar://fixture/static-text"], false, |watcher, how| {
        for _ in 0..2 {
            assert_eq!(watcher.next(SOON * 3).as_deref(), Some("belljar://clock/utc"), "{how}");
        }
    });
}

#[test]
fn what_is_watched_no_more_is_not_looked_at_any_more() {
    let site = notes("poll = \"100ms\"\nreread = \"100ms\"");
    // A line on record may stand for many looks, those that saw nothing new.
    let looks = |site: &Site| -> u64 {
        let records = site.audit();
        let looks = records.iter().filter(|record| record["caller"]["transport"] == "watch");
        looks.map(|record| record["calls"].as_u64().unwrap_or(1)).sum()
    };
    let server = site.http();
    let mut older = server.client(Era::Older);
    let events = older.wire().events();
    subscribe(&mut older, "notes:///a.md").unwrap();
    let modern = Watcher::http(&server, Era::Modern, &["notes:///a.md"], false);
    std::thread::sleep(Duration::from_millis(500));
    drop(modern);
    older.request("resources/unsubscribe", json!({ "uri": "notes:///a.md" })).unwrap();
    site.write("notes/a.md", "# nobody is told");
    let told: Vec<Value> = std::iter::from_fn(|| events.next(QUIET)).collect();
    assert!(told.iter().all(|message| message["method"] == "notifications/resources/list_changed"), "{told:?}");
    // The session still wants to know of the list. When it is over, nothing is looked at.
    let session = older.wire().session().unwrap().to_owned();
    let ended = server.exchange("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], b"");
    assert!(ended.status < 300, "{}", ended.status);
    drop((events, older));
    std::thread::sleep(Duration::from_millis(400));
    // What was counted is written when the watching ends.
    let before = looks(&site);
    assert!(before > 2, "{before}");
    std::thread::sleep(Duration::from_millis(600));
    // And at the end of all: a look in between would show then.
    assert_eq!(server.stop().status.code(), Some(0));
    assert_eq!(looks(&site), before, "nobody watches anything");
}

/// One that lies, hangs or crashes is told of or not; who watches another one never notices.
#[test]
fn revisions_that_lie_harm_nobody_else() {
    for how in ["change", "same", "loop", "trap", "short", "long", "many", "controls", "sleep"] {
        let site = notes("poll = \"100ms\"");
        site.mount_as("guest_imp", "imp.wasm");
        let text = std::fs::read_to_string(site.path("belljar.toml")).unwrap();
        site.config(&format!(
            "{text}[mounts.imp]\nenv = {{ IMP_REVISIONS = \"{how}\" }}\n[mounts.imp.limits]\ntime = \"500ms\"\n"
        ));
        let server = site.http();
        let mut watcher = Watcher::http(&server, Era::Modern, &["belljar://imp/ok", "notes:///a.md"], false);
        site.write("notes/a.md", format!("# {how}"));
        let began = Instant::now();
        let mut imp = 0;
        loop {
            let told = watcher.next(SOON.saturating_sub(began.elapsed()));
            match told.as_deref() {
                Some("notes:///a.md") => break,
                Some("belljar://imp/ok") => imp += 1,
                _ => panic!("{how}: not told of a.md within {SOON:?}"),
            }
        }
        assert!(imp == 0 || how == "change", "{how}: told {imp} times of what did not change");
        assert_eq!(watcher.text("notes:///a.md"), format!("# {how}"));
    }
}

#[test]
fn the_list_is_told_of_when_it_differs() {
    let site = notes("");
    over_every_wire(&site, &[], true, |watcher, how| {
        assert_eq!(watcher.next(QUIET), None, "{how}: nothing changed");
        site.write("notes/one more.md", "# more");
        assert_eq!(watcher.next(SOON).as_deref(), Some(""), "{how}: a file more");
        assert_eq!(watcher.next(QUIET), None, "{how}: told once");
        std::fs::remove_file(site.path("notes/one more.md")).unwrap();
        assert_eq!(watcher.next(SOON).as_deref(), Some(""), "{how}: a file less");
        // What is not listed changes nothing of the list.
        site.write("notes/.hidden", how);
        std::fs::remove_file(site.path("notes/.hidden")).unwrap();
        assert_eq!(watcher.next(QUIET), None, "{how}: the list is what it was");
    });
}

#[test]
fn nobody_watches_more_than_is_good() {
    let site = notes("");
    let server = site.http();
    let client = server.client(Era::Modern);
    let many: Vec<String> = (0..1025).map(|n| format!("notes:///{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut client = client;
    let wire = client.wire();
    let refused = wire.open(&Era::Modern.message(5, "subscriptions/listen", listen(&many, false)));
    let error = match refused {
        Err(answer) => answer.json(),
        Ok(events) => {
            std::iter::from_fn(|| events.next(SOON * 5)).find(|message| message["error"].is_object()).unwrap()
        }
    };
    assert_eq!(error["error"]["data"]["kind"], "busy", "{error}");
    // What no mount has is not accepted, and the rest is.
    let events = wire
        .open(&Era::Modern.message(6, "subscriptions/listen", listen(&["notes:///a.md", "nobody://x"], false)))
        .unwrap();
    let accepted = events.next(SOON * 5).unwrap();
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!(["notes:///a.md"]), "{accepted}");

    let mut older = server.client(Era::Older);
    let error = subscribe(&mut older, "nobody://x").unwrap_err();
    assert_eq!((error.code, kind(&error)), (Era::Older.not_found(), "not-found"));
    for n in 0..1024 {
        subscribe(&mut older, &format!("notes:///{n}")).unwrap();
    }
    let error = subscribe(&mut older, "notes:///a.md").unwrap_err();
    assert_eq!(kind(&error), "busy", "{error}");
    assert!(error.message.contains("at most 1024"), "{error}");
    older.request("resources/unsubscribe", json!({ "uri": "notes:///7" })).unwrap();
    subscribe(&mut older, "notes:///a.md").unwrap();
}

#[test]
fn a_stop_ends_a_subscription_with_its_result() {
    let site = notes("");
    let server = site.http();
    let Watcher::Http(_client, events) = Watcher::http(&server, Era::Modern, &["notes:///a.md"], true) else {
        panic!()
    };
    server.process.terminate();
    let last = events.next(SOON * 5).unwrap();
    assert_eq!((&last["id"], last["result"].is_object()), (&json!(77), true), "{last}");
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(77), "{last}");

    let Watcher::Stdio(mut client, id) = Watcher::stdio(&site, Era::Modern, &["notes:///a.md"], false) else {
        panic!()
    };
    client.wire().process.terminate();
    let result = client.wait(id.unwrap()).unwrap();
    assert!(result["_meta"].is_object(), "{result}");
}

/// On stdio a subscription is ended by withdrawing its request, and others go on.
#[test]
fn a_subscription_that_is_withdrawn_is_told_nothing_more() {
    let site = notes("");
    let mut client = site.stdio(Era::Modern);
    let open = |client: &mut Client<Stdio>, uri| {
        let id = client.send("subscriptions/listen", listen(&[uri], false));
        let told = client.told(SOON * 10).unwrap();
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id), "{told}");
        id
    };
    let first = open(&mut client, "notes:///a.md");
    let second = open(&mut client, "notes:///b.md");
    // In one step: a file that is cut and then written has changed twice.
    let change = |text| {
        for name in ["a", "b"] {
            site.write("next", text);
            fs::rename(site.path("next"), site.path(format!("notes/{name}.md"))).unwrap();
        }
    };
    change("# changed");
    let mut told: Vec<u64> = (0..2)
        .map(|_| {
            let told = client.told(SOON).unwrap();
            told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64().unwrap()
        })
        .collect();
    told.sort_unstable();
    assert_eq!(told, [first, second]);
    client.cancel(first);
    client.ping();
    // What was on its way when it was withdrawn may still come.
    while client.told(QUIET).is_some() {}
    change("# changed again");
    let told = client.told(SOON).unwrap();
    assert_eq!(told["params"]["uri"], "notes:///b.md", "{told}");
    assert_eq!(client.told(QUIET), None);
}

/// Nothing is said for longer than any connection may be silent: the stream shows that it is there, and then it tells.
#[test]
fn a_quiet_subscription_stays_open() {
    let site = notes("");
    let server = site.http();
    let streams = [Era::Older, Era::Modern].map(|era| Watcher::http(&server, era, &["notes:///a.md"], false));
    for stream in &streams {
        let Watcher::Http(_, events) = stream else { panic!() };
        for _ in 0..2 {
            assert!(events.is_kept_alive(Duration::from_secs(25)), "no sign of life");
        }
    }
    // Longer than a client may take for its headers.
    std::thread::sleep(Duration::from_secs(5));
    site.write("notes/a.md", "# after a long time");
    for mut stream in streams {
        let told = std::iter::from_fn(|| stream.next(SOON)).find(|told| !told.is_empty());
        assert_eq!(told.as_deref(), Some("notes:///a.md"));
    }
}
