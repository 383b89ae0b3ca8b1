//! Rows of the hostile table (`tests/integration/hostile`) about other mounts. One mount computes, occupies call slots,
//! prints, or leaves data behind, and must not harm the other mounts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use belljar_tests::{Era, Load, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::blocking::hung_reads;
use crate::component::HandWritten;
use crate::expect::{Expect, kind, limit, text};
use crate::oracle::percentile;
use crate::row::{Guest, Row, RunMode, Stops, hostile_guest, made};
use crate::running_site::RowContext;
use crate::tools::{in_time, is_excused};

const ENDLESS: &str = "fuel = 1_000_000_000_000";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        spinners(),
        hostile_guest("XPL-02", "one mount gets more calls at once than the host has slots")
            .time(600_000)
            .limits("concurrency = 32\nqueue = \"200ms\"")
            .run_mode(RunMode::Stdio)
            .act(take_all_slots)
            .stopped_by(&["concurrency"]),
        hostile_guest("XPL-03", "the process is stopped for a second while a provider computes")
            .time(700)
            .limits(ENDLESS)
            .run_mode(RunMode::Stdio)
            .measures()
            .act(|context| {
                let id = context.begin("spin");
                std::thread::sleep(Duration::from_millis(100));
                let pid =
                    i32::try_from(context.running.process().id()).ok().and_then(Pid::from_raw).expect("a process");
                kill_process(pid, Signal::STOP).expect("the process is ours");
                std::thread::sleep(Duration::from_secs(1));
                kill_process(pid, Signal::CONT).expect("the process is ours");
                let saw =
                    limit("time").judge(&context.wait(id), &context.name("")).unwrap_or_else(|why| panic!("{why}"));
                assert_eq!(text(&context.read("ok")), Some("fine"));
                saw + ", and the next call is fine"
            })
            .slow_witness("the whole process is stopped")
            .stopped_by(&["time"]),
        hung_reads(
            "XPL-04",
            "all calls that a mount may make at once hang in the kernel, on a drive that does not answer",
            8,
        ),
        hostile_guest("XPL-05", "belljar must encode answers of seven megabytes, one after the other")
            .time(60_000)
            .limits("concurrency = 6\nqueue = \"60s\"\ncpu = \"1000%\"")
            .run_mode(RunMode::Http)
            .measures()
            .keeps(160)
            .peak(640)
            .act(encoders)
            .stopped(Stops::Structure("answers are encoded and written in pieces, on more than one thread")),
        made("XPL-06", "a call looks for data of an earlier call: in memory, in a counter, in a file", || {
            let dirty = "(drop (memory.grow (i32.const 64)))
                (local.set $a (i32.const 65536))
                (loop $l
                  (local.set $b (i32.or (local.get $b) (i32.load (local.get $a))))
                  (i32.store (local.get $a) (i32.const 0x5a5a5a5a))
                  (local.set $a (i32.add (local.get $a) (i32.const 4)))
                  (br_if $l (i32.lt_u (local.get $a) (i32.const 4194304))))
                (if (local.get $b) (then (i32.store (i32.const 224) (i32.const 0x74726964))))";
            HandWritten { read: dirty, ..HandWritten::default() }.assemble()
        })
        .mount("b", Guest::Built("guest_hostile"))
        .act(|context| {
            for n in 0..100 {
                let dirty = context.read("x");
                assert_eq!(text(&dirty), Some("fine"), "memory of another call: {dirty:?}");
                // The previous call answers, traps, reaches a limit, or exits.
                let other = ["count", "count-trap", "grow/1000", "exit/0"][n % 4];
                let _ = context.read_uri(&context.uri_of("b", &format!("{other}/{n}")));
                assert_eq!(text(&context.read_uri(&context.uri_of("b", "count"))), Some("1"), "after {other}");
            }
            "no call sees data of another call".to_owned()
        })
        .stopped(Stops::Structure("each call has a fresh store; the kernel gives zeroed pages")),
        hostile_guest("XPL-08", "a provider prints so much that records of other mounts could be lost")
            .limits("output = \"16KiB\"")
            .mount("b", Guest::Built("guest_hostile"))
            .run_mode(RunMode::Stdio)
            .act(|context| {
                let before = context.running.process().stderr().len();
                let began = Instant::now();
                for n in 0..60 {
                    Expect::Text("printed")
                        .judge(&context.read("print/2000000"), &context.name(""))
                        .unwrap_or_else(|why| panic!("{why}"));
                    context.read_uri(&context.uri_of("b", &format!("none/{n}"))).expect_err("no such verb");
                }
                let logged = context.running.process().stderr().len() - before;
                // A mount may write 256 lines in ten seconds, of 512 characters at most.
                let windows = usize::try_from(began.elapsed().as_secs() / 10).expect("not for ever") + 2;
                assert!(logged < windows * (192 << 10), "{logged} bytes of log for 60 calls in {windows} windows");
                let own = context.name("b");
                let recorded =
                    || context.site().audit().iter().filter(|record| record["mount"] == own.as_str()).count();
                let began = Instant::now();
                while recorded() < 60 {
                    assert!(
                        in_time(began.elapsed(), Duration::from_secs(5)),
                        "{} records of the other mount",
                        recorded()
                    );
                    std::thread::sleep(Duration::from_millis(20));
                }
                format!("{} KiB of log for 60 calls; all records of the other mount", logged >> 10)
            })
            .peak(48)
            .stopped_by(&["output"]),
        hostile_guest("XPL-10", "names and metadata have as many nested levels as their length allows")
            .act(|context| {
                let deep = "a/".repeat(1000);
                for reference in [deep.as_str(), &"%41".repeat(600), &"(".repeat(1900)] {
                    context.read(reference).expect_err("no such verb");
                }
                let depth = context.request("resources/read", json!({ "uri": nested(100) }));
                assert!(depth.is_err(), "{depth:?}");
                assert!(meta_of(context, "20"), "harmless metadata is missing");
                // belljar may drop deeper metadata, but the client must be able to parse the answer.
                meta_of(context, "1000");
                meta_of(context, "8000");
                "not found, malformed, or the text".to_owned()
            })
            .stopped(Stops::Structure("names are checked byte by byte, and JSON is parsed to a depth of 128")),
        crawlers(),
        sleepers(),
    ]
}

