//! One call of the hostile guest (`tests/guests/hostile`) exceeds a limit, in each possible way. The
//! real server stops the call with an error that names the limit. Meanwhile it answers reads of the witness, a harmless
//! mount.

use std::fs;
use std::process::Command;

use belljar_tests::{Client, Era, Site, Stdio, places};
use serde_json::json;

use crate::support::component::HandWritten;
use crate::support::{
    self, LAUNCHER, Reached, WORKER, assert_clean, attack_by_read, cure, hostile_guest, reached, serve, site,
    stdout_and_stderr, witness,
};

const TIME: &str = "time = \"700ms\"";
const FUEL: &str = "fuel = 20_000_000";
const MEMORY: &str = "memory = \"8MiB\"";
const RESULT: &str = "result = \"64KiB\"";

/// Reads `reference` of a hostile guest with `limits`. The read must fail because of a limit.
fn reached_limit(limits: &str, reference: &str) -> Reached {
    let site = hostile_guest(limits);
    let mut client = serve(&site);
    let attack = attack_by_read(&mut client, &format!("belljar://hostile/{reference}"));
    let error = attack.answer.expect_err("an error");
    let ended = client.close();
    assert!(ended.status.success(), "{}", ended.stderr);
    reached(&error, "hostile")
}

#[test]
fn the_error_names_the_reached_limit() {
    for (limits, reference, limit, cap) in [
        (FUEL, "spin", "fuel", 20_000_000),
        ("fuel = 1_000_000", "busy", "fuel", 1_000_000),
        (FUEL, "fill", "fuel", 20_000_000),
        (MEMORY, "grow/64", "memory", 8 << 20),
        (MEMORY, "text/60000000", "memory", 8 << 20),
        ("", "grow/100000", "memory", 64 << 20),
        ("", "recurse/0", "stack", 512 << 10),
        (RESULT, "text/200000", "result", 64 << 10),
        (RESULT, "blob/200000", "result", 64 << 10),
        (RESULT, "blob/65536", "result", 64 << 10),
        (RESULT, "many/5000", "result", 64 << 10),
        ("", "text/20000000", "result", 8 << 20),
        ("handles = 100", "handles/200", "handles", 100),
        ("", "handles/1000000", "handles", 1024),
        ("random = \"1KiB\"", "random/2000", "random", 1 << 10),
        ("", "random/30000000", "random", 1 << 20),
    ] {
        let reached = reached_limit(limits, reference);
        assert_eq!((reached.limit.as_str(), reached.cap), (limit, cap), "{limits} {reference}");
        if limit != "stack" {
            cure(&reached, "hostile");
        }
    }
}

/// Sets the limit to the value in the hint. Then the same read must succeed. On a busy machine the read may reach the
/// time limit again. Then the test follows the next hint.
#[test]
fn the_read_succeeds_with_the_limit_from_the_hint() {
    for (limits, reference, expected) in [
        (TIME, "sleep/900", "slept 900 ms"),
        ("fuel = 200_000", "recurse/5000", "5000 frames"),
        ("memory = \"4MiB\"", "grow/4", "4 MiB"),
        (RESULT, "text/100000", "xxx"),
        ("handles = 100", "handles/80", "80 handles"),
        ("random = \"1KiB\"", "random/4000", "4000 random bytes"),
    ] {
        let mut reached = reached_limit(limits, reference);
        let text = loop {
            let site = hostile_guest(&cure(&reached, "hostile"));
            let mut client = serve(&site);
            match client.read(&format!("belljar://hostile/{reference}")) {
                Ok(result) => break result["contents"][0]["text"].as_str().unwrap().to_owned(),
                Err(error) => {
                    let again = support::reached(&error, "hostile");
                    assert!(again.limit == "time" && again.cap > reached.cap, "{error} after {reached:?}");
                    reached = again;
                }
            }
        };
        assert!(
            text.starts_with(expected),
            "{limits} {reference}: {:?} after {reached:?}",
            text.get(..100).unwrap_or(&text)
        );
    }
}

