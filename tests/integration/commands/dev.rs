//! `belljar dev` on a project whose build is a script that copies ready components. `dev` builds, serves, builds again after
//! each save, reports the usage and the denials of each call, and leaves no process behind. The tests run the real
//! command.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use belljar_tests::http::Server;
use belljar_tests::{Era, Process, Site, places, wait_until_within};

use crate::support::stdout_and_stderr;

/// The longest accepted time of one step. A busy machine needs less.
const PATIENCE: Duration = Duration::from_secs(120);

/// The build of a project. It copies the component that the file `source` names, prints a text, and adds a line to
/// `../builds`, outside of the project. The target is phony: `make` would skip a source that was written within 4 ms of
/// the last output.
const MAKEFILE: &str = ".PHONY: build/made.wasm
build/made.wasm: source Makefile
\t@mkdir -p build
\t@echo built >> ../builds
\t@echo the tool speaks
\tcp \"$$(cat source)\" build/made.wasm
";

/// Creates the project `p` in `site`. Its build copies the component `stem`.
fn project(site: &Site, stem: &str) {
    site.write("p/Makefile", MAKEFILE);
    set_component(site, stem);
}

/// Makes the next build copy the component `stem`.
fn set_component(site: &Site, stem: &str) {
    site.write("p/source", places::component(stem).to_str().unwrap());
}

