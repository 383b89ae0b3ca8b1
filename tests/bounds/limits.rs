//! One call takes more than its share, in each way that there is: it ends within its deadline, says which limit it met,
//! and the witness answers meanwhile.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio, places};
use serde_json::json;

use crate::component::Hand;
use crate::place::{Reached, SLACK, assert_clean, attack_by_read, cure, imp, reached, said, serve, site, witness};

const TIME: &str = "time = \"700ms\"";
const FUEL: &str = "fuel = 20_000_000";
const MEMORY: &str = "memory = \"8MiB\"";
const RESULT: &str = "result = \"64KiB\"";

/// Reads `reference` of an imp with `limits`, which must end at a limit.
fn stopped(limits: &str, reference: &str) -> (Reached, Duration, usize) {
    let site = imp(limits);
    let mut client = serve(&site);
    let attack = attack_by_read(&mut client, &format!("belljar://imp/{reference}"));
    let error = attack.answer.expect_err("an error");
    let ended = client.close();
    assert!(ended.status.success(), "{}", ended.stderr);
    (reached(&error, "imp"), attack.took, attack.witnessed)
}

#[test]
fn each_limit_that_is_reached_is_named() {
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
        let (reached, took, _) = stopped(limits, reference);
        assert_eq!((reached.limit.as_str(), reached.cap), (limit, cap), "{limits} {reference}");
        assert!(took < Duration::from_secs(5) + SLACK, "{limits} {reference} took {took:?}");
        if limit != "stack" {
            cure(&reached, "imp");
        }
    }
}

/// The hint is believed, and the same read passes, at the first try.
#[test]
fn what_the_hint_says_helps() {
    for (limits, reference, expected) in [
        (TIME, "sleep/900", "slept 900 ms"),
        ("fuel = 200_000", "recurse/5000", "5000 frames"),
        ("memory = \"4MiB\"", "grow/4", "4 MiB"),
        (RESULT, "text/100000", "xxx"),
        ("handles = 100", "handles/80", "80 handles"),
        ("random = \"1KiB\"", "random/4000", "4000 random bytes"),
    ] {
        let (reached, ..) = stopped(limits, reference);
        let site = imp(&cure(&reached, "imp"));
        let mut client = serve(&site);
        let text = client.text(&format!("belljar://imp/{reference}"));
        assert!(
            text.starts_with(expected),
            "{limits} {reference}: {:?} after {reached:?}",
            text.get(..100).unwrap_or(&text)
        );
    }
}

/// A hint that the configuration does not take would be none.
#[test]
fn what_the_hint_says_is_accepted() {
    for (limits, reference, expected) in [
        // The host makes them before the guest has them, and so takes as much.
        ("memory = \"256MiB\"", "random/50000000", "50000000 random bytes"),
        ("memory = \"3GiB\"\nresult = \"200MiB\"\ntime = \"60s\"\nfuel = 1_000_000_000_000", "text/220000000", "xxx"),
    ] {
        let (reached, ..) = stopped(limits, reference);
        let line = cure(&reached, "imp");
        let kept: Vec<_> = limits.lines().filter(|limit| !limit.starts_with(&reached.limit)).collect();
        let site = imp(&format!("{}\n{line}", kept.join("\n")));
        let output = site.run(&["check"]);
        assert!(output.status.success(), "{line}: {}", said(&output));
        let text = serve(&site).text(&format!("belljar://imp/{reference}"));
        assert!(text.starts_with(expected), "{reference}: {:?}", text.get(..100).unwrap_or(&text));
    }
}

/// Time in the queue is time of the call: what is told as used is what was spent.
#[test]
fn time_spent_waiting_is_counted() {
    let site = imp("time = \"2s\"\nqueue = \"10s\"\nconcurrency = 1");
    let mut client = serve(&site);
    let send = |client: &mut Client<Stdio>, ms| {
        client.send("resources/read", json!({ "uri": format!("belljar://imp/sleep/{ms}") }))
    };
    let ids = [send(&mut client, 1500), send(&mut client, 1501)];
    // Whichever had the first turn is fine, and left the other only a part of its time.
    let mut errors = ids.into_iter().filter_map(|id| client.wait(id).err());
    let error = errors.next().expect("one of them waited too long");
    assert_eq!(errors.count(), 0);
    assert_eq!(reached(&error, "imp").limit, "time", "{error}");
}

/// Being refused memory is no failure if the guest can do without.
#[test]
fn a_guest_that_takes_no_for_an_answer_is_served() {
    let hand = Hand {
        read: "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
            (loop $l (br_if $l (i32.ne (memory.grow (i32.const 100)) (i32.const -1))))",
        ..Hand::default()
    };
    let site = site("[mounts.hand.limits]\nmemory = \"2MiB\"\n");
    hand.mount(&site, "hand");
    let mut client = serve(&site);
    for _ in 0..5 {
        assert_eq!(client.text("belljar://hand/x"), "fine");
    }
}

