//! Memory and handles: what a call takes, has the host take, and leaves behind.

use std::fs;
use std::time::Duration;

use belljar_tests::{Era, Server};
use serde_json::json;

use crate::cpu::each;
use crate::expect::{Expect, kind, limit, that, trap};
use crate::hand::{Hand, apart, grow};
use crate::row::{Row, Stops, Way, hand, imp, made};
use crate::scene::Scene;

const MEMORY: &str = "memory = \"4MiB\"";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("MEM-01", "a provider takes memory without end, and writes to it")
            .limits("memory = \"8MiB\"")
            .read("grow/64", limit("memory"))
            .read("grow/4000", limit("memory"))
            .peak(48)
            .stopped_by(&["memory"]),
        made("MEM-02", "a component begins with 4 GiB of memory, or with many memories", || {
            Hand { memory: "(memory (export \"memory\") 65536)", ..Hand::default() }.assemble()
        })
        .limits(MEMORY)
        .mount(
            "b",
            hand(|| {
                let large =
                    "(core module $m (memory 48)) (core instance (instantiate $m)) (core instance (instantiate $m))";
                Hand { before: large, ..Hand::default() }.assemble()
            }),
        )
        .limits(MEMORY)
        .act(|scene| each(scene, &[("", "x"), ("b", "x")], &limit("memory")))
        .stopped_by(&["memory"]),
        tables().stopped_by(&["memory"]),
        made("MEM-04", "a component is made of thousands of instances", || {
            let many = format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(900));
            Hand { before: &many, ..Hand::default() }.assemble()
        })
        .act(|scene| not_served(scene, "instances"))
        .stopped(Stops::Wasmtime("at most 64 core instances for a component, refused when it is loaded")),
        made("MEM-05", "an answer claims to be longer than all memory", || {
            let read = "(i32.store (i32.const 188) (i32.const 0x7fffffff))";
            Hand { read, ..Hand::default() }.assemble()
        })
        .mount(
            "b",
            hand(|| {
                let memory = "(memory (export \"memory\") 1024)";
                Hand { memory, read: "(i32.store (i32.const 136) (i32.const 1600000))", ..Hand::default() }.assemble()
            }),
        )
        .act(|scene| {
            let first = each(scene, &[("", "x")], &trap());
            format!("{first}, {}", each(scene, &[("b", "x")], &limit("result")))
        })
        .peak(96)
        .stopped(Stops::Wasmtime("pointers and lengths are checked before anything is copied")),
        imp("MEM-06", "a provider answers with 60 MiB")
            .limits("memory = \"200MiB\"\nresult = \"1MiB\"")
            .read("text/60000000", limit("result"))
            .read("blob/2000000", limit("result"))
            .stopped_by(&["result"]),
        garbage(),
        imp("MEM-08", "a provider asks for more random bytes than there is memory")
            .read("random/2000000", limit("random"))
            .read("random/4294967296", limit("random"))
            .read("random/18446744073709551615", limit("random"))
            .stopped_by(&["random"]),
        imp("MEM-09", "a provider prints 40 MB")
            .act(|scene| {
                let before = scene.stage.process().stderr().len();
                let saw = Expect::Text("printed").judge(&scene.read("print/20000000"), &scene.name(""));
                let logged = scene.stage.process().stderr().len() - before;
                assert!(logged < 256 << 10, "{logged} bytes of log");
                saw.unwrap_or_else(|why| panic!("{why}")) + &format!(", and {} KiB of log", logged >> 10)
            })
            .peak(24)
            .way(Way::Stdio)
            .stopped_by(&["output"]),
        imp("MEM-10", "a provider takes handles and gives none back")
            .read("handles/5000", limit("handles"))
            .read("handles/1000000", limit("handles"))
            .stopped_by(&["handles"]),
        imp("MEM-11", "a granted directory holds 100,000 files, and the provider lists it")
            .config("fs = { \"/d\" = \"mem-11\" }")
            .prepare(|site| crowd(site, "mem-11", 100_000))
            .read("entries/%252E", Expect::Text("/d: 100000 entries"))
            .peak(32)
            .stopped(Stops::Structure("entries come one at a time from the kernel; none is kept")),
        imp("MEM-12", "a provider lists a directory of 5,000 files 1,000 times over, and keeps the lists")
            .limits("handles = 64")
            .config("fs = { \"/d\" = \"mem-12\" }")
            .prepare(|site| crowd(site, "mem-12", 5_000))
            .read("lists/1000%252F%252E", limit("handles"))
            .peak(48)
            .stopped_by(&["handles"]),
        imp("MEM-13", "a provider opens files until the process has none left")
            .config("fs = { \"/d\" = \"mem-13\" }")
            .prepare(|site| drop(site.write("mem-13/a.txt", "fine")))
            .way(Way::Http)
            .shell("ulimit -n 512")
            .act(hoard)
            .stopped_by(&["handles"]),
        imp("MEM-15", "a provider makes 100,000 header fields, or one of 10 MB")
            .limits("fuel = 100_000_000_000")
            .read("fields/100000%252F10", that(refused))
            .read("fields/1%252F5000000", that(refused))
            .peak(64)
            .stopped(Stops::Wasmtime("at most 64 KiB of fields")),
        imp("MEM-17", "a provider waits for one thing four million times over")
            .limits("result = \"256KiB\"")
            .read("poll/2000000", Expect::Limit(&["result"]))
            .stopped_by(&["result"]),
        imp("MEM-18", "a provider asks for all the bytes that a number can say")
            .config("fs = { \"/d\" = \"mem-18\" }")
            .prepare(|site| {
                let sparse = site.write("mem-18/sparse", "");
                let file = fs::File::options().write(true).open(sparse).expect("a file");
                file.set_len(10 << 30).expect("a file system with holes");
            })
            .read("gorge/sparse", Expect::Contains(&["read: Ok(65536)", "standard input: Err"]))
            .read("zeroes/18446744073709551615", Expect::Kind(&["trap"]))
            .peak(64)
            .stopped(Stops::Wasmtime("a read gives 64 KiB, a write takes what it was allowed")),
        made("MEM-19", "a component makes twenty thousand handles of its own", || {
            let own = "(type $r (resource (rep i32))) (core func $new (canon resource.new $r))
                (core instance $host (export \"new\" (func $new)))";
            Hand {
                before: own,
                with: "(with \"host\" (instance $host))",
                imports: "(import \"host\" \"new\" (func $new (param i32) (result i32)))",
                read: "(loop $l (drop (call $new (i32.const 1)))
                    (br_if $l (i32.lt_u (local.tee $a (i32.add (local.get $a) (i32.const 1))) (i32.const 20000))))",
                ..Hand::default()
            }
            .assemble()
        })
        .limits("fuel = 100_000_000")
        .read("x", limit("handles"))
        .stopped_by(&["handles"]),
        imp("MEM-20", "sixty-four calls that take 60 MiB each come at once")
            .limits("memory = \"64MiB\"\nconcurrency = 64\nqueue = \"500ms\"\ncpu = \"1000%\"")
            .settings("calls = 128")
            .measures()
            // total-memory, what answers take, and the allocator's own.
            .peak(640)
            // Of each of the places for calls that were used, 2 MiB stay mapped for the next call.
            .keeps(160)
            .act(flood)
            .stopped_by(&["budget"]),
        imp("MEM-21", "a thousand calls are stopped by their time, one after the other")
            .time(10)
            .limits("concurrency = 8\nqueue = \"20s\"\ncpu = \"1000%\"")
            .limits("fuel = 1_000_000_000_000")
            .way(Way::Stdio)
            .keeps(64)
            .act(storm)
            .stopped(Stops::Structure("what a call takes is in its store, which is dropped with it")),
        imp("MEM-22", "a provider without grants has the host keep bodies, fields, texts and trailers for it")
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
        imp("MEM-23", "a provider without grants makes a thousand requests, and sends none")
            .read("keep/authority%252F1000%252F1000", limit("requests"))
            .read("keep/pieces%252F1000%252F1048576", limit("requests"))
            .peak(96)
            .stopped_by(&["host-memory"]),
    ]
}

