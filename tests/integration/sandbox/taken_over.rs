//! A worker that was taken over reaches nothing. In a build with the feature `unguarded`, native code runs in the worker
//! in place of the guest (`host/src/sandbox/worker/attempts.rs`), with everything that the worker process holds.
//!
//! Each attempt is made twice: behind the wall, where it must be refused, and without a wall, where it must succeed. An
//! attempt that always fails would prove nothing. [`attempts`] has the attempts on files, processes, sockets and the
//! kernel, [`protocol`] those on the front by what the worker says.
//!
//! The tests need the environment variable `BELLJAR_TEST_UNGUARDED`, which names the build. `cargo xtask test` sets it.

mod attempts;
mod protocol;
mod table;

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_tests::{Client, Http, Server, Site, places};

use crate::support::{empty, shared, workers};

/// The build whose workers can be taken over. `None` if this run of the tests has none.
fn unguarded() -> Option<PathBuf> {
    let named = std::env::var_os("BELLJAR_TEST_UNGUARDED").map(PathBuf::from);
    let why = match named {
        None => "BELLJAR_TEST_UNGUARDED does not name a build with the feature \"unguarded\"",
        Some(_) if places::lacks("landlock") => "BELLJAR_SKIP has \"landlock\"",
        Some(_) => return named,
    };
    #[expect(clippy::print_stderr, reason = "a skipped test must be visible in the output")]
    {
        eprintln!("SKIPPED: {why}");
    }
    None
}

/// A command that runs the build in a site, and lets tests take its workers over.
fn command(unguarded: &Path, site: &Site, verb: &[&str]) -> Command {
    let mut command = Command::new(unguarded);
    command.args(site.arguments(verb)).env_clear().envs(site.environment()).current_dir(site.path(""));
    command.env("BELLJAR_TAKEN_OVER", "1").env("RUST_LOG", "info");
    command
}

/// The URI of an attempt. The arguments are lines.
fn attempt(mount: &str, name: &str, arguments: &str) -> String {
    let hex: String = arguments.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("belljar://{mount}/attempt/{name}/{hex}")
}
