//! `belljar completions`: prints the script with which a shell completes belljar's commands.

use std::process::ExitCode;

use clap::Command;
use clap_complete::{Shell, generate};

use super::output;
use crate::server::failure::Failure;

/// The help of `completions`.
pub(super) const HELP: &str = "Examples:
  belljar completions bash > ~/.local/share/bash-completion/completions/belljar
  belljar completions zsh > ~/.zfunc/_belljar
  belljar completions fish > ~/.config/fish/completions/belljar.fish";

/// Prints the script.
pub(super) fn run(mut command: Command, shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    generate(shell, &mut command, "belljar", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
