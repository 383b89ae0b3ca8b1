//! Subscriptions: a subscriber gets one notification of each change, over both transports and in both protocol eras.
//! Other clients get none. Runs the real `belljar` binary with real providers and test guests.

use std::fs;
use std::time::Duration;

use belljar_tests::http::Http;
use belljar_tests::{Client, DEADLINE, Era, Events, RpcError, Server, Site, Stdio, Watch, wait_until};
use serde_json::{Value, json};

use crate::support::{empty, kind};

/// How long a test waits for a notification that must not come. On an idle machine, a notification takes less than half
/// of this time.
const QUIET: Duration = Duration::from_millis(1200);

/// A site with files in a granted directory. `watch` has the lines of the configuration's table `[watch]`.
fn notes(watch: &str) -> Site {
    let site = empty();
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

/// A client that subscribes as its transport and its protocol era demand.
pub(crate) enum Watcher {
    /// A client on stdio, and the id of its request `subscriptions/listen` in the stateless era.
    Stdio(Box<Client<Stdio>>, Option<u64>),
    /// A client over HTTP, and its stream of notifications.
    Http(Box<Client<Http>>, Events),
}

impl Watcher {
    /// Subscribes to `uris` on stdio, and to the list if `lists` is true.
    pub(crate) fn stdio(site: &Site, era: Era, uris: &[&str], lists: bool) -> Self {
        let mut client = site.stdio(era);
        let id = match era {
            Era::Session => {
                uris.iter().for_each(|uri| drop(subscribe(&mut client, uri).unwrap()));
                None
            }
            Era::Stateless => {
                let id = client.send("subscriptions/listen", listen(uris, lists));
                acknowledged(&client.next_notification(DEADLINE).unwrap(), uris);
                Some(id)
            }
        };
        Self::Stdio(Box::new(client), id)
    }

    /// Subscribes to `uris` over HTTP, and to the list if `lists` is true.
    pub(crate) fn http(server: &Server, era: Era, uris: &[&str], lists: bool) -> Self {
        let mut client = server.client(era);
        let events = match era {
            Era::Session => {
                let events = client.wire().events();
                uris.iter().for_each(|uri| drop(subscribe(&mut client, uri).unwrap()));
                events
            }
            Era::Stateless => {
                let message = era.message(77, "subscriptions/listen", listen(uris, lists));
                let events = client.wire().open(&message).unwrap();
                acknowledged(&events.next(DEADLINE).unwrap(), uris);
                events
            }
        };
        Self::Http(Box::new(client), events)
    }

    /// The next notification: the changed URI, or an empty text for the list.
    pub(crate) fn next(&mut self, patience: Duration) -> Option<String> {
        let message = match self {
            Self::Stdio(client, _) => client.next_notification(patience)?,
            Self::Http(_, events) => events.next(patience)?,
        };
        Some(match message["method"].as_str() {
            Some("notifications/resources/updated") => message["params"]["uri"].as_str().unwrap().to_owned(),
            Some("notifications/resources/list_changed") => String::new(),
            _ => panic!("{message}"),
        })
    }

    /// The id of the next message that is a result.
    pub(crate) fn last_result(&self) -> Option<Value> {
        let Self::Http(_, events) = self else { return None };
        std::iter::from_fn(|| events.next(DEADLINE))
            .find(|message| message.get("result").is_some())
            .map(|last| last["id"].clone())
    }

    /// Reads a text resource.
    fn text(&mut self, uri: &str) -> String {
        match self {
            Self::Stdio(client, _) => client.text(uri),
            Self::Http(client, _) => client.text(uri),
        }
    }

    /// Asserts that the next notification of a resource is of `uri`. Skips notifications of the list.
    fn assert_next_is(&mut self, uri: &str, why: &str) {
        let changed = std::iter::from_fn(|| self.next(DEADLINE)).find(|changed| !changed.is_empty());
        assert_eq!(changed.as_deref(), Some(uri), "{why}");
    }

    /// Reads notifications until none comes for [`QUIET`]. Asserts that all of them are of `uri` or of the list.
    pub(crate) fn settles(&mut self, uri: &str, why: &str) {
        while let Some(changed) = self.next(QUIET) {
            assert!(changed.is_empty() || changed == uri, "{why}: a notification of {changed}");
        }
    }

    /// Asserts that no notification of a resource arrives within [`QUIET`].
    fn assert_no_resource_changed(&mut self, why: &str) {
        self.settles("", why);
    }
}

/// Replaces a file by a rename, so that the file changes once. Truncating and then writing would be two changes.
fn replace(site: &Site, path: &str, text: &str) {
    site.write("next", text);
    fs::rename(site.path("next"), site.path(path)).unwrap();
}

fn subscribe<W: belljar_tests::Wire>(client: &mut Client<W>, uri: &str) -> Result<Value, RpcError> {
    client.request("resources/subscribe", json!({ "uri": uri }))
}

/// The parameters of `subscriptions/listen`.
fn listen(uris: &[&str], lists: bool) -> Value {
    json!({ "notifications": { "resourceSubscriptions": uris, "resourcesListChanged": lists } })
}

/// Asserts that `message` acknowledges the subscription to all of `uris`.
fn acknowledged(message: &Value, uris: &[&str]) {
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    let accepted = &message["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(accepted.as_array().map_or(0, Vec::len), uris.len(), "{message}");
}

/// Runs `check` with a new [`Watcher`] for each transport and each era. The text names both, for the messages of
/// asserts.
fn over_every_wire(site: &Site, uris: &[&str], lists: bool, mut check: impl FnMut(&mut Watcher, &str)) {
    for era in Era::ALL {
        check(&mut Watcher::stdio(site, era, uris, lists), &format!("stdio {era:?}"));
        let server = site.http();
        check(&mut Watcher::http(&server, era, uris, lists), &format!("http {era:?}"));
    }
}

#[test]
fn subscribers_get_one_notification_for_each_change_of_their_files() {
    let site = notes("");
    let (a, c) = ("notes:///a.md", "notes:///deep/c.md");
    over_every_wire(&site, &[a, c], false, |watcher, how| {
        // A wrong notification of the unwatched file `b.md` would arrive before the one of `c.md`.
        replace(&site, "notes/b.md", "nobody watches this");
        replace(&site, "notes/deep/c.md", &format!("# {how}"));
        watcher.assert_next_is(c, how);
        for n in 0..5 {
            replace(&site, "notes/a.md", &format!("# {how} {n}"));
        }
        watcher.assert_next_is(a, how);
        assert_eq!(watcher.text(a), format!("# {how} 4"), "a read after the notification gives the new text");
        // On a busy machine, some of the five changes may give notifications of their own.
        watcher.settles(a, how);
        fs::remove_file(site.path("notes/a.md")).unwrap();
        watcher.assert_next_is(a, &format!("{how}: the file was removed"));
        replace(&site, "notes/a.md", "# back");
        watcher.assert_next_is(a, &format!("{how}: the file was created again"));
        watcher.assert_no_resource_changed(how);
    });
}

#[test]
fn a_change_right_after_the_acknowledgement_is_notified() {
    let site = notes("");
    for n in 0..3 {
        over_every_wire(&site, &["notes:///a.md"], false, |watcher, how| {
            replace(&site, "notes/a.md", &format!("# {how} at once {n}"));
            // A client with a session also gets a notification about the list, because the size of the file changed.
            watcher.assert_next_is("notes:///a.md", how);
        });
    }
}

/// A provider without revisions does not report changes. So belljar reads its resources again and compares the
/// contents.
#[test]
fn a_provider_without_revisions_is_read_and_compared() {
    let site = empty();
    site.mount("clock");
    site.mount_as("guest_fixture", "fixture.wasm");
    site.config("[watch]\nreread = \"200ms\"\n");
    over_every_wire(&site, &["belljar://clock/utc", "belljar://fixture/static-text"], false, |watcher, how| {
        for _ in 0..2 {
            assert_eq!(watcher.next(DEADLINE).as_deref(), Some("belljar://clock/utc"), "{how}");
        }
    });
}

/// The kernel reports opened files to the test. Each read and each list of the hostile guest opens a file, so the test
/// sees every poll.
#[test]
fn files_without_subscribers_are_not_polled() {
    let site = empty();
    site.mount_as("guest_hostile", "hostile.wasm");
    site.write("data/file", "# a file");
    site.write("data/list", "ok\n");
    site.config(&format!(
        "[watch]\npoll = \"100ms\"\nreread = \"100ms\"\n\
         [mounts.hostile]\nenv = {{ HOSTILE_LIST = \"/data/list\" }}\nfs = {{ \"/data\" = {:?} }}\n",
        site.path("data")
    ));
    let uri = "belljar://hostile/need/%252Fdata%252Ffile";
    let server = site.http();
    let mut older = server.client(Era::Session);
    let events = older.wire().events();
    subscribe(&mut older, uri).unwrap();
    let stateless = Watcher::http(&server, Era::Stateless, &[uri], false);
    let mut opened = Watch::over(site.path("data"));
    let mut polls = |name: &str| {
        let path = site.path("data").join(name);
        opened.opened().into_iter().filter(|opened| *opened == path).count()
    };
    wait_until("a poll of the file", || (polls("file") > 0).then_some(()).ok_or("none"));
    drop(stateless);
    wait_until("a poll for the remaining session", || (polls("file") > 0).then_some(()).ok_or("none"));
    older.request("resources/unsubscribe", json!({ "uri": uri })).unwrap();
    let mut wait_for_last_poll = |name: &str| {
        wait_until(&format!("the end of the polls of the {name}"), || {
            polls(name);
            std::thread::sleep(QUIET);
            (polls(name) == 0).then_some(()).ok_or("belljar still polls")
        });
    };
    wait_for_last_poll("file");
    while events.next(Duration::ZERO).is_some() {}
    replace(&site, "data/file", "# a change without subscribers");
    let messages: Vec<Value> = std::iter::from_fn(|| events.next(QUIET)).collect();
    assert!(messages.iter().all(|message| message["method"] == "notifications/resources/list_changed"), "{messages:?}");
    // The session still watches the list. After the session has ended, belljar polls nothing.
    let session = older.wire().session().unwrap().to_owned();
    let ended = server.exchange("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], b"");
    assert_eq!(ended.status, 204);
    drop((events, older));
    wait_for_last_poll("list");
    assert_eq!(server.stop().status.code(), Some(0));
}

#[test]
fn a_changed_list_gives_one_notification() {
    let site = notes("");
    over_every_wire(&site, &[], true, |watcher, how| {
        // The server sends no acknowledgement to clients with sessions. Its first notification shows that it has the
        // initial list.
        let mut files = 0;
        wait_until("a first notification", || {
            files += 1;
            replace(&site, &format!("notes/{how} {files}.md"), "# first");
            watcher.next(QUIET).ok_or_else(|| format!("none after {files} changes"))
        });
        while watcher.next(QUIET).is_some() {}
        replace(&site, "notes/one more.md", "# more");
        assert_eq!(watcher.next(DEADLINE).as_deref(), Some(""), "{how}: a file was added");
        assert_eq!(watcher.next(QUIET), None, "{how}: a second notification");
        std::fs::remove_file(site.path("notes/one more.md")).unwrap();
        assert_eq!(watcher.next(DEADLINE).as_deref(), Some(""), "{how}: a file was removed");
        // The provider does not list hidden files. So a hidden file does not change the list.
        site.write("notes/.hidden", how);
        std::fs::remove_file(site.path("notes/.hidden")).unwrap();
        assert_eq!(watcher.next(QUIET), None, "{how}: the list is unchanged");
    });
}

#[test]
fn subscriptions_are_limited() {
    let site = notes("");
    let server = site.http();
    let client = server.client(Era::Stateless);
    let many: Vec<String> = (0..1025).map(|n| format!("notes:///{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut client = client;
    let wire = client.wire();
    let refused = wire.open(&Era::Stateless.message(5, "subscriptions/listen", listen(&many, false)));
    let error = match refused {
        Err(answer) => answer.json(),
        Ok(events) => {
            std::iter::from_fn(|| events.next(DEADLINE)).find(|message| message["error"].is_object()).unwrap()
        }
    };
    assert_eq!(error["error"]["data"]["kind"], "busy", "{error}");
    // The server ignores URIs of no mount, and accepts the others.
    let events = wire
        .open(&Era::Stateless.message(6, "subscriptions/listen", listen(&["notes:///a.md", "nobody://x"], false)))
        .unwrap();
    let accepted = events.next(DEADLINE).unwrap();
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!(["notes:///a.md"]), "{accepted}");

    let mut older = server.client(Era::Session);
    let error = subscribe(&mut older, "nobody://x").unwrap_err();
    assert_eq!((error.code, kind(&error)), (Era::Session.not_found(), "not-found"));
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
    let Watcher::Http(_client, events) = Watcher::http(&server, Era::Stateless, &["notes:///a.md"], true) else {
        panic!()
    };
    server.process.terminate();
    let last = events.next(DEADLINE).unwrap();
    assert_eq!((&last["id"], last["result"].is_object()), (&json!(77), true), "{last}");
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(77), "{last}");

    let Watcher::Stdio(mut client, id) = Watcher::stdio(&site, Era::Stateless, &["notes:///a.md"], false) else {
        panic!()
    };
    client.wire().process.terminate();
    let result = client.wait(id.unwrap()).unwrap();
    assert!(result["_meta"].is_object(), "{result}");
}

/// On stdio, cancelling the request ends a subscription. Other subscriptions continue.
#[test]
fn a_cancelled_subscription_gets_no_notifications() {
    let site = notes("");
    let mut client = site.stdio(Era::Stateless);
    let open = |client: &mut Client<Stdio>, uri| {
        let id = client.send("subscriptions/listen", listen(&[uri], false));
        let acknowledgement = client.next_notification(DEADLINE).unwrap();
        let subscription = &acknowledgement["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*subscription, json!(id), "{acknowledgement}");
        id
    };
    let first = open(&mut client, "notes:///a.md");
    let second = open(&mut client, "notes:///b.md");
    let change = |text| ["notes/a.md", "notes/b.md"].iter().for_each(|path| replace(&site, path, text));
    change("# changed");
    let mut notified: Vec<u64> = (0..2)
        .map(|_| {
            let message = client.next_notification(DEADLINE).unwrap();
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64().unwrap()
        })
        .collect();
    notified.sort_unstable();
    assert_eq!(notified, [first, second]);
    client.cancel(first);
    client.ping();
    // A notification that was sent before the cancellation may still arrive.
    while client.next_notification(QUIET).is_some() {}
    change("# changed again");
    let message = client.next_notification(DEADLINE).unwrap();
    assert_eq!(message["params"]["uri"], "notes:///b.md", "{message}");
    assert_eq!(client.next_notification(QUIET), None);
}

/// Without changes, the server sends comments on a stream, so that no time-out closes the connection. A later change
/// still gives a notification.
#[test]
fn a_quiet_subscription_stays_open() {
    let site = notes("");
    let server = site.http();
    let streams = [Era::Session, Era::Stateless].map(|era| Watcher::http(&server, era, &["notes:///a.md"], false));
    for stream in &streams {
        let Watcher::Http(_, events) = stream else { panic!() };
        for _ in 0..2 {
            assert!(events.is_kept_alive(DEADLINE), "the server sends no comment");
        }
    }
    replace(&site, "notes/a.md", "# after a long time");
    for mut stream in streams {
        stream.assert_next_is("notes:///a.md", "after a long time");
    }
}
