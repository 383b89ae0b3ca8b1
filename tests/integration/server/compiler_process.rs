//! The compiler process, seen from outside: its limits in `/proc`, its errors for files that are not components, and
//! its lifetime. Runs the real `belljar compile-component`, and servers that start it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use belljar_tests::{DEADLINE, Era, places, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{WITNESS, children, isolated_site, threads};

/// Starts the compiler process as the host starts it. It waits for a component on its standard input.
fn compiler() -> Child {
    let mut command = Command::new(places::host());
    command.arg("compile-component").env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until the line `key` of `/proc/PROCESS/FILE` contains `word`. Returns the line.
fn await_proc_line(process: u32, file: &str, key: &str, word: &str) -> String {
    wait_until(&format!("{word:?} in {file} of the compiler"), || {
        let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        if line.contains(word) { Ok(line) } else { Err(line) }
    })
}

#[test]
fn the_compiler_limits_itself_before_it_reads() {
    let mut child = compiler();
    // The compiler sets `NoNewPrivs` last. After that, all limits are in place.
    let privileges = await_proc_line(child.id(), "status", "NoNewPrivs", "1");
    assert!(privileges.ends_with('1'), "{privileges}");
    for (limit, soft) in [
        ("Max cpu time", "60 "),
        ("Max address space", "4294967296 "),
        ("Max open files", "64 "),
        ("Max file size", "0 "),
        ("Max core file size", "0 "),
    ] {
        let line = await_proc_line(child.id(), "limits", limit, soft);
        let value = line.strip_prefix(limit).unwrap_or_default().trim_start();
        assert!(value.starts_with(soft), "{line}");
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3), "empty input is not a component");
}

#[test]
fn a_file_that_is_not_a_component_gives_an_error_and_no_code() {
    for garbage in [b"".as_slice(), b"(component)", b"\0asm\x01\0\0\0", b"\0asm\x0d\0\x01\0\xff\xff\xff"] {
        let mut child = compiler();
        child.stdin.take().unwrap().write_all(garbage).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{garbage:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{garbage:?}");
    }
}

/// A killed host cannot stop its compiler process. So the kernel must end it.
#[test]
fn the_compiler_ends_with_its_parent() {
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3<&0; \"$0\" compile-component <&3 & echo $!; wait"]).arg(places::host());
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let compiler: u32 = line.trim().parse().unwrap();
    // The compiler waits for a component, because its input stays open until the end of the test.
    assert!(await_proc_line(compiler, "status", "NoNewPrivs", "1").ends_with('1'));
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until("the end of the compiler", || {
        let state = fs::read_to_string(format!("/proc/{compiler}/stat")).unwrap_or_default();
        let is_gone = state.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"));
        if is_gone { Ok(()) } else { Err(state) }
    });
}

/// Pauses the compiler process of `server` with SIGSTOP, like a compilation that takes very long.
pub(crate) fn pause_compiler(server: u32) -> Pid {
    wait_until("a compiler process", || {
        let compiler = children(server, "compile-component").first().copied().ok_or("none")?;
        let pid = Pid::from_raw(i32::try_from(compiler).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).map_err(|_| "a process that has ended")?;
        Ok::<_, &str>(pid)
    })
}

/// Resumes the compiler process.
pub(crate) fn resume_compiler(compiler: Pid) {
    kill_process(compiler, Signal::CONT).unwrap();
}

/// A long compilation does not delay other mounts. A list names the missing mount. A read of this mount gives the
/// reason. When the mount is ready, clients get a notification.
#[test]
fn a_long_compilation_holds_up_nothing_else() {
    let mut site = isolated_site();
    let place = site.path("shared");
    site.share(&place);
    site.mount("clock");
    assert!(site.run(&["check", "--compile"]).status.success());
    site.mount_as("guest_hostile", "hostile.wasm");
    let mut client = site.stdio(Era::Session);
    let compiler = pause_compiler(client.wire().process.id());
    let listed = client.request("resources/list", json!({})).unwrap();
    assert_eq!(listed["resources"][0]["uri"], WITNESS);
    let notices = listed["_meta"]["dev.belljar/notices"].to_string();
    assert!(notices.contains("\"hostile\"") && notices.contains("is being compiled"), "{listed:#}");
    let waiting = client.read("belljar://hostile/ok").unwrap_err();
    assert!(waiting.message.contains("is being compiled") && waiting.message.contains("read again"), "{waiting:?}");
    assert!(client.text(WITNESS).contains("UTC"));
    resume_compiler(compiler);
    let message = client.next_notification(DEADLINE).expect("a notification of the list");
    assert_eq!(message["method"], "notifications/resources/list_changed");
    let now = client.request("resources/list", json!({})).unwrap();
    assert!(!now["_meta"]["dev.belljar/notices"].to_string().contains("compiled"), "{now:#}");
    let log = client.close().stderr;
    assert!(log.contains("that is done once") && log.contains("compiled in"), "{log}");
}

/// The kernel ends a compiler process when the thread that started it ends. Threads of the server may end: a long
/// answer moves the other work of its thread to a new thread, and a thread ends after a second without work. So a
/// dedicated thread starts the compiler, and lives as long as the compiler runs.
#[test]
fn ending_threads_of_the_server_do_not_end_the_compiler() {
    let mut site = isolated_site();
    let place = site.path("shared");
    site.share(&place);
    site.mount_as("guest_sized", "sized.wasm");
    assert!(site.run(&["check", "--compile"]).status.success());
    let mut client = site.stdio(Era::Session);
    client.request("resources/list", json!({})).unwrap();
    site.mount_as("guest_hostile", "hostile.wasm");
    let host = client.wire().process.id();
    let compiler = pause_compiler(host);
    let starters = || {
        let names = threads(host).into_iter().filter_map(|thread| fs::read_to_string(thread.join("comm")).ok());
        names.filter(|name| name.trim() == "compiler").count()
    };
    for _ in 0..4 {
        (0..20).for_each(|_| drop(client.read("belljar://sized/text/1000000").unwrap()));
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(starters(), 1, "the thread that started the compiler still runs");
    resume_compiler(compiler);
    assert!(client.next_notification(DEADLINE).is_some(), "a notification of the list");
    let now = client.request("resources/list", json!({})).unwrap();
    assert!(now["_meta"]["dev.belljar/notices"].is_null(), "{now:#}");
    let log = client.close().stderr;
    assert!(log.contains("compiled in") && !log.contains("compiling it takes"), "{log}");
}