/// From a terminal it is the same limit with the same cure.
#[test]
fn belljar_read_tells_the_limit_and_its_cure() {
    let site = imp(&format!("{TIME}\nfuel = 1_000_000_000_000"));
    for (uri, parts) in [
        ("belljar://imp/spin", &["the time limit was reached", "set time = ", "[mounts.imp.limits]"][..]),
        ("belljar://imp/grow/1000", &["the memory limit was reached", "set memory = "]),
        ("belljar://imp/trap", &["trapped"]),
        ("belljar://imp/errors/failed/controls", &["the provider failed", "visible"]),
        ("belljar://imp/none", &["not found"]),
        ("belljar://imp/..", &["dot segment"]),
    ] {
        let output = site.run(&["read", uri]);
        let text = said(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{uri}: {text}");
        for part in parts {
            assert!(text.contains(part), "{uri}: no {part:?} in {text}");
        }
        text.lines().for_each(assert_clean);
    }
    let output = site.run(&["read", "belljar://imp/ok"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"fine"[..]));
}

/// What only looks at a component does not run it.
#[test]
fn checking_and_inspecting_run_no_code() {
    let site = site("");
    let hand = Hand { fields: "(func $s (loop $l (br $l))) (start $s)", ..Hand::default() };
    hand.mount(&site, "loops");
    let began = Instant::now();
    assert!(site.run(&["check"]).status.success());
    let file = site.path("plugins/loops.wasm");
    assert!(site.run(&["inspect", file.to_str().unwrap()]).status.success());
    // Its own deadline, were it run, is 5 s each time.
    assert!(began.elapsed() < Duration::from_secs(5) + SLACK, "{:?}", began.elapsed());
    assert_eq!(site.audit().len(), 0);
}

/// Were a limit not taken off again, or counted over calls, the second of these would fail.
#[test]
fn a_limit_is_one_of_each_call() {
    let site = imp("memory = \"16MiB\"\nfuel = 50_000_000\nhandles = 100");
    let mut client = serve(&site);
    for _ in 0..20 {
        for (reference, expected) in [("grow/10", "10 MiB"), ("handles/40", "40 handles")] {
            assert_eq!(client.text(&format!("belljar://imp/{reference}")), expected);
        }
    }
}

#[test]
fn a_large_answer_within_its_limit_is_delivered() {
    let site = imp("result = \"32MiB\"\nmemory = \"128MiB\"");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://imp/text/20000000").len(), 20_000_000);
    assert_eq!(client.blob("belljar://imp/blob/10000000"), vec![0xff; 10_000_000]);
}

/// A site whose imp may read files, served after this line of shell.
fn with_files(shell: &str) -> (Site, Client<Stdio>) {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nfs = { \"/d\" = \"data\" }\n");
    site.write("data/a.txt", "fine");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell}; exec \"$@\""), "sh"]).arg(places::host());
    command.args(site.arguments(&["serve"])).env_clear().envs(site.environment()).current_dir(site.path(""));
    let client = Client::connect(Stdio::start(command), Era::Modern);
    (site, client)
}

/// How many files a process may have open: what it uses, and what it could ask for.
fn open_files(pid: u32) -> (u64, u64) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |child: &u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    all.filter(|child| parent(child) == Some(pid)).collect()
}

/// A low limit of whoever starts belljar is not belljar's: it asks for what the system gives, and gives that to nobody.
#[test]
fn the_documented_handles_are_there_whatever_the_shell_says() {
    let (_site, mut client) = with_files("ulimit -Sn 256");
    witness(&mut client);
    let pid = client.wire().process.id();
    let (soft, hard) = open_files(pid);
    assert_eq!(soft, hard);
    // Fewer than this are not enough for eight calls at once on any system.
    assert!(hard >= 16_384, "this system lets a process have {hard} files open");
    let own = children(pid);
    assert!(!own.is_empty());
    assert!(own.iter().all(|child| open_files(*child) == (256, hard)), "{own:?}");
    // As many as are documented, and no fewer, by eight calls at once.
    let ids: Vec<_> = (0..8)
        .map(|n| client.send("resources/read", json!({ "uri": format!("belljar://imp/handles/{}", 100_000 + n) })))
        .collect();
    for id in ids {
        let reached = reached(&client.wait(id).unwrap_err(), "imp");
        assert_eq!((reached.limit.as_str(), reached.cap), ("handles", 1024));
        cure(&reached, "imp");
    }
}

/// Where the system does not give them, the cure is the system's.
#[test]
fn too_few_open_files_are_told_with_a_cure_that_helps() {
    let (_site, mut client) = with_files("ulimit -n 512");
    witness(&mut client);
    let error = client.send("resources/read", json!({ "uri": "belljar://imp/handles/5000" }));
    let reached = reached(&client.wait(error).unwrap_err(), "imp");
    assert_eq!(reached.limit, "open-files");
    assert!(reached.cap < 1024, "{reached:?}");
    let hint = reached.hint.unwrap();
    assert!(hint.contains("ulimit -Hn") && hint.contains("calls") && !hint.contains("handles ="), "{hint}");
}