/// Memory in several places, each below the limit, and tables.
fn tables() -> Row {
    let (one, three) = (apart(1), apart(3));
    let widen = "(call $widen0 (i32.const 900000))".to_owned();
    let two_memories = grow(3) + &"(call $grow0)".repeat(3);
    let four_memories = grow(1) + &"(call $grow0) (call $grow1) (call $grow2)".repeat(2);
    let mixed = "(call $widen0 (i32.const 200000)) (call $widen1 (i32.const 200000))".to_owned() + &grow(2);
    let first = one.clone();
    let made = made("MEM-03", "a provider grows tables, or several memories that are small each", move || {
        first.hand(&widen).assemble()
    });
    made.limits(MEMORY)
        .mount("b", hand(move || one.hand(&two_memories).assemble()))
        .limits(MEMORY)
        .mount("c", {
            let three = three.clone();
            hand(move || three.hand(&four_memories).assemble())
        })
        .limits(MEMORY)
        .mount("d", hand(move || three.hand(&mixed).assemble()))
        .limits(MEMORY)
        .mount("e", hand(|| Hand { fields: "(table $t 900000 funcref)", ..Hand::default() }.assemble()))
        .limits(MEMORY)
        .act(|scene| each(scene, &[("", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("e", "x")], &limit("memory")))
}

/// What the host reads from a guest's memory is checked before it is believed.
fn garbage() -> Row {
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
    let mut row = made("MEM-07", "an answer is no text, or lies outside the provider's memory", || {
        Hand { read: "unreachable", ..Hand::default() }.assemble()
    });
    for (name, fields, read) in cases {
        row = row.mount(name, hand(move || Hand { fields: &fields, read: &read, ..Hand::default() }.assemble()));
    }
    row.act(move |scene| {
        let reads: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
        each(scene, &reads, &trap())
    })
    .stopped(Stops::Wasmtime("what leaves a guest's memory is validated"))
}

/// A directory of so many files: one file, under many names, which costs the test little.
fn crowd(site: &belljar_tests::Site, name: &str, count: usize) {
    let first = site.write(format!("{name}/0"), "");
    // Most file systems allow some ten thousand names for a file.
    let mut source = first;
    for n in 1..count {
        let path = site.path(format!("{name}/{n}"));
        if n % 10_000 == 0 {
            source = site.write(format!("{name}/{n}"), "");
        } else {
            fs::hard_link(&source, path).expect("a file system with links");
        }
    }
}

/// The guest says that it was refused after fewer than it wanted.
fn refused(answer: &crate::expect::Answer) -> Result<String, String> {
    match crate::expect::text(answer) {
        Some(text) if text.contains("fields, then") => Ok("the guest is refused".to_owned()),
        // What a call hands to the host at once is counted with its answer.
        _ if answer.as_ref().is_err_and(|error| ["trap", "limit"].contains(&kind(error))) => Ok("refused".to_owned()),
        _ => Err(format!("{answer:?}")),
    }
}

/// The row's component is not served, and the log says why, without its words.
pub(crate) fn not_served(scene: &Scene<'_>, why: &str) -> String {
    let error = scene.read("x").expect_err("it is served");
    assert_eq!(kind(&error), "unavailable", "{error}");
    assert!(error.message.contains("is not served: its component cannot be loaded"), "{error}");
    let log = scene.stage.process().stderr();
    let line = log.lines().find(|line| line.contains(&format!("\"{}\" is not served", scene.name(""))));
    let line = line.unwrap_or_else(|| panic!("nothing in the log: {log}"));
    assert!(line.contains(why), "{line}");
    format!("not served: {why}")
}

/// Files that are open are the process's: eight calls that take all they can get leave enough for connections, and for
/// the files of others.
fn hoard(scene: &Scene<'_>) -> String {
    let server: &Server = scene.server();
    let uri = |count: usize| scene.uri(&format!("hoard/{count}%252Fa.txt"));
    std::thread::scope(|scope| {
        // Eight that want more than they may have, and eight that keep what they may have.
        let many: Vec<_> = (0..8).map(|_| scope.spawn(|| server.client(Era::Modern).read(&uri(1000)))).collect();
        let few: Vec<_> = (0..8).map(|_| scope.spawn(|| server.client(Era::Modern).read(&uri(6)))).collect();
        std::thread::sleep(Duration::from_millis(500));
        let open = server.process.files();
        for _ in 0..10 {
            let mut client = server.client(Era::Modern);
            assert_eq!(client.text("belljar://witness-files/known.txt"), "known to the byte");
            client.request("resources/list", json!({})).unwrap_or_else(|error| panic!("{error}"));
        }
        let mut saw = String::new();
        for hoard in many {
            let answer = hoard.join().unwrap_or_else(|_| panic!("no connection for who hoards"));
            // The calls that wait for a turn meanwhile are refused.
            saw = Expect::Kind(&["limit", "busy", "unavailable"])
                .judge(&answer, &scene.name(""))
                .unwrap_or_else(|why| panic!("{why}"));
        }
        for hoard in few {
            hoard.join().unwrap_or_else(|_| panic!("no connection for who hoards")).ok();
        }
        format!("{saw}; others connect and read files beside {open} open ones")
    })
}

/// A thousand that are stopped, eight at a time, each by its own name: what fails again and again by one name is refused
/// before it runs.
fn storm(scene: &Scene<'_>) -> String {
    let one = |n: usize| {
        let reference = [format!("spin/{n}"), format!("forever/{n}"), format!("hold/8/{}", 1000 + n)][n % 3].clone();
        let answer = scene.line().wait(scene.begin(&reference), Duration::from_secs(20));
        match answer.as_ref().map(|(answer, _)| answer.as_ref().map_err(kind)) {
            Some(Err("limit")) => {}
            _ => panic!("{reference}: {answer:?}"),
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|from| scope.spawn(move || (0..125).for_each(|n| one(from * 125 + n)))).collect();
        assert!(all.into_iter().all(|one| one.join().is_ok()), "not each of them was stopped by a limit");
    });
    "limit time, a thousand times".to_owned()
}

/// Many that take much: as many run as there is memory for, and the rest is told so.
fn flood(scene: &Scene<'_>) -> String {
    let ids: Vec<u64> = (0..64).map(|n| scene.begin(&format!("hold/60/{}", 300 + n))).collect();
    let (mut held, mut busy) = (0, 0);
    for id in ids {
        let answer = scene.wait(id);
        match answer.as_ref().map_err(kind) {
            Ok(_) => held += 1,
            Err("busy") => busy += 1,
            Err(_) => panic!("{answer:?}"),
        }
    }
    // Those that grow at the same time may be in each other's way; some always get through.
    assert!(held >= 1 && busy > 0, "{held} held their memory, {busy} were busy");
    format!("{held} held their memory, {busy} busy")
}
