//! Across mounts: what one does to others, by computing, holding, printing, or by what it leaves behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Era, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::blk::hung_reads;
use crate::expect::{Expect, kind, limit, text};
use crate::hand::Hand;
use crate::oracle::percentile;
use crate::row::{Guest, Row, Stops, Way, imp, made};
use crate::scene::Scene;

const ENDLESS: &str = "fuel = 1_000_000_000_000";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        spinners(),
        imp("XPL-02", "one mount is asked for more at once than the host has places for calls")
            .time(600_000)
            .limits("concurrency = 32\nqueue = \"200ms\"")
            .way(Way::Stdio)
            .act(full_house)
            .stopped_by(&["concurrency"]),
        imp("XPL-03", "the process is stopped for a second while a provider computes")
            .time(700)
            .limits(ENDLESS)
            .way(Way::Stdio)
            .measures()
            .act(|scene| {
                let id = scene.begin("spin");
                std::thread::sleep(Duration::from_millis(100));
                let pid = i32::try_from(scene.stage.process().id()).ok().and_then(Pid::from_raw).expect("a process");
                kill_process(pid, Signal::STOP).expect("the process is ours");
                std::thread::sleep(Duration::from_secs(1));
                kill_process(pid, Signal::CONT).expect("the process is ours");
                let saw = limit("time").judge(&scene.wait(id), &scene.name("")).unwrap_or_else(|why| panic!("{why}"));
                assert_eq!(text(&scene.read("ok")), Some("fine"));
                saw + ", and the next call is fine"
            })
            .slow_witness("the whole process is stopped")
            .stopped_by(&["time"]),
        hung_reads("XPL-04", "every call that a mount may make hangs in the kernel, on a drive that is gone", 8),
        imp("XPL-05", "answers of seven megabytes, one after the other, which somebody has to encode")
            .time(60_000)
            .limits("concurrency = 6\nqueue = \"60s\"\ncpu = \"1000%\"")
            .way(Way::Http)
            .measures()
            .keeps(160)
            .peak(640)
            .act(encoders)
            .stopped(Stops::Structure("what is encoded is written in pieces, and on more than one thread")),
        made("XPL-06", "a call looks for what an earlier one left: in memory, in a counter, in a file", || {
            let dirty = "(drop (memory.grow (i32.const 64)))
                (local.set $a (i32.const 65536))
                (loop $l
                  (local.set $b (i32.or (local.get $b) (i32.load (local.get $a))))
                  (i32.store (local.get $a) (i32.const 0x5a5a5a5a))
                  (local.set $a (i32.add (local.get $a) (i32.const 4)))
                  (br_if $l (i32.lt_u (local.get $a) (i32.const 4194304))))
                (if (local.get $b) (then (i32.store (i32.const 224) (i32.const 0x74726964))))";
            Hand { read: dirty, ..Hand::default() }.assemble()
        })
        .mount("b", Guest::Built("guest_imp"))
        .act(|scene| {
            for n in 0..100 {
                let dirty = scene.read("x");
                assert_eq!(text(&dirty), Some("fine"), "memory of another call: {dirty:?}");
                // Whatever the call before did: answered, trapped, was stopped.
                let other = ["count", "count-trap", "grow/1000", "exit/0"][n % 4];
                let _ = scene.read_uri(&scene.uri_of("b", &format!("{other}/{n}")));
                assert_eq!(text(&scene.read_uri(&scene.uri_of("b", "count"))), Some("1"), "after {other}");
            }
            "each call is the first".to_owned()
        })
        .stopped(Stops::Structure("a fresh store for every call; the kernel gives zeroed pages")),
        imp("XPL-08", "a provider prints as fast as it is asked, so that others' records are lost")
            .limits("output = \"16KiB\"")
            .mount("b", Guest::Built("guest_imp"))
            .way(Way::Stdio)
            .act(|scene| {
                let before = scene.stage.process().stderr().len();
                let began = Instant::now();
                for n in 0..60 {
                    Expect::Text("printed")
                        .judge(&scene.read("print/2000000"), &scene.name(""))
                        .unwrap_or_else(|why| panic!("{why}"));
                    scene.read_uri(&scene.uri_of("b", &format!("none/{n}"))).expect_err("no such verb");
                }
                let logged = scene.stage.process().stderr().len() - before;
                // A mount may write 256 lines in ten seconds, of 512 characters at most.
                let windows = usize::try_from(began.elapsed().as_secs() / 10).expect("not for ever") + 2;
                assert!(logged < windows * (192 << 10), "{logged} bytes of log for 60 calls in {windows} windows");
                let own = scene.name("b");
                let told = || scene.site().audit().iter().filter(|record| record["mount"] == own.as_str()).count();
                let began = Instant::now();
                while told() < 60 {
                    assert!(began.elapsed() < Duration::from_secs(5), "{} records of the other mount", told());
                    std::thread::sleep(Duration::from_millis(20));
                }
                format!("{} KiB of log for 60 calls; every record of the other mount", logged >> 10)
            })
            .peak(48)
            .stopped_by(&["output"]),
        imp("XPL-10", "names and metadata are nested as deep as their length allows")
            .act(|scene| {
                let deep = "a/".repeat(1000);
                for reference in [deep.as_str(), &"%41".repeat(600), &"(".repeat(1900)] {
                    scene.read(reference).expect_err("no such verb");
                }
                let depth = scene.request("resources/read", json!({ "uri": nested(100) }));
                assert!(depth.is_err(), "{depth:?}");
                assert!(meta_of(scene, "20"), "what is harmless is not passed on");
                // Whether or not it is passed on, the answer is one that a client can read.
                meta_of(scene, "1000");
                meta_of(scene, "8000");
                "not found, malformed, or the text".to_owned()
            })
            .stopped(Stops::Structure("names are judged byte by byte, and JSON is read to a depth of 128")),
        crawlers(),
        sleepers(),
    ]
}

