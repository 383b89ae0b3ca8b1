//! The launcher process, in the real binary: it starts workers outside of belljar's own wall, and opens what is granted
//! while belljar runs.

use std::time::Duration;

use belljar_tests::{Client, DEADLINE, Era, Site, Stdio, wait_until};
use belljar_upstream::{Upstream, echo};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::grants::http::{attack, mount as mount_hostile};
use crate::support::{
    LAUNCHER, WITNESS, WORKER, await_computing, children, kind, serve, site, stdout_and_stderr, workers,
};

/// A mount in a worker process, with these grants.
fn mount(grants: &str) -> String {
    format!(
        "isolation = \"none\"\n[mounts.notes]\ncomponent = \"files.wasm\"\nisolation = \"mount\"\nfs = {{ \"/a\" = \"a\"{grants} }}\n"
    )
}

/// A site with one mount in a worker process and a second directory.
fn one_worker() -> Site {
    let site = site(&mount(""));
    site.write("a/one.md", "one");
    site.write("b/two.md", "two");
    site
}

fn front(client: &mut Client<Stdio>) -> u32 {
    client.wire().process.id()
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(i32::try_from(process).unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// True while a process exists and has not ended.
fn is_running(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// Waits until a read gives this text.
fn becomes(client: &mut Client<Stdio>, uri: &str, text: &str) {
    wait_until(&format!("{uri} to give \"{text}\""), || match client.read(uri) {
        Ok(answer) if answer["contents"][0]["text"] == text => Ok(()),
        other => Err(format!("{other:?}; {}", client.wire().process.stderr())),
    });
}

/// The URIs of the mount.
fn notes(client: &mut Client<Stdio>) -> Vec<String> {
    client.uris().into_iter().filter(|uri| uri.starts_with("belljar://notes/")).collect()
}

#[test]
fn a_directory_that_is_granted_while_belljar_runs_is_read_without_a_restart() {
    let site = one_worker();
    let mut client = serve(&site);
    assert_eq!(notes(&mut client), ["belljar://notes/one.md"]);
    let words = stdout_and_stderr(&site.run(&["grant", "notes", "--fs", "/b=b", "--yes"]));
    assert!(words.contains("uses it from the next call on") && !words.contains("restart"), "{words}");
    becomes(&mut client, "belljar://notes/b/two.md", "two");
    becomes(&mut client, "belljar://notes/a/one.md", "one");
    // The wall of belljar's own process still hides it, and with it every mount that runs there.
    let words = stdout_and_stderr(&site.run(&["set", "mounts.notes.isolation = \"none\"", "--yes"]));
    assert!(words.contains("Saved"), "{words}");
    wait_until("the refusal of a mount in belljar's own process", || {
        let log = client.wire().process.stderr();
        log.contains("needs a restart: landlock was enforced without it").then_some(()).ok_or(log)
    });
    assert!(client.close().status.success());
}

#[test]
fn by_default_the_first_directory_of_a_mount_is_read_without_a_restart() {
    let site = site("[mounts.notes]\ncomponent = \"files.wasm\"\n");
    site.write("a/one.md", "one");
    let mut client = serve(&site);
    client.read("belljar://notes/one.md").unwrap_err();
    let words = stdout_and_stderr(&site.run(&["grant", "notes", "--fs", "/a=a", "--yes"]));
    assert!(words.contains("uses it from the next call on") && !words.contains("restart"), "{words}");
    becomes(&mut client, "belljar://notes/one.md", "one");
    assert!(client.close().status.success());
}

#[test]
fn a_replaced_directory_is_read_without_a_restart() {
    let site = one_worker();
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://notes/one.md"), "one");
    for text in ["another", "a third"] {
        std::fs::remove_dir_all(site.path("a")).unwrap();
        let before = absences(&site).len();
        wait_until("a record of a read without the directory", || {
            let answer = client.read("belljar://notes/one.md");
            (absences(&site).len() > before).then_some(()).ok_or_else(|| format!("{answer:?}"))
        });
        site.write("a/one.md", text);
        becomes(&mut client, "belljar://notes/one.md", text);
    }
    assert!(client.close().status.success());
    assert!(absences(&site).iter().all(|line| !line.contains("restart")), "{:?}", absences(&site));
}

/// The denials of calls that lacked a directory.
fn absences(site: &Site) -> Vec<String> {
    let denials = site.audit().into_iter().map(|line| line["denials"].to_string());
    denials.filter(|line| line.contains("\"/a\"")).collect()
}

#[test]
fn changes_in_a_directory_that_is_granted_while_belljar_runs_are_notified() {
    let site = site(&format!("{}[watch]\npoll = \"200ms\"\nreread = \"200ms\"\n", mount("")));
    site.write("a/one.md", "one");
    site.write("b/deep/two.md", "two");
    let mut client = site.stdio(Era::Session);
    let words = stdout_and_stderr(&site.run(&["grant", "notes", "--fs", "/b=b", "--yes"]));
    assert!(words.contains("uses it from the next call on"), "{words}");
    let uri = "belljar://notes/b/deep/two.md";
    becomes(&mut client, uri, "two");
    client.request("resources/subscribe", json!({ "uri": uri })).unwrap();
    // The wall hides the directory from the process that would watch it, so belljar polls.
    site.write("b/deep/two.md", "another text");
    let changed = std::iter::from_fn(|| client.next_notification(DEADLINE))
        .find(|message| message["method"] == "notifications/resources/updated");
    assert_eq!(changed.map(|message| message["params"]["uri"].clone()), Some(json!(uri)));
    assert!(client.close().status.success());
}

/// A service manager stops all processes of a service at once. The front finishes the calls.
#[test]
fn a_signal_to_stop_leaves_calls_in_workers_to_the_front() {
    // The fuel ends the call, whatever else the machine does.
    let limits = "[mounts.hostile.limits]\ntime = \"1h\"\nfuel = 10000000000\n";
    let site = site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n{limits}"));
    let mut client = serve(&site);
    // A long call has the lowest priority, so a busy machine gives it little time.
    client.patience = Duration::from_secs(600);
    let front = front(&mut client);
    let running = client.send("resources/read", json!({ "uri": "belljar://hostile/spin" }));
    await_computing(&workers(front));
    let all: Vec<u32> = workers(front).into_iter().chain(children(front, LAUNCHER)).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    for (process, signal) in all.iter().flat_map(|process| [Signal::TERM, Signal::INT].map(|signal| (*process, signal)))
    {
        kill_process(Pid::from_raw(i32::try_from(process).unwrap()).unwrap(), signal).unwrap();
    }
    let error = client.wait(running).unwrap_err();
    assert_eq!(kind(&error), "limit", "{error}");
    assert!(client.text(WITNESS).contains("UTC"));
    assert!(client.close().status.success());
    wait_until("the end of all processes", || {
        let left: Vec<_> = all.iter().filter(|process| is_running(**process)).collect();
        left.is_empty().then_some(()).ok_or_else(|| format!("{left:?}"))
    });
}

/// A server that answers with what it got, in capitals.
fn shouting() -> Upstream {
    Upstream::raw(|stream: &mut dyn belljar_upstream::Stream| {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let _ = stream.write_all(String::from_utf8_lossy(&all).to_uppercase().as_bytes());
    })
}

#[test]
fn a_port_that_is_granted_while_belljar_runs_is_reached_without_a_restart() {
    let (first, second) = (shouting(), shouting());
    let (one, two) = (first.port(), second.port());
    let config = mount_hostile(&format!("isolation = \"mount\"\ntcp = [\"127.0.0.1:{one}\"]"));
    let site = site(&config);
    let mut client = serve(&site);
    let talk = |port: u16| attack("talk", &format!("127.0.0.1:{port}/hello"));
    assert_eq!(client.text(&talk(one)), "reached: HELLO");
    assert!(client.text(&talk(two)).starts_with("refused: PermissionDenied"));
    let words = stdout_and_stderr(&site.run(&["grant", "hostile", "--tcp", &format!("127.0.0.1:{two}"), "--yes"]));
    assert!(words.contains("uses it from the next call on"), "{words}");
    for _ in 0..2 {
        assert_eq!(client.text(&talk(two)), "reached: HELLO");
        assert_eq!(client.text(&talk(one)), "reached: HELLO");
    }
    assert_eq!((first.connections(), second.connections()), (3, 2));
    // Nobody listens there any more.
    drop(second);
    let refused = client.text(&talk(two));
    assert!(refused.starts_with("refused: ") && !refused.contains("Permission"), "{refused}");
    // An HTTP origin, which takes another way to its connection.
    let web = Upstream::plain(echo);
    let origin = format!("http://127.0.0.1:{}", web.port());
    let words = stdout_and_stderr(&site.run(&["grant", "hostile", "--http", &origin, "--yes"]));
    assert!(words.contains("uses it from the next call on"), "{words}");
    let fetched = client.text(&attack("fetch", &format!("GET {origin}/x")));
    assert!(web.connections() == 1, "{fetched}");
    // Without the launcher, the wall hides the port.
    children(front(&mut client), LAUNCHER).into_iter().for_each(kill);
    becomes(&mut client, &talk(one), "reached: HELLO");
    assert!(client.close().status.success());
}

#[test]
fn the_first_port_of_a_configuration_needs_a_restart() {
    let server = shouting();
    let site = site(&mount_hostile("isolation = \"mount\""));
    let client = serve(&site);
    let address = format!("127.0.0.1:{}", server.port());
    let words = stdout_and_stderr(&site.run(&["grant", "hostile", "--tcp", &address, "--yes"]));
    assert!(words.contains("does not use it: its grant of TCP port"), "{words}");
    assert!(client.close().status.success());
}

#[test]
fn a_worker_reads_which_of_its_pages_were_written() {
    let site = one_worker();
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://notes/one.md"), "one");
    let own = workers(front(&mut client));
    assert_eq!(own.len(), 1);
    let files = std::fs::read_dir(format!("/proc/{}/fd", own[0])).unwrap().flatten();
    let is_open = |file: std::fs::DirEntry| {
        let is_pagemap = std::fs::read_link(file.path()).is_ok_and(|target| target.ends_with("pagemap"));
        let info =
            std::fs::read_to_string(file.path().to_string_lossy().replace("/fd/", "/fdinfo/")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
        // The wall keeps a handle (O_PATH) of this file, also if the file cannot be read.
        is_pagemap && i64::from_str_radix(flags.trim(), 8).is_ok_and(|flags| flags & 0o10_000_000 == 0)
    };
    assert!(files.into_iter().any(is_open), "the worker cannot read its own pagemap");
    assert!(client.close().status.success());
}

#[test]
fn the_launcher_has_a_wall_of_its_own_and_no_secrets() {
    let mut site = one_worker();
    site.env("API_TOKEN", "a-secret");
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://notes/one.md"), "one");
    let front = front(&mut client);
    let launcher = children(front, LAUNCHER)[0];
    let read = |process: u32, file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    assert!(read(front, "environ").contains("a-secret"));
    for process in [launcher, workers(front)[0]] {
        let status = read(process, "status");
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        assert_eq!((value("NoNewPrivs:"), value("Seccomp:")), ("1", "2"), "{status}");
        let core = read(process, "limits");
        let core = core.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap_or_default();
        assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"]);
        assert!(!read(process, "environ").contains("a-secret"), "{process}");
    }
    assert!(client.close().status.success());
}

#[test]
fn the_launcher_and_its_workers_end_with_belljar() {
    let site = one_worker();
    for is_killed in [true, false] {
        let mut client = serve(&site);
        assert_eq!(client.text("belljar://notes/one.md"), "one");
        let front = front(&mut client);
        let launchers = children(front, LAUNCHER);
        assert_eq!(launchers.len(), 1);
        assert_eq!((children(launchers[0], WORKER).len(), children(front, WORKER).len()), (1, 0));
        let all: Vec<u32> = [launchers, workers(front)].concat();
        if is_killed {
            kill(front);
        } else {
            assert!(client.close().status.success());
        }
        wait_until("the end of the launcher and its workers", || {
            let left: Vec<_> = all.iter().filter(|process| is_running(**process)).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?} of {all:?}")) }
        });
    }
}

#[test]
fn without_its_launcher_belljar_starts_workers_itself_and_says_what_does_not_work() {
    let site = one_worker();
    let mut client = serve(&site);
    assert_eq!(client.text("belljar://notes/one.md"), "one");
    let front = front(&mut client);
    children(front, LAUNCHER).into_iter().for_each(kill);
    // The old worker ends a moment after the launcher.
    wait_until("a worker that belljar itself has started", || {
        let answer = client.read("belljar://notes/one.md");
        let own = (children(front, LAUNCHER).len(), children(front, WORKER).len());
        (own == (0, 1)).then_some(()).ok_or_else(|| format!("{own:?}, {answer:?}"))
    });
    becomes(&mut client, "belljar://notes/one.md", "one");
    assert!(client.text(WITNESS).contains("UTC"));
    let log = client.wire().process.stderr();
    let warning = "the launcher process has ended: belljar starts worker processes itself";
    assert_eq!(log.matches(warning).count(), 1, "{log}");
    assert!(log.contains("a new directory or port needs a restart; restart belljar"), "{log}");
    let words = stdout_and_stderr(&site.run(&["grant", "notes", "--fs", "/b=b", "--yes"]));
    assert!(words.contains("does not use it: its grant of") && words.contains("restart belljar"), "{words}");
    assert_eq!(client.text("belljar://notes/one.md"), "one", "the mount has its earlier grants");
    assert!(client.close().status.success());
}
