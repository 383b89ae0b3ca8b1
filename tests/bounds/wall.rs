//! The second wall around the real process. What the kernel says of it in /proc, and what it answers when a piece of code
//! inside tries its luck: `wall_probe.c`, which the loader puts into belljar, tries at the moment when all is set up. Every
//! attempt is made without the wall, too, where it must succeed: what fails anyway would prove nothing.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio as Pipe};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio, places, process};
use landlock::{
    ABI, Access as _, AccessFs, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
};
use serde_json::Value;

use crate::place::{SLACK, WITNESS, children, said, serve, site, threads, witness};

/// `EACCES`, which Landlock gives for files and TCP; `EPERM`, for signals and abstract sockets.
const DENIED: [i32; 2] = [13, 1];

/// How deep Landlock's walls can be nested.
const DEEPEST: usize = 16;

/// Puts one more wall around this thread, which keeps nothing in or out but one kind of special file.
fn one_more_wall() -> LandlockStatus {
    let all = PathBeneath::new(PathFd::new("/").unwrap(), AccessFs::from_all(ABI::V1));
    let rules = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1)).unwrap().create().unwrap();
    rules.add_rule(all).unwrap().restrict_self().unwrap().landlock
}

/// The ABI of this kernel; without one, tests that need it end here, and say so.
fn abi() -> Option<i32> {
    let status = std::thread::spawn(one_more_wall).join().unwrap();
    if let LandlockStatus::Available { effective_abi, kernel_abi } = status {
        return Some(kernel_abi.unwrap_or(effective_abi as i32));
    }
    let skipped = std::env::var("BELLJAR_SKIP").unwrap_or_default();
    assert!(
        skipped.split(',').any(|name| name == "landlock"),
        "this kernel has no Landlock ({status:?}), so the wall cannot be tested; BELLJAR_SKIP=landlock leaves it out"
    );
    #[expect(clippy::print_stderr, reason = "a skip is loud")]
    {
        eprintln!("SKIPPED: this kernel has no Landlock ({status:?})");
    }
    None
}

/// The probe, compiled.
fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wall_probe.{}.so", std::process::id()));
        let source = places::repository().join("tests/bounds/wall_probe.c");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
        let output = compiled.expect("\"cc\", which links Rust programs as well");
        assert!(output.status.success(), "{}", said(&output));
        library
    })
}

/// Takes out of standard error how each attempt ended.
fn attempts(stderr: &str) -> BTreeMap<String, i32> {
    attempts_of("probe", stderr)
}

/// The same of one process of those that try.
fn attempts_of(process: &str, stderr: &str) -> BTreeMap<String, i32> {
    let told = stderr.lines().filter_map(|line| line.strip_prefix(process)?.strip_prefix(": ")?.rsplit_once(" = "));
    told.map(|(attempt, errno)| (attempt.to_owned(), errno.parse().unwrap())).collect()
}

/// A site with a grant and what is not granted, and the attempts that can be made there: those that belljar itself
/// depends on, and those that nothing does.
struct Besieged {
    site: Site,
    needed: Vec<String>,
    needless: Vec<String>,
    _canaries: (TcpListener, TcpListener, UnixListener, UnixListener),
}

