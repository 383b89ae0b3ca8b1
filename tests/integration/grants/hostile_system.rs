//! Hostile rows about the grant `system`. A provider tries to see parts that were not granted, arguments and environments of
//! processes, and files beside `/system`; a process has a hostile name. The processes are real.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio as Pipe};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::expect::{is_clean, kind, text};
use crate::row::{Guest, Row, Stops, hostile_guest};
use crate::running_site::RowContext;
use crate::tools::{has_lines, lines_begin, path, shown};

/// A text that only the environment of a process has.
const ENVIRONMENT: &str = "belljar-hostile-environment-4711";

/// A text that only the arguments of a process have.
const ARGUMENT: &str = "belljar-hostile-argument-0815";

/// Switches the second wall (Landlock) off. It would also hide files of the kernel, and these rows must test the grant
/// alone.
const WALL_OFF: &str = "wall = \"off\"";

/// Every file below `/system`.
const FILES: [&str; 8] = ["containers", "disks", "load", "memory", "network", "processes", "sensors", "services"];

/// A process that runs for the time of a script.
struct Running(Child);

impl Running {
    /// A shell with the markers in its arguments and in its environment.
    fn marked() -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600; true", ARGUMENT]).env("MARKER", ENVIRONMENT);
        Running::start(command)
    }

    fn start(mut command: Command) -> Running {
        command.stdin(Pipe::null()).stdout(Pipe::null()).stderr(Pipe::null()).process_group(0);
        Running(command.spawn().expect("start a process"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.0.wait().ok();
    }
}

/// Reads the file of a part as a whole.
fn whole(part: &str) -> String {
    format!("need/{}", path(format!("/system/{part}.json")))
}

/// The text of a read that must succeed.
fn read(context: &RowContext<'_>, reference: &str) -> String {
    let answer = context.read(reference);
    text(&answer).unwrap_or_else(|| panic!("{reference} {}", shown(&answer))).to_owned()
}

/// Asserts that a part is denied, and that the denial names the command that grants it.
fn denied(context: &RowContext<'_>, part: &str) {
    let answer = context.read(&whole(part));
    let error = answer.as_ref().err().unwrap_or_else(|| panic!("{part}: {}", shown(&answer)));
    assert_eq!(kind(error), "denied", "{part}: {error}");
    let hint = error.data["hint"].as_str().unwrap_or_default();
    assert!(hint.contains(&format!("--system {part}")), "{part}: {error}");
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("SYS-01", "a provider opens parts of the system that were not granted to it")
            .settings(WALL_OFF)
            .config("system = [\"load\"]")
            .act(|context| {
                let listed = read(context, &format!("readdir/{}", path("/system")));
                assert_eq!(listed, "listed [\"load.json\"]");
                let others = FILES.iter().filter(|part| **part != "load");
                others.for_each(|part| denied(context, part));
                "denied with the cure".to_owned()
            })
            .stopped_by(&["system-parts"]),
        hostile_guest("SYS-02", "a provider looks for passwords in the arguments of other users' processes")
            .settings(WALL_OFF)
            .config("system = [\"all\"]")
            .act(|context| {
                let _running = Running::marked();
                // Facts that are older than the process may be kept for a second.
                std::thread::sleep(Duration::from_millis(1200));
                let processes = read(context, &whole("processes"));
                assert!(processes.contains("\"name\":\"sh\""), "the process is not listed");
                assert!(!processes.contains(ARGUMENT), "arguments are shown");
                assert!(!processes.contains("\"command\""), "arguments are shown");
                "names, no arguments".to_owned()
            })
            .stopped_by(&["system-parts"]),
        hostile_guest("SYS-03", "a provider with every grant of the system looks for environments of processes")
            .config("system = [\"all\", \"command-lines\"]")
            .act(|context| {
                let running = Running::marked();
                std::thread::sleep(Duration::from_millis(1200));
                let found: Vec<String> = FILES.iter().map(|part| read(context, &whole(part))).collect();
                assert!(found.iter().any(|facts| facts.contains(ARGUMENT)), "the process is not listed");
                assert!(!found.iter().any(|facts| facts.contains(ENVIRONMENT)), "an environment is shown");
                let pid = running.0.id();
                for name in [
                    "../proc/self/environ".to_owned(),
                    format!("../proc/{pid}/environ"),
                    format!("/proc/{pid}/environ"),
                    "processes.json/../../proc/self/environ".to_owned(),
                    format!("{pid}/environ"),
                    "environ".to_owned(),
                    "environ.json".to_owned(),
                ] {
                    for verb in ["raw", "stat"] {
                        let said = read(context, &format!("{verb}/{}", path(&name)));
                        assert!(said.lines().all(|line| line.starts_with("/system: refused: ")), "{name}: {said}");
                    }
                    let said = read(context, &format!("open/{}", path(format!("/system/{name}"))));
                    assert!(said.starts_with("refused: "), "{name}: {said}");
                }
                "in no file, and at no path".to_owned()
            })
            .stopped(Stops::Structure("no code of belljar reads the environment of a process")),
        hostile_guest("SYS-04", "a provider changes, adds and removes files of the system")
            .config("system = [\"load\"]")
            .read(
                "alter/load%252Ejson",
                has_lines(&[
                    "open to create: not-permitted",
                    "open to create without writing: not-permitted",
                    "open to truncate: not-permitted",
                    "open to write: not-permitted",
                    "open to change a directory: not-permitted",
                    "create a directory: not-permitted",
                    "remove a file: not-permitted",
                    "rename: not-permitted",
                    "link: not-permitted",
                    "link symbolically: not-permitted",
                    "set times: not-permitted",
                    "set times of the directory: not-permitted",
                    "set times of an open file: not-permitted",
                    "set size: not-permitted",
                    "write: not-permitted",
                    "write through a stream: not-permitted",
                    "append: not-permitted",
                ]),
            )
            .read("raw/load%252Ejson", lines_begin(&["/system: read \"{"]))
            .stopped(Stops::Structure("the files are in memory, and no code of belljar changes them")),
        [
            "..",
            "../..",
            "./../canary/secret.txt",
            "../canary/secret.txt",
            "/",
            "/etc/passwd",
            "//proc/self/environ",
            "load.json/..",
            "load.json/../../etc/passwd",
            "\0",
            "",
            "self",
            "1/cmdline",
            "%2e%2e/etc/passwd",
        ]
        .iter()
        .fold(
            hostile_guest("SYS-05", "a provider walks out of the directory of the system")
                .config("system = [\"load\"]"),
            |row, name| {
                let refused = || lines_begin(&["/system: refused: "]);
                let row = row.read(format!("raw/{}", path(name)), refused());
                row.read(format!("stat/{}", path(name)), refused()).read(format!("link/{}", path(name)), refused())
            },
        )
        .stopped(Stops::Structure("the directory is a list of names in memory: it has no parent and no links")),
        hostile_guest("SYS-06", "a flood of reads makes belljar collect the facts again and again")
            .config("system = [\"load\"]")
            .act(|context| {
                let (began, mut times) = (Instant::now(), BTreeSet::new());
                let mut reads = 0;
                while reads < 200 {
                    let facts: Value = serde_json::from_str(&read(context, &whole("load"))).expect("JSON");
                    times.insert(facts["at"].as_str().expect("a time").to_owned());
                    reads += 1;
                }
                // One for each second, and one for the second that had begun.
                let most = began.elapsed().as_secs() as usize + 2;
                assert!(times.len() <= most, "{} collections for {reads} reads in {:?}", times.len(), began.elapsed());
                format!("{reads} reads, {} collections", times.len())
            })
            .stopped_by(&["system-pace"]),
        hostile_guest("SYS-07", "a process has a name and arguments that are long, not UTF-8, and control a terminal")
            .config("system = [\"processes\", \"command-lines\"]")
            .act(hostile_process)
            .stopped(Stops::Structure("names and arguments are cut, and cleaned where they are read")),
        hostile_guest("SYS-08", "a provider without a grant uses the grant of another mount")
            .mount("granted", Guest::Built("guest_hostile"))
            .config("system = [\"all\"]")
            .act(|context| {
                let other = context.read_uri(&context.uri_of("granted", &whole("load")));
                assert!(text(&other).is_some(), "the other mount: {}", shown(&other));
                for part in FILES {
                    let answer = context.read(&whole(part));
                    assert!(answer.is_err(), "{part}: {}", shown(&answer));
                }
                let listed = read(context, &format!("readdir/{}", path("/system")));
                assert!(listed.starts_with("refused: "), "{listed}");
                "no directory".to_owned()
            })
            .stopped(Stops::Structure("a call gets the directories of its own mount only")),
    ]
}

