//! Hostile rows about loading: hostile files in the plugin directory, hostile components in the compiler, and belljar
//! processes that are killed during a start.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Child;
use std::time::{Duration, Instant};

use belljar_tests::{Site, places, process};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::component::{HandWritten, assemble, hollow};
use crate::expect::{cut, is_clean, kind, text};
use crate::row::{Row, RunMode, Stops, bare, hostile_guest, made};
use crate::running_site::RowContext;
use crate::tools::{check, in_time, line, read, read_text, refusal, within};

/// A row without a hostile mount, whose script starts belljar. `fill` creates files in the plugin directory.
fn dropped(id: &'static str, attack: &'static str, fill: impl Fn(&Site) + Send + Sync + 'static) -> Row {
    bare(id, attack).prepare(fill).run_mode(RunMode::Unstarted)
}

/// A provider with different bytes for each number, and the same behaviour.
pub(crate) fn numbered(n: usize) -> Vec<u8> {
    HandWritten { fields: &format!("(global $own i32 (i32.const {n}))"), ..HandWritten::default() }.assemble()
}

/// A component with the exports of a provider and damaged code.
fn broken(n: usize) -> Vec<u8> {
    let mut bytes = numbered(n);
    let read = bytes.windows(4).rposition(|window| window == b"fine").expect("the text of the answer");
    // Only the compiler finds a data segment outside of the memory, and an invalid opcode.
    for byte in &mut bytes[read - 24..read - 8] {
        *byte = 0xff;
    }
    bytes
}

/// A component whose compilation takes long: one function with 400,000 blocks.
fn bomb() -> Vec<u8> {
    let blocks = "(block (br_if 0 (local.get 0)) (local.set 1 (i64.mul (local.get 1) (local.get 2))))".repeat(400_000);
    let text = format!("(func $bomb (param i32) (local i64 i64) {blocks})");
    HandWritten { fields: &text, ..HandWritten::default() }.assemble()
}

/// The running child processes of a process.
fn children(of: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("read /proc").flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    ids.filter(|id| parent(*id) == Some(of)).collect()
}

