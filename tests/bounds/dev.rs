//! `belljar dev` through the real binary, on a project whose build is a script that copies ready components: it builds, serves,
//! follows what is saved, says what each call used and was refused, and leaves nothing running.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use belljar_tests::http::Server;
use belljar_tests::{Era, Process, Site, places};

use crate::place::said;

/// Longer than anything takes here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A project that copies the component that the file `source` names, and counts its builds outside of itself. The words of its
/// tool are those that an author would look for. It always builds: `make` takes a source for old that was written within the same
/// four milliseconds as what was made of another one.
const MAKEFILE: &str = ".PHONY: build/made.wasm
build/made.wasm: source Makefile
\t@mkdir -p build
\t@echo built >> ../builds
\t@echo the tool speaks
\tcp \"$$(cat source)\" build/made.wasm
";

/// A project of the component `stem`, below `site`.
fn project(site: &Site, stem: &str) {
    site.write("p/Makefile", MAKEFILE);
    choose(site, stem);
}

fn choose(site: &Site, stem: &str) {
    site.write("p/source", places::component(stem).to_str().unwrap());
}

/// Runs `dev` with these lines typed, to the end of them.
fn typed(site: &Site, arguments: &[&str], lines: &str) -> Output {
    let input = site.write("typed", lines);
    let mut command = site.command([&["dev", "p"], arguments].concat());
    command.stdin(fs::File::open(input).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    child.wait_with_output().unwrap()
}

/// `dev` with somebody at its keyboard.
struct Dev {
    process: Process,
    keys: ChildStdin,
    screen: Receiver<String>,
}

impl Dev {
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
        line.unwrap_or_else(|_| panic!("nothing more is shown; it was told:\n{}", self.process.stderr()))
    }

    /// Waits until standard error says `words`, `times` times in all.
    fn told(&mut self, words: &str, times: usize) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.process.stderr().matches(words).count() < times {
            assert!(std::time::Instant::now() < deadline, "no {times}. {words:?} in:\n{}", self.process.stderr());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn it_builds_serves_and_does_what_is_typed() {
    let site = Site::new();
    project(&site, "clock");
    let output = typed(
        &site,
        &[],
        "list\ntemplates\nread utc\nread belljar://made/Europe/Berlin\nread nowhere\ncomplete {+zone} zone europe/berl\nnonsense\nhelp\n",
    );
    let (out, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{told}");
    for expected in
        ["utc  text/plain", "{+zone}", "zone: UTC", "zone: Europe/Berlin", "\nEurope/Berlin\n", "read REFERENCE"]
    {
        assert!(out.contains(expected), "no {expected:?} in:\n{out}\n{told}");
    }
    // The tool's own words pass through, wherever it wrote them.
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
        assert!(told.contains(expected), "no {expected:?} in:\n{told}");
    }
    assert!(!site.path("p/belljar.lock").exists());
}

#[test]
fn what_is_saved_is_built_and_what_fails_takes_nothing_down() {
    let site = Site::new();
    project(&site, "clock");
    let mut dev = Dev::start(&site, &[]);
    dev.told("made.wasm serves ", 1);

    site.write("p/source", "/nowhere/at/all");
    dev.told("\"make\" ended with ", 1);
    assert!(dev.process.stderr().contains("; what was good before is served on"), "{}", dev.process.stderr());
    assert!(dev.process.stderr().contains("cannot stat '/nowhere/at/all'"), "{}", dev.process.stderr());
    dev.type_line("read utc");
    assert_eq!(dev.line(), "the tool speaks");

    // A build that succeeds and leaves what is no component.
    let prose = site.write("prose", "no component");
    site.write("p/source", prose.to_str().unwrap());
    dev.told("\"made\" is not served: ", 1);
    assert!(dev.process.stderr().contains("the earlier bytes"), "{}", dev.process.stderr());

    choose(&site, "guest_imp");
    dev.told("made.wasm serves ", 3);
    dev.type_line("read ok");
    while dev.line() != "fine" {}
    drop(dev.keys);
    assert_eq!(dev.process.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn grants_are_those_of_the_configuration_whatever_the_bytes() {
    let site = Site::new();
    project(&site, "guest_imp");
    site.write("p/data/a.md", "# A");
    let mount = "[mounts.made]\n";
    site.write("p/belljar.toml", format!("plugins = \"build\"\n{mount}fs = {{ \"/\" = \"data\" }}"));
    let mut dev = Dev::start(&site, &[]);
    dev.told("made.wasm serves ", 1);
    assert!(dev.process.stderr().contains("granted: fs"), "{}", dev.process.stderr());
    dev.type_line("read open/%2Fa.md");
    dev.told("read \"open/%2Fa.md\": ok", 1);

    // Other bytes with the same grants: no quarantine, no lock. What changes in granted data is no source.
    choose(&site, "files");
    dev.told("made.wasm serves ", 2);
    dev.type_line("read a.md");
    while dev.line() != "# A" {}
    site.write("p/data/b.md", "# B");
    site.write("p/belljar.toml", format!("plugins = \"build\"\n{mount}"));
    dev.told("granted: nothing", 1);
    dev.type_line("read a.md");
    dev.told("read \"a.md\": denied: ", 1);
    dev.told("\n  hint: ", 1);
    let told = dev.process.stderr();
    assert!(told.contains("belljar grant made --fs"), "{told}");
    assert!(!told.contains("\"data/b.md\""), "granted data is no source: {told}");
    site.write("p/belljar.toml", "plugin = \"build\"");
    dev.told("the configuration goes on as it was: ", 1);
    dev.type_line("quit");
    assert_eq!(dev.process.wait(PATIENCE).status.code(), Some(0));
    assert!(!site.path("p/belljar.lock").exists());
}

#[test]
fn calls_have_the_limits_of_serve_and_what_a_guest_prints_is_shown() {
    let site = Site::new();
    project(&site, "guest_imp");
    site.write("p/belljar.toml", "plugins = \"build\"\n[mounts.made.limits]\nfuel = 100000000\nmemory = \"2MiB\"");
    let output = typed(&site, &[], "read spin\nread grow/64\nread print/40\nread errors/failed\n");
    let told = said(&output);
    for expected in [
        "read \"spin\": limit: ",
        "hint: to allow more, set fuel = ",
        "under [mounts.made.limits]",
        "read \"print/40\": ok",
        "\nthe provider: printed \"desreverend\" mount=made\n",
    ] {
        assert!(told.contains(expected), "no {expected:?} in:\n{told}");
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
}

#[test]
fn a_save_during_a_build_starts_another() {
    let site = Site::new();
    site.write("p/source", "1");
    let build = format!(
        "cat source >> ../builds; echo >> ../builds; while [ ! -e ../go ]; do sleep 0.02; done; mkdir -p build; cp '{}' build/made.wasm",
        places::component("clock").display()
    );
    let builds = || fs::read_to_string(site.path("builds")).unwrap_or_default();
    let mut dev = Dev::start(&site, &["--build", &build]);
    wait_for(|| builds() == "1\n");
    site.write("p/source", "2");
    site.write("go", "");
    wait_for(|| builds() == "1\n2\n");
    dev.told("made.wasm serves ", 1);
    // The same bytes once more are nothing to build for; a burst is one build, or a few where the machine is slow at writing it.
    site.write("p/source", "2");
    for n in 0..50 {
        site.write(format!("p/more/{n}"), n.to_string());
    }
    site.write("p/source", "3");
    wait_for(|| builds().ends_with("3\n"));
    dev.type_line("build");
    dev.type_line("quit");
    dev.process.wait(PATIENCE);
    let builds = builds();
    assert!(builds.ends_with("3\n") && builds.lines().count() < 12, "{builds}");
}

#[test]
fn a_running_build_ends_with_it() {
    let site = Site::new();
    site.write("p/source", "");
    let dev = Dev::start(&site, &["--build", "sleep 1000 & echo $! > ../child; wait"]);
    let child = || fs::read_to_string(site.path("child")).unwrap_or_default();
    wait_for(|| child().ends_with('\n'));
    dev.process.terminate();
    dev.process.wait(PATIENCE);
    let stat = format!("/proc/{}/stat", child().trim());
    wait_for(|| !fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")));
}

#[test]
fn a_build_that_writes_sources_is_told_of_and_does_not_go_on_for_ever() {
    let site = Site::new();
    site.write("p/source", "");
    let build = format!(
        "mkdir -p build; cp '{}' build/made.wasm; echo x >> made.c; echo >> ../builds",
        places::component("clock").display()
    );
    let mut dev = Dev::start(&site, &["--build", &build]);
    dev.told("each build changes \"made.c\"; name it in .gitignore", 1);
    dev.type_line("read utc");
    dev.told("read \"utc\": ok", 1);
    let builds = || fs::read_to_string(site.path("builds")).unwrap().lines().count();
    assert_eq!(builds(), 3, "{}", dev.process.stderr());
    // Named there, it no longer counts: one build for what changed in between, and none after it.
    site.write("p/.gitignore", "made.c\n");
    site.write("p/source", "other");
    wait_for(|| builds() == 4);
    dev.type_line("build");
    dev.type_line("quit");
    dev.process.wait(PATIENCE);
    // The build that was typed is that which ran already, or one more.
    assert!((4..=5).contains(&builds()), "{}", builds());
}

#[test]
fn clients_see_what_was_built_last() {
    let site = Site::new();
    project(&site, "clock");
    let mut command = site.command(["dev", "p", "--http", "127.0.0.1:0"]);
    // Somebody sits there and types nothing.
    let (input, keys) = std::io::pipe().unwrap();
    command.stdin(input).stdout(Stdio::null());
    let server = Server::of(Process::start(command));
    for era in [Era::Older, Era::Modern] {
        let mut client = server.client(era);
        assert!(client.text("belljar://made/utc").contains("zone: UTC"));
    }
    choose(&site, "guest_imp");
    let mut client = server.client(Era::Modern);
    wait_for(|| client.read("belljar://made/ok").is_ok());
    drop(keys);
    assert_eq!(server.stop().status.code(), Some(0));
}

#[test]
fn what_cannot_be_built_says_why() {
    let site = Site::new();
    site.write("p/notes.md", "");
    let output = typed(&site, &[], "");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("--build 'COMMAND'"), "{}", said(&output));

    let output = typed(&site, &["--http", "0.0.0.0:0", "--build", "true"], "");
    assert!(said(&output).contains("not a loopback address"), "{}", said(&output));

    // A build that leaves nothing where it was expected.
    for (build, words) in [
        ("true", "left no directory"),
        ("mkdir -p build", "left no component"),
        ("exit 7", "ended with exit status: 7"),
        ("belljar-has-no-such-tool", "127"),
    ] {
        fs::remove_dir_all(site.path("p/build")).ok();
        let output = typed(&site, &["--build", build], "read x\n");
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{build}: {told}");
        assert!(told.contains(words) && !told.contains("panicked"), "{build}: {told}");
    }
    let absent = site.command(["dev", "nowhere"]).output().unwrap();
    assert!(said(&absent).contains("cannot open the project \"nowhere\""), "{}", said(&absent));
    let help = said(&site.command(["dev", "--help"]).output().unwrap());
    assert!(help.contains("the second wall around the process is not raised"), "{help}");
}

fn wait_for(mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "it does not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nothing of a project is written but what its own build writes.
#[test]
fn a_project_is_left_as_it_was() {
    let site = Site::new();
    project(&site, "clock");
    let names = |dir: &Path| -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    typed(&site, &[], "list\n");
    assert_eq!(names(&site.path("p")), ["Makefile", "build", "source"]);
    assert_eq!(names(&site.path("p/build")), ["made.wasm"]);
}
