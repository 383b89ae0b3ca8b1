//! Real clients that subscribe. A client gets a notification when a watched file changes, and reads the new text. It gets no
//! notification of other files, or of files that it no longer watches. It gets a notification of the list when a component is
//! added, replaced or removed.
//!
//! Each client is a small program in `tests/clients/` that keeps running. It gets the request of `programs.rs`, with
//! `watches` (URIs) in place of `reads`. It prints JSON objects, one in each line:
//!  - `ready`: the agreed protocol version. The client has subscribed.
//!  - `told`: a notification. Its value is `"updated"`, with a `uri`, or `"list"`. The client then reads the URI or lists
//!    again, and prints the result:
//!  - `read` (a URI) with its `text`, or with the `code` of the error; or
//!  - `listed`: all URIs.
//!  - `unwatched`: the answer to the input line `{"unwatch": URI}`.
//!
//! The client ends when its input ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio as Pipe};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use belljar_tests::{Era, Process, Site, places};
use serde_json::{Value, json};

use crate::clients::programs::Reach;

/// The longest accepted time until a client is ready, and until it prints an expected line.
const START: Duration = Duration::from_secs(120);

/// How long a test listens for a notification that must not come. On an idle machine a notification takes less than half of this.
const QUIET: Duration = Duration::from_secs(1);

/// The watched notes.
const A: &str = "belljar://notes/a.md";
const C: &str = "belljar://notes/deep/c.md";

/// A running client that watches `A` and `C`.
struct Follower {
    process: Process,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Follower {
    /// Starts a client that watches `A` and `C`. `None` if this machine lacks the client.
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
                if tell.send(said).is_err() {
                    return;
                }
            }
        });
        let follower = Self { process, input: Some(input), lines };
        let version = follower.read_until("agreed version", None, |said| said["ready"].as_str().map(str::to_owned));
        assert_eq!(version, era.version(), "{script} {mode}");
        Some(follower)
    }

    /// Reads the output of the client until `pick` finds a value. Panics at a notification of another resource than `uri`.
    fn read_until<T>(&self, what: &str, uri: Option<&str>, pick: impl Fn(&Value) -> Option<T>) -> T {
        let (by, mut earlier) = (Instant::now() + START, Vec::new());
        loop {
            let said = self.lines.recv_timeout(by.saturating_duration_since(Instant::now())).unwrap_or_else(|_| {
                panic!("no {what} within {START:?}; its output: {earlier:?}; its stderr:\n{}", self.process.stderr())
            });
            if said["told"] == "updated" {
                assert_eq!(
                    said["uri"].as_str(),
                    uri,
                    "a notification of another resource, while the test waited for {what}: {earlier:?}"
                );
            }
            if let Some(found) = pick(&said) {
                return found;
            }
            earlier.push(said);
        }
    }

    /// Asserts that for [`QUIET`], the client gets no notification of another resource than `uri`.
    fn assert_no_update_except(&self, uri: Option<&str>) {
        let by = Instant::now() + QUIET;
        while let Ok(said) = self.lines.recv_timeout(by.saturating_duration_since(Instant::now())) {
            assert!(said["told"] != "updated" || said["uri"].as_str() == uri, "{said}");
        }
    }

    /// Makes a change. The client must get a notification of `uri`, and then read `text`, or an error for `None`.
    fn expect_update(&self, uri: &str, text: Option<&str>, era: Era, change: impl FnOnce()) {
        change();
        // The newer TypeScript client shows the error code of 2026-07-28 in both eras.
        let gone = [era.not_found(), Era::Stateless.not_found()].map(Value::from);
        let is_expected = |said: &Value| match text {
            Some(text) => said["text"] == text,
            None => gone.contains(&said["code"]),
        };
        let what = format!("{text:?} as the text of {uri}");
        self.read_until(&what, Some(uri), |said| (said["read"] == uri && is_expected(said)).then_some(()));
    }

    /// Makes a change. The client must get a notification of the list. Returns the listed URIs below `belljar://late/` as soon
    /// as `is_expected` accepts them.
    fn expect_list(&self, change: impl FnOnce(), is_expected: impl Fn(&[String]) -> bool) -> Vec<String> {
        change();
        self.read_until("list as expected", None, |said| {
            let all = said["listed"].as_array()?.iter().map(|uri| uri.as_str().unwrap().to_owned());
            let late: Vec<String> = all.filter(|uri| uri.starts_with("belljar://late/")).collect();
            is_expected(&late).then_some(late)
        })
    }

    /// Makes the client end its subscription to a URI.
    fn unwatch(&mut self, uri: &str) {
        let line = format!("{}\n", json!({ "unwatch": uri }));
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        self.read_until("confirmation that the subscription has ended", None, |said| {
            (said["unwatched"] != Value::Null).then_some(())
        });
    }

    /// Ends the client, and asserts that it reported no failure.
    fn end(mut self) {
        self.input = None;
        let ended = self.process.wait(START);
        assert!(ended.status.success(), "the client ended with {}:\n{}", ended.status, ended.stderr);
        let rest: Vec<_> = self.lines.try_iter().filter(|said| !said["failed"].is_null()).collect();
        assert!(rest.is_empty(), "{rest:?}");
    }
}