/// Runs `dev` with these input lines until it ends at the end of the input.
fn run_dev(site: &Site, arguments: &[&str], lines: &str) -> Output {
    let input = site.write("typed", lines);
    let mut command = site.command([&["dev", "p"], arguments].concat());
    command.stdin(fs::File::open(input).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    child.wait_with_output().unwrap()
}

/// A running `dev` with an open standard input.
struct Dev {
    process: Process,
    keys: ChildStdin,
    screen: Receiver<String>,
}

impl Dev {
    /// Starts `dev` on the project `p`.
    fn start(site: &Site, arguments: &[&str]) -> Dev {
        let mut command = site.command([&["dev", "p"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(command);
        let (keys, out) = process.pipes();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
        });
        Dev { process, keys, screen }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    /// The next line on standard output.
    fn line(&mut self) -> String {
        let line = self.screen.recv_timeout(PATIENCE);
        line.unwrap_or_else(|_| panic!("no further line; standard error:\n{}", self.process.stderr()))
    }

    /// Waits until standard error contains `words` `times` times.
    fn await_stderr(&mut self, words: &str, times: usize) {
        wait_until_within(PATIENCE, &format!("{times} times {words:?} on standard error"), || {
            let stderr = self.process.stderr();
            (stderr.matches(words).count() >= times).then_some(()).ok_or(stderr)
        });
    }
}

#[test]
fn dev_builds_serves_and_runs_typed_commands() {
    let site = crate::support::empty();
    project(&site, "clock");
    let output = run_dev(
        &site,
        &[],
        "list\ntemplates\nread utc\nread belljar://made/Europe/Berlin\nread nowhere\ncomplete {+zone} zone europe/berl\nnonsense\nhelp\n",
    );
    let (out, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    for expected in
        ["utc  text/plain", "{+zone}", "zone: UTC", "zone: Europe/Berlin", "\nEurope/Berlin\n", "read REFERENCE"]
    {
        assert!(out.contains(expected), "no {expected:?} in:\n{out}\n{stderr}");
    }
    // `dev` passes on the output of the tool, from both streams.
    assert!(out.contains("the tool speaks"), "{out}");
    for expected in [
        "building: make",
        "made.wasm serves belljar://made/ (made, ",
        "listening on http://127.0.0.1:",
        "read \"utc\": ok\n  ",
        " of 5s, fuel ",
        " of 5000000000), memory ",
        "MiB of 64MiB, answer ",
        "read \"nowhere\": not-found: ",
        "there is no command \"nonsense\"; type help",
    ] {
        assert!(stderr.contains(expected), "no {expected:?} in:\n{stderr}");
    }
    assert!(!site.path("p/belljar.lock").exists());
}

#[test]
fn saved_sources_are_built_and_a_failed_build_removes_no_mount() {
    let site = crate::support::empty();
    project(&site, "clock");
    let mut dev = Dev::start(&site, &[]);
    dev.await_stderr("made.wasm serves ", 1);

    site.write("p/source", "/nowhere/at/all");
    dev.await_stderr("\"make\" ended with ", 1);
    assert!(dev.process.stderr().contains("; the last good component stays in service"), "{}", dev.process.stderr());
    assert!(dev.process.stderr().contains("cannot stat '/nowhere/at/all'"), "{}", dev.process.stderr());
    dev.type_line("read utc");
    assert_eq!(dev.line(), "the tool speaks");

    // A build succeeds, but its output is not a component.
    let prose = site.write("prose", "no component");
    site.write("p/source", prose.to_str().unwrap());
    dev.await_stderr("\"made\" is not served: ", 1);
    assert!(dev.process.stderr().contains("the earlier bytes"), "{}", dev.process.stderr());

    set_component(&site, "guest_hostile");
    dev.await_stderr("made.wasm serves ", 3);
    dev.type_line("read ok");
    while dev.line() != "fine" {}
    drop(dev.keys);
    assert_eq!(dev.process.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn a_changed_component_keeps_its_grants_in_dev() {
    let site = crate::support::empty();
    project(&site, "guest_hostile");
    site.write("p/data/a.md", "# A");
    let mount = "[mounts.made]\n";
    site.write("p/belljar.toml", format!("plugins = \"build\"\n{mount}fs = {{ \"/\" = \"data\" }}"));
    let mut dev = Dev::start(&site, &[]);
    dev.await_stderr("made.wasm serves ", 1);
    assert!(dev.process.stderr().contains("granted: fs"), "{}", dev.process.stderr());
    dev.type_line("read open/%2Fa.md");
    dev.await_stderr("read \"open/%2Fa.md\": ok", 1);

    // A changed component keeps its grants, without quarantine and lock. A change of granted data starts no build.
    set_component(&site, "files");
    dev.await_stderr("made.wasm serves ", 2);
    dev.type_line("read a.md");
    while dev.line() != "# A" {}
    site.write("p/data/b.md", "# B");
    site.write("p/belljar.toml", format!("plugins = \"build\"\n{mount}"));
    dev.await_stderr("granted: nothing", 1);
    dev.type_line("read a.md");
    dev.await_stderr("read \"a.md\": denied: ", 1);
    dev.await_stderr("\n  hint: ", 1);
    let stderr = dev.process.stderr();
    assert!(stderr.contains("belljar grant made --fs"), "{stderr}");
    assert!(!stderr.contains("\"data/b.md\""), "a change of granted data started a build: {stderr}");
    site.write("p/belljar.toml", "plugin = \"build\"");
    dev.await_stderr("the old one stays in force: ", 1);
    dev.type_line("quit");
    assert_eq!(dev.process.wait(PATIENCE).status.code(), Some(0));
    assert!(!site.path("p/belljar.lock").exists());
}

#[test]
fn calls_have_the_limits_of_serve_and_guest_output_is_shown() {
    let site = crate::support::empty();
    project(&site, "guest_hostile");
    site.write("p/belljar.toml", "plugins = \"build\"\n[mounts.made.limits]\nfuel = 100000000\nmemory = \"2MiB\"");
    let output = run_dev(&site, &[], "read spin\nread grow/64\nread print/40\nread errors/failed\n");
    let output_text = stdout_and_stderr(&output);
    for expected in [
        "read \"spin\": limit: ",
        "hint: to allow more, set fuel = ",
        "under [mounts.made.limits]",
        "read \"print/40\": ok",
        "\nthe provider: printed \"desreverend\" mount=made\n",
    ] {
        assert!(output_text.contains(expected), "no {expected:?} in:\n{output_text}");
    }
    assert_eq!(output.status.code(), Some(0), "{output_text}");
}

/// Waits until `is_there` accepts the result of `text`.
fn await_text(what: &str, text: impl Fn() -> String, is_there: impl Fn(&str) -> bool) {
    wait_until_within(PATIENCE, what, || {
        let text = text();
        if is_there(&text) { Ok(()) } else { Err(text) }
    });
}

#[test]
fn a_save_during_a_build_starts_another_build() {
    let site = crate::support::empty();
    site.write("p/source", "1");
    let build = format!(
        "cat source >> ../builds; echo >> ../builds; while [ ! -e ../go ]; do sleep 0.02; done; mkdir -p build; cp '{}' build/made.wasm",
        places::component("clock").display()
    );
    let builds = || fs::read_to_string(site.path("builds")).unwrap_or_default();
    let mut dev = Dev::start(&site, &["--build", &build]);
    await_text("the first build", builds, |text| text == "1\n");
    site.write("p/source", "2");
    site.write("go", "");
    await_text("the second build", builds, |text| text == "1\n2\n");
    dev.await_stderr("made.wasm serves ", 1);
    // Writing the same bytes starts no build. Fifty new files at once start one build.
    site.write("p/source", "2");
    for n in 0..50 {
        site.write(format!("more/{n}"), n.to_string());
    }
    fs::rename(site.path("more"), site.path("p/more")).unwrap();
    site.write("p/source", "3");
    await_text("the third build", builds, |text| text.ends_with("3\n"));
    dev.type_line("build");
    dev.type_line("quit");
    dev.process.wait(PATIENCE);
    let builds = builds();
    assert!(builds.ends_with("3\n") && builds.lines().count() < 12, "{builds}");
}

#[test]
fn a_running_build_ends_with_dev() {
    let site = crate::support::empty();
    site.write("p/source", "");
    let dev = Dev::start(&site, &["--build", "sleep 1000 & echo $! > ../child; wait"]);
    let child = || fs::read_to_string(site.path("child")).unwrap_or_default();
    await_text("the id of the build's process", child, |text| text.ends_with('\n'));
    dev.process.terminate();
    dev.process.wait(PATIENCE);
    let stat = format!("/proc/{}/stat", child().trim());
    let state = || fs::read_to_string(&stat).unwrap_or_default();
    await_text("the end of the build's process", state, |stat| stat.is_empty() || stat.contains(") Z "));
}

#[test]
fn a_build_that_writes_sources_is_reported_and_stops() {
    let site = crate::support::empty();
    site.write("p/source", "");
    let build = format!(
        "mkdir -p build; cp '{}' build/made.wasm; echo x >> made.c; echo >> ../builds",
        places::component("clock").display()
    );
    let mut dev = Dev::start(&site, &["--build", &build]);
    dev.await_stderr("each build changes \"made.c\"; name it in .gitignore", 1);
    dev.type_line("read utc");
    dev.await_stderr("read \"utc\": ok", 1);
    let builds = || fs::read_to_string(site.path("builds")).unwrap().lines().count();
    assert_eq!(builds(), 3, "{}", dev.process.stderr());
    // A change of an ignored file starts no build. Only the changed files `.gitignore` and `source` start one.
    site.write("p/.gitignore", "made.c\n");
    site.write("p/source", "other");
    await_text("the fourth build", || builds().to_string(), |count| count == "4");
    dev.type_line("build");
    dev.type_line("quit");
    dev.process.wait(PATIENCE);
    // If a build is already running, the command `build` starts no other one.
    assert!((4..=5).contains(&builds()), "{}", builds());
}

#[test]
fn clients_see_the_last_build() {
    let site = crate::support::empty();
    project(&site, "clock");
    let mut command = site.command(["dev", "p", "--http", "127.0.0.1:0"]);
    // Standard input stays open, so `dev` does not end.
    let (input, keys) = std::io::pipe().unwrap();
    command.stdin(input).stdout(Stdio::null());
    let server = Server::of(Process::start(command));
    for era in [Era::Session, Era::Stateless] {
        let mut client = server.client(era);
        assert!(client.text("belljar://made/utc").contains("zone: UTC"));
    }
    set_component(&site, "guest_hostile");
    let mut client = server.client(Era::Stateless);
    wait_until_within(PATIENCE, "the component that was built last", || {
        client.read("belljar://made/ok").map_err(|error| error.to_string())
    });
    drop(keys);
    assert_eq!(server.stop().status.code(), Some(0));
}

#[test]
fn dev_reports_why_a_project_cannot_be_built() {
    let site = crate::support::empty();
    site.write("p/notes.md", "");
    let output = run_dev(&site, &[], "");
    assert_eq!(output.status.code(), Some(2), "{}", stdout_and_stderr(&output));
    assert!(stdout_and_stderr(&output).contains("--build 'COMMAND'"), "{}", stdout_and_stderr(&output));

    let output = run_dev(&site, &["--http", "0.0.0.0:0", "--build", "true"], "");
    assert!(stdout_and_stderr(&output).contains("not a loopback address"), "{}", stdout_and_stderr(&output));

    // Builds that fail, or that succeed without the expected output file.
    for (build, words) in [
        ("true", "left no directory"),
        ("mkdir -p build", "left no component"),
        ("exit 7", "ended with exit status: 7"),
        ("belljar-has-no-such-tool", "127"),
    ] {
        fs::remove_dir_all(site.path("p/build")).ok();
        let output = run_dev(&site, &["--build", build], "read x\n");
        let output_text = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{build}: {output_text}");
        assert!(output_text.contains(words) && !output_text.contains("panicked"), "{build}: {output_text}");
    }
    let absent = site.command(["dev", "nowhere"]).output().unwrap();
    assert!(
        stdout_and_stderr(&absent).contains("cannot open the project \"nowhere\""),
        "{}",
        stdout_and_stderr(&absent)
    );
    let help = stdout_and_stderr(&site.command(["dev", "--help"]).output().unwrap());
    assert!(help.contains("without the second wall around the process"), "{help}");
}

/// `dev` writes no files into a project; only the project's build does.
#[test]
fn dev_writes_nothing_into_the_project() {
    let site = crate::support::empty();
    project(&site, "clock");
    let names = |dir: &Path| -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    run_dev(&site, &[], "list\n");
    assert_eq!(names(&site.path("p")), ["Makefile", "build", "source"]);
    assert_eq!(names(&site.path("p/build")), ["made.wasm"]);
}
