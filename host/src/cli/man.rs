//! `belljar man`: writes the manual pages, made from the help texts.

use std::path::Path;
use std::process::ExitCode;

use clap::Command;

use super::output;
use crate::server::failure::Failure;

/// Writes one page for belljar and one for each verb into `directory`, which is created if it is missing.
pub(super) fn run(command: Command, directory: &Path) -> Result<ExitCode, Failure> {
    #[expect(clippy::disallowed_methods, reason = "the directory that the operator named")]
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)?;
    output::print(&format!(
        "Wrote the manual pages into {}. To read one: man {}/belljar.1\n",
        directory.display(),
        directory.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
