//! The second wall (Landlock and seccomp) around the real `belljar` process. The tests read its state from `/proc`, and
//! check which system calls the kernel refuses to code inside the process.
//!
//! `landlock_probe.c` is the attacking code. The dynamic loader loads it into belljar, and it runs after the start-up.
//! The tests also make each attempt without the wall, where it must succeed. An attempt that always fails would prove
//! nothing.

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
use std::time::Duration;

use belljar_tests::{Client, Era, Site, Stdio, places, process, wait_until};
use landlock::{
    ABI, Access as _, AccessFs, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
};
use serde_json::Value;

use crate::support::{WITNESS, children, serve, site, stdout_and_stderr, threads, witness};

/// `EACCES` (13), the error of Landlock for files and TCP, and `EPERM` (1), for signals and abstract sockets.
const DENIED: [i32; 2] = [13, 1];

/// The most nested Landlock domains of a process.
const DEEPEST: usize = 16;

/// Adds a Landlock domain to this thread. Its rules allow all access to files.
fn add_landlock_domain() -> LandlockStatus {
    let all = PathBeneath::new(PathFd::new("/").unwrap(), AccessFs::from_all(ABI::V1));
    let rules = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1)).unwrap().create().unwrap();
    rules.add_rule(all).unwrap().restrict_self().unwrap().landlock
}

/// The Landlock ABI of this kernel. Without Landlock: `None` if `BELLJAR_SKIP` lists `landlock`, and a panic otherwise.
/// For `None`, the test must end; the output says that it was skipped.
fn abi() -> Option<i32> {
    let status = std::thread::spawn(add_landlock_domain).join().unwrap();
    if let LandlockStatus::Available { effective_abi, kernel_abi } = status {
        return Some(kernel_abi.unwrap_or(effective_abi as i32));
    }
    assert!(
        places::lacks("landlock"),
        "this kernel has no Landlock ({status:?}), so the wall cannot be tested; BELLJAR_SKIP=landlock leaves it out"
    );
    #[expect(clippy::print_stderr, reason = "a skipped test must be visible in the output")]
    {
        eprintln!("SKIPPED: this kernel has no Landlock ({status:?})");
    }
    None
}

/// The compiled probe. The first call compiles it.
fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("landlock_probe.{}.so", std::process::id()));
        let source = places::repository().join("tests/integration/server/landlock_probe.c");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
        let output = compiled.expect("\"cc\", which links Rust programs as well");
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        library
    })
}

/// The result of each attempt, from standard error.
fn attempts(stderr: &str) -> BTreeMap<String, i32> {
    attempts_of("probe", stderr)
}

/// The results of the attempts of one process.
fn attempts_of(process: &str, stderr: &str) -> BTreeMap<String, i32> {
    let results = stderr.lines().filter_map(|line| line.strip_prefix(process)?.strip_prefix(": ")?.rsplit_once(" = "));
    results.map(|(attempt, errno)| (attempt.to_owned(), errno.parse().unwrap())).collect()
}

/// A site with granted and other files, and the attempts that the probe makes there.
struct AttackSite {
    site: Site,
    /// The attempts that must succeed, because belljar itself needs the file or the connection.
    needed: Vec<String>,
    /// The attempts that the wall must refuse.
    needless: Vec<String>,
    /// The sockets to which the attempts connect. They must stay open.
    _listeners: (TcpListener, TcpListener, UnixListener, UnixListener),
}

