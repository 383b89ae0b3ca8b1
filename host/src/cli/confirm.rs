//! Asks the operator to confirm a change.

use std::io::{IsTerminal, Write as _};

use crate::server::failure::Failure;
use crate::server::log;

/// Asks `question` on the terminal, and returns true for the answer "y" or "yes". With `yes`, returns true without
/// asking. The caller has printed the change before.
///
/// # Errors
/// [`Failure::Misused`] if standard input is not a terminal.
pub(super) fn ask(question: &str, yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::Misused(
            "nothing was changed: this command asks for confirmation, and standard input is not a terminal; to write without confirmation, add --yes".to_owned(),
        ));
    }
    log::flush();
    let mut out = std::io::stderr().lock();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    let is_confirmed = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !is_confirmed {
        writeln!(out, "nothing was changed")?;
    }
    Ok(is_confirmed)
}