/// The configuration must accept the line of every hint.
#[test]
fn the_hint_of_a_limit_is_accepted_by_the_configuration() {
    for (limits, reference, expected) in [
        // The host creates the random bytes before the guest gets them, so it needs the same memory.
        ("memory = \"256MiB\"", "random/50000000", "50000000 random bytes"),
        ("memory = \"3GiB\"\nresult = \"200MiB\"\ntime = \"60s\"\nfuel = 1_000_000_000_000", "text/220000000", "xxx"),
    ] {
        let reached = reached_limit(limits, reference);
        let line = cure(&reached, "hostile");
        let kept: Vec<_> = limits.lines().filter(|limit| !limit.starts_with(&reached.limit)).collect();
        let site = hostile_guest(&format!("{}\n{line}", kept.join("\n")));
        let output = site.run(&["check"]);
        assert!(output.status.success(), "{line}: {}", stdout_and_stderr(&output));
        let text = serve(&site).text(&format!("belljar://hostile/{reference}"));
        assert!(text.starts_with(expected), "{reference}: {:?}", text.get(..100).unwrap_or(&text));
    }
}

/// The time in the queue counts as time of the call. The first of two calls takes three quarters of the limit, so the
/// second one has too little time left. On a busy machine both calls may reach the limit. Then the test repeats both
/// with twice the time.
#[test]
fn time_in_the_queue_counts_for_the_time_limit() {
    for seconds in [2, 4, 8, 16, 32] {
        let site = hostile_guest(&format!("time = \"{seconds}s\"\nqueue = \"120s\"\nconcurrency = 1"));
        let mut client = serve(&site);
        let ids = [0, 1].map(|n| {
            let uri = format!("belljar://hostile/sleep/{}", seconds * 750 + n);
            client.send("resources/read", json!({ "uri": uri }))
        });
        let errors: Vec<_> = ids.into_iter().filter_map(|id| client.wait(id).err()).collect();
        assert!(!errors.is_empty(), "the time in the queue did not count: both calls succeeded");
        for error in &errors {
            assert_eq!(reached(error, "hostile").limit, "time", "{error}");
        }
        if errors.len() == 1 {
            return;
        }
    }
    panic!("no call of 24 s ended within 32 s");
}

/// A refused growth of memory is no error if the guest continues without it.
#[test]
fn a_guest_that_continues_after_a_refused_growth_is_served() {
    let hand = HandWritten {
        read: "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
            (loop $l (br_if $l (i32.ne (memory.grow (i32.const 100)) (i32.const -1))))",
        ..HandWritten::default()
    };
    let site = site("[mounts.hand.limits]\nmemory = \"2MiB\"\n");
    hand.mount(&site, "hand");
    let mut client = serve(&site);
    for _ in 0..5 {
        assert_eq!(client.text("belljar://hand/x"), "fine");
    }
}

