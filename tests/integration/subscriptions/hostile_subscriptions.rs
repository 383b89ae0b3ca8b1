//! Hostile rows about subscriptions: floods of subscribers, providers that lie about revisions, and lists that always
//! change. Each row runs the real `belljar` binary, with the hostile component `hostile` or with the real provider
//! `files`.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::http::Http;
use belljar_tests::{Client, Era, Events, Server};
use serde_json::{Value, json};

use crate::expect::kind;
use crate::row::{Guest, Row, RunMode, Stops, bare, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{deadline, in_time, within};

/// The most open subscriptions of all clients together.
const STREAMS: usize = 384;

/// The most URIs of one subscriber.
const URIS_OF_ONE: usize = 1024;

/// The most watched URIs of all subscribers together.
const URIS: usize = 16_384;

/// How long to wait for the refusal of a stream. A refusal follows the acknowledgement at once.
const REFUSAL_TIME: Duration = Duration::from_millis(300);

/// The longest wait for a notification if guards are off. With guards, a test waits at least as long as [`deadline`]
/// says.
const NOTIFICATION_TIME: Duration = Duration::from_secs(8);

/// A row with the real provider `files`.
fn files(attack: &'static str) -> Row {
    bare("MCP-20", attack)
        .mount("", Guest::Built("files"))
        .config("fs = { \"/\" = \"watched\" }")
        .prepare(|site| drop(site.write("watched/a.md", "# a")))
        .run_mode(RunMode::Http)
        .keeps(64)
}

/// The attacks through revisions: the suffix of a mount, and the value of its `HOSTILE_REVISIONS`.
const LIES: [(&str, &str); 9] = [
    ("change", "change"),
    ("same", "same"),
    ("loop", "loop"),
    ("trap", "trap"),
    ("sleep", "sleep"),
    ("short", "short"),
    ("many", "many"),
    ("long", "long"),
    ("controls", "controls"),
];

pub(crate) fn rows() -> Vec<Row> {
    let lying = hostile_guest("MCP-20", "providers report wrong revisions, or crash or hang in revision calls")
        .config("env = { HOSTILE_REVISIONS = \"failed\" }")
        .settings("[watch]\npoll = \"100ms\"")
        .run_mode(RunMode::Http)
        .time(500)
        .prepare(|site| drop(site.write("watched/a.md", "# a")))
        .keeps(64);
    let lying = LIES.iter().fold(lying, |row, (suffix, how)| {
        row.mount(suffix, Guest::Built("guest_hostile")).config(&format!("env = {{ HOSTILE_REVISIONS = \"{how}\" }}"))
    });
    let changing = "env = { HOSTILE_LIST = \"changing\", HOSTILE_CATALOG = \"change\" }";
    vec![
        files("10,000 streams subscribe to a file, eight at a time")
            .act(streams)
            .stopped_by(&["watchers"]),
        files("40 streams subscribe to 1,000 URIs each, and one stream to 10,000")
            .act(many_uris)
            .stopped_by(&["watchers"]),
        files("a session subscribes to the same URI 1,000 times, and to 3,000 other URIs")
            .act(many_subscriptions)
            .stopped_by(&["watchers"]),
        lying
            .mount("files", Guest::Built("files"))
            .config("fs = { \"/\" = \"watched\" }")
            .act(wrong_revisions)
            .stopped(Stops::Structure("each mount has its own polling task, whose calls have the usual limits")),
        hostile_guest(
            "MCP-31",
            "a client watches resources that crash or hang the provider, and completes with crashes; others use the mount",
        )
        .config("env = { HOSTILE_COMPLETE = \"picky\", HOSTILE_TEMPLATES = \"verbs\" }")
        .settings("[watch]\npoll = \"100ms\"")
        .limits("cpu = \"400%\"")
        .run_mode(RunMode::Http)
        .time(500)
        .keeps(64)
        .act(crashing_watches)
        .stopped_by(&["suspects"]),
        bare("MCP-32", "a client calls tools and completions without a pause")
            .settings("[callers]\nrate = 5\nburst = 20")
            .run_mode(RunMode::Http)
            .act(too_many_calls)
            .stopped_by(&["callers"]),
        hostile_guest("CAT-11", "a provider returns another list in each call")
            .config(changing)
            .mount("two", Guest::Built("guest_hostile"))
            .config(changing)
            .mount("three", Guest::Built("guest_hostile"))
            .config(changing)
            .settings("[watch]\nlists = \"100ms\"")
            .run_mode(RunMode::Http)
            .keeps(64)
            .act(changing_lists)
            .stopped_by(&["watchers"]),
    ]
}

/// Subscribes to `uris`. Returns the stream, or the kind of the refusal.
fn listen(wire: &Http, uris: &[String]) -> Result<Events, String> {
    let params = json!({ "notifications": { "resourceSubscriptions": uris } });
    let refused = |answer: &Value| answer["error"]["data"]["kind"].as_str().unwrap_or("none").to_owned();
    let opened = wire.open(&Era::Stateless.message(5, "subscriptions/listen", params));
    let events = opened.map_err(|answer| refused(&answer.json()))?;
    match events.next(Duration::from_secs(60)) {
        Some(first) if first["method"] == "notifications/subscriptions/acknowledged" => {}
        Some(first) => return Err(refused(&first)),
        None => return Err("nothing".to_owned()),
    }
    // The protocol demands an acknowledgement first. So a refusal comes after it.
    match events.next(REFUSAL_TIME) {
        Some(next) if next["error"].is_object() => Err(refused(&next)),
        Some(next) => panic!("a message without a change: {next}"),
        None => Ok(events),
    }
}

/// Makes a change. Asserts that each stream gets exactly one notification of `uri`. Returns the time of the last one.
fn assert_one_notification_each(streams: &[Events], uri: &str, change: impl FnOnce()) -> Duration {
    let began = Instant::now();
    change();
    for (n, events) in streams.iter().enumerate() {
        let message = events
            .next(deadline(NOTIFICATION_TIME))
            .unwrap_or_else(|| panic!("stream {n} gets no notification within {NOTIFICATION_TIME:?}"));
        assert!(
            message["method"] == "notifications/resources/updated" && message["params"]["uri"] == *uri,
            "{n}: {message}"
        );
    }
    let took = began.elapsed();
    thread::sleep(Duration::from_secs(1));
    for (n, events) in streams.iter().enumerate() {
        assert_eq!(events.next(Duration::ZERO), None, "stream {n} gets a second notification");
    }
    took
}

/// Replaces the watched file by a rename, so that the file changes once. Truncating and then writing would be two
/// changes.
fn change(context: &RowContext<'_>) {
    let next = context.site().write("next", format!("# {}", fastrand::u64(..)));
    std::fs::rename(next, context.site().path("watched/a.md")).expect("a rename");
}

/// Removes the streams that belljar has refused meanwhile, until at most `most` streams remain.
fn remove_refused<T>(held: &mut Vec<T>, most: usize, events: impl Fn(&T) -> &Events) {
    within(NOTIFICATION_TIME, || {
        held.retain(|one| events(one).next(Duration::ZERO).is_none_or(|message| !message["error"].is_object()));
        held.len() <= most
    });
}

/// Opens streams until belljar refuses more. Each open stream must get one notification of a change.
fn streams(context: &RowContext<'_>) -> String {
    let (server, uris) = (context.server(), [context.uri("a.md")]);
    let (held, asked) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let (busy, other) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let wire = server.wire(Era::Stateless);
                while asked.fetch_add(1, Ordering::Relaxed) < 10_000 {
                    match listen(&wire, &uris) {
                        Ok(events) => held.lock().expect("no panic").push(events),
                        Err(kind) if kind == "busy" => drop(busy.fetch_add(1, Ordering::Relaxed)),
                        Err(kind) => other.lock().expect("no panic").push(kind),
                    }
                    if held.lock().expect("no panic").len() > STREAMS + 32 {
                        return;
                    }
                }
            });
        }
    });
    let mut held = held.into_inner().expect("no panic");
    let other = other.into_inner().expect("no panic");
    remove_refused(&mut held, STREAMS, |events| events);
    assert!(other.is_empty(), "{} streams were refused with another error: {:?}", other.len(), other.first());
    assert!(held.len() <= STREAMS, "{} streams are open", held.len());
    assert!(held.len() > STREAMS - 8, "only {} streams are open", held.len());
    let took = assert_one_notification_each(&held, &uris[0], || change(context));
    let (count, busy) = (held.len(), busy.into_inner());
    drop(held);
    let wire = server.wire(Era::Stateless);
    assert!(
        within(NOTIFICATION_TIME, || listen(&wire, &uris).is_ok()),
        "belljar refuses a stream after all other streams have ended"
    );
    format!("{count} streams got one notification each within {} ms, {busy} refused", took.as_millis())
}