/// Asserts that the witness answers while belljar compiles a bomb, and that the compiler process has these limits. The
/// kernel reports the limits of a process in `/proc`.
fn read_while_compiling(context: &RowContext<'_>, limits: &[(&str, &str)]) -> String {
    let line = line(context, "");
    let mut proc_limits = String::new();
    let found = within(Duration::from_secs(30), || {
        children(line.process.id()).into_iter().any(|child| {
            proc_limits = fs::read_to_string(format!("/proc/{child}/limits")).unwrap_or_default();
            let limit = |name: &str| {
                proc_limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_start()
            };
            limits.iter().all(|(name, value)| limit(name).starts_with(value))
        })
    });
    assert!(found, "no compiler process has these limits: {limits:?}; the limits of the last process: {proc_limits}");
    let began = Instant::now();
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let began_read = Instant::now();
        let text = read_text(&line, "belljar://witness/static-text");
        assert!(text.starts_with("This is the content"), "{text}");
        worst = worst.max(began_read.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(in_time(worst, Duration::from_secs(5)), "the witness took {worst:?} during the compilation");
    format!("witness at worst {} ms in {} ms", worst.as_millis(), began.elapsed().as_millis())
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        dropped("LIF-01", "a component whose compilation takes very long", |site| site.drop_in("bomb.wasm", bomb()))
            .act(|context| read_while_compiling(context, &[("Max cpu time", "60 ")]))
            .stopped_by(&["compiler"]),
        dropped("LIF-02", "a component whose compilation takes much memory, many files or much disk space", |site| {
            site.drop_in("bomb.wasm", bomb());
        })
        .act(|context| {
            read_while_compiling(
                context,
                &[
                    ("Max address space", "4294967296 "),
                    ("Max open files", "64 "),
                    ("Max file size", "0 "),
                    ("Max core file size", "0 "),
                ],
            )
        })
        .stopped_by(&["compiler"]),
        dropped("LIF-03", "a component file of 256 MiB of zeros", |site| {
            site.drop_in("huge.wasm", "");
            let file = fs::File::options().write(true).open(site.path("plugins/huge.wasm")).expect("open the file");
            file.set_len(256 << 20).expect("create a sparse file");
        })
        .act(|context| {
            let reason = refusal(&check(context), "huge");
            assert!(reason.contains("over the limit of 64MiB") && reason.contains("component ="), "{reason}");
            "refused because of its size".to_owned()
        })
        .stopped_by(&["component"]),
        made("LIF-04", "a component with a grant is replaced by another component", || answering("AAAA"))
            .config("env = { A = \"b\" }")
            .run_mode(RunMode::Unstarted)
            .act(replaced_with_grant)
            .stopped_by(&["pin"]),
        dropped("LIF-05", "a component is replaced by another component while belljar loads it", |_| {})
            .act(replaced_while_loading)
            .stopped(Stops::Structure("belljar reads a file once; it hashes and compiles the same bytes")),
        dropped("LIF-06", "component files that are only partly written", |site| {
            let whole = fs::read(places::component("guest_fixture")).expect("a component");
            for part in 0..16 {
                site.drop_in(&format!("part-{part}.wasm"), &whole[..whole.len() * part / 16]);
            }
            site.drop_in("last-byte.wasm", &whole[..whole.len() - 1]);
        })
        .act(|context| {
            let checked = check(context);
            for part in 1..16 {
                let reason = refusal(&checked, &format!("part-{part}"));
                // A part that ends after a whole section is a valid component without exports.
                let expected = ["truncated", "ends too early", "it exports nothing"];
                assert!(expected.iter().any(|words| reason.contains(words)), "part {part}: {reason}");
            }
            assert!(refusal(&checked, "part-0").contains("may still be being written"));
            refusal(&checked, "last-byte");
            "refused, each with the reason".to_owned()
        })
        .stopped(Stops::Structure("belljar parses a whole component before it runs any of its code")),
        dropped("LIF-07", "files that are not components: text, archives, programs, core modules, links, FIFOs", drop_in_other_files)
            .act(|context| {
                let checked = check(context);
                for (name, why) in NOT_COMPONENTS {
                    let reason = refusal(&checked, name);
                    assert!(reason.contains(why) && is_clean(&reason), "{name}: {reason}");
                }
                format!("{} refused, each with the reason", NOT_COMPONENTS.len())
            })
            .stopped_by(&["regular"]),
        dropped("LIF-08", "components with imports that belljar does not provide", |site| {
            for (n, import) in FOREIGN.iter().enumerate() {
                let text = format!(
                    "(component (import \"{import}\" (instance $i)) (export \"belljar:provider/resource-provider@0.1.0\" (instance $i)))"
                );
                site.drop_in(&format!("foreign-{n}.wasm"), assemble(&text));
            }
        })
        .act(|context| {
            let checked = check(context);
            for (n, import) in FOREIGN.iter().enumerate() {
                let reason = refusal(&checked, &format!("foreign-{n}"));
                assert!(reason.contains(import), "{import}: {reason}");
            }
            "refused, and the reason names each import".to_owned()
        })
        .stopped(Stops::Wasmtime("a component with an import that is not linked cannot be instantiated")),
        dropped("LIF-09", "components without a required export, or with an export of another type", |site| {
            let other = "(component (core module $m (func (export \"read\") (result i32) (i32.const 1)))
                (core instance $m (instantiate $m))
                (func $read (result u32) (canon lift (core func $m \"read\")))
                (instance $i (export \"read\" (func $read)))
                (export \"belljar:provider/resource-provider@0.1.0\" (instance $i)))";
            site.drop_in("hollow.wasm", hollow());
            site.drop_in("other.wasm", assemble(other));
        })
        .act(|context| {
            let checked = check(context);
            for name in ["hollow", "other"] {
                let reason = refusal(&checked, name);
                assert!(reason.contains("does not fit the interface"), "{name}: {reason}");
            }
            "refused".to_owned()
        })
        .stopped(Stops::Wasmtime("typed bindings")),
        dropped("LIF-10", "1,000 components, 900 of them broken", |site| {
            for n in 0..100 {
                site.drop_in(&format!("good-{n}.wasm"), numbered(n % 10));
            }
            for n in 0..300 {
                site.drop_in(&format!("bad-a{n}.wasm"), format!("not a component {n}"));
                site.drop_in(&format!("bad-b{n}.wasm"), &numbered(n)[..300 + n]);
                site.drop_in(&format!("bad-c{n}.wasm"), broken(n));
            }
        })
        .measures()
        .act(thousand_components)
        .stopped(Stops::Structure("belljar loads two components at a time, compiled components first, and remembers which components failed")),
        dropped("LIF-11", "files whose names differ only in case, in dashes or in the encoding of an accent", |site| {
            for name in ["twin.wasm", "Twin.wasm", "TWIN.wasm", "my-notes.wasm", "my_notes.wasm"] {
                site.drop_in(name, numbered(1));
            }
            for name in ["caf\u{e9}.wasm", "cafe\u{301}.wasm"] {
                site.drop_in(name, numbered(1));
            }
            site.write("plugins/below/twin.wasm", numbered(2));
        })
        .act(|context| {
            let first = check(context);
            let files: Vec<&str> = first["mounts"].as_array().expect("mounts").iter().filter_map(|m| m["file"].as_str()).collect();
            for (file, taken) in [("TWIN.wasm", true), ("my-notes.wasm", true), ("twin.wasm", false), ("my_notes.wasm", false)] {
                assert_eq!(files.contains(&file), taken, "{file}: {files:?}");
            }
            assert!(refusal(&first, "twin.wasm").contains("taken by \"TWIN.wasm\""));
            for _ in 0..3 {
                assert_eq!(check(context), first, "the result of a further check differs");
            }
            "always the first file by name; the others are refused with the reason".to_owned()
        })
        .stopped_by(&["taken"]),
        hostile_guest("LIF-12", "a provider traps at every list and every read")
            .config("env = { HOSTILE_LIST = \"trap\" }")
            .run_mode(RunMode::Stdio)
            .act(crash_loop)
            .stopped_by(&["breaker"]),
        made("LIF-15", "terminal commands in the custom sections of a component, and invalid debug information", || {
            let mut bytes = HandWritten { read: "(unreachable)", fields: NAMED, ..HandWritten::default() }.assemble();
            for (name, content) in [("name", &b"\x00\x1b[31m\xff\xff\xff"[..]), (".debug_info", &[0xff; 5000]), ("\u{1b}[2Jx", b"\x1b[31m")] {
                let mut section = vec![u8::try_from(name.len()).expect("a short name")];
                section.extend_from_slice(name.as_bytes());
                section.extend_from_slice(content);
                bytes.push(0);
                push_leb128(&mut bytes, section.len());
                bytes.extend(section);
            }
            bytes
        })
        .act(|context| {
            let error = context.read("x").expect_err("a trap");
            let shown = error.to_string();
            assert!(is_clean(&error.message) && !shown.contains("evil"), "{}", cut(&shown));
            "a trap; the error contains no text of the component".to_owned()
        })
        .stopped(Stops::Wasmtime("no symbols are kept, and no debug information is read")),
        dropped("LIF-16", "other users may write to the plugin directory, or own a component in it", |site| {
            site.drop_in("open.wasm", numbered(1));
            site.drop_in("theirs.wasm", numbered(2));
            let open = fs::Permissions::from_mode(0o666);
            fs::set_permissions(site.path("plugins/open.wasm"), open).expect("set the permissions");
            fs::set_permissions(site.path("plugins"), fs::Permissions::from_mode(0o777)).expect("set the permissions");
            // Only root can change the owner of a file. Other users skip this part.
            chown(site.path("plugins/theirs.wasm"), Some(65534), None).ok();
        })
        .act(|context| {
            let checked = check(context);
            let warned = |name: &str| -> String {
                let all = checked["mounts"].as_array().expect("mounts");
                all.iter().find(|mount| mount["name"] == name).map(|mount| mount["warnings"].to_string()).unwrap_or_default()
            };
            assert!(warned("open").contains("anyone on this machine can change the file"), "{checked}");
            let given = std::os::unix::fs::MetadataExt::uid(&fs::metadata(context.site().path("plugins/theirs.wasm")).expect("read the owner of the file"));
            assert!(given != 65534 || warned("theirs").contains("belongs to another user"), "{checked}");
            let (_, said) = crate::tools::run(context, &["check"]);
            assert!(said.contains("anyone on this machine can put components"), "{said}");
            "belljar check and the log warn".to_owned()
        })
        .stopped(Stops::Structure("belljar only warns: a user who can write there chooses the components, but not their grants")),
        dropped("LIF-17", "belljar is killed at random moments while it loads components and writes its cache", |site| {
            for n in 0..4 {
                site.drop_in(&format!("own-{n}.wasm"), numbered(n));
            }
        })
        .measures()
        .act(killed_while_loading)
        .stopped(Stops::Structure("belljar writes a file under another name, then renames it, and authenticates the file when it reads it")),
    ]
}

/// A function whose exported name contains a terminal command.
const NAMED: &str = "(func $evil (export \"evil\\1b[31m\"))";

/// Appends a number in LEB128, the encoding of lengths in WebAssembly.
fn push_leb128(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Interfaces that belljar does not provide.
const FOREIGN: [&str; 4] =
    ["evil:host/shell@0.1.0", "wasi:nn/graph@0.2.0", "wasi:filesystem/types@0.3.0", "wasi:keyvalue/store@0.2.0"];

/// The names of files that are not components, each with a part of the reason of its refusal.
const NOT_COMPONENTS: [(&str, &str); 10] = [
    ("empty", "an empty file"),
    ("module", "a core WebAssembly module"),
    ("text", "WebAssembly text"),
    ("archive", "ZIP"),
    ("document", "PDF"),
    ("script", "a script"),
    ("controls", "a text file"),
    ("link", "not a regular file"),
    ("fifo", "not a regular file"),
    ("directory", "not a regular file"),
];

/// Creates these files in the plugin directory.
fn drop_in_other_files(site: &Site) {
    let files: [(&str, &[u8]); 7] = [
        ("empty", b""),
        ("module", &assemble("(module (func (export \"run\")))")),
        ("text", b"(component)"),
        ("archive", b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0"),
        ("document", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"),
        ("script", b"#!/bin/sh\nexit 0\n"),
        ("controls", b"\x1b[2Jcleared\x07 and more"),
    ];
    for (name, bytes) in files {
        site.drop_in(&format!("{name}.wasm"), bytes);
    }
    let plugins = site.path("plugins");
    let elsewhere = site.write("elsewhere.wasm", numbered(1));
    symlink(elsewhere, plugins.join("link.wasm")).expect("create a symbolic link");
    mknodat(CWD, plugins.join("fifo.wasm"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("create a FIFO");
    fs::create_dir(plugins.join("directory.wasm")).expect("create a directory");
}

/// A provider that answers every read with these four letters.
pub(crate) fn answering(word: &str) -> Vec<u8> {
    HandWritten { fields: &format!("(data (i32.const 224) \"{word}\")"), ..HandWritten::default() }.assemble()
}

/// Replaces a component that has a grant. belljar must never serve the new bytes before the operator trusts them.
fn replaced_with_grant(context: &RowContext<'_>) -> String {
    let (uri, name) = (context.uri("x"), context.name(""));
    let first = line(context, "");
    assert_eq!(read_text(&first, &uri), "AAAA");
    context.site().drop_in(&format!("{name}.wasm"), answering("BBBB"));
    let held_back = || match read(&first, &uri) {
        answer @ Ok(_) => {
            assert_eq!(text(&answer), Some("AAAA"), "belljar serves bytes that the operator has not trusted");
            false
        }
        Err(error) => kind(&error) == "unavailable",
    };
    assert!(within(Duration::from_secs(10), held_back), "the replaced component is still served");
    drop(first);
    let second = line(context, "");
    for _ in 0..50 {
        let error = read(&second, &uri).expect_err("belljar serves bytes that the operator has not trusted");
        assert_eq!((kind(&error), error.data["mount"] == *name), ("unavailable", true), "{error}");
    }
    assert!(read_text(&second, "belljar://witness/static-text").starts_with("This is"));
    drop(second);
    let checked = check(context);
    assert_eq!(checked["quarantined"][0]["name"], name.as_str(), "{checked}");
    let third = line(context, "");
    read(&third, &uri).expect_err("belljar serves bytes that the operator has not trusted");
    let (fine, said) = crate::tools::run(context, &["trust", &name, "--yes"]);
    assert!(fine, "{said}");
    assert!(
        within(Duration::from_secs(10), || read(&third, &uri).is_ok()),
        "the mount is not served after belljar trust"
    );
    assert_eq!(read_text(&third, &uri), "BBBB", "the answer of the trusted bytes");
    "in quarantine until it is trusted, before and after a restart".to_owned()
}

/// Replaces a component many times, while belljar loads it. Each answer must come from the component with the reported
/// digest.
fn replaced_while_loading(context: &RowContext<'_>) -> String {
    let site = context.site();
    let both = ["AAAA", "BBBB"].map(|word| (word, answering(word)));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut seen: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                site.drop_in("swapped.wasm", &both[n % 2].1);
                n += 1;
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        let runs = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..12 {
                let output = process::run(
                    context.running.command(&["read", "belljar://swapped/x", "--json"], ""),
                    Duration::from_secs(60),
                );
                let read: Value = serde_json::from_slice(&output.stdout)
                    .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
                let contents = &read["contents"][0];
                let digest =
                    contents["_meta"]["dev.belljar/digest"].as_str().or(read["digest"].as_str()).unwrap_or_default();
                let text = contents["text"].as_str().unwrap_or_default().to_owned();
                let before = seen.insert(digest.to_owned(), text.clone());
                assert!(
                    before.is_none_or(|before| before == text),
                    "two answers for the digest {digest}, the second is {text}"
                );
            }
        }));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        runs.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
    assert!(seen.len() <= 2 && !seen.contains_key(""), "{seen:?}");
    format!("{} digests, one answer for each", seen.len())
}

/// Starts belljar twice with a thousand components. The second start must compile nothing.
fn thousand_components(context: &RowContext<'_>) -> String {
    let mut took = Vec::new();
    for start in 0..2 {
        let began = Instant::now();
        let line = line(context, "");
        // The components that come first by name are compiled first, and once.
        let served = |n: &usize| {
            let uri = format!("belljar://good-{n}/x");
            within(Duration::from_secs(60), || crate::expect::text(&read(&line, &uri)) == Some("fine"))
        };
        let good = (0..100).filter(served).count();
        took.push(began.elapsed());
        assert_eq!(good, 100, "served components");
        assert!(
            within(Duration::from_secs(120), || {
                line.process.stderr().lines().filter(|line| line.contains("is not served: ")).count() >= 900
            }),
            "the log does not name all refused components"
        );
        took.push(began.elapsed());
        let log = line.process.stderr();
        assert!(start == 0 || !log.contains("compiled in"), "the second start compiles again: {log}");
    }
    let [first, first_all, second, second_all] = took[..] else { panic!("two starts") };
    format!(
        "all valid components after {:.1} s, all files after {:.1} s; next start {:.1} s, {:.1} s",
        first.as_secs_f64(),
        first_all.as_secs_f64(),
        second.as_secs_f64(),
        second_all.as_secs_f64()
    )
}

/// Kills belljar at random moments of many starts, some of them with an empty cache. No start may find a damaged file.
fn killed_while_loading(context: &RowContext<'_>) -> String {
    let kills: usize = std::env::var("BELLJAR_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let site = context.site();
    // Use only components that every start compiles.
    for witness in ["witness", "witness-files"] {
        fs::remove_file(site.path(format!("plugins/{witness}.wasm"))).expect("remove a witness");
    }
    site.config("");
    let path_text = |name: &str| site.path(name).display().to_string();
    let (cache, state) = (path_text("own-cache"), path_text("own-state"));
    let start = || -> Child {
        let mut command = context.running.command(&["check"], "");
        command.env("XDG_CACHE_HOME", &cache).env("XDG_STATE_HOME", &state);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().expect("start the process")
    };
    let began = Instant::now();
    start().wait_with_output().expect("wait for the end of the process");
    let cold = began.elapsed();
    let (mut damaged, mut slowest) = (0, Duration::ZERO);
    for kill in 0..kills {
        if kill % 4 == 0 {
            fs::remove_dir_all(site.path("own-cache")).ok();
        }
        if kill % 20 == 0 {
            fs::remove_dir_all(site.path("own-state")).ok();
        }
        let mut child = start();
        std::thread::sleep(cold.mul_f64(fastrand::f64()));
        child.kill().expect("kill the child");
        child.wait().expect("wait for the end of the process");
        if kill % 4 == 3 {
            let began = Instant::now();
            let output = start().wait_with_output().expect("wait for the end of the process");
            slowest = slowest.max(began.elapsed());
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let fine = output.status.success() && said.contains("0 refused");
            damaged += usize::from(!fine || said.contains("damaged"));
            assert!(fine, "after a kill: {said}");
        }
    }
    assert_eq!(damaged, 0, "damaged files");
    let line = line(context, "");
    assert_eq!(read_text(&line, "belljar://own-0/x"), "fine");
    format!(
        "{kills} kills, no damaged file, ready again within {} ms (cold: {} ms)",
        slowest.as_millis(),
        cold.as_millis()
    )
}

/// belljar calls an operation that crashes repeatedly less and less often. It still serves other operations of the
/// mount, and other mounts.
fn crash_loop(context: &RowContext<'_>) -> String {
    let crash = || {
        let error = context.read("trap").expect_err("an error");
        assert_eq!(kind(&error), "trap", "{error}");
        error.message.contains("next attempt in")
    };
    let (mut without_call, mut calls) = (0, 0);
    // On a busy machine, the first pauses may end before the next call.
    while calls < 10 || without_call == 0 && calls < 50 {
        calls += 1;
        without_call += u32::from(crash());
        let listed = context.request("resources/list", json!({})).unwrap_or_else(|error| panic!("{error}"));
        assert!(listed.to_string().contains("belljar://witness/static-text"), "{listed}");
    }
    assert!(without_call > 0, "belljar called the provider each time");
    assert_eq!(text(&context.read("ok")), Some("fine"));
    let began = Instant::now();
    while crash() {
        assert!(in_time(began.elapsed(), Duration::from_secs(20)), "belljar never calls the provider again");
        std::thread::sleep(Duration::from_millis(100));
    }
    "the error for a trap, mostly without a call; a new call after a pause".to_owned()
}
