//! `belljar down`: stops the belljar that `belljar up` started.

use std::process::ExitCode;
use std::time::Duration;

use super::output;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::shared_socket::SharedSocket;
use crate::server::{log, up};

/// Another command that starts or stops this belljar may take this time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Stops it, and waits for its end.
pub(super) fn run(at: &LocationArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let socket = SharedSocket::of(at)?;
    let lock = socket.start_lock(LOCK_TIMEOUT)?;
    match up::stop(&socket, &lock)? {
        Some(pid) => output::print(&format!("belljar (pid {pid}) has stopped.\n"))?,
        None => output::print("No belljar served this configuration.\n")?,
    }
    Ok(ExitCode::SUCCESS)
}