/// Subscribes to 1,000 URIs on each of forty streams. belljar must watch at most [`URIS`], and notify only the right
/// streams.
fn many_uris(context: &RowContext<'_>) -> String {
    let server = context.server();
    let uris = |stream: usize, count: usize| -> Vec<String> {
        (0..count).map(|n| context.uri(&format!("{stream}/{n}.md"))).collect()
    };
    let refused = listen(&server.wire(Era::Stateless), &uris(99, 10_000)).err();
    assert_eq!(refused.as_deref(), Some("busy"), "10,000 URIs on one stream");
    let (held, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let refusals = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let wire = server.wire(Era::Stateless);
                loop {
                    let stream = next.fetch_add(1, Ordering::Relaxed);
                    if stream >= 40 {
                        return;
                    }
                    match listen(&wire, &uris(stream, 1000)) {
                        Ok(events) => held.lock().expect("no panic").push((stream, events)),
                        Err(kind) => refusals.lock().expect("no panic").push(kind),
                    }
                }
            });
        }
    });
    let mut held = held.into_inner().expect("no panic");
    let refusals = refusals.into_inner().expect("no panic");
    remove_refused(&mut held, URIS / 1000, |(_, events)| events);
    assert!(held.len() * 1000 <= URIS, "belljar watches {},000 URIs", held.len());
    assert!(
        held.len() >= 10 && refusals.iter().all(|kind| kind == "busy"),
        "{} streams are open; the other streams were refused with {refusals:?}",
        held.len()
    );
    // When a file appears, only the streams that watch its URI get a notification.
    let [(stream, one), others @ ..] = held.as_slice() else { panic!("no stream") };
    let began = Instant::now();
    let path = format!("{stream}/5.md");
    context.site().write(format!("watched/{path}"), "# it is there");
    let message = one
        .next(deadline(NOTIFICATION_TIME))
        .unwrap_or_else(|| panic!("no notification of {path} within {NOTIFICATION_TIME:?}"));
    assert_eq!(message["params"]["uri"], context.uri(&path), "{message}");
    let took = began.elapsed();
    assert_eq!(one.next(Duration::from_secs(1)), None, "a second notification");
    assert!(
        others.iter().all(|(_, events)| events.next(Duration::ZERO).is_none()),
        "a stream with other URIs gets a notification"
    );
    format!(
        "{},000 URIs on {} streams, {} streams refused; a notification within {} ms",
        held.len(),
        held.len(),
        refusals.len(),
        took.as_millis()
    )
}

