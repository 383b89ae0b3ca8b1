//! Helpers of most tests: sites, running servers, and attacks. A site has a witness (mount `clock`) and often a hostile
//! mount (the hostile guest, `tests/guests/hostile`). All sites share compiled code. During each attack, the witness
//! must answer.

pub(crate) mod component;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Site, Stdio, is_deceptive, places};
use serde_json::{Value, json};

/// A resource of the witness, a mount that takes no part in the attack.
pub(crate) const WITNESS: &str = "belljar://clock/utc";

/// A site with the witness and the mounts of `config`. The site contains `hostile.wasm`, `files.wasm`, `logs.wasm` or
/// `web.wasm` if `config` contains that name, a comment included. belljar writes its audit record to the file that
/// [`Site::audit`] reads.
pub(crate) fn site(config: &str) -> Site {
    let site = empty();
    site.mount("clock");
    if config.contains("hostile.wasm") {
        site.mount_as("guest_hostile", "hostile.wasm");
    }
    for stem in ["files", "logs", "web"] {
        if config.contains(&format!("{stem}.wasm")) {
            site.mount(stem);
        }
    }
    site.config(&format!("audit = \"audit.jsonl\"\n{}", patient(config)));
    site
}

/// The configuration with time limits that a busy machine does not reach. It keeps the time limits that it sets itself.
pub(crate) fn patient(config: &str) -> String {
    let sets = |key: &str| config.lines().any(|line| line.trim_start().starts_with(key));
    let list_time = if sets("list-time") { "" } else { "list-time = \"60s\"\n" };
    let limits = if sets("[limits]") || sets("time") { "" } else { "\n[limits]\ntime = \"60s\"\n" };
    format!("{list_time}{config}{limits}")
}

/// A site with the witness and one hostile guest, mounted as `hostile` with these limits.
pub(crate) fn hostile_guest(limits: &str) -> Site {
    site(&format!("[mounts.hostile]\ncomponent = \"hostile.wasm\"\n\n[mounts.hostile.limits]\n{limits}\n"))
}

/// An empty site with its own directories for compiled code and for state. Tests of these directories need it.
pub(crate) fn isolated_site() -> Site {
    Site::new()
}

/// A site of somebody who has just installed belljar: without a plugin directory, and with the built providers as the
/// installed ones.
pub(crate) fn new_user() -> Site {
    let mut site = empty();
    site.own_state(shared());
    site.env("BELLJAR_PROVIDERS", places::target().join("plugins"));
    fs::remove_dir(site.path("plugins")).unwrap();
    site
}

/// An empty site that shares compiled code with other sites.
pub(crate) fn empty() -> Site {
    let mut site = isolated_site();
    site.share(shared());
    site
}

/// The shared directory of compiled code, and of the key that authenticates the code. The first call creates it, and
/// compiles the components that several tests mount. So each of them is compiled once.
pub(crate) fn shared() -> &'static Path {
    static SHARED: OnceLock<PathBuf> = OnceLock::new();
    SHARED.get_or_init(|| {
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("integration");
        // A test may run itself again in a network namespace. The second run uses the code that the first run compiled.
        if belljar_tests::net::inside().is_none() {
            let components = [
                "clock",
                "files",
                "guest_fixture",
                "guest_hostile",
                "guest_primitives",
                "guest_sized",
                "guest_skills",
                "logs",
                "web",
            ];
            Site::compile(&shared, &components);
        }
        shared
    })
}

