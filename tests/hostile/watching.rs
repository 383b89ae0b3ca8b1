//! What follows changes: floods of clients that want to be told, providers that lie about what changed, and lists that are
//! never the same.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::http::Http;
use belljar_tests::{Client, Era, Events, Server};
use serde_json::{Value, json};

use crate::expect::kind;
use crate::row::{Guest, Row, Stops, Way, bare, imp};
use crate::scene::Scene;
use crate::tools::within;

/// As many watchers as there may be, over all clients.
const STREAMS: usize = 256;

/// As many URIs as one of them may watch.
const OWN: usize = 1024;

/// As many URIs as may be watched in all.
const URIS: usize = 16_384;

/// How long a stream is looked at to see whether it was refused: that is said at once.
const GLANCE: Duration = Duration::from_millis(300);

/// Longer than it takes to be told, on a busy machine.
const TOLD: Duration = Duration::from_secs(8);

/// A row about the real provider of files.
fn files(attack: &'static str) -> Row {
    bare("MCP-20", attack)
        .mount("", Guest::Built("files"))
        .config("fs = { \"/\" = \"watched\" }")
        .prepare(|site| drop(site.write("watched/a.md", "# a")))
        .way(Way::Http)
        .keeps(64)
}

/// Every way to lie about a revision.
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
    let lying = imp("MCP-20", "providers that lie about what changed, crash or hang when they are asked")
        .config("env = { IMP_REVISIONS = \"failed\" }")
        .settings("[watch]\npoll = \"100ms\"")
        .way(Way::Http)
        .time(500)
        .prepare(|site| drop(site.write("watched/a.md", "# a")))
        .keeps(64);
    let lying = LIES.iter().fold(lying, |row, (suffix, how)| {
        row.mount(suffix, Guest::Built("guest_imp")).config(&format!("env = {{ IMP_REVISIONS = \"{how}\" }}"))
    });
    let changing = "env = { IMP_LIST = \"changing\", IMP_CATALOG = \"change\" }";
    vec![
        files("10,000 streams, eight at a time, that want to be told of a change")
            .act(streams)
            .stopped_by(&["watchers"]),
        files("40,000 names on forty streams, and 10,000 on one").act(names).stopped_by(&["watchers"]),
        files("a session that subscribes without end, to new names and to the same one")
            .act(subscriptions)
            .stopped_by(&["watchers"]),
        lying
            .mount("files", Guest::Built("files"))
            .config("fs = { \"/\" = \"watched\" }")
            .act(lies)
            .stopped(Stops::Structure("each mount is looked at by a task of its own, in calls like any other")),
        imp(
            "MCP-31",
            "a client watches what crashes its provider or hangs, and completes so, beside others of the same mount",
        )
        .config("env = { IMP_COMPLETE = \"picky\", IMP_TEMPLATES = \"verbs\" }")
        .settings("[watch]\npoll = \"100ms\"")
        .limits("cpu = \"400%\"")
        .way(Way::Http)
        .time(500)
        .keeps(64)
        .act(silencing)
        .stopped_by(&["suspects"]),
        bare("MCP-32", "a client calls tools and completes as fast as it is answered")
            .settings("[callers]\nrate = 5\nburst = 20")
            .way(Way::Http)
            .act(too_often)
            .stopped_by(&["callers"]),
        imp("CAT-11", "a list that is another one at each call")
            .config(changing)
            .mount("two", Guest::Built("guest_imp"))
            .config(changing)
            .mount("three", Guest::Built("guest_imp"))
            .config(changing)
            .settings("[watch]\nlists = \"100ms\"")
            .way(Way::Http)
            .keeps(64)
            .act(changing_lists)
            .stopped_by(&["watchers"]),
    ]
}

/// Asks to be told of `uris`: the stream, or the kind of the refusal.
fn listen(wire: &Http, uris: &[String]) -> Result<Events, String> {
    let params = json!({ "notifications": { "resourceSubscriptions": uris } });
    let refused = |answer: &Value| answer["error"]["data"]["kind"].as_str().unwrap_or("none").to_owned();
    let opened = wire.open(&Era::Modern.message(5, "subscriptions/listen", params));
    let events = opened.map_err(|answer| refused(&answer.json()))?;
    match events.next(Duration::from_secs(60)) {
        Some(first) if first["method"] == "notifications/subscriptions/acknowledged" => {}
        Some(first) => return Err(refused(&first)),
        None => return Err("nothing".to_owned()),
    }
    // What is refused was acknowledged before: the protocol's own order of things.
    match events.next(GLANCE) {
        Some(next) if next["error"].is_object() => Err(refused(&next)),
        Some(next) => panic!("nothing changed, and it is told {next}"),
        None => Ok(events),
    }
}

