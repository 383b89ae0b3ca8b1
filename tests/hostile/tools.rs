//! What several rows need: paths as the imp takes them, servers that a script starts itself, answers to raw requests.

use std::time::{Duration, Instant};

use belljar_tests::{Era, Line, Server, process};
use serde_json::{Value, json};

use crate::expect::{Answer, Expect, cut, text, that};
use crate::scene::Scene;

/// Bytes that are no letter or digit in percent-encoding, twice over: as the imp takes a path.
pub(crate) fn path(path: impl AsRef<[u8]>) -> String {
    let twice = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(*byte).to_string(),
        byte => format!("%25{byte:02X}"),
    };
    path.as_ref().iter().map(twice).collect()
}

/// Text of which every line begins with one of these.
pub(crate) fn lines_begin(beginnings: &'static [&'static str]) -> Expect {
    that(move |answer| match text(answer) {
        Some(text) if text.lines().all(|line| beginnings.iter().any(|begin| line.starts_with(begin))) => {
            Ok(format!("\"{}\"", cut(text.lines().next().unwrap_or_default())))
        }
        Some(text) => Err(format!("said {}", cut(text))),
        None => Err(shown(answer)),
    })
}

/// Text that has each of these lines.
pub(crate) fn has_lines(wanted: &'static [&'static str]) -> Expect {
    that(move |answer| {
        let said = text(answer).ok_or_else(|| shown(answer))?;
        match wanted.iter().find(|wanted| !said.lines().any(|line| line == **wanted)) {
            None => Ok(wanted.join(", ")),
            Some(missing) => Err(format!("no \"{missing}\" in {}", cut(said))),
        }
    })
}

/// An answer as text.
pub(crate) fn shown(answer: &Answer) -> String {
    match answer {
        Ok(result) => format!("answered with {}", cut(&result.to_string())),
        Err(error) => format!("failed with {}", cut(&error.to_string())),
    }
}

/// A server on stdio that the script started itself, greeted.
pub(crate) fn line(scene: &Scene<'_>, shell: &str) -> Line {
    let line = Line::start(scene.stage.command(&["serve"], shell), Era::Modern, &[&scene.stage.canaries.secret]);
    line.greet(Duration::from_secs(60)).unwrap_or_else(|why| panic!("{why}: {}", line.process.stderr()));
    line
}

/// A server on HTTP that the script started itself.
pub(crate) fn server(scene: &Scene<'_>, shell: &str) -> Server {
    Server::start(scene.stage.command(&["serve", "--http", "127.0.0.1:0"], shell))
}

/// Runs a verb to its end: whether it succeeded, and all that it printed.
pub(crate) fn run(scene: &Scene<'_>, verb: &[&str]) -> (bool, String) {
    let output = process::run(scene.stage.command(verb, ""), Duration::from_secs(40));
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// What `belljar check --json` prints.
pub(crate) fn check(scene: &Scene<'_>) -> Value {
    let output = process::run(scene.stage.command(&["check", "--json"], ""), Duration::from_secs(40));
    let told = || panic!("no JSON: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| told())
}

/// Why `name` is not served, as `check` tells it.
pub(crate) fn refusal(checked: &Value, name: &str) -> String {
    let all = checked["refused"].as_array().cloned().unwrap_or_default();
    let own = all.iter().find(|refused| refused["name"] == name);
    let own = own.unwrap_or_else(|| panic!("\"{name}\" is not refused: {}", cut(&checked.to_string())));
    own["reason"].as_str().unwrap_or_default().to_owned()
}

/// One read of a resource on a line: the answer and how long it took.
pub(crate) fn read(line: &Line, uri: &str) -> Answer {
    let id = line.send("resources/read", json!({ "uri": uri }));
    let answer = line.wait(id, Duration::from_secs(40));
    answer.unwrap_or_else(|| panic!("no answer for {uri}: {}", line.process.stderr())).0
}

/// The text of one read.
pub(crate) fn read_text(line: &Line, uri: &str) -> String {
    let answer = read(line, uri);
    text(&answer).unwrap_or_else(|| panic!("{uri} {}", shown(&answer))).to_owned()
}

/// All entries of a listing on a line, or those of the first `pages` pages.
pub(crate) fn listed(line: &Line, method: &str, key: &str, pages: usize) -> Vec<Value> {
    let mut all = Vec::new();
    let mut params = json!({});
    for _ in 0..pages {
        let id = line.send(method, params);
        let (page, _) = line.wait(id, Duration::from_secs(60)).expect("a page");
        let page = page.unwrap_or_else(|error| panic!("{method}: {error}"));
        all.extend(page[key].as_array().cloned().unwrap_or_default());
        match &page["nextCursor"] {
            Value::Null => return all,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    panic!("{method} has no end within {pages} pages: {} entries", all.len())
}

/// Waits until `is_so`; says whether it came.
pub(crate) fn within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