/// Subscribes a session to one URI 1,000 times, and then to other URIs. belljar must accept at most [`URIS_OF_ONE`].
fn many_subscriptions(context: &RowContext<'_>) -> String {
    let mut client: Client<Http> = context.server().client(Era::Session);
    let events = client.wire().events();
    let uri = context.uri("a.md");
    let mut subscribe = |uri: &str| client.request("resources/subscribe", json!({ "uri": uri }));
    (0..1000).for_each(|n| drop(subscribe(&uri).unwrap_or_else(|error| panic!("the same URI, time {n}: {error}"))));
    let (mut accepted, mut busy) = (1, 0);
    for n in 0..3000 {
        match subscribe(&context.uri(&format!("{n}.md"))) {
            Ok(_) => accepted += 1,
            Err(error) if kind(&error) == "busy" => busy += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(accepted <= URIS_OF_ONE, "one session watches {accepted} URIs");
    }
    assert!(accepted == URIS_OF_ONE && busy > 0, "{accepted} URIs are watched, {busy} refused");
    // A client with a session also gets notifications of the list, without subscribing to it. Drop them.
    while events.next(Duration::ZERO).is_some() {}
    change(context);
    let updated = |patience: Duration| {
        let messages = std::iter::from_fn(|| events.next(patience));
        messages.into_iter().find(|message| message["method"] == "notifications/resources/updated")
    };
    let message = updated(deadline(NOTIFICATION_TIME)).expect("a notification of the change");
    assert_eq!(message["params"]["uri"], *uri, "{message}");
    assert_eq!(updated(Duration::from_secs(1)), None, "a second notification of one change");
    format!("{accepted} URIs, {busy} refused; 1,000 subscriptions to one URI give one notification")
}

/// Watches a real file, and one resource of each lying mount. The client must get one notification of each change of
/// the file.
fn wrong_revisions(context: &RowContext<'_>) -> String {
    let server = context.server();
    let good = context.uri_of("files", "a.md");
    let mut uris: Vec<String> = LIES.iter().map(|(suffix, _)| context.uri_of(suffix, "ok")).collect();
    uris.extend([context.uri("ok"), good.clone()]);
    let wire = server.wire(Era::Stateless);
    let events = listen_through(&wire, &uris, false);
    let (mut others, mut worst) = (HashMap::<String, usize>::new(), Duration::ZERO);
    let began = Instant::now();
    for round in 0..3 {
        let written = Instant::now();
        let mut received = 0;
        change(context);
        // Read notifications until the one of the file arrives, and then for 1.5 seconds more.
        let patience =
            |received: usize| if received == 0 { deadline(NOTIFICATION_TIME) } else { Duration::from_millis(1500) };
        let mut end = Instant::now() + patience(received);
        while let Some(message) = events.next(end.saturating_duration_since(Instant::now())) {
            let uri = message["params"]["uri"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
            if uri == good {
                received += 1;
                end = Instant::now() + patience(received);
                worst = worst.max(written.elapsed());
            } else {
                *others.entry(uri).or_default() += 1;
            }
        }
        assert_eq!(received, 1, "round {round}: notifications of the changed file");
    }
    let changing = others.remove(&context.uri_of("change", "ok")).unwrap_or_default();
    assert!(others.is_empty(), "notifications of unchanged resources: {others:?}");
    // belljar polls at most once in each interval; the shortest interval is four fifths of the configured time.
    let most = usize::try_from(began.elapsed().as_millis() / 80).expect("a number") + 2;
    assert!((1..=most).contains(&changing), "{changing} notifications of the resource that always changes");
    format!(
        "a notification of the file within {} ms each time; {changing} of the resource that always changes",
        worst.as_millis()
    )
}

/// One client watches forty references that crash the provider in revision calls, and two that hang. Another client
/// watches resources that change all the time, and must get notifications.
fn crashing_watches(context: &RowContext<'_>) -> String {
    let server = context.server();
    let (bad, good) = (server.wire(Era::Stateless), server.wire(Era::Stateless));
    let mut uris: Vec<String> = (0..40).map(|n| context.uri(&format!("count-trap/{n}"))).collect();
    // Both clients watch `tick/both`. Its notifications must arrive, too.
    uris.extend([context.uri("spin"), context.uri("sleep/60000"), context.uri("tick/both")]);
    let hostile_events = listen_through(&bad, &uris, false);
    let own = [context.uri("tick/own"), context.uri("tick/both")];
    let events = listen_through(&good, &own, false);
    let mut received = HashMap::<String, usize>::new();
    let began = Instant::now();
    while own.iter().any(|uri| received.get(uri).is_none_or(|times| *times < 4)) {
        assert!(
            in_time(began.elapsed(), NOTIFICATION_TIME * 4),
            "too few notifications of resources that always change: {received:?}"
        );
        if let Some(message) = events.next(Duration::from_secs(1)) {
            let uri = message["params"]["uri"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
            assert!(own.contains(&uri), "{message}");
            *received.entry(uri).or_default() += 1;
        }
    }
    drop(hostile_events);
    let complete = |client: &mut Client<Http>, value: &str| {
        let template = json!({ "type": "ref/resource", "uri": context.uri("text/{length}") });
        client.request(
            "completion/complete",
            json!({ "ref": template, "argument": { "name": "length", "value": value } }),
        )
    };
    let (mut one, mut other) = (server.client(Era::Session), server.client(Era::Session));
    for _ in 0..5 {
        complete(&mut one, "crash").expect_err("the completion crashes");
    }
    let fine = complete(&mut other, "12")
        .unwrap_or_else(|error| panic!("crashes of one client stop completion for another client: {error}"));
    assert!(fine["completion"]["values"].as_array().is_some_and(|values| !values.is_empty()), "{fine}");
    format!("{} notifications, and a completion for the other client", received.values().sum::<usize>())
}

/// A client calls a tool or a completion too often. belljar must refuse it and say how long to wait. After that time
/// the client may call again. Another client may call at any time.
fn too_many_calls(context: &RowContext<'_>) -> String {
    let server = context.server();
    let (mut one, mut other) = (server.client(Era::Session), server.client(Era::Session));
    let mut messages = Vec::new();
    for method in ["tools/call", "completion/complete"] {
        let params = match method {
            "tools/call" => json!({ "name": "list_resources", "arguments": {} }),
            _ => json!({
                "ref": { "type": "ref/resource", "uri": "belljar://witness/template/{id}/data" },
                "argument": { "name": "id", "value": "" }
            }),
        };
        let busy = |answer: Result<Value, belljar_tests::RpcError>| match answer {
            Ok(result) => {
                let is_busy = result.pointer("/_meta/dev.belljar~1error/kind").is_some_and(|kind| kind == "busy");
                is_busy.then(|| json!({ "message": result["content"][0]["text"] }))
            }
            Err(error) if kind(&error) == "busy" => Some(json!({ "message": error.message })),
            Err(_) => None,
        };
        // The quota grows every second. A thousand requests need less time than that, even on a slow machine.
        let refusal = (0..1000).find_map(|_| busy(one.request(method, params.clone())));
        let refusal = refusal.unwrap_or_else(|| panic!("{method}: a thousand calls, and no refusal"));
        let message = refusal["message"].as_str().unwrap_or_default();
        assert!(message.contains("retry in "), "{refusal}");
        assert_eq!(busy(other.request(method, params.clone())), None, "{method}: another client is refused");
        assert!(
            within(NOTIFICATION_TIME, || busy(one.request(method, params.clone())).is_none()),
            "{method}: the client is refused for ever"
        );
        messages.push(message.to_owned());
    }
    messages.swap_remove(0)
}

/// Subscribes to `uris`, and to the list if `lists` is true. Returns after the acknowledgement, so the next message of
/// the stream is a notification.
fn listen_through(wire: &Http, uris: &[String], lists: bool) -> Events {
    let params = json!({ "notifications": { "resourceSubscriptions": uris, "resourcesListChanged": lists } });
    let opened = wire.open(&Era::Stateless.message(5, "subscriptions/listen", params));
    let events = opened.unwrap_or_else(|answer| panic!("{}", answer.text()));
    let first = events.next(Duration::from_secs(60)).expect("an acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    events
}

/// One listing of one mount by one client: the times of request and answer, and the entries.
type SeenList = (Instant, Instant, String);

/// Requests lists for `duration`, on six connections. Returns the listings of each mount, by the name of the mount.
fn request_lists(server: &Server, mounts: &[String], duration: Duration) -> HashMap<String, Vec<SeenList>> {
    let (all, end) = (Mutex::new(HashMap::<String, Vec<SeenList>>::new()), Instant::now() + duration);
    thread::scope(|scope| {
        for era in [Era::Stateless, Era::Session, Era::Stateless, Era::Session, Era::Stateless, Era::Session] {
            let all = &all;
            scope.spawn(move || {
                let mut client = server.client(era);
                while Instant::now() < end {
                    let asked = Instant::now();
                    let uris = client.uris();
                    let answered = Instant::now();
                    for mount in mounts {
                        let base = format!("belljar://{mount}/");
                        let own: Vec<&str> = uris.iter().filter_map(|uri| uri.strip_prefix(&base)).collect();
                        let seen = (asked, answered, own.join(" "));
                        all.lock().expect("no panic").entry(mount.clone()).or_default().push(seen);
                    }
                }
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// Asserts that no client got an older list after another client had got a newer one. Returns the number of different
/// lists.
fn assert_lists_in_order(mount: &str, seen: &[SeenList]) -> usize {
    let mut lists: HashMap<&str, (Instant, Instant)> = HashMap::new();
    for (asked, answered, list) in seen {
        assert!(list.starts_with("ok n/"), "{mount} lists {list:?}");
        let (first, last) = lists.entry(list).or_insert((*answered, *asked));
        *first = (*first).min(*answered);
        *last = (*last).max(*asked);
    }
    let mut order: Vec<(Instant, Instant)> = lists.into_values().collect();
    order.sort_unstable();
    for pair in order.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{mount}: belljar served two different lists at the same time");
    }
    order.len()
}

/// Requests lists that change in each call. belljar must serve them in order, and limit the rate of notifications.
fn changing_lists(context: &RowContext<'_>) -> String {
    let server = context.server();
    let mounts = ["", "two", "three"].map(|suffix| context.name(suffix));
    // No client subscribes to the list. Still, clients with sessions get its notifications, so belljar polls the list.
    let began = Instant::now();
    let seen = request_lists(server, &mounts[..1], Duration::from_secs(4));
    let lists = assert_lists_in_order(&mounts[0], &seen[&mounts[0]]);
    let (asked, took) = (seen[&mounts[0]].len(), began.elapsed());
    assert!(asked > lists, "each of {asked} requests got another list");
    // One client watches the list while others request it.
    let events = listen_through(&server.wire(Era::Stateless), &[], true);
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let (notices, seen) = thread::scope(|scope| {
        let is_over = &is_over;
        let counter = scope.spawn(move || {
            let mut notices = 0u32;
            while !is_over.load(Ordering::Relaxed) {
                if let Some(message) = events.next(Duration::from_millis(50)) {
                    assert_eq!(message["method"], "notifications/resources/list_changed", "{message}");
                    notices += 1;
                }
            }
            notices
        });
        let seen = request_lists(server, &mounts, Duration::from_secs(5));
        is_over.store(true, Ordering::Relaxed);
        (counter.join().expect("only notifications of the list"), seen)
    });
    let duration = began.elapsed();
    let watched_lists: usize = seen.iter().map(|(mount, seen)| assert_lists_in_order(mount, seen)).sum();
    let most = duration.as_secs_f64() / 0.25 + 2.0;
    assert!(f64::from(notices) <= most, "{notices} notifications in {duration:?}");
    assert!(notices >= 3, "only {notices} notifications of {watched_lists} lists");
    format!(
        "{asked} requests in {took:?} got {lists} lists; \
         {notices} notifications of {watched_lists} lists in {duration:?}"
    )
}