/// Asserts that each of these streams is told of one change of `uri`, and of no more.
fn told_once(streams: &[Events], uri: &str, change: impl FnOnce()) -> Duration {
    let began = Instant::now();
    change();
    for (n, events) in streams.iter().enumerate() {
        let told = events.next(TOLD).unwrap_or_else(|| panic!("stream {n} is not told within {TOLD:?}"));
        assert!(told["method"] == "notifications/resources/updated" && told["params"]["uri"] == *uri, "{n}: {told}");
    }
    let took = began.elapsed();
    thread::sleep(Duration::from_secs(1));
    for (n, events) in streams.iter().enumerate() {
        assert_eq!(events.next(Duration::ZERO), None, "stream {n} is told twice");
    }
    took
}

/// Five changes of the watched file, one right after the other.
fn change(scene: &Scene<'_>) {
    (0..5).for_each(|n| drop(scene.site().write("watched/a.md", format!("# {n} {}", fastrand::u64(..)))));
}

fn streams(scene: &Scene<'_>) -> String {
    let (server, uris) = (scene.server(), [scene.uri("a.md")]);
    let (held, asked) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let (busy, other) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let wire = server.wire(Era::Modern);
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
    let held = held.into_inner().expect("no panic");
    let other = other.into_inner().expect("no panic");
    assert!(other.is_empty(), "{} streams end otherwise: {:?}", other.len(), other.first());
    assert!(held.len() <= STREAMS, "{} streams are open", held.len());
    assert!(held.len() > STREAMS - 8, "only {} streams are open", held.len());
    let took = told_once(&held, &uris[0], || change(scene));
    let (count, busy) = (held.len(), busy.into_inner());
    drop(held);
    let wire = server.wire(Era::Modern);
    assert!(within(TOLD, || listen(&wire, &uris).is_ok()), "nobody finds a place when all have gone");
    format!("{count} streams told once within {} ms, {busy} refused", took.as_millis())
}

fn names(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let names = |stream: usize, count: usize| -> Vec<String> {
        (0..count).map(|n| scene.uri(&format!("{stream}/{n}.md"))).collect()
    };
    let refused = listen(&server.wire(Era::Modern), &names(99, 10_000)).err();
    assert_eq!(refused.as_deref(), Some("busy"), "10,000 names on one stream");
    let (held, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let refusals = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let wire = server.wire(Era::Modern);
                loop {
                    let stream = next.fetch_add(1, Ordering::Relaxed);
                    if stream >= 40 {
                        return;
                    }
                    match listen(&wire, &names(stream, 1000)) {
                        Ok(events) => held.lock().expect("no panic").push((stream, events)),
                        Err(kind) => refusals.lock().expect("no panic").push(kind),
                    }
                }
            });
        }
    });
    let held = held.into_inner().expect("no panic");
    let refusals = refusals.into_inner().expect("no panic");
    assert!(held.len() * 1000 <= URIS, "{},000 names are watched", held.len());
    assert!(held.len() >= 10 && refusals.iter().all(|kind| kind == "busy"), "{} are: {refusals:?}", held.len());
    // Whoever watches a name that comes to be is told of it, and nobody else.
    let [(stream, one), others @ ..] = held.as_slice() else { panic!("no stream") };
    let began = Instant::now();
    let path = format!("{stream}/5.md");
    scene.site().write(format!("watched/{path}"), "# it is there");
    let told = one.next(TOLD).unwrap_or_else(|| panic!("not told of {path} within {TOLD:?}"));
    assert_eq!(told["params"]["uri"], scene.uri(&path), "{told}");
    let took = began.elapsed();
    assert_eq!(one.next(Duration::from_secs(1)), None, "told twice");
    assert!(others.iter().all(|(_, events)| events.next(Duration::ZERO).is_none()), "others are told");
    format!(
        "{},000 names on {} streams, {} streams refused; told within {} ms",
        held.len(),
        held.len(),
        refusals.len(),
        took.as_millis()
    )
}

