//! Hostile rows about a failing machine: full disks, damaged files, exhausted descriptors, and a process that stands
//! still for seconds. Each row runs the real `belljar` binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use belljar_tests::{Era, process};
use serde_json::json;

use crate::expect::{kind, text};
use crate::lifecycle::numbered;
use crate::row::{Row, RunMode, Stops, bare, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{check, deadline, in_time, line, read, read_text, run, server, shown, within};

const WITNESS: &str = "belljar://witness/static-text";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("INF-01", "belljar is killed while it serves")
            .run_mode(RunMode::Unstarted)
            .measures()
            .act(killed_server)
            .stopped(Stops::Structure("a server changes no permanent file while it serves")),
        bare("INF-02", "compiled code and keys cannot be stored: no directory, a full disk, a read-only disk")
            .prepare(|site| site.drop_in("own.wasm", numbered(2)))
            .run_mode(RunMode::Unstarted)
            .act(full_disk)
            .stopped(Stops::Structure("belljar compiles again if it cannot store compiled code")),
        hostile_guest("INF-03", "all descriptors are used, or all address space")
            .config("fs = { \"/d\" = \"granted-inf-03\" }")
            .prepare(|site| drop(site.write("granted-inf-03/a.txt", "fine")))
            .run_mode(RunMode::Unstarted)
            .time(10_000)
            .act(exhausted)
            .stopped_by(&["connections"]),
        hostile_guest("INF-05", "the plugin directory disappears while belljar serves")
            .run_mode(RunMode::Stdio)
            .act(|context| {
                let (plugins, aside) = (context.site().path("plugins"), context.site().path("aside"));
                fs::rename(&plugins, &aside).expect("a rename");
                let answer = context.read("ok");
                fs::rename(&aside, &plugins).expect("a rename");
                assert_eq!(text(&answer), Some("fine"), "{}", shown(&answer));
                assert_eq!(text(&context.read("ok")), Some("fine"));
                "loaded components are still served".to_owned()
            })
            .stopped(Stops::Structure("belljar holds loaded components in memory")),
        hostile_guest("INF-06", "the machine sleeps: the process stands still for seconds during calls")
            .run_mode(RunMode::Unstarted)
            .time(8_000)
            .act(stopped_process)
            .stopped(Stops::Structure("deadlines use a monotonic clock")),
        bare("INF-07", "single bits of the configuration, the lock, the key and the cache are flipped")
            .prepare(|site| {
                for n in 0..20 {
                    site.drop_in(&format!("own-{n}.wasm"), numbered(n));
                }
            })
            .run_mode(RunMode::Unstarted)
            .measures()
            .act(damaged_files)
            .stopped_by(&["cache"]),
    ]
}

/// The number in the environment variable `name`, or `otherwise`.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Kills a server during reads, many times. Each new server must be ready within ten seconds. Then no component may be
/// refused.
fn killed_server(context: &RowContext<'_>) -> String {
    let kills = number("BELLJAR_KILLS", 15);
    let uri = context.uri("text/100000");
    let mut ready = Vec::new();
    for _ in 0..kills {
        let began = Instant::now();
        let line = line(context, "");
        assert!(read_text(&line, WITNESS).starts_with("This is"));
        ready.push(began.elapsed());
        for _ in 0..20 {
            line.send("resources/read", json!({ "uri": uri }));
        }
        std::thread::sleep(Duration::from_millis(fastrand::u64(..15)));
        line.process.kill();
    }
    let checked = check(context);
    assert!(checked["refused"].as_array().is_some_and(Vec::is_empty), "{checked}");
    let p99 = crate::oracle::percentile(&ready, 99);
    assert!(p99 < Duration::from_secs(10), "ready after {p99:?}");
    format!("{kills} kills, ready again within {} ms (99 %)", p99.as_millis())
}

