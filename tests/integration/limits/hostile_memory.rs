//! Rows of the hostile table (`tests/integration/hostile`) about memory and handles: in the guest, in the host for a
//! call, and after a call.

use std::fs;
use std::time::Duration;

use belljar_tests::{Era, Server};
use serde_json::json;

use crate::component::{HandWritten, extra_memories, grow};
use crate::expect::{Expect, kind, limit, matching, trap};
use crate::processor_time::each;
use crate::row::{Row, RunMode, Stops, assembled, hostile_guest, made};
use crate::running_site::RowContext;
use crate::tools::deadline;

const MEMORY: &str = "memory = \"4MiB\"";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("MEM-01", "a provider grows its memory without end, and writes to it")
            .limits("memory = \"8MiB\"")
            .read("grow/64", limit("memory"))
            .read("grow/4000", limit("memory"))
            .peak(48)
            .stopped_by(&["memory"]),
        made("MEM-02", "a component begins with 4 GiB of memory, or with many memories", || {
            HandWritten { memory: "(memory (export \"memory\") 65536)", ..HandWritten::default() }.assemble()
        })
        .limits(MEMORY)
        .mount(
            "b",
            assembled(|| {
                let large =
                    "(core module $m (memory 48)) (core instance (instantiate $m)) (core instance (instantiate $m))";
                HandWritten { before: large, ..HandWritten::default() }.assemble()
            }),
        )
        .limits(MEMORY)
        .act(|context| each(context, &[("", "x"), ("b", "x")], &limit("memory")))
        .stopped_by(&["memory"]),
        tables().stopped_by(&["memory"]),
        made("MEM-04", "a component is made of thousands of instances", || {
            let many = format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(900));
            HandWritten { before: &many, ..HandWritten::default() }.assemble()
        })
        .act(|context| not_served(context, "instances"))
        .stopped(Stops::Wasmtime("at most 64 core instances for a component, refused when it is loaded")),
        made("MEM-05", "an answer claims to be longer than the guest's memory", || {
            let read = "(i32.store (i32.const 188) (i32.const 0x7fffffff))";
            HandWritten { read, ..HandWritten::default() }.assemble()
        })
        .mount(
            "b",
            assembled(|| {
                let memory = "(memory (export \"memory\") 1024)";
                HandWritten {
                    memory,
                    read: "(i32.store (i32.const 136) (i32.const 1600000))",
                    ..HandWritten::default()
                }
                .assemble()
            }),
        )
        .act(|context| {
            let first = each(context, &[("", "x")], &trap());
            format!("{first}, {}", each(context, &[("b", "x")], &limit("result")))
        })
        .peak(96)
        .stopped(Stops::Wasmtime("the engine checks pointers and lengths before it copies data")),
        hostile_guest("MEM-06", "a provider answers with 60 MiB")
            .limits("memory = \"200MiB\"\nresult = \"1MiB\"")
            .read("text/60000000", limit("result"))
            .read("blob/2000000", limit("result"))
            .stopped_by(&["result"]),
        malformed_answers(),
        hostile_guest("MEM-08", "a provider asks for more random bytes than there is memory")
            .read("random/2000000", limit("random"))
            .read("random/4294967296", limit("random"))
            .read("random/18446744073709551615", limit("random"))
            .stopped_by(&["random"]),
        hostile_guest("MEM-09", "a provider prints 40 MB")
            .act(|context| {
                let before = context.running.process().stderr().len();
                let saw = Expect::Text("printed").judge(&context.read("print/20000000"), &context.name(""));
                let logged = context.running.process().stderr().len() - before;
                assert!(logged < 256 << 10, "{logged} bytes of log");
                saw.unwrap_or_else(|why| panic!("{why}")) + &format!(", and {} KiB of log", logged >> 10)
            })
            .peak(24)
            .run_mode(RunMode::Stdio)
            .stopped_by(&["output"]),
        hostile_guest("MEM-10", "a provider creates handles and drops none")
            .read("handles/5000", limit("handles"))
            .read("handles/1000000", limit("handles"))
            .stopped_by(&["handles"]),
        hostile_guest("MEM-11", "a granted directory holds 100,000 files, and the provider lists it")
            .config("fs = { \"/d\" = \"mem-11\" }")
            .prepare(|site| many_files(site, "mem-11", 100_000))
            .read("entries/%252E", Expect::Text("/d: 100000 entries"))
            .peak(32)
            .stopped(Stops::Structure("the host reads entries one at a time from the kernel, and keeps none")),
        hostile_guest("MEM-12", "a provider lists a directory of 5,000 files 1,000 times over, and keeps the lists")
            .limits("handles = 64")
            .config("fs = { \"/d\" = \"mem-12\" }")
            .prepare(|site| many_files(site, "mem-12", 5_000))
            .read("lists/1000%252F%252E", limit("handles"))
            .peak(48)
            .stopped_by(&["handles"]),
        hostile_guest("MEM-13", "a provider opens files until the process has none left")
            .config("fs = { \"/d\" = \"mem-13\" }")
            .prepare(|site| drop(site.write("mem-13/a.txt", "fine")))
            .run_mode(RunMode::Http)
            .shell("ulimit -n 512")
            .act(open_many_files)
            .stopped_by(&["handles"]),
        hostile_guest("MEM-15", "a provider makes 100,000 header fields, or one of 10 MB")
            .limits("fuel = 100_000_000_000")
            .read("fields/100000%252F10", matching(refused))
            .read("fields/1%252F5000000", matching(refused))
            .peak(64)
            .stopped(Stops::Wasmtime("at most 64 KiB of fields")),
        hostile_guest("MEM-17", "a provider polls a list that contains one timer two million times")
            .limits("result = \"256KiB\"")
            .read("poll/2000000", Expect::Limit(&["result"]))
            .stopped_by(&["result"]),
        hostile_guest("MEM-18", "a provider requests 2^64 - 1 bytes")
            .config("fs = { \"/d\" = \"mem-18\" }")
            .prepare(|site| {
                let sparse = site.write("mem-18/sparse", "");
                let file = fs::File::options().write(true).open(sparse).expect("a file");
                file.set_len(10 << 30).expect("a file system with sparse files");
            })
            .read("gorge/sparse", Expect::Contains(&["read: Ok(65536)", "standard input: Err"]))
            .read("zeroes/18446744073709551615", Expect::Kind(&["trap"]))
            .peak(64)
            .stopped(Stops::Wasmtime("a read returns at most 64 KiB, a write accepts at most its permitted size")),
        made("MEM-19", "a component makes twenty thousand handles of a resource type of its own", || {
            let own = "(type $r (resource (rep i32))) (core func $new (canon resource.new $r))
                (core instance $host (export \"new\" (func $new)))";
            HandWritten {
                before: own,
                with: "(with \"host\" (instance $host))",
                imports: "(import \"host\" \"new\" (func $new (param i32) (result i32)))",
                read: "(loop $l (drop (call $new (i32.const 1)))
                    (br_if $l (i32.lt_u (local.tee $a (i32.add (local.get $a) (i32.const 1))) (i32.const 20000))))",
                ..HandWritten::default()
            }
            .assemble()
        })
        .limits("fuel = 100_000_000")
        .read("x", limit("handles"))
        .stopped_by(&["handles"]),
        hostile_guest("MEM-20", "sixty-four calls that take 60 MiB each come at once")
            .limits("memory = \"64MiB\"\nconcurrency = 64\nqueue = \"500ms\"\ncpu = \"1000%\"")
            .settings("calls = 128")
            .measures()
            // The sum of `total-memory`, the memory of answers, and the memory of the allocator.
            .peak(640)
            // Each used slot keeps 2 MiB mapped for the next call.
            .keeps(160)
            .act(run_64_large_calls)
            .stopped_by(&["budget"]),
        hostile_guest("MEM-21", "a thousand calls reach a limit, one after the other")
            .time(10)
            .limits("concurrency = 8\nqueue = \"20s\"\ncpu = \"1000%\"")
            .limits("fuel = 1_000_000_000_000")
            .run_mode(RunMode::Stdio)
            .keeps(64)
            .act(stop_1000_calls)
            .stopped(Stops::Structure("a call owns its resources through its store, which ends with the call")),
        hostile_guest("MEM-22", "a provider without grants makes the host keep bodies, fields, texts and trailers")
            .limits("memory = \"32MiB\"\nrequests = 1000")
            .read("keep/bodies%252F1000%252F1048576", limit("memory"))
            .read("keep/finished%252F1000%252F1048576", limit("memory"))
            .read("keep/responses%252F1000%252F1048576", limit("memory"))
            .read("keep/zeroes%252F1000%252F1048576", limit("memory"))
            .read("keep/fields%252F600%252F60000", limit("memory"))
            .read("keep/copies%252F60%252F60000", limit("memory"))
            .read("keep/trailers%252F600%252F60000", limit("memory"))
            .read("keep/method%252F100%252F8388608", Expect::Contains(&["0 method of 100, then it is refused"]))
            .read("keep/authority%252F100%252F8388608", Expect::Contains(&["0 authority of 100, then it is refused"]))
            .keeps(64)
            .peak(96)
            .stopped_by(&["host-memory"]),
        hostile_guest("MEM-23", "a provider without grants makes a thousand requests, and sends none")
            .read("keep/authority%252F1000%252F1000", limit("requests"))
            .read("keep/pieces%252F1000%252F1048576", limit("requests"))
            .peak(96)
            .stopped_by(&["host-memory"]),
    ]
}