/// How long to wait for a state that an idle machine reaches at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three hundred reads that end only when they are cancelled. They may take at most half of all slots, and the witness
/// must still get a slot.
fn take_all_slots(context: &RowContext<'_>) -> String {
    let line = context.stdio();
    let mut running: Vec<u64> = (0..300).map(|n| context.begin(&format!("sleep/{}", 500_000 + n))).collect();
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
    assert!(running.len() <= 16, "{} calls of one mount ran at once, of 32 slots", running.len());
    for _ in 0..20 {
        let answer = context.read_uri("belljar://witness/static-text");
        assert!(text(&answer).is_some(), "{answer:?}");
    }
    running.iter().for_each(|id| line.cancel(*id));
    format!("{} run, the rest busy", running.len())
}

/// Twelve mounts that answer at once, until all of them sleep. The host runs at most eight calls at once.
fn sleepers() -> Row {
    let limits = "concurrency = 4";
    let mut row =
        hostile_guest("XPL-12", "twelve mounts answer quickly at first, and then all sleep at once, again and again")
            .settings("calls = 8")
            .time(4_000)
            .limits(limits);
    for suffix in SLEEPERS {
        row = row.mount(suffix, Guest::Built("guest_hostile")).limits(limits);
    }
    row.act(witness_among_sleepers).stopped_by(&["turns"])
}

/// The suffixes of the other mounts of row XPL-12.
const SLEEPERS: [&str; 11] = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// A mount without a running call must get a turn before the sleeping calls end. So no read of the witness may take as
/// long as the time limit of a sleeping call.
fn witness_among_sleepers(context: &RowContext<'_>) -> String {
    let load = Load::begin();
    let all: Vec<&str> = [""].into_iter().chain(SLEEPERS).collect();
    let (mut worst, mut reads) = (Duration::ZERO, 0);
    for round in 0..2 {
        for suffix in &all {
            for n in 0..8 {
                let answer = context.read_uri(&context.uri_of(suffix, &format!("ok/{round}/{n}")));
                assert_eq!(text(&answer), Some("fine"), "{answer:?}");
            }
        }
        let sleep = |suffix: &&str, n: usize| {
            let uri = context.uri_of(suffix, &format!("sleep/{}", 60_000 + round * 100 + n));
            context.send("resources/read", json!({ "uri": uri }))
        };
        // Send more calls than each mount may run at once, so that some of them wait.
        let ids: Vec<u64> =
            (0..6).flat_map(|n| all.iter().map(move |suffix| (suffix, n))).map(|(s, n)| sleep(s, n)).collect();
        let mut waiting = ids;
        let began = Instant::now();
        while !waiting.is_empty() {
            assert!(in_time(began.elapsed(), PATIENCE), "{} sleeping calls are not answered", waiting.len());
            let asked = Instant::now();
            let answer = context.read_uri("belljar://witness/static-text");
            assert!(text(&answer).is_some(), "{answer:?}");
            (worst, reads) = (worst.max(asked.elapsed()), reads + 1);
            waiting.retain(|id| match context.stdio().wait(*id, Duration::from_millis(1)) {
                None => true,
                Some((answer, _)) => {
                    assert!(answer.as_ref().is_err_and(|error| ["busy", "limit"].contains(&kind(error))), "{answer:?}");
                    false
                }
            });
        }
    }
    assert!(
        worst < context.row.time || is_excused(&load),
        "a read of the witness took {worst:?}, as long as the time limit of the sleeping calls"
    );
    format!("{reads} reads of the witness while mounts sleep, the slowest {} ms", worst.as_millis())
}