/// How long a state is waited for that comes at once on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three hundred reads that end when they are withdrawn: half of all places are taken by them, and the witness has a place
/// while they are.
fn full_house(scene: &Scene<'_>) -> String {
    let line = scene.line();
    let mut running: Vec<u64> = (0..300).map(|n| scene.begin(&format!("sleep/{}", 500_000 + n))).collect();
    let began = Instant::now();
    while running.len() > 16 && began.elapsed() < PATIENCE {
        running.retain(|id| match line.wait(*id, Duration::from_millis(1)) {
            None => true,
            Some((answer, _)) => {
                assert!(answer.as_ref().is_err_and(|error| kind(error) == "busy"), "{answer:?}");
                false
            }
        });
    }
    assert!(running.len() <= 16, "{} of one mount ran at once, of 32 places", running.len());
    for _ in 0..20 {
        let answer = scene.read_uri("belljar://witness/static-text");
        assert!(text(&answer).is_some(), "{answer:?}");
    }
    running.iter().for_each(|id| line.cancel(*id));
    format!("{} run, the rest busy", running.len())
}

/// Twelve mounts that answer at once until all of them sleep, where there are turns for eight calls.
fn sleepers() -> Row {
    let limits = "concurrency = 4";
    let mut row = imp("XPL-12", "twelve mounts that were quick go to sleep together, again and again")
        .settings("calls = 8")
        .time(4_000)
        .limits(limits);
    for suffix in SLEEPERS {
        row = row.mount(suffix, Guest::Built("guest_imp")).limits(limits);
    }
    row.act(asleep).stopped_by(&["turns"])
}

