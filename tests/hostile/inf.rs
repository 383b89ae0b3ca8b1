//! A machine that fails: disks that are full, files that are damaged, limits that are met, time that stands still.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use belljar_tests::{Era, process};
use serde_json::json;

use crate::expect::{kind, text};
use crate::lif::numbered;
use crate::row::{Row, Stops, Way, bare, imp};
use crate::scene::Scene;
use crate::tools::{check, line, read, read_text, run, server, shown, within};

const WITNESS: &str = "belljar://witness/static-text";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("INF-01", "belljar is killed while it serves")
            .way(Way::Unstarted)
            .measures()
            .act(killed)
            .stopped(Stops::Structure("nothing that lasts is changed by serving")),
        bare("INF-02", "no room, no permission or no medium for compiled code and keys")
            .prepare(|site| site.drop_in("own.wasm", numbered(2)))
            .way(Way::Unstarted)
            .act(full)
            .stopped(Stops::Structure("what cannot be kept is made again")),
        imp("INF-03", "no more descriptors, no more address space")
            .config("fs = { \"/d\" = \"granted-inf-03\" }")
            .prepare(|site| drop(site.write("granted-inf-03/a.txt", "fine")))
            .way(Way::Unstarted)
            .time(10_000)
            .act(exhausted)
            .stopped_by(&["connections"]),
        imp("INF-05", "the plugin directory is gone while belljar serves")
            .way(Way::Stdio)
            .act(|scene| {
                let (plugins, aside) = (scene.site().path("plugins"), scene.site().path("aside"));
                fs::rename(&plugins, &aside).expect("a rename");
                let answer = scene.read("ok");
                fs::rename(&aside, &plugins).expect("a rename");
                assert_eq!(text(&answer), Some("fine"), "{}", shown(&answer));
                assert_eq!(text(&scene.read("ok")), Some("fine"));
                "what is loaded is served".to_owned()
            })
            .stopped(Stops::Structure("loaded components are held in memory")),
        imp("INF-06", "the machine sleeps: the process stands still for seconds in the middle of calls")
            .way(Way::Unstarted)
            .time(8_000)
            .act(asleep)
            .stopped(Stops::Structure("deadlines are of the clock that only goes forward")),
        bare("INF-07", "single bytes of the configuration, the lock, the key and the cache are damaged")
            .prepare(|site| {
                for n in 0..20 {
                    site.drop_in(&format!("own-{n}.wasm"), numbered(n));
                }
            })
            .way(Way::Unstarted)
            .measures()
            .act(damaged)
            .stopped_by(&["cache"]),
    ]
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Kills a server in the middle of reads, again and again: each next one is ready soon, and has the same catalog.
fn killed(scene: &Scene<'_>) -> String {
    let kills = number("BELLJAR_KILLS", 15);
    let uri = scene.uri("text/100000");
    let mut ready = Vec::new();
    for _ in 0..kills {
        let began = Instant::now();
        let line = line(scene, "");
        assert!(read_text(&line, WITNESS).starts_with("This is"));
        ready.push(began.elapsed());
        for _ in 0..20 {
            line.send("resources/read", json!({ "uri": uri }));
        }
        std::thread::sleep(Duration::from_millis(fastrand::u64(..15)));
        line.process.kill();
    }
    let checked = check(scene);
    assert!(checked["refused"].as_array().is_some_and(Vec::is_empty), "{checked}");
    let p99 = crate::oracle::percentile(&ready, 99);
    assert!(p99 < Duration::from_secs(10), "ready after {p99:?}");
    format!("{kills} kills, ready again within {} ms (99 %)", p99.as_millis())
}

/// Serves although nothing can be kept.
fn full(scene: &Scene<'_>) -> String {
    let site = scene.site();
    let mut told = Vec::new();
    let own = |name: &str| {
        let path = site.path(name);
        fs::create_dir_all(&path).expect("a directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("permissions");
        path.display().to_string()
    };
    let serves = |what: &str, shell: &str, cache: &str, state: &str| {
        let mut command = scene.stage.command(&["read", "belljar://own/x"], shell);
        command.env("XDG_CACHE_HOME", cache).env("XDG_STATE_HOME", state);
        let output = process::run(command, Duration::from_secs(60));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && output.stdout.starts_with(b"fine"), "{what}: {said}");
        assert!(
            said.contains("kept") || said.contains("keep") || said.contains("lasting key"),
            "{what} is not told: {said}"
        );
    };
    let state = own("full-state");
    // A file where the directory goes.
    let file = site.write("a-file", "x").display().to_string();
    serves("no directory", "", &file, &file);
    told.push("no directory");
    // A small disk, where this process may mount one.
    let disk = own("disk");
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
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| serves("a small disk", "", &small, &state)));
        let read_only = mount(&["-o", "remount,ro"]);
        let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if read_only {
                serves("a disk that is read-only", "", &small, &small);
            }
        }));
        std::process::Command::new("umount").arg(&disk).status().ok();
        [outcome, second]
            .into_iter()
            .for_each(|part| part.unwrap_or_else(|failure| std::panic::resume_unwind(failure)));
        told.extend(["a small disk", "a read-only disk"]);
    } else {
        told.push("(no disk could be mounted here: a small one is NOT TESTED)");
    }
    format!("serves with {}", told.join(", "))
}