/// Creates the site with this value of the setting `wall`.
fn attack_site(wall: &str) -> AttackSite {
    let granted_listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let granted = granted_listener.local_addr().unwrap();
    let mut site = site(&format!(
        "wall = \"{wall}\"\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nfs = {{ \"/data\" = \"granted\" }}\nhttp = [{{ origin = \"http://{granted}\" }}]\n"
    ));
    // The probe may change compiled code and keys. So do not share them with other tests.
    site.share(&site.path("kept"));
    // Create the directory of compiled code now. belljar creates it late, perhaps after the attempt to write there.
    DirBuilder::new().recursive(true).mode(0o700).create(site.path("kept/cache/belljar")).unwrap();
    for path in ["granted/sub/file", "beside/file", "home/.ssh/id", "audit.jsonl"] {
        site.write(path, "");
    }
    let id = site.path("home/.ssh/id");
    // Two processes try to remove an extended attribute. So set one for each of them.
    let has_attributes = ["user.outside", "user.probe"]
        .iter()
        .all(|name| rustix::fs::setxattr(&id, *name, b"x", rustix::fs::XattrFlags::empty()).is_ok());
    let file_socket = UnixListener::bind(site.path("home/bus")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("belljar-{}", site.path("").file_name().unwrap().to_str().unwrap());
    let abstract_socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
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
        // All configurations share these: the secret from which belljar derives keys, and the cache of compiled code.
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
    AttackSite { site, needed, needless, _listeners: (granted_listener, listener, abstract_socket, file_socket) }
}

/// True if this version of Landlock has no rule that can refuse the attempt.
fn is_unsupported(attempt: &str, abi: i32) -> bool {
    let since = match attempt.split(' ').next() {
        Some("connect" | "bind") => 4,
        Some("speak" | "signal") => 6,
        _ => 1,
    };
    abi < since
}

#[test]
fn code_outside_of_the_engine_reaches_little_more_than_the_grants() {
    let Some(abi) = abi() else { return };
    let AttackSite { site, needed, needless, _listeners } = attack_site("best-effort");
    let mut client = site.stdio(Era::Stateless);
    witness(&mut client);
    let ended = client.close();
    let ends = attempts(&ended.stderr);
    for attempt in &needed {
        assert_eq!(ends.get(attempt), Some(&0), "{attempt}: {}", ended.stderr);
    }
    for attempt in needless.iter().filter(|attempt| !is_unsupported(attempt, abi)) {
        let errno = ends.get(attempt).unwrap_or_else(|| panic!("{attempt} was not tried: {}", ended.stderr));
        assert!(DENIED.contains(errno), "{attempt} ended with {errno}");
    }
    // The helper process `outside` has a wall of its own. It may open only files of the operator, which are in this
    // directory.
    let ends = attempts_of("outside", &ended.stderr);
    let own = site.path("").display().to_string();
    let opens_own_file =
        |attempt: &str| (attempt.starts_with("open ") || attempt.starts_with("write ")) && attempt.contains(&own);
    let mut tried = 0;
    for attempt in needless.iter().filter(|attempt| !is_unsupported(attempt, abi) && !opens_own_file(attempt)) {
        let errno = ends.get(attempt).unwrap_or_else(|| panic!("outside did not try {attempt}: {}", ended.stderr));
        assert!(DENIED.contains(errno), "in the process outside, {attempt} ended with {errno}");
        tried += 1;
    }
    assert!(tried > 10, "too few attempts of the process outside: {ends:?}");
}

#[test]
fn without_the_wall_every_attempt_succeeds() {
    let AttackSite { site, needed, needless, _listeners } = attack_site("off");
    let mut client = site.stdio(Era::Stateless);
    witness(&mut client);
    let ended = client.close();
    let ends = attempts(&ended.stderr);
    for attempt in needed.iter().chain(&needless) {
        assert_eq!(ends.get(attempt), Some(&0), "{attempt}: {}", ended.stderr);
    }
}

/// Runs the compiler process on a real component, with the probe inside. `lines` are the attempts of the probe.
fn compile(lines: &[&str]) -> Output {
    let mut command = Command::new(places::host());
    command.arg("compile-component").env_clear().current_dir("/");
    command.env("LD_PRELOAD", probe()).env("WALL_PROBE", lines.join("\n"));
    let mut child = command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let wasm = fs::read(places::component("clock")).unwrap();
    let writer = std::thread::spawn(move || input.write_all(&wasm));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
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
    for attempt in tries.iter().filter(|attempt| !is_unsupported(attempt, abi)) {
        let errno = ends.get(*attempt).unwrap_or_else(|| panic!("{attempt} was not tried: {ends:?}"));
        assert!(DENIED.contains(errno), "{attempt} ended with {errno}");
    }
}

#[test]
fn every_thread_is_inside_the_wall_and_dumps_no_core() {
    let site = site("");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    assert!(client.text(WITNESS).contains("UTC"), "a server inside the wall accepts connections");
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

/// The id of the child of `process` that runs `belljar VERB`.
fn child_of(process: u32, verb: &str) -> u32 {
    let all = children(process, verb);
    *all.first().unwrap_or_else(|| panic!("no child \"{verb}\" of {process}"))
}

/// The value of the line `name` in `/proc/<process>/status`.
fn status(process: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

/// The helper process `outside` reads and writes the operator's files for the server. Its own wall refuses everything
/// else.
#[test]
fn the_process_outside_has_a_wall_of_its_own() {
    let site = site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = { A = \"b\" }\n");
    // Both processes inherit an open descriptor, which they do not need. They must close it.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9</etc/passwd; exec \"$@\"", "sh"]).arg(places::host()).args(site.arguments(&["serve"]));
    command.env_clear().envs(site.environment()).current_dir(site.path(""));
    let mut client = Client::connect(Stdio::start(command), Era::Stateless);
    witness(&mut client);
    let server = client.wire().process.id();
    let outside = child_of(server, "outside");
    for process in [server, outside] {
        assert_eq!((status(process, "NoNewPrivs"), status(process, "Seccomp")), ("1".to_owned(), "2".to_owned()));
        let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
        let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
        let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
        let paths = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        assert!(
            !paths.into_iter().any(|path| path == Path::new("/etc/passwd")),
            "process {process} still has the inherited descriptor"
        );
    }
    // The helper process still does its work: the server uses the changed configuration.
    let uri = "belljar://hostile/env";
    let output = site.run(&["grant", "hostile", "--env", "A=c", "--yes"]);
    assert!(stdout_and_stderr(&output).contains("uses it from the next call on"), "{}", stdout_and_stderr(&output));
    assert_eq!(client.text(uri), "[(\"A\", \"c\")]");
}

/// A server does not load compiled code of another configuration. So an attacker who controls one server cannot plant
/// code for another one.
#[test]
fn code_that_was_made_for_another_configuration_is_not_loaded() {
    let place = tempfile::tempdir().unwrap();
    let sites = [0, 1].map(|_| {
        let mut site = crate::support::isolated_site();
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
        assert!(output.status.success(), "{}", stdout_and_stderr(&output));
        stdout_and_stderr(&output)
    };
    run(&sites[0]);
    let [first] = directories().try_into().unwrap();
    run(&sites[1]);
    let second = directories().into_iter().find(|path| *path != first).unwrap();
    assert!(!run(&sites[1]).contains("damaged"));
    // Copy the compiled code into the places of the second configuration, as a compromised server would.
    for entry in fs::read_dir(&first).unwrap().flatten() {
        fs::copy(entry.path(), second.join(entry.file_name())).unwrap();
        fs::copy(entry.path(), place.path().join("cache/belljar").join(entry.file_name())).unwrap();
    }
    let log = run(&sites[1]);
    assert!(log.contains("is damaged or was not made by this belljar"), "{log}");
    // `check` runs no provider. So both configurations share the code that it compiled.
    assert!(sites[0].run(&["check"]).status.success());
    for site in &sites {
        assert!(!run(site).contains("damaged"));
    }
}

/// Reads a file of the granted directory.
fn read(client: &mut Client<Stdio>) -> String {
    client.text("belljar://hostile/raw/file")
}

/// Replaces the granted directory of a running server. Returns true if the server then reads the new directory.
fn reads_replaced_directory(wall: &str) -> (bool, Site) {
    let site = site(&format!(
        "wall = \"{wall}\"\nisolation = \"none\"\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nfs = {{ \"/data\" = \"granted\" }}\n"
    ));
    site.write("granted/file", "old");
    let mut client = serve(&site);
    assert_eq!(read(&mut client), "/data: read \"old\"");
    fs::rename(site.path("granted"), site.path("aside")).unwrap();
    site.write("granted/file", "new");
    let last = wait_until("a read that does not give the old file", || {
        let text = read(&mut client);
        if text.contains("old") { Err(text) } else { Ok(text) }
    });
    client.close();
    let found = last == "/data: read \"new\"";
    assert!(found || last.contains("no directory"), "{last}");
    (found, site)
}

/// A Landlock rule belongs to a directory, not to its path. So the server can read the new directory only after a
/// restart. The audit record contains the denial.
#[test]
fn a_new_directory_in_the_place_of_a_granted_one_is_read_after_a_restart() {
    if abi().is_none() {
        return;
    }
    let (found, site) = reads_replaced_directory("best-effort");
    assert!(!found);
    let denials = |record: &Value| record["denials"].to_string();
    assert!(site.audit().iter().any(|record| denials(record).contains("/data")), "{:?}", site.audit());
    assert_eq!(read(&mut serve(&site)), "/data: read \"new\"", "after a restart");
    assert!(reads_replaced_directory("off").0, "without the wall, the server needs no restart");
}

#[test]
fn check_reports_the_wall() {
    let Some(abi) = abi() else { return };
    let wall = site("").run_json(&["check"])["wall"].clone();
    assert_eq!(
        (&wall["standing"], &wall["abi"]),
        (&Value::from(if abi < 6 { "partial" } else { "full" }), &abi.into())
    );
    assert_eq!(wall["missing"].as_array().unwrap().is_empty(), abi >= 6, "{wall}");
    let output = site("").run(&["check"]);
    assert!(
        stdout_and_stderr(&output).contains(&format!("\nwall     {}\n", wall["says"].as_str().unwrap())),
        "{}",
        stdout_and_stderr(&output)
    );
    let output = site("wall = \"off\"\n").run(&["check"]);
    assert!(stdout_and_stderr(&output).contains("\nwall     off"), "{}", stdout_and_stderr(&output));
    assert_eq!(site("wall = \"require\"\n").run(&["check"]).status.success(), abi >= 6);
}

/// Runs a command in a process that cannot add a Landlock domain, because it inherits [`DEEPEST`] domains.
fn run_with_deepest_nesting(site: &Site, verb: &[&str]) -> Output {
    let command = site.command(site.arguments(verb));
    let nest_and_run = move || {
        (0..DEEPEST).for_each(|_| {
            add_landlock_domain();
        });
        process::run(command, Duration::from_secs(60))
    };
    std::thread::spawn(nest_and_run).join().unwrap()
}

#[test]
fn a_missing_wall_is_reported_and_fails_where_required() {
    if abi().is_none() {
        return;
    }
    let output = run_with_deepest_nesting(&site(""), &["check"]);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert!(stdout_and_stderr(&output).contains("\nwall     none: "), "{}", stdout_and_stderr(&output));
    assert!(
        stdout_and_stderr(&output).contains("second wall: none"),
        "the log does not report the missing wall: {}",
        stdout_and_stderr(&output)
    );
    let output = run_with_deepest_nesting(&site(""), &["read", WITNESS]);
    assert!(stdout_and_stderr(&output).contains("UTC"), "{}", stdout_and_stderr(&output));
    let output = run_with_deepest_nesting(&site("wall = \"require\"\n"), &["read", WITNESS]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout_and_stderr(&output).contains("set wall = \"best-effort\""), "{}", stdout_and_stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_read_overwrites_its_output_file_despite_the_wall() {
    let site = site("");
    let existing = site.write("existing.txt", "an old text, which is longer than the new one and must not remain");
    for output in [existing, site.path("new.txt")] {
        let done = site.run(&["read", WITNESS, "--output", output.to_str().unwrap()]);
        assert!(done.status.success(), "{}", stdout_and_stderr(&done));
        assert!(fs::read_to_string(&output).unwrap().ends_with(|c: char| c.is_ascii_digit() || c == '\n'));
        assert!(!fs::read_to_string(&output).unwrap().contains("must not remain"));
    }
}
