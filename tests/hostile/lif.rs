//! Lifecycle: what lies in the plugin directory, how it is compiled, and what becomes of it when belljar is killed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Child;
use std::time::{Duration, Instant};

use belljar_tests::{Site, places, process};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::expect::{cut, is_clean, kind, text};
use crate::hand::{Hand, assemble};
use crate::row::{Row, Stops, Way, bare, imp, made};
use crate::scene::Scene;
use crate::tools::{check, line, read, read_text, refusal, within};

/// A row whose script starts belljar itself, on what `fill` puts into the plugin directory.
fn dropped(id: &'static str, attack: &'static str, fill: impl Fn(&Site) + Send + Sync + 'static) -> Row {
    bare(id, attack).prepare(fill).way(Way::Unstarted)
}

/// A provider of its own for each number: same behaviour, other bytes.
pub(crate) fn numbered(n: usize) -> Vec<u8> {
    Hand { fields: &format!("(global $own i32 (i32.const {n}))"), ..Hand::default() }.assemble()
}

/// A component that looks like a provider and is not valid: its code is damaged.
fn broken(n: usize) -> Vec<u8> {
    let mut bytes = numbered(n);
    let read = bytes.windows(4).rposition(|window| window == b"fine").expect("the text of the answer");
    // A data segment that begins far outside of its memory is found by the compiler only; so is an odd opcode.
    for byte in &mut bytes[read - 24..read - 8] {
        *byte = 0xff;
    }
    bytes
}

/// A component whose compilation takes long: one function with very many blocks and locals.
fn bomb() -> Vec<u8> {
    let blocks = "(block (br_if 0 (local.get 0)) (local.set 1 (i64.mul (local.get 1) (local.get 2))))".repeat(400_000);
    let text = format!("(func $bomb (param i32) (local i64 i64) {blocks})");
    Hand { fields: &text, ..Hand::default() }.assemble()
}

/// The processes that a process started and that run.
fn children(of: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("a /proc").flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    ids.filter(|id| parent(*id) == Some(of)).collect()
}