/// Several memories and tables, each below the limit.
fn tables() -> Row {
    let (one, three) = (extra_memories(1), extra_memories(3));
    let widen = "(call $widen0 (i32.const 900000))".to_owned();
    let two_memories = grow(3) + &"(call $grow0)".repeat(3);
    let four_memories = grow(1) + &"(call $grow0) (call $grow1) (call $grow2)".repeat(2);
    let mixed = "(call $widen0 (i32.const 200000)) (call $widen1 (i32.const 200000))".to_owned() + &grow(2);
    let first = one.clone();
    let made = made("MEM-03", "a provider grows tables, or several small memories", move || {
        first.with_read(&widen).assemble()
    });
    made.limits(MEMORY)
        .mount("b", assembled(move || one.with_read(&two_memories).assemble()))
        .limits(MEMORY)
        .mount("c", {
            let three = three.clone();
            assembled(move || three.with_read(&four_memories).assemble())
        })
        .limits(MEMORY)
        .mount("d", assembled(move || three.with_read(&mixed).assemble()))
        .limits(MEMORY)
        .mount(
            "e",
            assembled(|| HandWritten { fields: "(table $t 900000 funcref)", ..HandWritten::default() }.assemble()),
        )
        .limits(MEMORY)
        .act(|context| each(context, &[("", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("e", "x")], &limit("memory")))
}

/// Malformed answers. The host checks lengths and addresses from a guest before it reads the guest's memory.
fn malformed_answers() -> Row {
    let store = |at: u32, value: u32| format!("(i32.store (i32.const {at}) (i32.const {value}))");
    let text = |bytes: &str| format!("(data (i32.const 224) \"{bytes}\")");
    let none = String::new;
    let cases = [
        ("no-utf-8", text("\\ff\\fe\\fd\\fc"), none()),
        ("half-a-character", text("\\e2\\82\\ac\\e2"), none()),
        ("surrogate", text("\\ed\\a0\\80x"), none()),
        ("overlong", text("\\c0\\af\\c0\\af"), none()),
        ("across-the-end", none(), store(184, 65_530) + &store(188, 100)),
        ("address-wraps", none(), store(184, 0xffff_fff0) + &store(188, 32)),
        ("list-beyond", none(), store(136, 0x0fff_ffff)),
        ("odd-address", none(), store(132, 161)),
        ("no-such-body", none(), store(180, 7)),
        ("no-such-result", none(), store(128, 9)),
    ];
    let names: Vec<&'static str> = cases.iter().map(|(name, ..)| *name).collect();
    let mut row = made("MEM-07", "an answer is not valid text, or lies outside the provider's memory", || {
        HandWritten { read: "unreachable", ..HandWritten::default() }.assemble()
    });
    for (name, fields, read) in cases {
        row = row.mount(
            name,
            assembled(move || HandWritten { fields: &fields, read: &read, ..HandWritten::default() }.assemble()),
        );
    }
    row.act(move |context| {
        let reads: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
        each(context, &reads, &trap())
    })
    .stopped(Stops::Wasmtime("the engine validates all data that it copies from a guest's memory"))
}

/// Creates a directory with `count` files. Most of them are hard links, which are fast to create.
fn many_files(site: &belljar_tests::Site, name: &str, count: usize) {
    let first = site.write(format!("{name}/0"), "");
    // Most file systems allow only some ten thousand hard links to a file.
    let mut source = first;
    for n in 1..count {
        let path = site.path(format!("{name}/{n}"));
        if n % 10_000 == 0 {
            source = site.write(format!("{name}/{n}"), "");
        } else {
            fs::hard_link(&source, path).expect("a file system with hard links");
        }
    }
}

/// Accepts an answer that shows that the guest got fewer header fields than it requested.
fn refused(answer: &crate::expect::Answer) -> Result<String, String> {
    match crate::expect::text(answer) {
        Some(text) if text.contains("fields, then") => Ok("the guest is refused".to_owned()),
        // The host also counts the data that a call passes to the host.
        _ if answer.as_ref().is_err_and(|error| ["trap", "limit"].contains(&kind(error))) => Ok("refused".to_owned()),
        _ => Err(format!("{answer:?}")),
    }
}

/// Asserts that the row's component is not served, and that the log has the reason `why`.
pub(crate) fn not_served(context: &RowContext<'_>, why: &str) -> String {
    let error = context.read("x").expect_err("the component is served");
    assert_eq!(kind(&error), "unavailable", "{error}");
    assert!(error.message.contains("is not served: its component cannot be loaded"), "{error}");
    let log = context.running.process().stderr();
    let line = log.lines().find(|line| line.contains(&format!("\"{}\" is not served", context.name(""))));
    let line = line.unwrap_or_else(|| panic!("the log does not name the mount: {log}"));
    assert!(line.contains(why), "{line}");
    format!("not served: {why}")
}

/// All calls and connections share the process's limit of open files. Calls that open as many files as possible must
/// leave enough for connections and for other mounts.
fn open_many_files(context: &RowContext<'_>) -> String {
    let server: &Server = context.server();
    let uri = |count: usize| context.uri(&format!("hoard/{count}%252Fa.txt"));
    std::thread::scope(|scope| {
        // Eight calls that open more files than the limit, and eight calls that open as many as they may.
        let many: Vec<_> = (0..8).map(|_| scope.spawn(|| server.client(Era::Stateless).read(&uri(1000)))).collect();
        let few: Vec<_> = (0..8).map(|_| scope.spawn(|| server.client(Era::Stateless).read(&uri(6)))).collect();
        std::thread::sleep(Duration::from_millis(500));
        let open = server.process.files();
        for _ in 0..10 {
            let mut client = server.client(Era::Stateless);
            assert_eq!(client.text("belljar://witness-files/known.txt"), "known to the byte");
            client.request("resources/list", json!({})).unwrap_or_else(|error| panic!("{error}"));
        }
        let mut saw = String::new();
        for reader in many {
            let answer = reader.join().unwrap_or_else(|_| panic!("a client that opens many files has no connection"));
            // Calls that wait too long for a turn fail as busy.
            saw = Expect::Kind(&["limit", "busy", "unavailable"])
                .judge(&answer, &context.name(""))
                .unwrap_or_else(|why| panic!("{why}"));
        }
        for reader in few {
            reader.join().unwrap_or_else(|_| panic!("a client that opens few files has no connection")).ok();
        }
        format!("{saw}; other clients connect and read files while {open} files are open")
    })
}

/// A thousand stopped calls, eight at a time. Each has its own name, because the circuit breaker refuses repeated
/// failures of one name.
fn stop_1000_calls(context: &RowContext<'_>) -> String {
    let one = |n: usize| {
        let reference = [format!("spin/{n}"), format!("forever/{n}"), format!("hold/8/{}", 1000 + n)][n % 3].clone();
        let answer = context.stdio().wait(context.begin(&reference), deadline(Duration::from_secs(20)));
        match answer.as_ref().map(|(answer, _)| answer.as_ref().map_err(kind)) {
            Some(Err("limit")) => None,
            _ => Some(format!("{reference}: {answer:?}")),
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|from| scope.spawn(move || (0..125).find_map(|n| one(from * 125 + n)))).collect();
        let wrong: Vec<_> = all.into_iter().filter_map(|one| one.join().expect("a thread")).collect();
        assert!(wrong.is_empty(), "not every call was stopped by a limit: {wrong:?}");
    });
    "limit time, a thousand times".to_owned()
}

/// Many calls with large memories. belljar runs as many as fit into `total-memory`, and refuses the others as busy.
fn run_64_large_calls(context: &RowContext<'_>) -> String {
    let ids: Vec<u64> = (0..64).map(|n| context.begin(&format!("hold/60/{}", 300 + n))).collect();
    let (mut held, mut busy) = (0, 0);
    for id in ids {
        let answer = context.wait(id);
        match answer.as_ref().map_err(kind) {
            Ok(_) => held += 1,
            Err("busy") => busy += 1,
            Err(_) => panic!("{answer:?}"),
        }
    }
    // Calls that grow at the same time may all be refused, but some of the calls must succeed.
    assert!(held >= 1 && busy > 0, "{held} calls got their memory, {busy} were busy");
    format!("{held} calls got their memory, {busy} busy")
}
