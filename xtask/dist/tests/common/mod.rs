//! What the tests of all packages share.

use std::process::{Command, Output};

/// The version in the names of the packages.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The address of the source that the tests use.
pub(crate) const REPOSITORY: &str = "https://github.com/example/belljar";

/// Runs a command to its end. Panics if it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let done = output(command);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{command:?}: {}\n{}{}", done.status, text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}

/// Runs a command to its end.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}
