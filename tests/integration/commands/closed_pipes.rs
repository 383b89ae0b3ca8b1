//! Programs that read the output of a belljar command and close the pipe early, as `head` does. Every command ends
//! without an error message and with exit code 0. The tests use real pipes.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_tests::{Process, Site};

use crate::support::site;

/// The longest accepted time of a command.
const PATIENCE: Duration = Duration::from_secs(120);

/// A site with a mount that lists many resources.
fn site_with_many_resources() -> Site {
    site("[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = { HOSTILE_LIST = \"many\" }\n")
}

/// Every command that prints, with short or long output.
fn verbs(site: &Site) -> Vec<Vec<String>> {
    let file = site.path("plugins/hostile.wasm").display().to_string();
    let all: &[&[&str]] = &[
        &["read", "belljar://hostile/text/3000000"],
        &["read", "belljar://hostile/text/3000000", "--json"],
        &["read", "belljar://hostile/blob/300000"],
        &["read", "belljar://hostile/ok"],
        &["list"],
        &["list", "--json"],
        &["check"],
        &["check", "--json"],
        &["check", "--compile"],
        &["inspect", &file],
        &["inspect", &file, "--json"],
        &["new", "--list"],
        &["new", "--list", "--json"],
        &["trust", "hostile", "--yes"],
        &["grant", "hostile", "--env", "A=1", "--yes"],
        &["revoke", "hostile", "--env", "A", "--yes"],
        &["--help"],
        &["help", "serve"],
        &["--version"],
    ];
    all.iter().map(|verb| verb.iter().map(ToString::to_string).collect()).collect()
}

/// A command of belljar. Only commands that need a configuration get the arguments of the site.
fn command(site: &Site, verb: &[String]) -> Command {
    let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
    let needs_configuration = !verb.iter().any(|word| word.starts_with("--help") || *word == "--version")
        && !["help", "new"].contains(&verb[0]);
    let arguments = if needs_configuration { site.arguments(&verb) } else { verb.iter().map(Into::into).collect() };
    let mut command = site.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs a command, reads this number of bytes of its output, and closes the pipe. Asserts that the command ends
/// quietly.
fn close_after(site: &Site, verb: &[String], bytes: usize) {
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
fn every_command_ends_quietly_when_the_pipe_is_closed() {
    let site = site_with_many_resources();
    for verb in verbs(&site) {
        for bytes in [0, 1, 100] {
            if verb[0] == "revoke" {
                // Create a grant that the command can revoke.
                assert!(site.run(&["grant", "hostile", "--env", "A=1", "--yes"]).status.success());
            }
            close_after(&site, &verb, bytes);
        }
    }
}

/// A closed pipe is not a failure. Other errors of a write are failures, such as a full disk.
#[test]
fn other_write_errors_are_failures() {
    let site = site_with_many_resources();
    for verb in [&["read", "belljar://hostile/ok"][..], &["list"], &["check"]] {
        let mut command = site.command(site.arguments(verb));
        let full = std::fs::File::options().write(true).open("/dev/full").expect("open /dev/full");
        command.stdin(Stdio::null()).stdout(full);
        let ended = Process::start(command).wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(1), "{verb:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("No space left"), "{verb:?}: {}", ended.stderr);
    }
}

/// A pipe of a shell, from belljar to `head`.
#[test]
fn a_pipe_to_head_ends_quietly() {
    let site = site_with_many_resources();
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
    let line = "\"$0\" read belljar://hostile/text/3000000 --plugins plugins --config belljar.toml | head -c 5";
    shell.args(["-c", line]).arg(belljar).stdin(Stdio::null());
    let output = shell.output().expect("run sh");
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"xxxxx"[..], &b""[..]));
}

/// The client closes standard output and then standard input of the server. The server ends quietly.
#[test]
fn a_server_ends_quietly_when_its_client_closes_both_pipes() {
    let site = site_with_many_resources();
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