fn subscriptions(scene: &Scene<'_>) -> String {
    let mut client: Client<Http> = scene.server().client(Era::Older);
    let events = client.wire().events();
    let uri = scene.uri("a.md");
    let mut subscribe = |uri: &str| client.request("resources/subscribe", json!({ "uri": uri }));
    (0..1000).for_each(|n| drop(subscribe(&uri).unwrap_or_else(|error| panic!("the same, {n}: {error}"))));
    let (mut accepted, mut busy) = (1, 0);
    for n in 0..3000 {
        match subscribe(&scene.uri(&format!("{n}.md"))) {
            Ok(_) => accepted += 1,
            Err(error) if kind(&error) == "busy" => busy += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(accepted <= OWN, "{accepted} names are watched by one session");
    }
    assert!(accepted == OWN && busy > 0, "{accepted} are watched, {busy} refused");
    // A session is told of the list in any case.
    while events.next(Duration::ZERO).is_some() {}
    change(scene);
    let began = Instant::now();
    let mut told = 0;
    while let Some(message) = events.next(Duration::from_secs(2).saturating_sub(began.elapsed())) {
        if message["method"] == "notifications/resources/updated" {
            assert_eq!(message["params"]["uri"], *uri, "{message}");
            told += 1;
        }
    }
    assert_eq!(told, 1, "told of one change");
    format!("{accepted} names, {busy} refused; 1,000 subscriptions to one name are told once")
}

fn lies(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let good = scene.uri_of("files", "a.md");
    let mut uris: Vec<String> = LIES.iter().map(|(suffix, _)| scene.uri_of(suffix, "ok")).collect();
    uris.extend([scene.uri("ok"), good.clone()]);
    let wire = server.wire(Era::Modern);
    let events = listen_through(&wire, &uris, false);
    let (mut lied, mut worst) = (HashMap::<String, usize>::new(), Duration::ZERO);
    let began = Instant::now();
    for round in 0..3 {
        let written = Instant::now();
        let mut told = 0;
        change(scene);
        while let Some(message) = events.next(Duration::from_secs(3).saturating_sub(written.elapsed())) {
            let uri = message["params"]["uri"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
            if uri == good {
                told += 1;
                worst = worst.max(written.elapsed());
            } else {
                *lied.entry(uri).or_default() += 1;
            }
        }
        assert_eq!(told, 1, "round {round}: told of the file that changed");
    }
    let changing = lied.remove(&scene.uri_of("change", "ok")).unwrap_or_default();
    assert!(lied.is_empty(), "told of what does not change: {lied:?}");
    // Once a round at the most, which comes after four fifths of the time that the operator set.
    let most = usize::try_from(began.elapsed().as_millis() / 80).expect("a number") + 2;
    assert!((1..=most).contains(&changing), "told {changing} times of what always changes");
    format!("the file told within {} ms each time; what always changes, {changing} times", worst.as_millis())
}

/// One client watches forty references that crash the provider when it tells their revisions, and one that hangs. What another
/// client watches changes all the time, and it is told again and again.
fn silencing(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let (bad, good) = (server.wire(Era::Modern), server.wire(Era::Modern));
    let mut uris: Vec<String> = (0..40).map(|n| scene.uri(&format!("count-trap/{n}"))).collect();
    // What the other one watches as well is not lost in its company.
    uris.extend([scene.uri("spin"), scene.uri("sleep/60000"), scene.uri("tick/both")]);
    let silencing = listen_through(&bad, &uris, false);
    let own = [scene.uri("tick/own"), scene.uri("tick/both")];
    let events = listen_through(&good, &own, false);
    let mut told = HashMap::<String, usize>::new();
    let began = Instant::now();
    while own.iter().any(|uri| told.get(uri).is_none_or(|times| *times < 4)) {
        assert!(began.elapsed() < TOLD * 4, "it is not told of what changes all the time: {told:?}");
        if let Some(message) = events.next(Duration::from_secs(1)) {
            let uri = message["params"]["uri"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
            assert!(own.contains(&uri), "{message}");
            *told.entry(uri).or_default() += 1;
        }
    }
    drop(silencing);
    let complete = |client: &mut Client<Http>, value: &str| {
        let template = json!({ "type": "ref/resource", "uri": scene.uri("text/{length}") });
        client.request(
            "completion/complete",
            json!({ "ref": template, "argument": { "name": "length", "value": value } }),
        )
    };
    let (mut one, mut other) = (server.client(Era::Older), server.client(Era::Older));
    for _ in 0..5 {
        complete(&mut one, "crash").expect_err("it crashes");
    }
    let fine = complete(&mut other, "12").unwrap_or_else(|error| panic!("completion is stopped for all: {error}"));
    assert!(fine["completion"]["values"].as_array().is_some_and(|values| !values.is_empty()), "{fine}");
    format!("told {} times, and completed", told.values().sum::<usize>())
}

/// A client is let in so often and then told when to come again; another one, and whoever does so, is let in.
fn too_often(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let (mut one, mut other) = (server.client(Era::Older), server.client(Era::Older));
    let mut told = Vec::new();
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
        // It is let in again each second; on whatever machine, a thousand times are asked faster than that.
        let refusal = (0..1000).find_map(|_| busy(one.request(method, params.clone())));
        let refusal = refusal.unwrap_or_else(|| panic!("{method}: a thousand times, and never refused"));
        let message = refusal["message"].as_str().unwrap_or_default();
        assert!(message.contains("come again in "), "{refusal}");
        assert_eq!(busy(other.request(method, params.clone())), None, "{method}: another client is refused");
        assert!(within(TOLD, || busy(one.request(method, params.clone())).is_none()), "{method}: never let in again");
        told.push(message.to_owned());
    }
    told.swap_remove(0)
}

/// A stream of changes, also of the list where `lists` says so, of which the first may come at once.
fn listen_through(wire: &Http, uris: &[String], lists: bool) -> Events {
    let params = json!({ "notifications": { "resourceSubscriptions": uris, "resourcesListChanged": lists } });
    let opened = wire.open(&Era::Modern.message(5, "subscriptions/listen", params));
    let events = opened.unwrap_or_else(|answer| panic!("{}", answer.text()));
    let first = events.next(Duration::from_secs(60)).expect("an acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    events
}

/// What one client saw of one mount's list: from when to when it asked, and what came.
type Sight = (Instant, Instant, String);

/// Asks for the list for a while, on connections of their own: what each saw of the row's mounts, by name.
fn watch_lists(server: &Server, mounts: &[String], patience: Duration) -> HashMap<String, Vec<Sight>> {
    let (all, over) = (Mutex::new(HashMap::<String, Vec<Sight>>::new()), Instant::now() + patience);
    thread::scope(|scope| {
        for era in [Era::Modern, Era::Older, Era::Modern, Era::Older, Era::Modern, Era::Older] {
            let all = &all;
            scope.spawn(move || {
                let mut client = server.client(era);
                while Instant::now() < over {
                    let asked = Instant::now();
                    let uris = client.uris();
                    let answered = Instant::now();
                    for mount in mounts {
                        let begin = format!("belljar://{mount}/");
                        let own: Vec<&str> = uris.iter().filter_map(|uri| uri.strip_prefix(&begin)).collect();
                        let sight = (asked, answered, own.join(" "));
                        all.lock().expect("no panic").entry(mount.clone()).or_default().push(sight);
                    }
                }
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// Asserts that nobody saw a list who began to ask after somebody had seen the one behind it; says how many there were.
fn one_after_the_other(mount: &str, sights: &[Sight]) -> usize {
    let mut lists: HashMap<&str, (Instant, Instant)> = HashMap::new();
    for (asked, answered, list) in sights {
        assert!(list.starts_with("ok n/"), "{mount} lists {list:?}");
        let (first, last) = lists.entry(list).or_insert((*answered, *asked));
        *first = (*first).min(*answered);
        *last = (*last).max(*asked);
    }
    let mut order: Vec<(Instant, Instant)> = lists.into_values().collect();
    order.sort_unstable();
    for pair in order.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{mount}: two lists are served in one moment");
    }
    order.len()
}

fn changing_lists(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let mounts = ["", "two", "three"].map(|suffix| scene.name(suffix));
    // Nobody follows it: one list is served for a second.
    let began = Instant::now();
    let sights = watch_lists(server, &mounts[..1], Duration::from_secs(4));
    // Older clients are told of the list without asking, so that it is looked at for them.
    let lists = one_after_the_other(&mounts[0], &sights[&mounts[0]]);
    let (asked, took) = (sights[&mounts[0]].len(), began.elapsed());
    assert!(asked > lists, "each of {asked} that asked got another list");
    // Somebody follows it, and others ask meanwhile.
    let events = listen_through(&server.wire(Era::Modern), &[], true);
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let (notices, sights) = thread::scope(|scope| {
        let is_over = &is_over;
        let told = scope.spawn(move || {
            let mut notices = 0u32;
            while !is_over.load(Ordering::Relaxed) {
                if let Some(told) = events.next(Duration::from_millis(50)) {
                    assert_eq!(told["method"], "notifications/resources/list_changed", "{told}");
                    notices += 1;
                }
            }
            notices
        });
        let sights = watch_lists(server, &mounts, Duration::from_secs(5));
        is_over.store(true, Ordering::Relaxed);
        (told.join().expect("only of the list"), sights)
    });
    let over = began.elapsed();
    let followed: usize = sights.iter().map(|(mount, sights)| one_after_the_other(mount, sights)).sum();
    let most = over.as_secs_f64() / 0.25 + 2.0;
    assert!(f64::from(notices) <= most, "told {notices} times in {over:?}");
    assert!(notices >= 3, "told {notices} times only, of {followed} lists");
    format!("{asked} asked in {took:?} and got {lists} lists; of {followed} lists in {over:?} told {notices} times")
}