fn besieged(wall: &str) -> Besieged {
    let asked = TcpListener::bind("127.0.0.1:0").unwrap();
    let granted = asked.local_addr().unwrap();
    let mut site = site(&format!(
        "wall = \"{wall}\"\n[mounts.imp]\ncomponent = \"imp.wasm\"\nfs = {{ \"/data\" = \"granted\" }}\nhttp = [{{ origin = \"http://{granted}\" }}]\n"
    ));
    // Compiled code and keys of this test alone: they are tampered with.
    site.share(&site.path("kept"));
    // belljar makes it with the first code that it keeps, which may be later than an attempt to write there.
    DirBuilder::new().recursive(true).mode(0o700).create(site.path("kept/cache/belljar")).unwrap();
    for path in ["granted/sub/file", "beside/file", "home/.ssh/id", "audit.jsonl"] {
        site.write(path, "");
    }
    let id = site.path("home/.ssh/id");
    // One for each process to take away.
    let has_attributes = ["user.outside", "user.probe"]
        .iter()
        .all(|name| rustix::fs::setxattr(&id, *name, b"x", rustix::fs::XattrFlags::empty()).is_ok());
    let door = UnixListener::bind(site.path("home/bus")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("belljar-{}", site.path("").file_name().unwrap().to_str().unwrap());
    let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let path = |relative: &str| site.path(relative).display().to_string();
    let needed = vec![
        format!("open {}", path("granted/sub/file")),
        format!("open {}", path("plugins/clock.wasm")),
        "open /proc/self/mountinfo".to_owned(),
        format!("connect {}", granted.port()),
    ];
    let needless = vec![
        "open /etc/passwd".to_owned(),
        "open /proc/1/status".to_owned(),
        "open /proc/self/environ".to_owned(),
        format!("open {}", path("beside/file")),
        format!("open {}", path("home/.ssh/id")),
        format!("open {}", path("belljar.toml")),
        format!("open {}", path("audit.jsonl")),
        format!("write {}", path("granted/new")),
        format!("write {}", path("plugins/new")),
        format!("write {}", path("home/new")),
        format!("chmod {}", path("home/.ssh/id")),
        format!("chmod {}", path("granted/sub/file")),
        format!("chown {}", path("home/.ssh/id")),
        format!("lchown {}", path("granted/sub/file")),
        format!("utime {}", path("home/.ssh/id")),
        format!("utime {}", path("granted/sub/file")),
        // Of all configurations together: the secret from which keys are made, and code that others would run.
        format!("open {}", path("kept/state/belljar/key")),
        format!("write {}", path("kept/cache/belljar/planted")),
        format!("knock {}", path("home/bus")),
        "listen anywhere".to_owned(),
        "share memory".to_owned(),
        "peek itself".to_owned(),
        format!("connect {port}"),
        "bind 0".to_owned(),
        format!("speak {name}"),
        "start /bin/true".to_owned(),
        format!("signal {}", std::process::id()),
    ];
    let mut needless = needless;
    if has_attributes {
        needless.push(format!("xattr {}", path("granted/sub/file")));
        needless.push(format!("unxattr {}", path("home/.ssh/id")));
    }
    let kernel = |setting: &str| fs::read_to_string(format!("/proc/sys/net/{setting}")).unwrap_or_default();
    if kernel("mptcp/enabled").trim() == "1" {
        needless.push(format!("round {port}"));
    }
    if kernel("ipv4/tcp_fastopen").trim().parse().is_ok_and(|bits: u32| bits & 1 == 1) {
        needless.push(format!("hasty {port}"));
    }
    let lines: Vec<_> = needed.iter().chain(&needless).map(String::as_str).collect();
    site.env("LD_PRELOAD", probe());
    site.env("WALL_PROBE", lines.join("\n"));
    Besieged { site, needed, needless, _canaries: (asked, listener, socket, door) }
}

/// What this kernel cannot keep from the process.
fn beyond(attempt: &str, abi: i32) -> bool {
    let since = match attempt.split(' ').next() {
        Some("connect" | "bind") => 4,
        Some("speak" | "signal") => 6,
        _ => 1,
    };
    abi < since
}

#[test]
fn who_breaks_out_of_the_engine_finds_little_more_than_the_grants() {
    let Some(abi) = abi() else { return };
    let Besieged { site, needed, needless, _canaries } = besieged("best-effort");
    let mut client = site.stdio(Era::Modern);
    witness(&mut client);
    let ended = client.close();
    let ends = attempts(&ended.stderr);
    for attempt in &needed {
        assert_eq!(ends.get(attempt), Some(&0), "{attempt}: {}", ended.stderr);
    }
    for attempt in needless.iter().filter(|attempt| !beyond(attempt, abi)) {
        let errno = ends.get(attempt).unwrap_or_else(|| panic!("{attempt} was not tried: {}", ended.stderr));
        assert!(DENIED.contains(errno), "{attempt} ended with {errno}");
    }
    // The process outside has the operator's files, which lie here, and nothing else.
    let ends = attempts_of("outside", &ended.stderr);
    let own = site.path("").display().to_string();
    let is_reading =
        |attempt: &str| (attempt.starts_with("open ") || attempt.starts_with("write ")) && attempt.contains(&own);
    let mut tried = 0;
    for attempt in needless.iter().filter(|attempt| !beyond(attempt, abi) && !is_reading(attempt)) {
        let errno = ends.get(attempt).unwrap_or_else(|| panic!("{attempt} was not tried outside: {}", ended.stderr));
        assert!(DENIED.contains(errno), "{attempt} ended with {errno}, outside");
        tried += 1;
    }
    assert!(tried > 10, "{ends:?}");
}

#[test]
fn without_the_wall_all_of_that_is_there() {
    let Besieged { site, needed, needless, _canaries } = besieged("off");
    let mut client = site.stdio(Era::Modern);
    witness(&mut client);
    let ended = client.close();
    let ends = attempts(&ended.stderr);
    for attempt in needed.iter().chain(&needless) {
        assert_eq!(ends.get(attempt), Some(&0), "{attempt}: {}", ended.stderr);
    }
}

/// Compiles a component as belljar does, with the probe inside.
fn compile(lines: &[&str]) -> Output {
    let mut command = Command::new(places::host());
    command.arg("compile-component").env_clear().current_dir("/");
    command.env("LD_PRELOAD", probe()).env("WALL_PROBE", lines.join("\n"));
    let mut child = command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let wasm = fs::read(places::component("clock")).unwrap();
    let feeder = std::thread::spawn(move || input.write_all(&wasm));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    output
}

#[test]
fn the_compiler_process_opens_nothing_and_compiles() {
    let Some(abi) = abi() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("connect {}", listener.local_addr().unwrap().port());
    let signal = format!("signal {}", std::process::id());
    let host = format!("open {}", places::host().display());
    let tries = [
        "open /etc/passwd",
        "open /proc/self/maps",
        "open /dev/null",
        "open /",
        &host,
        "write /tmp/belljar-wall",
        "bind 0",
        "start /bin/true",
        &connect,
        &signal,
    ];
    let output = compile(&tries);
    assert!(output.status.success() && output.stdout.len() > 10_000, "{}", output.status);
    let ends = attempts(&String::from_utf8_lossy(&output.stderr));
    for attempt in tries.iter().filter(|attempt| !beyond(attempt, abi)) {
        let errno = ends.get(*attempt).unwrap_or_else(|| panic!("{attempt} was not tried: {ends:?}"));
        assert!(DENIED.contains(errno), "{attempt} ended with {errno}");
    }
}

#[test]
fn every_thread_is_inside_and_leaves_no_core() {
    let site = site("");
    let server = site.http();
    let mut client = server.client(Era::Modern);
    assert!(client.text(WITNESS).contains("UTC"), "it still listens");
    let threads = threads(server.process.id());
    assert!(threads.len() > 2, "{threads:?}");
    for thread in threads {
        let status = fs::read_to_string(thread.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("NoNewPrivs:")).unwrap();
        assert!(line.ends_with('1'), "{}: {line}", thread.display());
        let line = status.lines().find(|line| line.starts_with("Seccomp:")).unwrap();
        assert!(line.ends_with('2'), "{}: {line}", thread.display());
    }
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.process.id())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
}