/// Standard output and standard error of a command.
pub(crate) fn stdout_and_stderr(output: &std::process::Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The threads of a process, as directories of `/proc`. Empty if the process has ended.
pub(crate) fn threads(process: u32) -> Vec<PathBuf> {
    let all = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    all.map(|thread| thread.path()).collect()
}

/// The child processes that run the belljar command `verb`. `/proc` lists them for each thread of the parent.
pub(crate) fn children(process: u32, verb: &str) -> Vec<u32> {
    let of_threads = threads(process).into_iter().filter_map(|thread| fs::read_to_string(thread.join("children")).ok());
    let all: Vec<u32> =
        of_threads.flat_map(|ids| ids.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect();
    let runs = |id: &u32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(verb.as_bytes())
    };
    all.into_iter().filter(runs).collect()
}

/// The verb of the launcher process.
pub(crate) const LAUNCHER: &str = "launch";

/// The verb of a worker process.
pub(crate) const WORKER: &str = "serve-mount";

/// The worker processes of a belljar. Its launcher started them, or it did itself.
pub(crate) fn workers(front: u32) -> Vec<u32> {
    let starters = children(front, LAUNCHER).into_iter().chain([front]);
    starters.flat_map(|starter| children(starter, WORKER)).collect()
}

/// The limits of a mount whose guest spins until it is ended: on a busy machine too, no limit ends it before.
pub(crate) const SPINS: &str = "[mounts.hostile.limits]\ntime = \"1h\"\nfuel = 9000000000000000000\n";

/// Waits until these workers have computed: then a call of the guest that spins has reached one of them.
pub(crate) fn await_computing(workers: &[u32]) {
    belljar_tests::wait_until("a call in the worker", || {
        let used: Duration = workers.iter().map(|worker| belljar_tests::process::cpu_time(*worker)).sum();
        (used.as_millis() > 200).then_some(()).ok_or_else(|| format!("{used:?}"))
    });
}

/// Starts the server on stdio, and reads the witness once. So times that a test measures do not include the start.
pub(crate) fn serve(site: &Site) -> Client<Stdio> {
    let mut client = site.stdio(Era::Stateless);
    witness(&mut client);
    client
}

/// Reads the witness, and asserts its usual answer.
pub(crate) fn witness(client: &mut Client<Stdio>) {
    let text = client.text(WITNESS);
    assert!(text.contains("zone: UTC\n"), "{text}");
}

/// The outcome of an attack.
#[derive(Debug)]
pub(crate) struct Attack {
    /// The answer to the request.
    pub(crate) answer: Result<Value, RpcError>,
}

/// Sends a request, reads the witness again and again until the answer comes, and reads the witness once more.
pub(crate) fn attack(client: &mut Client<Stdio>, method: &str, params: Value) -> Attack {
    let began = Instant::now();
    let id = client.send(method, params);
    let answer = loop {
        witness(client);
        if let Some(answer) = client.wait_for(id, Duration::ZERO) {
            break answer;
        }
        assert!(began.elapsed() < client.patience, "no answer after {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    };
    witness(client);
    // The URI belongs to no mount. Most likely belljar refused the mount, and the log has the reason.
    if let Err(error) = &answer
        && error.data["kind"] == "not-found"
        && error.data["mount"].is_null()
    {
        panic!("{error}\n{}", client.wire().process.stderr());
    }
    Attack { answer }
}

/// Reads `uri`, and reads the witness meanwhile.
pub(crate) fn attack_by_read(client: &mut Client<Stdio>, uri: &str) -> Attack {
    attack(client, "resources/read", json!({ "uri": uri }))
}

/// A limit, as an error reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) limit: String,
    pub(crate) used: u64,
    pub(crate) cap: u64,
    pub(crate) hint: Option<String>,
}

/// Parses an error. Asserts that it is a well-formed error of a limit in `mount`.
pub(crate) fn reached(error: &RpcError, mount: &str) -> Reached {
    assert_eq!(error.code, INTERNAL, "{error}");
    assert_eq!(error.data["kind"], "limit", "{error}");
    assert_eq!(error.data["mount"], mount, "{error}");
    let number = |key: &str| error.data[key].as_u64().unwrap_or_else(|| panic!("no {key} in {error}"));
    let text = |key: &str| error.data[key].as_str().map(str::to_owned);
    let reached = Reached {
        limit: text("limit").unwrap_or_else(|| panic!("no limit in {error}")),
        used: number("used"),
        cap: number("cap"),
        hint: text("hint"),
    };
    assert!(reached.used >= reached.cap, "stopped before its limit: {error}");
    assert!(error.message.contains(&format!("the {} limit was reached", reached.limit)), "{error}");
    reached
}

/// The configuration line that the hint of an error suggests for `mount`. Asserts that the hint also has the command
/// that writes this line.
pub(crate) fn cure(reached: &Reached, mount: &str) -> String {
    let hint = reached.hint.as_deref().unwrap_or_else(|| panic!("no hint in {reached:?}"));
    let cure = hint.strip_prefix("to allow more, set ").and_then(|rest| rest.split_once(" under "));
    let (line, table) = cure.unwrap_or_else(|| panic!("the hint has an unexpected form: {hint}"));
    let (table, command) = table.split_once(", or run: ").unwrap_or_else(|| panic!("the hint has no command: {hint}"));
    assert!(command.starts_with(&format!("belljar set 'mounts.{mount}.limits.{line}'")), "{hint}");
    assert_eq!(table, format!("[mounts.{mount}.limits]"), "{hint}");
    assert!(line.starts_with(&format!("{} = ", reached.limit)), "{hint}");
    line.to_owned()
}

/// The kind of an error, from its data.
pub(crate) fn kind(error: &RpcError) -> &str {
    error.data["kind"].as_str().unwrap_or_else(|| panic!("no kind in {error}"))
}

/// Asserts that no character of `text` controls a terminal, or hides or reorders text.
pub(crate) fn assert_clean(text: &str) {
    assert_eq!(text.chars().find(|c| is_deceptive(*c)), None, "{text:?}");
}
