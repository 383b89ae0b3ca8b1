//! Processor time: guests that compute for ever, wherever their code runs, and those that compute just not too long.

use std::time::{Duration, Instant};

use belljar_tests::Era;
use serde_json::json;

use crate::expect::{Expect, kind, limit, trap};
use crate::hand::Hand;
use crate::row::{Guest, Row, Stops, Way, hand, imp, made};
use crate::scene::Scene;

/// More than any call here uses, so that its time ends it.
const ENDLESS: &str = "fuel = 1_000_000_000_000";

/// So little that a guest that computes for ever meets it before its time is over.
const FUEL: &str = "fuel = 20_000_000";

pub(crate) fn rows() -> Vec<Row> {
    let start = "(func $start (loop $l (br $l))) (start $start)";
    let loops = "(loop $l (br $l)) unreachable";
    let after = "(func (export \"after\") (param i32) (loop $l (br $l)))";
    vec![
        imp("CPU-01", "a provider computes for ever in a read")
            .time(400)
            .limits(ENDLESS)
            .read("spin", limit("time"))
            .stopped_by(&["time"]),
        made("CPU-02", "a provider calls itself without end", || {
            Hand { fields: &deep(3000), read: "(call $deep (i32.const 0))", ..Hand::default() }.assemble()
        })
        .mount(
            "b",
            hand(|| Hand { fields: &deep(0), read: "(call $deep (i32.const 0))", ..Hand::default() }.assemble()),
        )
        .mount("c", Guest::Built("guest_imp"))
        .act(|scene| each(scene, &[("", "x"), ("b", "x"), ("c", "recurse/0")], &limit("stack")))
        .stopped(Stops::Wasmtime("its own stack has 512 KiB, checked at every call")),
        made("CPU-03", "code loops before the first call, where an instance is made", move || {
            Hand { fields: start, ..Hand::default() }.assemble()
        })
        .time(400)
        .limits(ENDLESS)
        .read("x", limit("time"))
        .stopped_by(&["time"]),
        made("CPU-04", "code loops where the host puts the argument, or after the answer", move || {
            Hand { realloc: loops, ..Hand::default() }.assemble()
        })
        .mount(
            "b",
            hand(move || {
                Hand { fields: after, lift: "(post-return (core func $main \"after\"))", ..Hand::default() }.assemble()
            }),
        )
        .limits(FUEL)
        .time(3_000)
        .act(|scene| each(scene, &[("b", "x"), ("", "x")], &Expect::Limit(&["fuel", "time"])))
        .limits("cpu = \"400%\"")
        .stopped_by(&["fuel", "time"]),
        made("CPU-05", "code calls the host where the canonical ABI allows no call", || {
            let before =
                "(import \"wasi:clocks/monotonic-clock@0.2.0\" (instance $clock (export \"now\" (func (result u64)))))
                (core func $now (canon lower (func $clock \"now\")))
                (core instance $host (export \"now\" (func $now)))";
            Hand {
                before,
                with: "(with \"host\" (instance $host))",
                imports: "(import \"host\" \"now\" (func $now (result i64)))",
                realloc: "(drop (call $now)) (i32.const 8192)",
                ..Hand::default()
            }
            .assemble()
        })
        .read("x", trap())
        .stopped(Stops::Wasmtime("the instance may not be left while the host writes into it")),
        imp("CPU-06", "a provider never comes to the end of its list")
            .config("env = { IMP_LIST = \"loop\", IMP_TEMPLATES = \"loop\" }")
            .limits(ENDLESS)
            .settings("list-time = \"900ms\"")
            .time(900)
            .act(|scene| {
                listed(scene, "resources/list");
                told(scene, "left out: the list-time limit was reached");
                listed(scene, "resources/templates/list");
                "the others' entries; the operator why these are missing".to_owned()
            })
            .stopped_by(&["time"]),
        imp("CPU-07", "few instructions that each take long: memory is filled again and again")
            .time(400)
            .limits(ENDLESS)
            .read("fill", limit("time"))
            .stopped_by(&["time"]),
        imp("CPU-08", "a provider computes just below its limits, and is asked again and again")
            .limits("cpu = \"1%\"\nqueue = \"10ms\"\nfuel = 3_000_000_000")
            .way(Way::Stdio)
            .measures()
            .act(share)
            .stopped_by(&["cpu"]),
        imp(
            "CPU-08",
            "eight clients ask without pause for what computes for seconds, of a mount with little of a processor",
        )
        .limits("cpu = \"5%\"")
        .limits(ENDLESS)
        .time(3_000)
        .way(Way::Http)
        .measures()
        .act(small_share)
        .stopped_by(&["cpu"]),
        imp("CPU-09", "a provider asks without pause whether something has come")
            .time(400)
            .limits(ENDLESS)
            .read("busy", limit("time"))
            .stopped_by(&["time"]),
        imp("CPU-10", "input that a careless parser takes for ever to refuse")
            .time(400)
            .limits(ENDLESS)
            .read("backtrack/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!", limit("time"))
            .stopped_by(&["time"]),
        imp("CPU-11", "a client asks a thousand times at once for what computes for ever")
            .time(600)
            .limits(ENDLESS)
            .limits("concurrency = 2\nqueue = \"300ms\"")
            .way(Way::Stdio)
            .act(crowd)
            .stopped_by(&["concurrency", "queue"]),
        imp("CPU-12", "a list that is fine in one second and never ends in the next")
            .config("env = { IMP_LIST = \"sometimes\" }")
            .limits(ENDLESS)
            .settings("list-time = \"600ms\"")
            .time(600)
            .act(|scene| {
                // Within a good second, and within a bad one.
                let (mut good, mut bad) = (false, false);
                let began = Instant::now();
                while !(good && bad) {
                    let listed = others(scene);
                    good |= listed.contains("cpu-12/ok");
                    bad |= !listed.contains("cpu-12/ok");
                    assert!(began.elapsed() < Duration::from_secs(20), "{good} {bad} {listed}");
                    std::thread::sleep(Duration::from_millis(200));
                }
                told(scene, "left out: ");
                "the others' entries each time; these when there are any".to_owned()
            })
            .stopped_by(&["time"]),
    ]
}

/// Reads references of several mounts, of each of which the same must come.
pub(crate) fn each(scene: &Scene<'_>, reads: &[(&str, &str)], expect: &Expect) -> String {
    let mut seen = String::new();
    for (suffix, reference) in reads {
        let answer = scene.read_uri(&scene.uri_of(suffix, reference));
        match expect.judge(&answer, &scene.name(suffix)) {
            Ok(saw) => seen = saw,
            Err(why) => panic!("{suffix}/{reference}: {why}"),
        }
    }
    seen
}

/// Waits until the log says this of a listing of the row's mount.
fn told(scene: &Scene<'_>, what: &str) {
    let name = format!("mount={}", scene.name(""));
    let began = Instant::now();
    loop {
        let log = scene.stage.process().stderr();
        if log.lines().any(|line| line.contains("in the listing") && line.contains(&name) && line.contains(what)) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "the log does not say \"{what}\"");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks for a page of a listing, which must have the witnesses' entries.
fn listed(scene: &Scene<'_>, method: &str) {
    if method == "resources/list" {
        others(scene);
    } else {
        let listed = scene.request(method, json!({})).unwrap_or_else(|error| panic!("{error}")).to_string();
        assert!(listed.contains("belljar://witness/template/"), "{listed}");
    }
}

/// The whole list, which must have the witnesses' entries. On a busy machine a page ends before all of them are on it.
fn others(scene: &Scene<'_>) -> String {
    let (mut told, mut params) = (String::new(), json!({}));
    loop {
        let page = scene.request("resources/list", params).unwrap_or_else(|error| panic!("{error}"));
        told += &page.to_string();
        match page.get("nextCursor") {
            Some(next) => params = json!({ "cursor": next }),
            None => break,
        }
    }
    for uri in ["belljar://witness/static-text", "belljar://witness-files/known.txt"] {
        assert!(told.contains(uri), "{uri} is not listed: {told}");
    }
    told
}

/// A mount with a hundredth of a processor is asked for seconds of one: each call has the same amount of work, so that
/// a busy machine changes nothing but how long that takes.
fn share(scene: &Scene<'_>) -> String {
    let (mut ran, mut refused) = (0, 0);
    for n in 0..20 {
        let error = scene.read(&format!("spin/{n}")).expect_err("it has no end");
        match kind(&error) {
            "limit" => ran += 1,
            "busy" => {
                assert!(error.data["hint"].is_string(), "{error}");
                refused += 1;
            }
            _ => panic!("{error}"),
        }
    }
    assert!(refused > 0, "all {ran} calls ran");
    format!("{ran} calls ran, {refused} busy")
}

/// What the records say that the mount computed: its share of the time, what it had saved, and one call more.
fn small_share(scene: &Scene<'_>) -> String {
    const TIME: Duration = Duration::from_secs(14);
    let (server, began) = (scene.server(), Instant::now());
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || {
                let mut client = server.client(Era::Modern);
                while began.elapsed() < TIME {
                    client.read(&scene.uri(&format!("spin/{n}"))).expect_err("it has no end");
                }
            });
        }
    });
    let lasted = began.elapsed();
    // The last records come when their calls have been dropped.
    std::thread::sleep(Duration::from_millis(200));
    let (records, own) = (scene.site().audit(), scene.name(""));
    let of_mount = records.iter().filter(|record| record["mount"] == own.as_str());
    let used: u64 = of_mount.filter_map(|record| record["usage"]["cpu_micros"].as_u64()).sum();
    let used = Duration::from_micros(used);
    // Ten seconds of savings, one call of three, and a step of each of the others.
    let most = (lasted + Duration::from_secs(10)).mul_f64(0.05) + Duration::from_secs(3) + Duration::from_millis(400);
    let told = format!("{used:.1?} of a processor in {lasted:.1?}");
    assert!(used <= most, "{told}; at most {most:.1?}");
    told
}

/// A thousand at once: two run, some wait, the rest is told so.
fn crowd(scene: &Scene<'_>) -> String {
    let began = Instant::now();
    let ids: Vec<u64> = (0..1000).map(|n| scene.begin(&format!("spin/{n}"))).collect();
    let (mut ran, mut busy) = (0, 0);
    for id in ids {
        let Some((answer, _)) = scene.line().wait(id, Duration::from_secs(8)) else { panic!("no answer to {id}") };
        match answer.as_ref().map_err(kind) {
            Err("busy") => busy += 1,
            Err("limit") => ran += 1,
            _ => panic!("{answer:?}"),
        }
    }
    // Two at a time; whoever waited into their place has the rest of its own time.
    assert!(ran <= 6, "{ran} of them ran");
    assert!(began.elapsed() < Duration::from_secs(6), "the last was answered after {:?}", began.elapsed());
    format!("{ran} ran to their limit, {busy} busy")
}

/// A function `$deep` that calls itself until its native stack is full: each frame holds `locals` numbers that outlive the
/// inner call.
fn deep(locals: usize) -> String {
    let names: Vec<String> = (0..locals).map(|n| format!("$l{n}")).collect();
    let declared: String = names.iter().map(|name| format!("(local {name} i64)")).collect();
    let set = |name: &String| format!("(local.set {name} (i64.load (i32.and (local.get 0) (i32.const 4088))))");
    let sum = |name: &String| format!("(global.set $sum (i64.add (global.get $sum) (local.get {name})))");
    let (sets, sums): (String, String) = (names.iter().map(set).collect(), names.iter().map(sum).collect());
    format!(
        "(global $sum (mut i64) (i64.const 0))
         (func $deep (param i32) {declared} {sets} (call $deep (i32.add (local.get 0) (i32.const 8))) {sums})"
    )
}
