//! `belljar down`: stops the belljar that `belljar up` started.

use std::process::ExitCode;

use super::output;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::shared_socket::SharedSocket;
use crate::server::{log, up};

/// Stops it, and waits for its end.
pub(super) fn run(at: &LocationArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let socket = SharedSocket::of(at)?;
    let lock = socket.start_lock()?;
    match up::stop(&socket, &lock)? {
        Some(pid) => output::print(&format!("belljar (pid {pid}) has stopped.\n"))?,
        None => output::print("No belljar served this configuration.\n")?,
    }
    Ok(ExitCode::SUCCESS)
}