/// Runs belljar with a cache that it cannot write. It must serve, and its log must say that it stores no compiled code.
fn full_disk(context: &RowContext<'_>) -> String {
    let site = context.site();
    let mut tested = Vec::new();
    let directory = |name: &str| {
        let path = site.path(name);
        fs::create_dir_all(&path).expect("a directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("permissions");
        path.display().to_string()
    };
    let assert_serves = |failure: &str, shell: &str, cache: &str, state: &str| {
        let mut command = context.running.command(&["read", "belljar://own/x"], shell);
        command.env("XDG_CACHE_HOME", cache).env("XDG_STATE_HOME", state);
        let output = process::run(command, deadline(Duration::from_secs(120)));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && output.stdout.starts_with(b"fine"), "{failure}: {said}");
        assert!(
            ["is not cached", "no permanent key", "cannot store compiled code"]
                .iter()
                .any(|words| said.contains(words)),
            "the log does not report the failure ({failure}): {said}"
        );
    };
    let state = directory("full-state");
    // Use a file in the place of the directory.
    let file = site.write("a-file", "x").display().to_string();
    assert_serves("no directory", "", &file, &file);
    tested.push("no directory");
    // Use a small file system, if this process may mount one.
    let disk = directory("disk");
    let mount = |arguments: &[&str]| {
        std::process::Command::new("mount")
            .args(arguments)
            .arg(&disk)
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if mount(&["-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs"]) {
        let small = format!("{disk}/cache");
        fs::create_dir(&small).expect("a directory");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_serves("a small disk", "", &small, &state)
        }));
        let read_only = mount(&["-o", "remount,ro"]);
        let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if read_only {
                assert_serves("a read-only disk", "", &small, &small);
            }
        }));
        std::process::Command::new("umount").arg(&disk).status().ok();
        [outcome, second]
            .into_iter()
            .for_each(|part| part.unwrap_or_else(|failure| std::panic::resume_unwind(failure)));
        tested.extend(["a small disk", "a read-only disk"]);
    } else {
        tested.push("(this process may not mount a disk: a small disk is NOT TESTED)");
    }
    format!("serves with {}", tested.join(", "))
}

/// Runs a server with few descriptors. Then runs a command with less address space than a start needs; it must fail
/// with a reason.
fn exhausted(context: &RowContext<'_>) -> String {
    let server = server(context, "ulimit -n 96");
    let mut client = server.client(Era::Stateless);
    assert!(client.text(WITNESS).starts_with("This is"));
    // Open more connections than the server has descriptors. belljar must evict silent connections.
    let held: Vec<_> = (0..150).filter_map(|_| std::net::TcpStream::connect(server.address()).ok()).collect();
    let asked = Instant::now();
    let served = within(Duration::from_secs(10), || {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.client(Era::Stateless).text(WITNESS)))
            .is_ok_and(|text| text.starts_with("This is"))
    });
    let served = served && in_time(asked.elapsed(), Duration::from_secs(20));
    assert!(served, "a new client is not served while 150 connections are open");
    drop(held);
    let hoarded = server.client(Era::Stateless).read(&context.uri("hoard/500%252Fa%252Etxt"));
    let hoarded = hoarded.map_or_else(|error| kind(&error).to_owned(), |_| "served".to_owned());
    assert!(server.client(Era::Stateless).text(WITNESS).starts_with("This is"));
    drop(server);
    let (fine, said) = {
        let output =
            process::run(context.running.command(&["check"], "ulimit -v 2000000"), deadline(Duration::from_secs(120)));
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(!fine && said.contains("address space") && !said.contains("panicked"), "{said}");
    let (fine, said) = run(context, &["check"]);
    assert!(fine, "{said}");
    format!(
        "served with 96 descriptors (a read that opens many files: {hoarded}); a start with too little address space fails with a reason"
    )
}