/// A site with three notes, which the real provider of files serves.
fn site() -> Site {
    let site = crate::support::empty();
    site.mount_as("files", "notes.wasm");
    for name in ["a.md", "b.md", "deep/c.md"] {
        site.write(format!("notes/{name}"), format!("# {name}"));
    }
    site.config("list-time = \"60s\"\n[mounts.notes]\nfs = { \"/notes\" = \"notes\" }\n");
    site
}

/// Replaces a file in one step, by a rename. Truncating and writing the file would be two changes.
fn replace(site: &Site, path: &str, text: &str) {
    let arriving = site.write("arriving.md", text);
    std::fs::rename(arriving, site.path(path)).unwrap();
}

/// Checks the notifications and reads of a client. An unexpected notification would come in place of the next expected
/// one, and fail the test.
fn check(site: &Site, reach: &Reach<'_>, script: &str, mode: &str, era: Era) {
    // `None`: `cargo xtask test` has already reported that this machine lacks the client.
    let Some(mut client) = Follower::start(script, mode, era, reach) else { return };
    replace(site, "notes/b.md", "not watched, and of another length");
    client.expect_update(C, Some("# by renaming"), era, || replace(site, "notes/deep/c.md", "# by renaming"));
    client.expect_update(A, Some("# five at once 4"), era, || {
        (0..5).for_each(|n| replace(site, "notes/a.md", &format!("# five at once {n}")));
    });
    // On a busy machine, some of the five changes may give notifications of their own.
    client.assert_no_update_except(Some(A));
    client.expect_update(A, None, era, || std::fs::remove_file(site.path("notes/a.md")).unwrap());
    client.expect_update(A, Some("# back"), era, || replace(site, "notes/a.md", "# back"));

    let text = "belljar://late/static-text".to_owned();
    let old = client.expect_list(|| site.mount_as("guest_fixture", "late.wasm"), |late| late.contains(&text));
    // Writing the same bytes again is no change.
    site.mount_as("guest_fixture", "late.wasm");
    let has_old = |late: &[String]| late.iter().any(|uri| old.contains(uri));
    let replace_component = || site.mount_as("guest_sized", "late.wasm");
    client.expect_list(replace_component, |late| !late.is_empty() && !has_old(late));
    client.expect_list(|| std::fs::remove_file(site.path("plugins/late.wasm")).unwrap(), <[String]>::is_empty);

    client.unwatch(A);
    replace(site, "notes/a.md", "# watched no more");
    client.expect_update(C, Some("# goes on"), era, || replace(site, "notes/deep/c.md", "# goes on"));
    client.assert_no_update_except(None);
    client.end();
}

/// Declares one test over stdio and one over HTTP for each client.
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
    python_2_auto: "py/watch_2.py" "auto" Era::Stateless;
    python_2_legacy: "py/watch_2.py" "legacy" Era::Session;
    python_1: "py/watch_1.py" "" Era::Session;
    typescript_sdk_1: "node/watch_1.mjs" "" Era::Session;
    typescript_client_2_legacy: "node/watch_2.mjs" "legacy" Era::Session;
    typescript_client_2_auto: "node/watch_2.mjs" "auto" Era::Stateless;
}
