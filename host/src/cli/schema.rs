//! `belljar schema`: prints the JSON schema of `belljar.toml`, or of a line of the record.

use std::process::ExitCode;

use super::output;
use crate::config::schema;
use crate::server::failure::Failure;
use crate::telemetry;

/// `of_record`: print the schema of a line of the record.
pub(super) fn run(of_record: bool) -> Result<ExitCode, Failure> {
    output::print(&if of_record { telemetry::schema_text() } else { schema::text() })?;
    Ok(ExitCode::SUCCESS)
}
