//! A reader that has seen enough and goes away, as `head` does: no verb complains, and none fails.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_tests::{Process, Site};

use crate::place::site;

/// How long a verb may take: it ended at all.
const PATIENCE: Duration = Duration::from_secs(120);

fn place() -> Site {
    site("[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = { IMP_LIST = \"many\" }\n")
}

/// Every verb that prints, each with more or less to say.
fn verbs(site: &Site) -> Vec<Vec<String>> {
    let file = site.path("plugins/imp.wasm").display().to_string();
    let all: &[&[&str]] = &[
        &["read", "belljar://imp/text/3000000"],
        &["read", "belljar://imp/text/3000000", "--json"],
        &["read", "belljar://imp/blob/300000"],
        &["read", "belljar://imp/ok"],
        &["list"],
        &["list", "--json"],
        &["check"],
        &["check", "--json"],
        &["check", "--compile"],
        &["inspect", &file],
        &["inspect", &file, "--json"],
        &["new", "--list"],
        &["new", "--list", "--json"],
        &["trust", "imp", "--yes"],
        &["grant", "imp", "--env", "A=1", "--yes"],
        &["revoke", "imp", "--env", "A", "--yes"],
        &["--help"],
        &["help", "serve"],
        &["--version"],
    ];
    all.iter().map(|verb| verb.iter().map(ToString::to_string).collect()).collect()
}

fn command(site: &Site, verb: &[String]) -> Command {
    let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
    let with_place = !verb.iter().any(|word| word.starts_with("--help") || *word == "--version")
        && !["help", "new"].contains(&verb[0]);
    let arguments = if with_place { site.arguments(&verb) } else { verb.iter().map(Into::into).collect() };
    let mut command = site.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Reads so many bytes, and goes away.
fn cut(site: &Site, verb: &[String], bytes: usize) {
    let mut command = command(site, verb);
    command.stdin(Stdio::piped());
    let mut process = Process::start(command);
    let (input, mut output) = process.pipes();
    let mut begun = vec![0; bytes];
    output.read_exact(&mut begun).ok();
    drop((input, output));
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{verb:?} after {bytes} bytes: {:?}: {}", ended.status, ended.stderr);
    for complaint in ["Broken pipe", "os error 32", "panicked", "belljar: "] {
        assert!(!ended.stderr.contains(complaint), "{verb:?} after {bytes} bytes: {}", ended.stderr);
    }
}

#[test]
fn every_verb_ends_quietly_when_its_reader_goes_away() {
    let site = place();
    for verb in verbs(&site) {
        for bytes in [0, 1, 100] {
            if verb[0] == "revoke" {
                // So that there is something to take away.
                assert!(site.run(&["grant", "imp", "--env", "A=1", "--yes"]).status.success());
            }
            cut(&site, &verb, bytes);
        }
    }
}

/// Only a reader that goes away is forgiven: a disk that is full is not.
#[test]
fn what_cannot_be_written_for_another_reason_is_a_failure() {
    let site = place();
    for verb in [&["read", "belljar://imp/ok"][..], &["list"], &["check"]] {
        let mut command = site.command(site.arguments(verb));
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
        command.stdin(Stdio::null()).stdout(full);
        let ended = Process::start(command).wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(1), "{verb:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("No space left"), "{verb:?}: {}", ended.stderr);
    }
}

/// A shell's own pipe, with `head` at its end.
#[test]
fn head_takes_a_line() {
    let site = place();
    let belljar = belljar_tests::places::host();
    let mut shell = site.command(Vec::<String>::new());
    let environment: Vec<_> =
        shell.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    shell = Command::new("sh");
    shell.env_clear().current_dir(site.path(""));
    for (name, value) in environment {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let line = "\"$0\" read belljar://imp/text/3000000 --plugins plugins --config belljar.toml | head -c 5";
    shell.args(["-c", line]).arg(belljar).stdin(Stdio::null());
    let output = shell.output().expect("a shell");
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"xxxxx"[..], &b""[..]));
}

/// A client that closes the end that it reads from ends the server, which then has nobody to serve.
#[test]
fn a_server_whose_client_stops_reading_ends_when_its_input_does() {
    let site = place();
    let mut command = site.command(site.arguments(&["serve"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::start(command);
    let (input, output) = process.pipes();
    drop(output);
    drop(input);
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("Broken pipe") && !ended.stderr.contains("panicked"), "{}", ended.stderr);
}
