//! Tests of the files in `deploy/`: the tools of their own systems check them, and belljar really runs behind the balancers and
//! under the filters of system calls. No test needs a cluster, Docker or a running systemd.

mod balancers;
mod compose;
mod filters;
mod manifests;
mod values;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use belljar_tests::{Site, places, process};
use serde_json::Value;

use crate::support::stdout_and_stderr;

/// The longest time of a tool. Checkov takes seconds on an idle machine.
const TOOL_TIME: Duration = Duration::from_secs(180);

/// The files that the operator makes for `deploy/kubernetes/base` and for `deploy/compose`, in the directory `secrets`.
const SECRETS: [&str; 4] = ["keys.toml", "replicas.key", "metrics.token", "store-password"];

/// A path in `deploy/`.
fn source(path: &str) -> PathBuf {
    places::repository().join("deploy").join(path)
}

/// The text of a file in `deploy/`.
fn text(path: &str) -> String {
    let path = source(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `text` with each first text in place of the second. Each must occur: otherwise the file has changed, and the test with it.
fn replaced(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "no {old:?} in:\n{text}");
        text.replace(old, new)
    })
}

/// Runs a command to its end.
fn run(command: Command) -> Output {
    process::run(command, TOOL_TIME)
}

/// Runs a command that must succeed. Returns its standard output and standard error.
fn succeeds(command: Command) -> String {
    let shown = format!("{command:?}");
    let output = run(command);
    assert!(output.status.success(), "{shown}: {}\n{}", output.status, stdout_and_stderr(&output));
    stdout_and_stderr(&output)
}

/// Runs a command that must fail. Returns its standard output and standard error.
fn fails(command: Command) -> String {
    let shown = format!("{command:?}");
    let output = run(command);
    assert!(!output.status.success(), "{shown} found no mistake:\n{}", stdout_and_stderr(&output));
    stdout_and_stderr(&output)
}

/// A command of a program with these arguments.
fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// A script of this area, run by the Python of the tools.
fn script(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(places::repository().join("tests/integration/deploy").join(name));
    command
}

/// The documents of a YAML file.
fn documents(python: &Path, file: &Path) -> Vec<Value> {
    let mut command = script(python, "yaml_to_json.py");
    command.arg(file);
    let output = run(command);
    assert!(output.status.success(), "{}: {}", file.display(), stdout_and_stderr(&output));
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Writes the files that the operator makes into the directory `below` of a site.
fn write_secrets(site: &Site, below: &str) {
    for (at, name) in SECRETS.iter().enumerate() {
        let path = format!("{below}/{name}");
        // An empty file of keys is valid. Each other file has 64 hexadecimal digits, as `openssl rand -hex 32` prints them.
        let content = if *name == "keys.toml" { String::new() } else { format!("{at:064x}\n") };
        let path = site.write(path, content);
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("the file was written");
    }
}
