//! Where these tests run: a site with a witness, `clock`, and with providers that mean harm; compiled code is shared by all
//! of them. And what every attack has in common: the witness is read while it goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use belljar_tests::client::INTERNAL;
use belljar_tests::{Client, Era, RpcError, Site, Stdio, steers};
use serde_json::{Value, json};

/// The witness: a mount that has nothing to do with whatever goes on.
pub(crate) const WITNESS: &str = "belljar://clock/utc";

/// How much longer than its own time a call may take until it is answered: the tests run side by side, on few processors,
/// and half of them waste those.
pub(crate) const SLACK: Duration = Duration::from_secs(10);

/// A site with the witness and whatever `config` mounts. `imp.wasm`, `files.wasm`, `logs.wasm` and `web.wasm` are there to be
/// mounted; records go to the file that [`Site::audit`] reads.
pub(crate) fn site(config: &str) -> Site {
    let mut site = bare();
    site.mount("clock");
    if config.contains("imp.wasm") {
        site.mount_as("guest_imp", "imp.wasm");
    }
    for stem in ["files", "logs", "web"] {
        if config.contains(&format!("{stem}.wasm")) {
            site.mount(stem);
        }
    }
    site.config(&format!("audit = \"audit.jsonl\"\n{config}"));
    site.share(shared());
    site
}

/// A site with one imp, mounted as `imp` with these limits.
pub(crate) fn imp(limits: &str) -> Site {
    site(&format!("[mounts.imp]\ncomponent = \"imp.wasm\"\n\n[mounts.imp.limits]\n{limits}\n"))
}

/// A site with nothing in it, and nothing shared.
pub(crate) fn bare() -> Site {
    Site::new()
}

/// Where compiled code is kept, and the key that it is authenticated with: made once for all tests, with the large
/// components in it, so that each of them is compiled once.
fn shared() -> &'static Path {
    static SHARED: OnceLock<PathBuf> = OnceLock::new();
    SHARED.get_or_init(|| {
        // A test that runs once more, in a network of its own, leaves alone what the others use.
        let own = belljar_tests::net::inside().map_or_else(String::new, |test| format!("-{test}"));
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bounds{own}"));
        Site::compile(&shared, &["clock", "files", "guest_imp", "logs", "web"]);
        shared
    })
}

/// All that a verb printed.
pub(crate) fn said(output: &std::process::Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The threads of a process, as directories of `/proc`; none when it is gone.
pub(crate) fn threads(process: u32) -> Vec<PathBuf> {
    let all = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    all.map(|thread| thread.path()).collect()
}

/// The children of a process, whichever thread started them, that run `verb`.
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

/// Starts serving, and waits until the witness answers: what is measured then is no start.
pub(crate) fn serve(site: &Site) -> Client<Stdio> {
    let mut client = site.stdio(Era::Modern);
    witness(&mut client);
    client
}

/// Reads the witness, which answers as always.
pub(crate) fn witness(client: &mut Client<Stdio>) {
    let text = client.text(WITNESS);
    assert!(text.contains("zone: UTC\n"), "{text}");
}

/// What came of an attack.
#[derive(Debug)]
pub(crate) struct Attack {
    /// The answer to it.
    pub(crate) answer: Result<Value, RpcError>,
    /// How long that took.
    pub(crate) took: Duration,
    /// How often the witness answered while it went on.
    pub(crate) witnessed: usize,
}

/// Sends a request, and reads the witness again and again until it is answered, and once more.
pub(crate) fn attack(client: &mut Client<Stdio>, method: &str, params: Value) -> Attack {
    let began = Instant::now();
    let id = client.send(method, params);
    let mut witnessed = 0;
    let answer = loop {
        witness(client);
        if let Some(answer) = client.wait_for(id, Duration::ZERO) {
            break answer;
        }
        witnessed += 1;
        assert!(began.elapsed() < client.patience, "no answer after {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    };
    let took = began.elapsed();
    witness(client);
    // Most likely the mount was refused; the log says why.
    if let Err(error) = &answer
        && error.data["kind"] == "not-found"
        && error.data["mount"].is_null()
    {
        panic!("{error}\n{}", client.wire().process.stderr());
    }
    Attack { answer, took, witnessed }
}

/// Reads `uri` while the witness is read.
pub(crate) fn attack_by_read(client: &mut Client<Stdio>, uri: &str) -> Attack {
    attack(client, "resources/read", json!({ "uri": uri }))
}

/// A limit, as an error tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) limit: String,
    pub(crate) used: u64,
    pub(crate) cap: u64,
    pub(crate) hint: Option<String>,
}

/// Takes apart an error that must be one of a limit in `mount`, well formed whichever limit it is.
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

/// The line that a hint says to put into the configuration of `mount`, before the command that does it.
pub(crate) fn cure(reached: &Reached, mount: &str) -> String {
    let hint = reached.hint.as_deref().unwrap_or_else(|| panic!("no hint in {reached:?}"));
    let cure = hint.strip_prefix("to allow more, set ").and_then(|rest| rest.split_once(" under "));
    let (line, table) = cure.unwrap_or_else(|| panic!("a hint of another form: {hint}"));
    let (table, command) = table.split_once(", or run: ").unwrap_or_else(|| panic!("no command: {hint}"));
    assert!(command.starts_with(&format!("belljar set 'mounts.{mount}.limits.{line}'")), "{hint}");
    assert_eq!(table, format!("[mounts.{mount}.limits]"), "{hint}");
    assert!(line.starts_with(&format!("{} = ", reached.limit)), "{hint}");
    line.to_owned()
}

/// The kind of an error, as its data tells it.
pub(crate) fn kind(error: &RpcError) -> &str {
    error.data["kind"].as_str().unwrap_or_else(|| panic!("no kind in {error}"))
}

/// `text` has nothing that steers a terminal, reorders or hides.
pub(crate) fn assert_clean(text: &str) {
    assert_eq!(text.chars().find(|c| steers(*c)), None, "{text:?}");
}
