//! Real clients that watch: each is told of a file's change within a second, once, and sees what is new when it reads; it is
//! told of no other file, and of nothing that it watches no more; and when a component is dropped in, exchanged or taken
//! away it is told that the list has changed, and lists what there is.
//!
//! Each client is a small program in `clients/` that stays. It gets the request of `clients.rs`, with `watches` (URIs) in
//! place of `reads`, and prints one JSON object a line: `ready` (the version agreed on) when it watches; `told` (`updated`
//! with a `uri`, or `list`) when it is told something, and then what it sees when it looks again: `read` (a URI) with its
//! `text` or the `code` of the error that came instead, or `listed` (all URIs). A line `{"unwatch": URI}` of its input is
//! answered with `unwatched`. It ends with its input.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio as Pipe};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use belljar_tests::{Era, Process, Site, places};
use serde_json::{Value, json};

use crate::clients::Reach;

/// How long a client may take to start, and on stdio the server with it.
const START: Duration = Duration::from_secs(120);

/// A change of a file is told within this time.
const SOON: Duration = Duration::from_secs(1);

/// Nothing comes after this time that has not come.
const QUIET: Duration = Duration::from_millis(1500);

/// How long it may take until a component is loaded that was dropped in, and until a client has looked again.
const LOADED: Duration = Duration::from_secs(15);

const A: &str = "belljar://notes/a.md";
const C: &str = "belljar://notes/deep/c.md";

/// A client that watches.
struct Follower {
    process: Process,
    input: Option<ChildStdin>,
    lines: Receiver<(Instant, Value)>,
}

/// What a client said within some time.
struct Heard {
    since: Instant,
    lines: Vec<(Instant, Value)>,
}

impl Follower {
    /// Starts a client that watches `A` and `C`; `None` if it is not to be had here.
    fn start(script: &str, mode: &str, era: Era, reach: &Reach<'_>) -> Option<Self> {
        let program = match script.rsplit_once('.') {
            Some(("py/watch_1", _)) => places::python(1)?,
            Some((_, "py")) => places::python(2)?,
            _ => places::node()?,
        };
        let mut request = reach.request(mode, &[]);
        request["watches"] = json!([A, C]);
        let mut command = Command::new(program);
        command.arg(places::client_script(script)).arg(request.to_string());
        command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Pipe::piped()).stdout(Pipe::piped());
        let mut process = Process::start(command);
        let (input, output) = process.pipes();
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.unwrap();
                let said = serde_json::from_str(&line).unwrap_or_else(|why| panic!("no JSON ({why}): {line:?}"));
                if tell.send((Instant::now(), said)).is_err() {
                    return;
                }
            }
        });
        let follower = Self { process, input: Some(input), lines };
        assert_eq!(follower.says("ready", START)["ready"], era.version(), "{script} {mode}");
        Some(follower)
    }

    /// The next thing that it says, which must have `key`.
    fn says(&self, key: &str, patience: Duration) -> Value {
        let (_, said) = self.lines.recv_timeout(patience).unwrap_or_else(|_| {
            panic!("no \"{key}\" within {patience:?}; the client's stderr:\n{}", self.process.stderr())
        });
        assert!(said[key] != Value::Null, "not \"{key}\": {said}");
        said
    }

    /// Everything that it says after a change, until there is no more to come.
    fn hears(&self, change: impl FnOnce()) -> Heard {
        let since = Instant::now();
        change();
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout((since + QUIET).saturating_duration_since(Instant::now())) {
            lines.push(line);
        }
        // What it looks at again it looks at once for each time that it was told.
        let mut pending = lines.iter().filter(|(_, said)| said["told"].is_string()).count();
        pending -= lines.iter().filter(|(_, said)| said["told"].is_null()).count();
        for _ in 0..pending {
            lines.push(self.lines.recv_timeout(LOADED).unwrap_or_else(|_| {
                panic!("it does not look again: {lines:?}; the client's stderr:\n{}", self.process.stderr())
            }));
        }
        Heard { since, lines }
    }

    /// Changes something that is told as one change of `uri`, and read then as `text`; or is gone then.
    fn sees(&self, uri: &str, text: Option<&str>, era: Era, change: impl FnOnce()) -> Duration {
        let heard = self.hears(change);
        let updates = heard.updates();
        let [(at, told)] = updates.as_slice() else { panic!("not one change of {uri}: {heard:?}") };
        let took = at.duration_since(heard.since);
        assert!(*told == uri && took < SOON, "{uri}: after {took:?}: {heard:?}");
        let seen = heard.lines.iter().find(|(_, said)| said["read"] == uri).map(|(_, said)| said).unwrap();
        match text {
            Some(text) => assert_eq!(seen["text"], text, "{uri}: {heard:?}"),
            // The newer TypeScript client tells its user the newer code in both eras.
            None => {
                assert!([era.not_found(), Era::Modern.not_found()].map(Value::from).contains(&seen["code"]), "{seen}")
            }
        }
        took
    }

    /// Changes something that is told as one change of the list, and of nothing else. Gives what is listed below
    /// `belljar://late/` then, and how long it took.
    fn lists(&self, change: impl FnOnce()) -> (Vec<String>, Duration) {
        let since = Instant::now();
        change();
        let said = self.says("told", LOADED);
        let took = since.elapsed();
        assert_eq!(said["told"], "list", "{said}");
        let listed = self.says("listed", LOADED);
        let all = listed["listed"].as_array().unwrap().iter().map(|uri| uri.as_str().unwrap().to_owned());
        let late = all.filter(|uri| uri.starts_with("belljar://late/")).collect();
        let more = self.hears(|| ());
        assert!(more.lines.is_empty(), "told once: {more:?}");
        (late, took)
    }

    /// Ends watching a URI.
    fn unwatch(&mut self, uri: &str) {
        let line = format!("{}\n", json!({ "unwatch": uri }));
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        self.says("unwatched", LOADED);
    }

    /// Ends it.
    fn end(mut self) {
        self.input = None;
        let ended = self.process.wait(Duration::from_secs(30));
        assert!(ended.status.success(), "the client ended with {}:\n{}", ended.status, ended.stderr);
        let rest: Vec<_> = self.lines.try_iter().filter(|(_, said)| !said["failed"].is_null()).collect();
        assert!(rest.is_empty(), "{rest:?}");
    }
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines.iter().try_for_each(|(at, said)| writeln!(f, "{:?} {said}", at.duration_since(self.since)))
    }
}