/// Sixteen mounts compute in calls of 250 ms, while one client reads the witness without a pause.
fn spinners() -> Row {
    let mut row = hostile_guest("XPL-01", "sixteen mounts compute all the time on few processors")
        .time(250)
        .limits(ENDLESS)
        .limits("cpu = \"1000%\"");
    for suffix in ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"] {
        row = row.mount(suffix, Guest::Built("guest_hostile")).limits(ENDLESS).limits("cpu = \"1000%\"");
    }
    row.run_mode(RunMode::Http).measures().act(fairness).stopped_by(&["long-calls"])
}

/// Measures reads of the witness alone and then during the attack, three times. The median ratios must be within
/// bounds, unless another program used the machine meanwhile.
fn fairness(context: &RowContext<'_>) -> String {
    let (server, load) = (context.server(), Load::begin());
    let mut ratios = Vec::new();
    for round in 0..3 {
        let (alone, alone_rate) = witnessed(server, Duration::from_secs(2));
        let stop = AtomicBool::new(false);
        let (with, with_rate) = std::thread::scope(|scope| {
            for (n, mount) in context.row.mounts.iter().enumerate() {
                let (stop, suffix) = (&stop, mount.suffix);
                scope.spawn(move || {
                    let mut client = server.client(Era::Stateless);
                    for call in 0.. {
                        let ended = client.read(&context.uri_of(suffix, &format!("spin/{round}/{n}/{call}")));
                        assert!(ended.is_err(), "the call must end by its time limit");
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
    let summary = format!("witness p99 {p99:.2}x, reads per second {rate:.2}x, compared with no attack");
    assert!(p99 <= 3.0 && rate >= 0.4 || is_excused(&load), "{summary}");
    summary
}

/// Reads the witness for `time`, one read after the other. Returns the 99th percentile of the times in seconds, and the
/// reads per second.
fn witnessed(server: &Server, time: Duration) -> (f64, f64) {
    let mut client = server.client(Era::Stateless);
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

/// Sends pings, which need no guest, while belljar encodes large answers.
fn encoders(context: &RowContext<'_>) -> String {
    let (server, load) = (context.server(), Load::begin());
    let mut client = server.client(Era::Session);
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
        let readers: Vec<_> = (0..4)
            .map(|n| {
                let uri = context.uri(&format!("{}/7000000", ["blob", "text"][n % 2]));
                scope.spawn(move || {
                    let mut client = server.client(Era::Stateless);
                    for _ in 0..8 {
                        client.read(&uri).unwrap_or_else(|error| panic!("{error}"));
                    }
                })
            })
            .collect();
        pings(&|| readers.iter().all(std::thread::ScopedJoinHandle::is_finished))
    });
    let ratio = with.as_secs_f64() / alone.as_secs_f64();
    let summary = format!("ping p99 {with:.1?}, {ratio:.1}x of the time without the attack");
    // 250 ms: the clients of this test decode the large answers on the same processors.
    assert!(with < Duration::from_millis(250) || is_excused(&load), "{summary}");
    summary
}

/// A URI with `levels` opening brackets, which a parser may take for nested values.
fn nested(levels: usize) -> Value {
    Value::from("belljar://xpl-10/".to_owned() + &"[".repeat(levels))
}

/// Twelve mounts with endless lists come before the other mounts in every list.
fn crawlers() -> Row {
    let mut row = hostile_guest("XPL-11", "twelve mounts with lists that never end come before all other mounts")
        .config("env = { HOSTILE_LIST = \"sleep\" }")
        .settings("list-time = \"1500ms\"")
        .time(4_000);
    for suffix in ["=a01", "=a02", "=a03", "=a04", "=a05", "=a06", "=a07", "=a08", "=a09", "=a10", "=a11"] {
        row = row.mount(suffix, Guest::Built("guest_hostile")).config("env = { HOSTILE_LIST = \"sleep\" }");
    }
    row = row.mount("=b01", Guest::Built("guest_hostile")).config("env = { HOSTILE_LIST = \"late\" }");
    row.act(|context| {
        let began = Instant::now();
        let (mut params, mut uris, mut pages) = (json!({}), Vec::new(), 0);
        // A page ends when `list-time` is over. The next page continues from that point.
        loop {
            let page = context.request("resources/list", params).unwrap_or_else(|error| panic!("{error}"));
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
        assert!(in_time(began.elapsed(), Duration::from_secs(6)), "{pages} pages took {:?}", began.elapsed());
        format!("the entries of the other mounts, on {pages} pages")
    })
    .stopped_by(&["time"])
}

/// True if the answer contains metadata of this depth. Panics if the read fails.
fn meta_of(context: &RowContext<'_>, depth: &str) -> bool {
    let answer = context.read(&format!("deep/{depth}"));
    let result = answer.unwrap_or_else(|error| panic!("{depth}: {error}"));
    result.pointer("/contents/0/_meta").is_some_and(|meta| meta.get("com.example/deep").is_some())
}