/// The child of a process that runs `verb`.
fn child_of(process: u32, verb: &str) -> u32 {
    let all = children(process, verb);
    *all.first().unwrap_or_else(|| panic!("no child \"{verb}\" of {process}"))
}

/// What the kernel says of a process: the value of a line of its status.
fn status(process: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

/// The process outside reads and writes the operator's files, and can do nothing else.
#[test]
fn the_process_outside_has_a_wall_of_its_own() {
    let site = site("[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = { A = \"b\" }\n");
    // Whoever starts it leaves something open that it does not need.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9</etc/passwd; exec \"$@\"", "sh"]).arg(places::host()).args(site.arguments(&["serve"]));
    command.env_clear().envs(site.environment()).current_dir(site.path(""));
    let mut client = Client::connect(Stdio::start(command), Era::Modern);
    witness(&mut client);
    let server = client.wire().process.id();
    let outside = child_of(server, "outside");
    for process in [server, outside] {
        assert_eq!((status(process, "NoNewPrivs"), status(process, "Seccomp")), ("1".to_owned(), "2".to_owned()));
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
        let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
        let leads = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        assert!(!leads.into_iter().any(|path| path == Path::new("/etc/passwd")), "it was inherited by {process}");
    }
    // It does what it is there for.
    let uri = "belljar://imp/env";
    let output = site.run(&["grant", "imp", "--env", "A=c", "--yes"]);
    assert!(said(&output).contains("uses it from the next call on"), "{}", said(&output));
    assert_eq!(client.text(uri), "[(\"A\", \"c\")]");
}

/// Compiled code of one configuration is nothing to another, whatever the first one's server was made to write.
#[test]
fn code_that_was_made_for_another_configuration_is_not_loaded() {
    let place = tempfile::tempdir().unwrap();
    let sites = [0, 1].map(|_| {
        let mut site = crate::place::bare();
        site.mount("clock");
        site.share(place.path());
        site.env("RUST_LOG", "warn");
        site
    });
    let directories = || -> Vec<PathBuf> {
        let all = fs::read_dir(place.path().join("cache/belljar")).unwrap().flatten().map(|entry| entry.path());
        all.filter(|path| path.is_dir()).collect()
    };
    let run = |site: &Site| {
        let output = site.run(&["read", WITNESS]);
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    run(&sites[0]);
    let [first] = directories().try_into().unwrap();
    run(&sites[1]);
    let second = directories().into_iter().find(|path| *path != first).unwrap();
    assert!(!run(&sites[1]).contains("damaged"));
    // As a server of the first that was taken over could do, had it the rights.
    for entry in fs::read_dir(&first).unwrap().flatten() {
        fs::copy(entry.path(), second.join(entry.file_name())).unwrap();
        fs::copy(entry.path(), place.path().join("cache/belljar").join(entry.file_name())).unwrap();
    }
    let told = run(&sites[1]);
    assert!(told.contains("is damaged or was not made by this belljar"), "{told}");
    // What is compiled by a command that runs nothing is for both.
    assert!(sites[0].run(&["check"]).status.success());
    for site in &sites {
        assert!(!run(site).contains("damaged"));
    }
}

/// Reads a file of the granted directory.
fn read(client: &mut Client<Stdio>) -> String {
    client.text("belljar://imp/raw/file")
}

/// Replaces the granted directory of a running server by another one, and tells whether that is read within a while.
fn is_found_again(wall: &str) -> (bool, Site) {
    let site = site(&format!(
        "wall = \"{wall}\"\n[mounts.imp]\ncomponent = \"imp.wasm\"\nfs = {{ \"/data\" = \"granted\" }}\n"
    ));
    site.write("granted/file", "old");
    let mut client = serve(&site);
    assert_eq!(read(&mut client), "/data: read \"old\"");
    fs::rename(site.path("granted"), site.path("aside")).unwrap();
    site.write("granted/file", "new");
    let began = Instant::now();
    let mut last = read(&mut client);
    while last.contains("old") {
        assert!(began.elapsed() < SLACK, "the old directory is still read");
        std::thread::sleep(Duration::from_millis(50));
        last = read(&mut client);
    }
    client.close();
    let found = last == "/data: read \"new\"";
    assert!(found || last.contains("no directory"), "{last}");
    (found, site)
}

/// A rule belongs to a directory, not to its path. That is the price of the wall, and the record says what to do.
#[test]
fn a_new_directory_in_the_place_of_a_granted_one_is_read_after_a_restart() {
    if abi().is_none() {
        return;
    }
    let (found, site) = is_found_again("best-effort");
    assert!(!found);
    let denials = |record: &Value| record["denials"].to_string();
    assert!(site.audit().iter().any(|record| denials(record).contains("/data")), "{:?}", site.audit());
    assert_eq!(read(&mut serve(&site)), "/data: read \"new\"", "after a restart");
    assert!(is_found_again("off").0, "without the wall it is found at once");
}

#[test]
fn check_says_what_stands() {
    let Some(abi) = abi() else { return };
    let told = site("").run_json(&["check"])["wall"].clone();
    assert_eq!(
        (&told["standing"], &told["abi"]),
        (&Value::from(if abi < 6 { "partial" } else { "full" }), &abi.into())
    );
    assert_eq!(told["missing"].as_array().unwrap().is_empty(), abi >= 6, "{told}");
    let output = site("").run(&["check"]);
    assert!(said(&output).contains(&format!("\nwall     {}\n", told["says"].as_str().unwrap())), "{}", said(&output));
    let output = site("wall = \"off\"\n").run(&["check"]);
    assert!(said(&output).contains("\nwall     off"), "{}", said(&output));
    assert_eq!(site("wall = \"require\"\n").run(&["check"]).status.success(), abi >= 6);
}

/// Runs a verb where no further wall can be raised.
fn run_walled_in(site: &Site, verb: &[&str]) -> Output {
    let command = site.command(site.arguments(verb));
    let deep = move || {
        (0..DEEPEST).for_each(|_| {
            one_more_wall();
        });
        process::run(command, Duration::from_secs(60))
    };
    std::thread::spawn(deep).join().unwrap()
}

#[test]
fn where_no_wall_can_be_raised_it_is_said_and_required_means_required() {
    if abi().is_none() {
        return;
    }
    let output = run_walled_in(&site(""), &["check"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("\nwall     none: "), "{}", said(&output));
    assert!(said(&output).contains("second wall: none"), "the log says so, too: {}", said(&output));
    let output = run_walled_in(&site(""), &["read", WITNESS]);
    assert!(said(&output).contains("UTC"), "{}", said(&output));
    let output = run_walled_in(&site("wall = \"require\"\n"), &["read", WITNESS]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("set wall = \"best-effort\""), "{}", said(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_read_writes_its_file_through_the_wall_and_only_that() {
    let site = site("");
    let existing = site.write("existing.txt", "something much longer than what is read, which is to be gone then");
    for output in [existing, site.path("new.txt")] {
        let done = site.run(&["read", WITNESS, "--output", output.to_str().unwrap()]);
        assert!(done.status.success(), "{}", said(&done));
        assert!(fs::read_to_string(&output).unwrap().ends_with(|c: char| c.is_ascii_digit() || c == '\n'));
        assert!(!fs::read_to_string(&output).unwrap().contains("gone then"));
    }
}