impl Heard {
    /// The URIs that it was told of, and when.
    fn updates(&self) -> Vec<(Instant, &str)> {
        let updated = self.lines.iter().filter(|(_, said)| said["told"] == "updated");
        updated.map(|(at, said)| (*at, said["uri"].as_str().unwrap())).collect()
    }
}

/// Compiled before: how long that takes on a busy machine is not what is tested here.
fn compiled() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-watching");
        Site::compile(&place, &["files", "guest_fixture", "guest_sized"]);
        place
    })
}

fn site() -> Site {
    let mut site = Site::new();
    site.mount_as("files", "notes.wasm");
    for name in ["a.md", "b.md", "deep/c.md"] {
        site.write(format!("notes/{name}"), format!("# {name}"));
    }
    site.share(compiled());
    site.config("list-time = \"60s\"\n[mounts.notes]\nfs = { \"/notes\" = \"notes\" }\n");
    site
}

/// What every client is told and sees.
#[expect(clippy::print_stderr, reason = "how long it took is worth to be seen")]
fn check(site: &Site, reach: &Reach<'_>, script: &str, mode: &str, era: Era) {
    // A client that this machine cannot have was told of by set-up.
    let Some(mut client) = Follower::start(script, mode, era, reach) else { return };
    let nothing = client.hears(|| ());
    assert!(nothing.lines.is_empty(), "nothing changed: {nothing:?}");
    let unwatched = client.hears(|| drop(site.write("notes/b.md", "another, of another length")));
    assert!(unwatched.updates().is_empty(), "nobody watches b.md: {unwatched:?}");

    let mut took = Vec::new();
    took.push(client.sees(A, Some("# five at once 4"), era, || {
        (0..5).for_each(|n| drop(site.write("notes/a.md", format!("# five at once {n}"))));
    }));
    let arriving = site.write("arriving.md", "# by renaming");
    took.push(client.sees(C, Some("# by renaming"), era, || {
        std::fs::rename(arriving, site.path("notes/deep/c.md")).unwrap();
    }));
    took.push(client.sees(A, None, era, || std::fs::remove_file(site.path("notes/a.md")).unwrap()));
    took.push(client.sees(A, Some("# back"), era, || drop(site.write("notes/a.md", "# back"))));

    let dropped = client.lists(|| site.mount_as("guest_fixture", "late.wasm"));
    assert!(dropped.0.contains(&"belljar://late/static-text".to_owned()), "{dropped:?}");
    let same = client.hears(|| site.mount_as("guest_fixture", "late.wasm"));
    assert!(same.lines.is_empty(), "the same bytes again: {same:?}");
    let exchanged = client.lists(|| site.mount_as("guest_sized", "late.wasm"));
    let has_kept = exchanged.0.iter().any(|uri| dropped.0.contains(uri));
    assert!(!exchanged.0.is_empty() && !has_kept, "{dropped:?}, {exchanged:?}");
    let removed = client.lists(|| std::fs::remove_file(site.path("plugins/late.wasm")).unwrap());
    assert!(removed.0.is_empty(), "what was taken away is listed: {removed:?}");
    eprintln!("{script} {mode}: files {took:?}; components {:?} {:?} {:?}", dropped.1, exchanged.1, removed.1);

    client.unwatch(A);
    let unwatched = client.hears(|| drop(site.write("notes/a.md", "# watched no more")));
    assert!(unwatched.updates().is_empty(), "a.md is watched no more: {unwatched:?}");
    client.sees(C, Some("# goes on"), era, || drop(site.write("notes/deep/c.md", "# goes on")));
    client.end();
}

/// One test over stdio and one over HTTP for each client.
macro_rules! clients {
    ($($name:ident: $script:literal $mode:literal $era:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn over_stdio() {
                let site = site();
                check(&site, &Reach::Stdio(&site), $script, $mode, $era);
            }

            #[test]
            fn over_http() {
                let site = site();
                let server = site.http();
                check(&site, &Reach::Http(&server), $script, $mode, $era);
                let ended = server.stop();
                assert!(ended.status.success(), "the server ended with {}:\n{}", ended.status, ended.stderr);
            }
        }
    )*};
}

clients! {
    python_2_auto: "py/watch_2.py" "auto" Era::Modern;
    python_2_legacy: "py/watch_2.py" "legacy" Era::Older;
    python_1: "py/watch_1.py" "" Era::Older;
    typescript_sdk_1: "node/watch_1.mjs" "" Era::Older;
    typescript_client_2_legacy: "node/watch_2.mjs" "legacy" Era::Older;
    typescript_client_2_auto: "node/watch_2.mjs" "auto" Era::Modern;
}