/// The mounts of that row beside the first.
const SLEEPERS: [&str; 11] = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// Whoever has no turn gets one before those who sleep have ended: what the witness gets is judged with every row, here
/// that it never waits until a sleeper's time is over.
fn asleep(scene: &Scene<'_>) -> String {
    let all: Vec<&str> = [""].into_iter().chain(SLEEPERS).collect();
    let (mut worst, mut reads) = (Duration::ZERO, 0);
    for round in 0..2 {
        for suffix in &all {
            for n in 0..8 {
                let answer = scene.read_uri(&scene.uri_of(suffix, &format!("ok/{round}/{n}")));
                assert_eq!(text(&answer), Some("fine"), "{answer:?}");
            }
        }
        let sleep = |suffix: &&str, n: usize| {
            let uri = scene.uri_of(suffix, &format!("sleep/{}", 60_000 + round * 100 + n));
            scene.send("resources/read", json!({ "uri": uri }))
        };
        // As many as find a place, of each mount, and more that wait for one.
        let ids: Vec<u64> =
            (0..6).flat_map(|n| all.iter().map(move |suffix| (suffix, n))).map(|(s, n)| sleep(s, n)).collect();
        let mut waiting = ids;
        let began = Instant::now();
        while !waiting.is_empty() {
            assert!(began.elapsed() < PATIENCE, "{} sleepers are never answered", waiting.len());
            let asked = Instant::now();
            let answer = scene.read_uri("belljar://witness/static-text");
            assert!(text(&answer).is_some(), "{answer:?}");
            (worst, reads) = (worst.max(asked.elapsed()), reads + 1);
            waiting.retain(|id| match scene.line().wait(*id, Duration::from_millis(1)) {
                None => true,
                Some((answer, _)) => {
                    assert!(answer.as_ref().is_err_and(|error| ["busy", "limit"].contains(&kind(error))), "{answer:?}");
                    false
                }
            });
        }
    }
    assert!(worst < scene.row.time, "a read of the witness took {worst:?}, as long as those who sleep may");
    format!("{reads} reads of the witness among sleepers, the slowest {} ms", worst.as_millis())
}

/// Sixteen mounts that compute in calls of 250 ms, and a witness that is read as fast as it answers.
fn spinners() -> Row {
    let mut row = imp("XPL-01", "sixteen mounts compute all the time, on as few processors as there are")
        .time(250)
        .limits(ENDLESS)
        .limits("cpu = \"1000%\"");
    for suffix in ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"] {
        row = row.mount(suffix, Guest::Built("guest_imp")).limits(ENDLESS).limits("cpu = \"1000%\"");
    }
    row.way(Way::Http).measures().act(fairness).stopped_by(&["lane"])
}