/// Runs a program under a hostile name, and reads the list of processes.
fn hostile_process(context: &RowContext<'_>) -> String {
    // The kernel keeps the first 15 bytes of the file's name.
    let name = OsStr::from_bytes(b"\x1b[2J\x07\xff\"}\n|<b>a long name that the kernel cuts");
    let program = context.site().path("granted-sys-07");
    std::fs::create_dir_all(&program).expect("create a directory");
    let program = program.join(name);
    // A shell stays, because another command follows.
    std::fs::copy("/bin/sh", &program).expect("copy a program");
    let huge = vec![b'9'; 100_000];
    let mut waiting = Command::new(&program);
    waiting.arg0(OsStr::from_bytes(b"\x1b]0;title\x07\xfe\xff\"},{"));
    waiting.args(["-c", "sleep 600; true"]).arg(OsStr::from_bytes(b"\x7f\xc3\x1b[2J")).arg(OsStr::from_bytes(&huge));
    let running = Running::start(waiting);
    std::thread::sleep(Duration::from_millis(1500));
    let text = read(context, &whole("processes"));
    assert!(is_clean(&text), "the answer has characters that control a terminal");
    let facts: Value = serde_json::from_str(&text).expect("JSON");
    let list = facts["processes"].as_array().expect("a list");
    let own = list.iter().find(|one| one["pid"] == running.0.id()).expect("the process");
    let clean = |text: &str| text.chars().all(|c| !c.is_control());
    assert!(own["name"].as_str().is_some_and(|name| clean(name) && name.contains('\u{fffd}')), "{own}");
    let command = own["command"].as_array().expect("the arguments");
    assert!(command.iter().all(|word| word.as_str().is_some_and(clean)), "{own}");
    let length: usize = command.iter().filter_map(Value::as_str).map(str::len).sum();
    assert!(length < 2048 && own["command_cut"] == true, "{own}");
    "cleaned and cut".to_owned()
}
