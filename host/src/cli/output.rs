//! Prints the results of commands.

use std::io::Write as _;
use std::path::Path;

use crate::server::failure::Failure;

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    ignore_closed_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The result of writing to standard output, where a closed pipe counts as success: a reader such as `head` may stop
/// early.
pub(super) fn ignore_closed_pipe(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a message for a person: to standard output, or to standard error if standard output is reserved for JSON.
pub(super) fn message(as_json: bool, text: &str) -> Result<(), Failure> {
    match as_json {
        false => print(text),
        true => Ok(std::io::stderr().lock().write_all(text.as_bytes())?),
    }
}

/// Writes a JSON value to standard output, over several lines.
pub(super) fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Writes the file that `--output` names.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
    std::fs::write(path, bytes)
        .map_err(|error| Failure::Failed(format!("cannot write \"{}\": {error}", path.display())))
}