/// Few descriptors, and less address space than a start needs.
fn exhausted(scene: &Scene<'_>) -> String {
    let server = server(scene, "ulimit -n 96");
    let mut client = server.client(Era::Modern);
    assert!(client.text(WITNESS).starts_with("This is"));
    // More connections than descriptors: whoever says nothing gives way.
    let held: Vec<_> = (0..150).filter_map(|_| std::net::TcpStream::connect(server.address()).ok()).collect();
    let asked = Instant::now();
    let served = within(Duration::from_secs(10), || {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.client(Era::Modern).text(WITNESS)))
            .is_ok_and(|text| text.starts_with("This is"))
    });
    let served = served && asked.elapsed() < Duration::from_secs(20);
    assert!(served, "nobody is served while 150 connections are open");
    drop(held);
    let hoarded = server.client(Era::Modern).read(&scene.uri("hoard/500%252Fa%252Etxt"));
    let hoarded = hoarded.map_or_else(|error| kind(&error).to_owned(), |_| "served".to_owned());
    assert!(server.client(Era::Modern).text(WITNESS).starts_with("This is"));
    drop(server);
    let (fine, said) = {
        let output = process::run(scene.stage.command(&["check"], "ulimit -v 2000000"), Duration::from_secs(30));
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(!fine && said.contains("address space") && !said.contains("panicked"), "{said}");
    let (fine, said) = run(scene, &["check"]);
    assert!(fine, "{said}");
    format!("served with 96 descriptors (hoarding: {hoarded}); too little address space is told at the start")
}

/// Stops the process for longer than some calls' time.
fn asleep(scene: &Scene<'_>) -> String {
    let line = line(scene, "");
    let process = &line.process;
    assert!(read_text(&line, WITNESS).starts_with("This is"));
    let pid = rustix::process::Pid::from_raw(process.id().cast_signed()).expect("a process");
    let signal = |signal| rustix::process::kill_process(pid, signal).expect("a process of ours");
    let begin = |reference| line.send("resources/read", json!({ "uri": scene.uri(reference) }));
    let ids = ["sleep/1000", "sleep/2500", "text/1000"].map(begin);
    std::thread::sleep(Duration::from_millis(100));
    signal(rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    signal(rustix::process::Signal::CONT);
    for id in ids {
        let (answer, _) = line.wait(id, Duration::from_secs(15)).expect("an answer to each");
        assert!(answer.is_ok(), "{}", shown(&answer));
    }
    let answer = read(&line, &scene.uri("ok"));
    assert_eq!(text(&answer), Some("fine"));
    assert_eq!(line.violations(), Vec::<String>::new());
    "each answered after it, once".to_owned()
}

/// Damages a byte at a time; what is damaged is refused or made again, never used.
fn damaged(scene: &Scene<'_>) -> String {
    let site = scene.site();
    let flips = number("BELLJAR_FLIPS", 40);
    let own = |name: &str| site.path(name).display().to_string();
    let run = |verb: &[&str]| {
        let mut command = scene.stage.command(verb, "");
        command.env("XDG_CACHE_HOME", own("own-cache")).env("XDG_STATE_HOME", own("own-state"));
        let output = process::run(command, Duration::from_secs(100));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    };
    // The configuration: each flip is refused with a reason, or means what it says; it never grants what was not written.
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
    // The lock: with other bytes in the place of those that hold the grant, no damage makes them trusted.
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
        let held = said.contains("\"quarantined\": [\n") && said.contains("\"name\": \"own-0\"");
        assert!(code == Some(1) && held && !said.contains("panicked"), "flip {flip} of byte {at} of the lock: {said}");
    }
    site.write("belljar.lock", &whole);
    site.drop_in("own-0.wasm", numbered(0));
    // The cache: every file of it, a byte in each, and everything is served all the same.
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
            "round {round}: damaged code was loaded: {said}"
        );
    }
    // The key: too short is told; another one makes all that it sealed worthless.
    let key = site.path("own-state/belljar/key");
    let whole = fs::read(&key).expect("a key");
    fs::write(&key, whole.get(..20).expect("a key is longer")).expect("a key");
    let (code, said) = run(&["check"]);
    assert!(code == Some(0) && said.contains("damaged"), "{said}");
    fs::write(&key, whole.iter().map(|byte| byte ^ 1).collect::<Vec<_>>()).expect("a key");
    let (code, said) = run(&["check"]);
    assert!(code == Some(0) && said.contains("damaged or was not made by this belljar"), "{said}");
    format!(
        "{flips} flips of the configuration, {refused} refused; {flips} of the lock, none trusted; {damages} of the cache, none loaded"
    )
}
