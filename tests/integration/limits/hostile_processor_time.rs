//! Rows of the hostile table (`tests/integration/hostile`) about processor time: guests that compute without end, and
//! guests that compute just below their limits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use belljar_tests::Era;
use serde_json::json;

use crate::component::HandWritten;
use crate::expect::{Expect, kind, limit, trap};
use crate::row::{Guest, Row, RunMode, Stops, assembled, hostile_guest, made};
use crate::running_site::RowContext;
use crate::tools::{deadline, in_time};

/// More fuel than any call uses, so that the time limit ends the calls.
const ENDLESS: &str = "fuel = 1_000_000_000_000";

/// Little fuel: an endless call uses this fuel up before its time limit.
const FUEL: &str = "fuel = 20_000_000";

pub(crate) fn rows() -> Vec<Row> {
    let start = "(func $start (loop $l (br $l))) (start $start)";
    let loops = "(loop $l (br $l)) unreachable";
    let after = "(func (export \"after\") (param i32) (loop $l (br $l)))";
    vec![
        hostile_guest("CPU-01", "a provider computes for ever in a read")
            .time(400)
            .limits(ENDLESS)
            .read("spin", limit("time"))
            .stopped_by(&["time"]),
        made("CPU-02", "a provider calls itself without end", || {
            HandWritten { fields: &deep(3000), read: "(call $deep (i32.const 0))", ..HandWritten::default() }.assemble()
        })
        .mount(
            "b",
            assembled(|| {
                HandWritten { fields: &deep(0), read: "(call $deep (i32.const 0))", ..HandWritten::default() }
                    .assemble()
            }),
        )
        .mount("c", Guest::Built("guest_hostile"))
        .act(|context| each(context, &[("", "x"), ("b", "x"), ("c", "recurse/0")], &limit("stack")))
        .stopped(Stops::Wasmtime("the stack of a guest has 512 KiB, and the engine checks the rest at each call")),
        made("CPU-03", "code loops during instantiation, before the first call", move || {
            HandWritten { fields: start, ..HandWritten::default() }.assemble()
        })
        .time(400)
        .limits(ENDLESS)
        .read("x", limit("time"))
        .stopped_by(&["time"]),
        made(
            "CPU-04",
            "code loops in `realloc`, which the host calls for the argument, or in `post-return`",
            move || HandWritten { realloc: loops, ..HandWritten::default() }.assemble(),
        )
        .mount(
            "b",
            assembled(move || {
                HandWritten {
                    fields: after,
                    lift: "(post-return (core func $main \"after\"))",
                    ..HandWritten::default()
                }
                .assemble()
            }),
        )
        .limits(FUEL)
        .time(3_000)
        .act(|context| each(context, &[("b", "x"), ("", "x")], &Expect::Limit(&["fuel", "time"])))
        .limits("cpu = \"400%\"")
        .stopped_by(&["fuel", "time"]),
        made("CPU-05", "code calls the host where the canonical ABI allows no call", || {
            let before =
                "(import \"wasi:clocks/monotonic-clock@0.2.0\" (instance $clock (export \"now\" (func (result u64)))))
                (core func $now (canon lower (func $clock \"now\")))
                (core instance $host (export \"now\" (func $now)))";
            HandWritten {
                before,
                with: "(with \"host\" (instance $host))",
                imports: "(import \"host\" \"now\" (func $now (result i64)))",
                realloc: "(drop (call $now)) (i32.const 8192)",
                ..HandWritten::default()
            }
            .assemble()
        })
        .read("x", trap())
        .stopped(Stops::Wasmtime("a guest cannot call the host while the host writes an argument")),
        hostile_guest("CPU-06", "a provider lists without end")
            .config("env = { HOSTILE_LIST = \"loop\", HOSTILE_TEMPLATES = \"loop\" }")
            .limits(ENDLESS)
            .settings("list-time = \"900ms\"")
            .time(900)
            .act(|context| {
                listed(context, "resources/list");
                await_listing_log(context, "left out: the list-time limit was reached");
                listed(context, "resources/templates/list");
                "the entries of the other mounts; the log names the limit".to_owned()
            })
            .stopped_by(&["time"]),
        hostile_guest("CPU-07", "few instructions that each take long: a guest fills memory again and again")
            .time(400)
            .limits(ENDLESS)
            .read("fill", limit("time"))
            .stopped_by(&["time"]),
        hostile_guest("CPU-08", "a provider computes just below its limits, and clients read from it again and again")
            .limits("cpu = \"1%\"\nqueue = \"10ms\"\nfuel = 3_000_000_000")
            .run_mode(RunMode::Stdio)
            .measures()
            .act(share_of_one_percent)
            .stopped_by(&["cpu"]),
        hostile_guest("CPU-08", "eight clients read without a pause from a mount with a small share of a processor")
            .limits("cpu = \"5%\"")
            .limits(ENDLESS)
            .time(3_000)
            .run_mode(RunMode::Http)
            .measures()
            .act(share_over_time)
            .stopped_by(&["cpu"]),
        hostile_guest("CPU-09", "a provider polls a ready timer without a pause")
            .time(400)
            .limits(ENDLESS)
            .read("busy", limit("time"))
            .stopped_by(&["time"]),
        hostile_guest("CPU-10", "input for which a backtracking parser needs exponential time")
            .time(400)
            .limits(ENDLESS)
            .read("backtrack/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!", limit("time"))
            .stopped_by(&["time"]),
        hostile_guest("CPU-11", "a client sends a thousand reads at once, each of which computes for ever")
            .time(600)
            .limits(ENDLESS)
            .limits("concurrency = 2\nqueue = \"300ms\"")
            .run_mode(RunMode::Stdio)
            .act(send_1000_reads)
            .stopped_by(&["concurrency", "queue"]),
        hostile_guest("CPU-12", "a list that works in one second and never ends in the next")
            .config("env = { HOSTILE_LIST = \"sometimes\" }")
            .limits(ENDLESS)
            .settings("list-time = \"600ms\"")
            .time(600)
            .act(|context| {
                // Read in seconds in which the list works, and in seconds in which it fails.
                let (mut is_listed_once, mut is_missing_once) = (false, false);
                let began = Instant::now();
                while !(is_listed_once && is_missing_once) {
                    let listed = whole_list(context);
                    is_listed_once |= listed.contains("cpu-12/ok");
                    is_missing_once |= !listed.contains("cpu-12/ok");
                    assert!(
                        in_time(began.elapsed(), Duration::from_secs(20)),
                        "{is_listed_once} {is_missing_once} {listed}"
                    );
                    std::thread::sleep(Duration::from_millis(200));
                }
                await_listing_log(context, "left out: ");
                "the entries of the other mounts each time; the entries of this mount while its list works".to_owned()
            })
            .stopped_by(&["time"]),
    ]
}

/// Reads references of several mounts. All must give the same outcome.
pub(crate) fn each(context: &RowContext<'_>, reads: &[(&str, &str)], expect: &Expect) -> String {
    let mut seen = String::new();
    for (suffix, reference) in reads {
        let answer = context.read_uri(&context.uri_of(suffix, reference));
        match expect.judge(&answer, &context.name(suffix)) {
            Ok(saw) => seen = saw,
            Err(why) => panic!("{suffix}/{reference}: {why}"),
        }
    }
    seen
}

/// Waits until the log has this text about a list of the row's mount.
fn await_listing_log(context: &RowContext<'_>, text: &str) {
    let name = format!("mount={}", context.name(""));
    let began = Instant::now();
    loop {
        let log = context.running.process().stderr();
        if log.lines().any(|line| line.contains("in the listing") && line.contains(&name) && line.contains(text)) {
            return;
        }
        assert!(in_time(began.elapsed(), Duration::from_secs(5)), "the log does not say \"{text}\"");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Fetches a page of a list. The page must have the witnesses' entries.
fn listed(context: &RowContext<'_>, method: &str) {
    if method == "resources/list" {
        whole_list(context);
    } else {
        let listed = context.request(method, json!({})).unwrap_or_else(|error| panic!("{error}")).to_string();
        assert!(listed.contains("belljar://witness/template/"), "{listed}");
    }
}

/// Fetches all pages of the list, which must have the witnesses' entries. On a busy machine these may be on a later
/// page.
fn whole_list(context: &RowContext<'_>) -> String {
    let (mut text, mut params) = (String::new(), json!({}));
    loop {
        let page = context.request("resources/list", params).unwrap_or_else(|error| panic!("{error}"));
        text += &page.to_string();
        match page.get("nextCursor") {
            Some(next) => params = json!({ "cursor": next }),
            None => break,
        }
    }
    for uri in ["belljar://witness/static-text", "belljar://witness-files/known.txt"] {
        assert!(text.contains(uri), "{uri} is not listed: {text}");
    }
    text
}

/// Reads that need seconds of processor time, from a mount with a share of 1 %. The fuel limit ends each call after the
/// same amount of work, so a busy machine changes only the duration.
fn share_of_one_percent(context: &RowContext<'_>) -> String {
    let (mut ran, mut refused) = (0, 0);
    for n in 0..20 {
        let error = context.read(&format!("spin/{n}")).expect_err("the call never ends by itself");
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

/// Checks the processor time of the mount in the records. It may use its share of the elapsed time, its saved share,
/// and the time of one call.
fn share_over_time(context: &RowContext<'_>) -> String {
    const TIME: Duration = Duration::from_secs(14);
    let (server, began) = (context.server(), Instant::now());
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || {
                let mut client = server.client(Era::Stateless);
                while began.elapsed() < TIME {
                    client.read(&context.uri(&format!("spin/{n}"))).expect_err("the call never ends by itself");
                }
            });
        }
    });
    let lasted = began.elapsed();
    // belljar writes a record after its call ends.
    std::thread::sleep(Duration::from_millis(200));
    let (records, own) = (context.site().audit(), context.name(""));
    let of_mount = records.iter().filter(|record| record["mount"] == own.as_str());
    let used: u64 = of_mount.filter_map(|record| record["usage"]["cpu_micros"].as_u64()).sum();
    let used = Duration::from_micros(used);
    // Allow the saved share of ten seconds, one call of three seconds, and one step of each other call.
    let most = (lasted + Duration::from_secs(10)).mul_f64(0.05) + Duration::from_secs(3) + Duration::from_millis(400);
    let summary = format!("{used:.1?} of processor time in {lasted:.1?}");
    assert!(used <= most, "{summary}; at most {most:.1?}");
    summary
}

/// A thousand calls at once: two run, some wait, and the others fail as busy.
fn send_1000_reads(context: &RowContext<'_>) -> String {
    let began = Instant::now();
    let (mut ran, mut busy) = (0, 0);
    let mut wait = |id: u64| {
        let Some((answer, _)) = context.stdio().wait(id, deadline(Duration::from_secs(8))) else {
            panic!("no answer to {id}")
        };
        match answer.as_ref().map_err(kind) {
            Err("busy") => busy += 1,
            Err("limit") => ran += 1,
            _ => panic!("{answer:?}"),
        }
    };
    let mut sent = VecDeque::new();
    for n in 0..1000 {
        // One connection has at most 512 pending requests. The witness, which uses the same one, needs one of them.
        if sent.len() >= 500 {
            sent.pop_front().into_iter().for_each(&mut wait);
        }
        sent.push_back(context.begin(&format!("spin/{n}")));
    }
    sent.into_iter().for_each(wait);
    // Two calls run at a time. The time in the queue counts, so a call that waited has only the rest of its time. On a
    // busy machine the requests arrive over a longer time. Each further period of the time limit lets two more calls
    // run.
    let most = 6 + 2 * began.elapsed().as_millis() / context.row.time.as_millis();
    assert!(ran <= most, "{ran} calls ran in {:?}", began.elapsed());
    format!("{ran} ran to their limit, {busy} busy")
}

/// A function `$deep` that calls itself until the native stack is full. Each frame holds `locals` numbers that are used
/// after the inner call.
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