/// The command `belljar read` prints the limit, and the setting that allows more.
#[test]
fn belljar_read_prints_the_limit_and_its_cure() {
    // The endless read gets a short time limit. The other reads get a long one, for busy machines.
    let (short_time, site) = (hostile_guest(&format!("{TIME}\nfuel = 1_000_000_000_000")), hostile_guest(""));
    for (site, uri, parts) in [
        (
            &short_time,
            "belljar://hostile/spin",
            &["the time limit was reached", "set time = ", "[mounts.hostile.limits]"][..],
        ),
        (&site, "belljar://hostile/grow/1000", &["the memory limit was reached", "set memory = "]),
        (&site, "belljar://hostile/trap", &["trapped"]),
        (&site, "belljar://hostile/errors/failed/controls", &["the provider failed", "visible"]),
        (&site, "belljar://hostile/none", &["not found"]),
        (&site, "belljar://hostile/..", &["dot segment"]),
    ] {
        let output = site.run(&["read", uri]);
        let text = stdout_and_stderr(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{uri}: {text}");
        for part in parts {
            assert!(text.contains(part), "{uri}: no {part:?} in {text}");
        }
        text.lines().for_each(assert_clean);
    }
    let output = site.run(&["read", "belljar://hostile/ok"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"fine"[..]));
}

/// Commands that only examine a component do not run it.
#[test]
fn checking_and_inspecting_run_no_code() {
    // The first component would run for 600 s. The second one would trap, and the output would show the trap.
    let site = site("[mounts.loops.limits]\ntime = \"600s\"\nfuel = 1_000_000_000_000_000\n");
    for (name, start) in [("loops", "(loop $l (br $l))"), ("traps", "unreachable")] {
        let fields = format!("(func $s {start}) (start $s)");
        HandWritten { fields: &fields, ..HandWritten::default() }.mount(&site, name);
    }
    let traps = site.path("plugins/traps.wasm");
    for verb in [&["check"][..], &["inspect", traps.to_str().unwrap()]] {
        let output = site.run(verb);
        assert!(
            output.status.success() && !stdout_and_stderr(&output).contains("trapped"),
            "{verb:?}: {}",
            stdout_and_stderr(&output)
        );
    }
    assert_eq!(site.audit().len(), 0);
}

/// The limits hold for each call. If usage added up over calls, the second call would fail.
#[test]
fn each_call_has_the_whole_limit() {
    let site = hostile_guest("memory = \"16MiB\"\nfuel = 50_000_000\nhandles = 100");
    let mut client = serve(&site);
    for _ in 0..20 {
        for (reference, expected) in [("grow/10", "10 MiB"), ("handles/40", "40 handles")] {
            assert_eq!(client.text(&format!("belljar://hostile/{reference}")), expected);
        }
    }
}

#[test]
fn a_large_answer_within_its_limit_is_delivered() {
    let site = hostile_guest("result = \"32MiB\"\nmemory = \"128MiB\"");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://hostile/text/20000000").len(), 20_000_000);
    assert_eq!(client.blob("belljar://hostile/blob/10000000"), vec![0xff; 10_000_000]);
}

/// A site whose hostile guest may read files. A shell runs the line `shell` and then starts belljar.
fn serve_after(shell: &str) -> (Site, Client<Stdio>) {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nfs = { \"/d\" = \"data\" }\n");
    site.write("data/a.txt", "fine");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell}; exec \"$@\""), "sh"]).arg(places::host());
    command.args(site.arguments(&["serve"])).env_clear().envs(site.environment()).current_dir(site.path(""));
    let client = Client::connect(Stdio::start(command), Era::Stateless);
    (site, client)
}

/// The soft and the hard limit of open files of a process.
fn open_files(pid: u32) -> (u64, u64) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// The child processes of a process.
fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |child: &u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    all.filter(|child| parent(child) == Some(pid)).collect()
}

/// belljar raises a low soft limit of open files to the hard limit. Its child processes do not inherit the raised
/// limit.
#[test]
fn the_documented_number_of_handles_is_available_with_a_low_soft_limit() {
    let (_site, mut client) = serve_after("ulimit -Sn 256");
    witness(&mut client);
    let pid = client.wire().process.id();
    let (soft, hard) = open_files(pid);
    assert_eq!(soft, hard);
    // Eight calls at once need this many descriptors.
    assert!(hard >= 16_384, "the hard limit of this system is {hard} open files; this test needs 16384");
    // A worker process opens the files of its mount, so it needs the raised limit. The launcher hands it on.
    let is_worker = |child: &u32| {
        let line = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1).is_some_and(|verb| [LAUNCHER, WORKER].contains(&verb))
    };
    let children: Vec<u32> = children(pid).into_iter().filter(|child| !is_worker(child)).collect();
    assert!(!children.is_empty());
    assert!(children.iter().all(|child| open_files(*child) == (256, hard)), "{children:?}");
    // Eight calls at once can open exactly the documented number.
    let ids: Vec<_> = (0..8)
        .map(|n| client.send("resources/read", json!({ "uri": format!("belljar://hostile/handles/{}", 100_000 + n) })))
        .collect();
    for id in ids {
        let reached = reached(&client.wait(id).unwrap_err(), "hostile");
        assert_eq!((reached.limit.as_str(), reached.cap), ("handles", 1024));
        cure(&reached, "hostile");
    }
}

/// If the hard limit of open files is too low, the hint names the setting of the system and the setting `calls`.
#[test]
fn the_hint_for_too_few_open_files_names_the_system_limit() {
    let (_site, mut client) = serve_after("ulimit -n 512");
    witness(&mut client);
    let id = client.send("resources/read", json!({ "uri": "belljar://hostile/handles/5000" }));
    let reached = reached(&client.wait(id).unwrap_err(), "hostile");
    assert_eq!(reached.limit, "open-files");
    assert!(reached.cap < 1024, "{reached:?}");
    let hint = reached.hint.unwrap();
    assert!(hint.contains("ulimit -Hn") && hint.contains("calls") && !hint.contains("handles ="), "{hint}");
}
