//! What the tests of all packages share.

use std::env;
use std::process::{Command, Output};

/// The version in the names of the packages.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The address of the source that the tests use.
pub(crate) const REPOSITORY: &str = "https://github.com/example/belljar";

/// True if `BELLJAR_SKIP` says that this machine lacks the tools of a family (`python`, `node`, `languages`).
pub(crate) fn lacks(family: &str) -> bool {
    env::var("BELLJAR_SKIP").unwrap_or_default().split(',').any(|name| name == family)
}

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
