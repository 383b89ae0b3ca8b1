//! `belljar schema`: prints the JSON schema of `belljar.toml`.

use std::process::ExitCode;

use super::output;
use crate::config::schema;
use crate::server::failure::Failure;

pub(super) fn run() -> Result<ExitCode, Failure> {
    output::print(&schema::text())?;
    Ok(ExitCode::SUCCESS)
}
