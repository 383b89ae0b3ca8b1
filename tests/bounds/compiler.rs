//! The compiler process, seen from outside: what the kernel says it may use, and what it does with what is no component.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use belljar_tests::{Era, places};
use serde_json::json;

use crate::place::{WITNESS, bare, children, threads};

/// The process as the host starts it; it waits for a component on its standard input.
fn compiler() -> Child {
    let mut command = Command::new(places::host());
    command.arg("compile-component").env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A line of a file of the process in `/proc`, once it contains `word`.
fn told(process: u32, file: &str, key: &str, word: &str) -> String {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        if line.contains(word) || began.elapsed() > Duration::from_secs(20) {
            return line;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn it_limits_itself_before_it_reads() {
    let mut child = compiler();
    // The last thing that it gives up; by then the rest is in place.
    let privileges = told(child.id(), "status", "NoNewPrivs", "1");
    assert!(privileges.ends_with('1'), "{privileges}");
    for (limit, soft) in [
        ("Max cpu time", "60 "),
        ("Max address space", "4294967296 "),
        ("Max open files", "64 "),
        ("Max file size", "0 "),
        ("Max core file size", "0 "),
    ] {
        let line = told(child.id(), "limits", limit, soft);
        let value = line.strip_prefix(limit).unwrap_or_default().trim_start();
        assert!(value.starts_with(soft), "{line}");
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3), "nothing is no component");
}

#[test]
fn what_is_no_component_fails_with_a_reason_and_gives_no_code() {
    for garbage in [b"".as_slice(), b"(component)", b"\0asm\x01\0\0\0", b"\0asm\x0d\0\x01\0\xff\xff\xff"] {
        let mut child = compiler();
        child.stdin.take().unwrap().write_all(garbage).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{garbage:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{garbage:?}");
    }
}

/// A host that is killed cannot stop its compiler; the kernel does.
#[test]
fn it_ends_with_whoever_started_it() {
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3<&0; \"$0\" compile-component <&3 & echo $!; wait"]).arg(places::host());
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let compiler: u32 = line.trim().parse().unwrap();
    // It waits for a component: its input stays open until the end of the test.
    assert!(told(compiler, "status", "NoNewPrivs", "1").ends_with('1'));
    shell.kill().unwrap();
    shell.wait().unwrap();
    let began = Instant::now();
    let state = || fs::read_to_string(format!("/proc/{compiler}/stat")).unwrap_or_default();
    while state().rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z")) {
        assert!(began.elapsed() < Duration::from_secs(10), "it goes on: {}", state());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The compiler that `server` has started, held up: as one that has an interpreter to compile.
fn hold_up(server: u32) -> rustix::process::Pid {
    let began = Instant::now();
    loop {
        if let Some(compiler) = children(server, "compile-component").first() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(*compiler).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
            return pid;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "no compiler was started");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What is compiled for long holds up nothing else: the others are served, whoever lists is told what is missing, whoever
/// reads what it is waiting for; and when it is there, it is told too.
#[test]
fn a_long_compilation_holds_up_nothing_else() {
    let mut site = bare();
    let place = site.path("shared");
    site.share(&place);
    site.mount("clock");
    assert!(site.run(&["check", "--compile"]).status.success());
    site.mount_as("guest_imp", "imp.wasm");
    let mut client = site.stdio(Era::Older);
    let compiler = hold_up(client.wire().process.id());
    let listed = client.request("resources/list", json!({})).unwrap();
    assert_eq!(listed["resources"][0]["uri"], WITNESS);
    let notices = listed["_meta"]["dev.belljar/notices"].to_string();
    assert!(notices.contains("\"imp\"") && notices.contains("is being compiled"), "{listed:#}");
    let waiting = client.read("belljar://imp/ok").unwrap_err();
    assert!(waiting.message.contains("is being compiled") && waiting.message.contains("read again"), "{waiting:?}");
    assert!(client.text(WITNESS).contains("UTC"));
    rustix::process::kill_process(compiler, rustix::process::Signal::CONT).unwrap();
    let told = client.told(Duration::from_secs(60)).expect("the list has changed");
    assert_eq!(told["method"], "notifications/resources/list_changed");
    let now = client.request("resources/list", json!({})).unwrap();
    assert!(!now["_meta"]["dev.belljar/notices"].to_string().contains("compiled"), "{now:#}");
    let log = client.close().stderr;
    assert!(log.contains("that is done once") && log.contains("compiled in"), "{log}");
}

/// A compiler lives as long as belljar waits for it, whatever becomes of the threads that serve: long answers hand the other
/// work of their thread over, and a thread that has nothing to do ends after a second. So a thread of its own starts it.
#[test]
fn long_answers_end_no_compiler() {
    let mut site = bare();
    let place = site.path("shared");
    site.share(&place);
    site.mount_as("guest_sized", "sized.wasm");
    assert!(site.run(&["check", "--compile"]).status.success());
    let mut client = site.stdio(Era::Older);
    client.request("resources/list", json!({})).unwrap();
    site.mount_as("guest_imp", "imp.wasm");
    let host = client.wire().process.id();
    let compiler = hold_up(host);
    let starters = || {
        let names = threads(host).into_iter().filter_map(|thread| fs::read_to_string(thread.join("comm")).ok());
        names.filter(|name| name.trim() == "compiler").count()
    };
    for _ in 0..4 {
        (0..20).for_each(|_| drop(client.read("belljar://sized/text/1000000").unwrap()));
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(starters(), 1, "what started it is there for as long as it runs");
    rustix::process::kill_process(compiler, rustix::process::Signal::CONT).unwrap();
    assert!(client.told(Duration::from_secs(60)).is_some(), "the list has changed");
    let now = client.request("resources/list", json!({})).unwrap();
    assert!(now["_meta"]["dev.belljar/notices"].is_null(), "{now:#}");
    let log = client.close().stderr;
    assert!(log.contains("compiled in") && !log.contains("compiling it takes"), "{log}");
}
