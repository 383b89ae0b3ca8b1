//! Helpers that several rows use: paths in the encoding of the hostile guest, servers that a script starts, waits, and
//! checks of answers.

use std::time::{Duration, Instant};

use belljar_tests::{DEADLINE, Era, Load, Server, SharedStdio, process};
use serde_json::{Value, json};

use crate::expect::{Answer, Expect, cut, matching, text};
use crate::prove;
use crate::running_site::RowContext;

/// A path as the hostile guest reads it: bytes other than letters, digits, `-` and `_` are percent-encoded twice.
pub(crate) fn path(path: impl AsRef<[u8]>) -> String {
    let twice = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(*byte).to_string(),
        byte => format!("%25{byte:02X}"),
    };
    path.as_ref().iter().map(twice).collect()
}

/// Expects a text in which every line begins with one of `beginnings`.
pub(crate) fn lines_begin(beginnings: &'static [&'static str]) -> Expect {
    matching(move |answer| match text(answer) {
        Some(text) if text.lines().all(|line| beginnings.iter().any(|begin| line.starts_with(begin))) => {
            Ok(format!("\"{}\"", cut(text.lines().next().unwrap_or_default())))
        }
        Some(text) => Err(format!("answered with the text {}", cut(text))),
        None => Err(shown(answer)),
    })
}

/// Expects a text that has each of the lines in `wanted`.
pub(crate) fn has_lines(wanted: &'static [&'static str]) -> Expect {
    matching(move |answer| {
        let text = text(answer).ok_or_else(|| shown(answer))?;
        match wanted.iter().find(|wanted| !text.lines().any(|line| line == **wanted)) {
            None => Ok(wanted.join(", ")),
            Some(missing) => Err(format!("no \"{missing}\" in {}", cut(text))),
        }
    })
}

/// Describes an answer in words.
pub(crate) fn shown(answer: &Answer) -> String {
    match answer {
        Ok(result) => format!("answered with {}", cut(&result.to_string())),
        Err(error) => format!("failed with {}", cut(&error.to_string())),
    }
}

/// Starts belljar on stdio, and initializes the connection.
pub(crate) fn line(context: &RowContext<'_>, shell: &str) -> SharedStdio {
    let line = SharedStdio::start(
        context.running.command(&["serve"], shell),
        Era::Stateless,
        &[&context.running.canaries.secret],
    );
    line.greet(Duration::from_secs(60)).unwrap_or_else(|why| panic!("{why}: {}", line.process.stderr()));
    line
}

/// Starts belljar on HTTP.
pub(crate) fn server(context: &RowContext<'_>, shell: &str) -> Server {
    Server::start(context.running.command(&["serve", "--http", "127.0.0.1:0"], shell))
}

/// Runs a command of belljar to its end. Returns true if it succeeded, and its output.
pub(crate) fn run(context: &RowContext<'_>, verb: &[&str]) -> (bool, String) {
    let output = process::run(context.running.command(verb, ""), deadline(Duration::from_secs(120)));
    let all = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&all).into_owned())
}

/// The output of `belljar check --json`.
pub(crate) fn check(context: &RowContext<'_>) -> Value {
    let output = process::run(context.running.command(&["check", "--json"], ""), deadline(Duration::from_secs(120)));
    let no_json = || panic!("no JSON: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| no_json())
}

/// The reason why `name` is not served, from the output of `check`.
pub(crate) fn refusal(checked: &Value, name: &str) -> String {
    let all = checked["refused"].as_array().cloned().unwrap_or_default();
    let own = all.iter().find(|refused| refused["name"] == name);
    let own = own.unwrap_or_else(|| panic!("\"{name}\" is not refused: {}", cut(&checked.to_string())));
    own["reason"].as_str().unwrap_or_default().to_owned()
}

/// Reads a resource over stdio, and returns the answer.
pub(crate) fn read(line: &SharedStdio, uri: &str) -> Answer {
    let id = line.send("resources/read", json!({ "uri": uri }));
    let answer = line.wait(id, deadline(Duration::from_secs(40)));
    answer.unwrap_or_else(|| panic!("no answer for {uri}: {}", line.process.stderr())).0
}

/// Reads a resource over stdio, and returns its text.
pub(crate) fn read_text(line: &SharedStdio, uri: &str) -> String {
    let answer = read(line, uri);
    text(&answer).unwrap_or_else(|| panic!("{uri} {}", shown(&answer))).to_owned()
}

/// Fetches all entries of a list over stdio. Panics if the list has more than `pages` pages.
pub(crate) fn listed(line: &SharedStdio, method: &str, key: &str, pages: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut params = json!({});
    for _ in 0..pages {
        let id = line.send(method, params);
        let (page, _) = line.wait(id, deadline(Duration::from_secs(60))).expect("a page");
        let page = page.unwrap_or_else(|error| panic!("{method}: {error}"));
        all.extend(page[key].as_array().cloned().unwrap_or_default());
        match &page["nextCursor"] {
            Value::Null => return all,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    panic!("{method} has no end within {pages} pages: {} entries", all.len())
}

/// How long to wait for an event. If guards are off, the result is `tight`, because the event usually does not come.
/// Otherwise it is at least [`DEADLINE`], which is enough for a busy machine.
pub(crate) fn deadline(tight: Duration) -> Duration {
    if prove::is_running() { tight } else { tight.max(DEADLINE) }
}

/// True if `took` is shorter than the [`deadline`].
pub(crate) fn in_time(took: Duration, tight: Duration) -> bool {
    took < deadline(tight)
}

/// True if a measured time must not fail the row, because another program used the machine meanwhile. Always false if
/// guards are off.
pub(crate) fn is_excused(load: &Load) -> bool {
    load.is_shared() && !prove::is_running()
}

/// Waits until `is_met` returns true. Returns false if the [`deadline`] passed first.
pub(crate) fn within(tight: Duration, mut is_met: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + deadline(tight);
    while !is_met() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