/// While a bomb is compiled, the witness answers; what the compiler may use is what the kernel says.
fn compiled(scene: &Scene<'_>, limits: &[(&str, &str)]) -> String {
    let line = line(scene, "");
    let mut told = String::new();
    let found = within(Duration::from_secs(30), || {
        children(line.process.id()).into_iter().any(|child| {
            told = fs::read_to_string(format!("/proc/{child}/limits")).unwrap_or_default();
            let own =
                |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_start();
            limits.iter().all(|(name, value)| own(name).starts_with(value))
        })
    });
    assert!(found, "no compiler process has these limits: {limits:?}; the last one: {told}");
    let began = Instant::now();
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let asked = Instant::now();
        let text = read_text(&line, "belljar://witness/static-text");
        assert!(text.starts_with("This is the content"), "{text}");
        worst = worst.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(worst < Duration::from_secs(5), "the witness took {worst:?} while it was compiled");
    format!("witness at worst {} ms in {} ms", worst.as_millis(), began.elapsed().as_millis())
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        dropped("LIF-01", "a component that takes its compiler's time", |site| site.drop_in("bomb.wasm", bomb()))
            .act(|scene| compiled(scene, &[("Max cpu time", "60 ")]))
            .stopped_by(&["compiler"]),
        dropped("LIF-02", "a component that takes its compiler's memory, files or disk", |site| {
            site.drop_in("bomb.wasm", bomb());
        })
        .act(|scene| {
            compiled(
                scene,
                &[
                    ("Max address space", "4294967296 "),
                    ("Max open files", "64 "),
                    ("Max file size", "0 "),
                    ("Max core file size", "0 "),
                ],
            )
        })
        .stopped_by(&["compiler"]),
        dropped("LIF-03", "a component of 256 MiB without content", |site| {
            site.drop_in("huge.wasm", "");
            let file = fs::File::options().write(true).open(site.path("plugins/huge.wasm")).expect("a file");
            file.set_len(256 << 20).expect("a sparse file");
        })
        .act(|scene| {
            let reason = refusal(&check(scene), "huge");
            assert!(reason.contains("over the limit of 64MiB") && reason.contains("component ="), "{reason}");
            "refused by its size".to_owned()
        })
        .stopped_by(&["component"]),
        made("LIF-04", "a component that holds a grant is exchanged for another one", || answering("AAAA"))
            .config("env = { A = \"b\" }")
            .way(Way::Unstarted)
            .act(rug_pull)
            .stopped_by(&["pin"]),
        dropped("LIF-05", "a component is exchanged for another one while it is loaded", |_| {})
            .act(exchanged)
            .stopped(Stops::Structure("a file is read once; what is hashed is what is compiled")),
        dropped("LIF-06", "a component that is written only in part", |site| {
            let whole = fs::read(places::component("guest_fixture")).expect("a component");
            for part in 0..16 {
                site.drop_in(&format!("part-{part}.wasm"), &whole[..whole.len() * part / 16]);
            }
            site.drop_in("last-byte.wasm", &whole[..whole.len() - 1]);
        })
        .act(|scene| {
            let checked = check(scene);
            for part in 1..16 {
                let reason = refusal(&checked, &format!("part-{part}"));
                assert!(reason.contains("truncated") || reason.contains("ends too early"), "{reason}");
            }
            assert!(refusal(&checked, "part-0").contains("may still be being written"));
            refusal(&checked, "last-byte");
            "refused, each with the reason".to_owned()
        })
        .stopped(Stops::Structure("a component is parsed to its end before anything of it runs")),
        dropped("LIF-07", "files that are no components: text, archives, programs, core modules, links, FIFOs", strangers)
            .act(|scene| {
                let checked = check(scene);
                for (name, why) in STRANGERS {
                    let reason = refusal(&checked, name);
                    assert!(reason.contains(why) && is_clean(&reason), "{name}: {reason}");
                }
                format!("{} refused, each with the reason", STRANGERS.len())
            })
            .stopped_by(&["regular"]),
        dropped("LIF-08", "components that ask for what belljar does not give", |site| {
            for (n, import) in FOREIGN.iter().enumerate() {
                let text = format!(
                    "(component (import \"{import}\" (instance $i)) (export \"belljar:provider/resource-provider@0.1.0\" (instance $i)))"
                );
                site.drop_in(&format!("foreign-{n}.wasm"), assemble(&text));
            }
        })
        .act(|scene| {
            let checked = check(scene);
            for (n, import) in FOREIGN.iter().enumerate() {
                let reason = refusal(&checked, &format!("foreign-{n}"));
                assert!(reason.contains(import), "{import}: {reason}");
            }
            "refused, each import named".to_owned()
        })
        .stopped(Stops::Wasmtime("what is not linked cannot be instantiated")),
        dropped("LIF-09", "components that lack an export, or have it with another type", |site| {
            let hollow = "(component (instance $i) (export \"belljar:provider/resource-provider@0.1.0\" (instance $i)))";
            let other = "(component (core module $m (func (export \"read\") (result i32) (i32.const 1)))
                (core instance $m (instantiate $m))
                (func $read (result u32) (canon lift (core func $m \"read\")))
                (instance $i (export \"read\" (func $read)))
                (export \"belljar:provider/resource-provider@0.1.0\" (instance $i)))";
            site.drop_in("hollow.wasm", assemble(hollow));
            site.drop_in("other.wasm", assemble(other));
        })
        .act(|scene| {
            let checked = check(scene);
            for name in ["hollow", "other"] {
                let reason = refusal(&checked, name);
                assert!(reason.contains("does not fit the interface"), "{name}: {reason}");
            }
            "refused".to_owned()
        })
        .stopped(Stops::Wasmtime("typed bindings")),
        dropped("LIF-10", "1,000 components of which 900 are broken", |site| {
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
        .act(thousand)
        .stopped(Stops::Structure("two at a time are loaded, what failed is remembered, what is compiled comes first")),
        dropped("LIF-11", "files whose names differ in case, in dashes or in the spelling of an accent", |site| {
            for name in ["twin.wasm", "Twin.wasm", "TWIN.wasm", "my-notes.wasm", "my_notes.wasm"] {
                site.drop_in(name, numbered(1));
            }
            for name in ["caf\u{e9}.wasm", "cafe\u{301}.wasm"] {
                site.drop_in(name, numbered(1));
            }
            site.write("plugins/below/twin.wasm", numbered(2));
        })
        .act(|scene| {
            let first = check(scene);
            let files: Vec<&str> = first["mounts"].as_array().expect("mounts").iter().filter_map(|m| m["file"].as_str()).collect();
            for (file, taken) in [("TWIN.wasm", true), ("my-notes.wasm", true), ("twin.wasm", false), ("my_notes.wasm", false)] {
                assert_eq!(files.contains(&file), taken, "{file}: {files:?}");
            }
            assert!(refusal(&first, "twin.wasm").contains("taken by \"TWIN.wasm\""));
            for _ in 0..3 {
                assert_eq!(check(scene), first, "another order");
            }
            "the first by name, always; the others are told".to_owned()
        })
        .stopped_by(&["taken"]),
        imp("LIF-12", "a provider breaks off at every list and every read")
            .config("env = { IMP_LIST = \"trap\" }")
            .way(Way::Stdio)
            .act(crash_loop)
            .stopped_by(&["breaker"]),
        made("LIF-15", "terminal commands in a component's own sections, and debug information that is none", || {
            let mut bytes = Hand { read: "(unreachable)", fields: NAMED, ..Hand::default() }.assemble();
            for (name, content) in [("name", &b"\x00\x1b[31m\xff\xff\xff"[..]), (".debug_info", &[0xff; 5000]), ("\u{1b}[2Jx", b"\x1b[31m")] {
                let mut section = vec![u8::try_from(name.len()).expect("a short name")];
                section.extend_from_slice(name.as_bytes());
                section.extend_from_slice(content);
                bytes.push(0);
                leb(&mut bytes, section.len());
                bytes.extend(section);
            }
            bytes
        })
        .act(|scene| {
            let error = scene.read("x").expect_err("a trap");
            let told = error.to_string();
            assert!(is_clean(&error.message) && !told.contains("evil"), "{}", cut(&told));
            "a trap, without a word of theirs".to_owned()
        })
        .stopped(Stops::Wasmtime("no symbols are kept and no debug information is read")),
        dropped("LIF-16", "others may write to the plugin directory, or own a component in it", |site| {
            site.drop_in("open.wasm", numbered(1));
            site.drop_in("theirs.wasm", numbered(2));
            let open = fs::Permissions::from_mode(0o666);
            fs::set_permissions(site.path("plugins/open.wasm"), open).expect("permissions");
            fs::set_permissions(site.path("plugins"), fs::Permissions::from_mode(0o777)).expect("permissions");
            // Only root can give a file away; elsewhere that part is not tested.
            chown(site.path("plugins/theirs.wasm"), Some(65534), None).ok();
        })
        .act(|scene| {
            let checked = check(scene);
            let warned = |name: &str| -> String {
                let all = checked["mounts"].as_array().expect("mounts");
                all.iter().find(|mount| mount["name"] == name).map(|mount| mount["warnings"].to_string()).unwrap_or_default()
            };
            assert!(warned("open").contains("anyone on this machine can change the file"), "{checked}");
            let given = std::os::unix::fs::MetadataExt::uid(&fs::metadata(scene.site().path("plugins/theirs.wasm")).expect("a file"));
            assert!(given != 65534 || warned("theirs").contains("belongs to another user"), "{checked}");
            let (_, said) = crate::tools::run(scene, &["check"]);
            assert!(said.contains("anyone on this machine can put components"), "{said}");
            "warned of, in check and in the log".to_owned()
        })
        .stopped(Stops::Structure("a warning: who may write there decides what is run, not what it may do")),
        dropped("LIF-17", "belljar is killed at any moment of loading and of writing its cache", |site| {
            for n in 0..4 {
                site.drop_in(&format!("own-{n}.wasm"), numbered(n));
            }
        })
        .measures()
        .act(killed)
        .stopped(Stops::Structure("files are written under another name, then renamed, and authenticated when read")),
    ]
}

const NAMED: &str = "(func $evil (export \"evil\\1b[31m\"))";

fn leb(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

const FOREIGN: [&str; 4] =
    ["evil:host/shell@0.1.0", "wasi:nn/graph@0.2.0", "wasi:filesystem/types@0.3.0", "wasi:keyvalue/store@0.2.0"];

const STRANGERS: [(&str, &str); 10] = [
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

fn strangers(site: &Site) {
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
    symlink(elsewhere, plugins.join("link.wasm")).expect("a link");
    mknodat(CWD, plugins.join("fifo.wasm"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    fs::create_dir(plugins.join("directory.wasm")).expect("a directory");
}

/// A provider that answers every read with these four letters.
pub(crate) fn answering(word: &str) -> Vec<u8> {
    Hand { fields: &format!("(data (i32.const 224) \"{word}\")"), ..Hand::default() }.assemble()
}

/// What was loaded is served; what took its place is not, until it is trusted.
fn rug_pull(scene: &Scene<'_>) -> String {
    let (uri, name) = (scene.uri("x"), scene.name(""));
    let first = line(scene, "");
    assert_eq!(read_text(&first, &uri), "AAAA");
    scene.site().drop_in(&format!("{name}.wasm"), answering("BBBB"));
    let held_back = || match read(&first, &uri) {
        answer @ Ok(_) => {
            assert_eq!(text(&answer), Some("AAAA"), "other bytes are served, untrusted");
            false
        }
        Err(error) => kind(&error) == "unavailable",
    };
    assert!(within(Duration::from_secs(10), held_back), "it goes on being served");
    drop(first);
    let second = line(scene, "");
    for _ in 0..50 {
        let error = read(&second, &uri).expect_err("other bytes are served, untrusted");
        assert_eq!((kind(&error), error.data["mount"] == *name), ("unavailable", true), "{error}");
    }
    assert!(read_text(&second, "belljar://witness/static-text").starts_with("This is"));
    drop(second);
    let checked = check(scene);
    assert_eq!(checked["quarantined"][0]["name"], name.as_str(), "{checked}");
    let third = line(scene, "");
    read(&third, &uri).expect_err("other bytes are served, untrusted");
    let (fine, said) = crate::tools::run(scene, &["trust", &name, "--yes"]);
    assert!(fine, "{said}");
    assert!(within(Duration::from_secs(10), || read(&third, &uri).is_ok()), "it was trusted");
    assert_eq!(read_text(&third, &uri), "BBBB", "once it is trusted");
    "in quarantine while it serves, and after a restart, until it is trusted".to_owned()
}

/// A component is renamed over another one, over and over, while belljar reads it: digest and answer belong together.
fn exchanged(scene: &Scene<'_>) -> String {
    let site = scene.site();
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
                    scene.stage.command(&["read", "belljar://swapped/x", "--json"], ""),
                    Duration::from_secs(60),
                );
                let read: Value = serde_json::from_slice(&output.stdout)
                    .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
                let contents = &read["contents"][0];
                let digest =
                    contents["_meta"]["dev.belljar/digest"].as_str().or(read["digest"].as_str()).unwrap_or_default();
                let text = contents["text"].as_str().unwrap_or_default().to_owned();
                let before = seen.insert(digest.to_owned(), text.clone());
                assert!(before.is_none_or(|before| before == text), "{digest} answers {text} now");
            }
        }));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        runs.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
    assert!(seen.len() <= 2 && !seen.contains_key(""), "{seen:?}");
    format!("{} digests, each with its own answer", seen.len())
}

/// Starts with a thousand components, twice.
fn thousand(scene: &Scene<'_>) -> String {
    let mut took = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        let line = line(scene, "");
        // Those before them by name are compiled first, once.
        let served = |n: &usize| {
            let uri = format!("belljar://good-{n}/x");
            within(Duration::from_secs(60), || crate::expect::text(&read(&line, &uri)) == Some("fine"))
        };
        let good = (0..100).filter(served).count();
        took.push(began.elapsed());
        assert_eq!(good, 100, "good ones");
        assert!(
            within(Duration::from_secs(120), || {
                line.process.stderr().lines().filter(|line| line.contains("is not served: ")).count() >= 900
            }),
            "not all of the others are told"
        );
        took.push(began.elapsed());
    }
    let [first, first_all, second, second_all] = took[..] else { panic!("two starts") };
    assert!(first < Duration::from_secs(90) && second < Duration::from_secs(20), "{took:?}");
    format!(
        "all good ones after {:.1} s, everything {:.1} s; next start {:.1} s, {:.1} s",
        first.as_secs_f64(),
        first_all.as_secs_f64(),
        second.as_secs_f64(),
        second_all.as_secs_f64()
    )
}

/// Kills belljar at random moments of a start with an empty cache, and starts it properly every now and then.
fn killed(scene: &Scene<'_>) -> String {
    let kills: usize = std::env::var("BELLJAR_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let site = scene.site();
    // Only what is compiled anew each time.
    for witness in ["witness", "witness-files"] {
        fs::remove_file(site.path(format!("plugins/{witness}.wasm"))).expect("a witness");
    }
    site.config("");
    let own = |name: &str| site.path(name).display().to_string();
    let (cache, state) = (own("own-cache"), own("own-state"));
    let start = || -> Child {
        let mut command = scene.stage.command(&["check"], "");
        command.env("XDG_CACHE_HOME", &cache).env("XDG_STATE_HOME", &state);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().expect("a process")
    };
    let began = Instant::now();
    start().wait_with_output().expect("an end");
    let cold = began.elapsed();
    let (mut torn, mut slowest) = (0, Duration::ZERO);
    for kill in 0..kills {
        if kill % 4 == 0 {
            fs::remove_dir_all(site.path("own-cache")).ok();
        }
        if kill % 20 == 0 {
            fs::remove_dir_all(site.path("own-state")).ok();
        }
        let mut child = start();
        std::thread::sleep(cold.mul_f64(fastrand::f64()));
        child.kill().expect("a process of ours");
        child.wait().expect("an end");
        if kill % 4 == 3 {
            let began = Instant::now();
            let output = start().wait_with_output().expect("an end");
            slowest = slowest.max(began.elapsed());
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let fine = output.status.success() && said.contains("0 refused");
            torn += usize::from(!fine || said.contains("damaged"));
            assert!(fine, "after a kill: {said}");
        }
    }
    assert_eq!(torn, 0, "torn files");
    let line = line(scene, "");
    assert_eq!(read_text(&line, "belljar://own-0/x"), "fine");
    format!("{kills} kills, 0 torn, ready again within {} ms (cold: {} ms)", slowest.as_millis(), cold.as_millis())
}

/// What breaks off again and again is asked less and less often; what is fine beside it is served, and so are the others.
fn crash_loop(scene: &Scene<'_>) -> String {
    let crash = || {
        let error = scene.read("trap").expect_err("an error");
        assert_eq!(kind(&error), "trap", "{error}");
        error.message.contains("not asked again")
    };
    let mut spared = 0;
    for _ in 0..10 {
        spared += u32::from(crash());
        let listed = scene.request("resources/list", json!({})).unwrap_or_else(|error| panic!("{error}"));
        assert!(listed.to_string().contains("belljar://witness/static-text"), "{listed}");
    }
    assert!(spared > 0, "it was asked each time");
    assert_eq!(text(&scene.read("ok")), Some("fine"));
    let began = Instant::now();
    while crash() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is never asked again");
        std::thread::sleep(Duration::from_millis(100));
    }
    "trap, mostly without asking it; asked again after a pause".to_owned()
}