/// Pauses the process with SIGSTOP for three seconds, during calls. Each call must still succeed, and have one answer.
fn stopped_process(context: &RowContext<'_>) -> String {
    let line = line(context, "");
    let process = &line.process;
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    let pid = rustix::process::Pid::from_raw(process.id().cast_signed()).expect("a process");
    let signal = |signal| rustix::process::kill_process(pid, signal).expect("the process of this test");
    let begin = |reference| line.send("resources/read", json!({ "uri": context.uri(reference) }));
    let ids = ["sleep/1000", "sleep/2500", "text/1000"].map(begin);
    std::thread::sleep(Duration::from_millis(100));
    signal(rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    signal(rustix::process::Signal::CONT);
    for id in ids {
        let (answer, _) = line.wait(id, deadline(Duration::from_secs(15))).expect("an answer to each read");
        assert!(answer.is_ok(), "{}", shown(&answer));
    }
    let answer = read(&line, &context.uri("ok"));
    assert_eq!(text(&answer), Some("fine"));
    assert_eq!(line.violations(), Vec::<String>::new());
    "one answer to each call, after the pause".to_owned()
}

/// Flips one bit of a file at a time. belljar must refuse a damaged file or create it again. It may use a changed
/// configuration only as written.
fn damaged_files(context: &RowContext<'_>) -> String {
    let site = context.site();
    let flips = number("BELLJAR_FLIPS", 40);
    let path_text = |name: &str| site.path(name).display().to_string();
    let run = |verb: &[&str]| {
        let mut command = context.running.command(verb, "");
        command.env("XDG_CACHE_HOME", path_text("own-cache")).env("XDG_STATE_HOME", path_text("own-state"));
        let output = process::run(command, deadline(Duration::from_secs(120)));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    };
    // The configuration: belljar must refuse the changed text with a reason, or use it. No flip may give a mount a
    // directory.
    let config = "[limits]\ntime = \"5s\"\nmemory = \"8MiB\"\n[mounts.own-0]\nenv = { A = \"b\" }\nlimits = { fuel = 5000000, handles = 64 }\n";
    site.config(config);
    let (code, said) = run(&["check", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let mut refused = 0;
    for flip in 0..flips {
        let mut bytes = config.as_bytes().to_vec();
        let at = fastrand::usize(..bytes.len());
        bytes[at] ^= 1 << fastrand::u32(..8);
        site.write("belljar.toml", &bytes);
        let (code, said) = run(&["check", "--json"]);
        match code {
            Some(0) => {}
            Some(1) => {
                refused += 1;
                assert!(
                    said.contains("belljar: ") || said.contains("\"refused\""),
                    "flip {flip} of byte {at}: no reason: {said}"
                );
            }
            other => panic!("flip {flip} of byte {at}: exit {other:?}: {said}"),
        }
        assert!(!said.contains("panicked") && !said.contains("\"fs: "), "flip {flip} of byte {at}: {said}");
    }
    site.config(config);
    // The lock: the component of `own-0` is replaced, so its mount is in quarantine. No flip in the lock may end the
    // quarantine.
    let (code, said) = run(&["list"]);
    assert_eq!(code, Some(0), "{said}");
    let whole = fs::read(site.path("belljar.lock")).expect("a lock");
    site.drop_in("own-0.wasm", numbered(99));
    for flip in 0..flips {
        let mut bytes = whole.clone();
        let at = fastrand::usize(..bytes.len());
        bytes[at] ^= 1 << fastrand::u32(..8);
        site.write("belljar.lock", &bytes);
        let (code, said) = run(&["check", "--json"]);
        let is_quarantined = said.contains("\"quarantined\": [\n") && said.contains("\"name\": \"own-0\"");
        assert!(
            code == Some(1) && is_quarantined && !said.contains("panicked"),
            "flip {flip} of byte {at} of the lock: {said}"
        );
    }
    site.write("belljar.lock", &whole);
    site.drop_in("own-0.wasm", numbered(0));
    // The cache: flip a bit in each file. belljar must load none of the files, and still serve all mounts.
    let mut damages = 0;
    let cache = site.path("own-cache/belljar");
    let rounds = (flips / 20).max(1);
    for round in 0..rounds {
        for entry in fs::read_dir(&cache).expect("a cache").flatten().filter(|entry| entry.path().is_file()) {
            let mut bytes = fs::read(entry.path()).expect("a file");
            let at = fastrand::usize(..bytes.len());
            bytes[at] ^= 1 << fastrand::u32(..8);
            fs::write(entry.path(), bytes).expect("a file");
            damages += 1;
        }
        let (code, said) = run(&["check"]);
        assert!(code == Some(0) && said.contains(" 0 refused"), "round {round}: {said}");
        assert!(
            said.contains("is damaged or was not made by this belljar"),
            "round {round}: belljar loaded damaged code: {said}"
        );
    }
    // The key: belljar must report a key that is too short. With another key, all existing compiled code is invalid.
    let key = site.path("own-state/belljar/key");
    let whole = fs::read(&key).expect("a key");
    fs::write(&key, whole.get(..20).expect("a key is longer")).expect("a key");
    let (code, said) = run(&["check"]);
    assert!(code == Some(0) && said.contains("damaged"), "{said}");
    fs::write(&key, whole.iter().map(|byte| byte ^ 1).collect::<Vec<_>>()).expect("a key");
    let (code, said) = run(&["check"]);
    assert!(code == Some(0) && said.contains("damaged or was not made by this belljar"), "{said}");
    format!(
        "{flips} flips in the configuration, {refused} refused; {flips} in the lock, none trusted; {damages} in the cache, none loaded"
    )
}