/// The witness with the spinners against the witness alone, in turns, a connection each; the median of three (R2). Machines
/// that run this do other things as well: twice what R2 asks for is let through, and what was measured is told.
fn fairness(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let mut ratios = Vec::new();
    for round in 0..3 {
        let (alone, alone_rate) = witnessed(server, Duration::from_secs(2));
        let stop = AtomicBool::new(false);
        let (with, with_rate) = std::thread::scope(|scope| {
            for (n, mount) in scene.row.mounts.iter().enumerate() {
                let (stop, suffix) = (&stop, mount.suffix);
                scope.spawn(move || {
                    let mut client = server.client(Era::Modern);
                    for call in 0.. {
                        let ended = client.read(&scene.uri_of(suffix, &format!("spin/{round}/{n}/{call}")));
                        assert!(ended.is_err(), "it computes without end");
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(300));
            let measured = witnessed(server, Duration::from_secs(3));
            stop.store(true, Ordering::Relaxed);
            measured
        });
        ratios.push((with / alone, with_rate / alone_rate));
    }
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = ratios.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        all.get(1).copied().unwrap_or(f64::INFINITY)
    };
    let (p99, rate) = (median(|(p99, _)| *p99), median(|(_, rate)| *rate));
    let told = format!("witness p99 {p99:.2}x, reads per second {rate:.2}x of alone");
    assert!(p99 <= 3.0 && rate >= 0.4, "{told}");
    told
}

/// Reads the witness for so long, one read after the other: what 99 of 100 took at most, and how many there were in a
/// second.
fn witnessed(server: &Server, time: Duration) -> (f64, f64) {
    let mut client = server.client(Era::Modern);
    let mut took = Vec::new();
    let began = Instant::now();
    while began.elapsed() < time {
        let asked = Instant::now();
        client.read("belljar://witness/static-text").expect("the witness");
        took.push(asked.elapsed().as_secs_f64());
    }
    took.sort_by(f64::total_cmp);
    (took[took.len() * 99 / 100], took.len() as f64 / began.elapsed().as_secs_f64())
}

/// Others ask for something that needs no guest while large answers are encoded.
fn encoders(scene: &Scene<'_>) -> String {
    let server = scene.server();
    let mut client = server.client(Era::Older);
    let mut pings = |stop: &dyn Fn() -> bool| {
        let mut times = Vec::new();
        while times.len() < 200 || !stop() {
            let began = Instant::now();
            client.ping();
            times.push(began.elapsed());
            std::thread::sleep(Duration::from_millis(2));
            if times.len() >= 200 && stop() {
                break;
            }
        }
        percentile(&times, 99)
    };
    let alone = pings(&|| true);
    let with = std::thread::scope(|scope| {
        let crowd: Vec<_> = (0..4)
            .map(|n| {
                let uri = scene.uri(&format!("{}/7000000", ["blob", "text"][n % 2]));
                scope.spawn(move || {
                    let mut client = server.client(Era::Modern);
                    for _ in 0..8 {
                        client.read(&uri).unwrap_or_else(|error| panic!("{error}"));
                    }
                })
            })
            .collect();
        pings(&|| crowd.iter().all(std::thread::ScopedJoinHandle::is_finished))
    });
    let ratio = with.as_secs_f64() / alone.as_secs_f64();
    let told = format!("ping p99 {with:.1?}, {ratio:.1}x of alone");
    // The clients of this test decode those answers on the same processors.
    assert!(with < Duration::from_millis(250), "{told}");
    told
}

/// A URI of so many levels.
fn nested(levels: usize) -> Value {
    Value::from("belljar://xpl-10/".to_owned() + &"[".repeat(levels))
}

/// Twelve mounts whose lists never end stand before the others in every listing.
fn crawlers() -> Row {
    let mut row = imp("XPL-11", "twelve mounts that never come to the end of their lists stand before all others")
        .config("env = { IMP_LIST = \"sleep\" }")
        .settings("list-time = \"1500ms\"")
        .time(4_000);
    for suffix in ["=a01", "=a02", "=a03", "=a04", "=a05", "=a06", "=a07", "=a08", "=a09", "=a10", "=a11"] {
        row = row.mount(suffix, Guest::Built("guest_imp")).config("env = { IMP_LIST = \"sleep\" }");
    }
    row = row.mount("=b01", Guest::Built("guest_imp")).config("env = { IMP_LIST = \"late\" }");
    row.act(|scene| {
        let began = Instant::now();
        let (mut params, mut uris, mut pages) = (json!({}), Vec::new(), 0);
        // A page ends when its time is over; the next one goes on behind it.
        loop {
            let page = scene.request("resources/list", params).unwrap_or_else(|error| panic!("{error}"));
            uris.extend(page["resources"].as_array().into_iter().flatten().map(|item| item["uri"].to_string()));
            pages += 1;
            if page["nextCursor"].is_null() {
                break;
            }
            params = json!({ "cursor": page["nextCursor"] });
        }
        for uri in ["belljar://b01/ok", "belljar://witness/static-text", "belljar://witness-files/known.txt"] {
            assert!(uris.iter().any(|listed| listed.contains(uri)), "{uri} is not listed: {uris:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(6), "{pages} pages took {:?}", began.elapsed());
        format!("the others' entries on {pages} pages")
    })
    .stopped_by(&["time"])
}

/// Whether metadata of this depth comes through, and the answer in any case.
fn meta_of(scene: &Scene<'_>, depth: &str) -> bool {
    let answer = scene.read(&format!("deep/{depth}"));
    let result = answer.unwrap_or_else(|error| panic!("{depth}: {error}"));
    result.pointer("/contents/0/_meta").is_some_and(|meta| meta.get("com.example/deep").is_some())
}
