//! Checks whether the tools of a language are installed: runs a command of each, in the project, as the author would.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::language::{Language, LanguageTool};

/// How long all commands together may take. Some tools are interpreters that load many files.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How often a running command is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The tools whose command fails or does not end in time.
pub(super) fn missing<'a>(language: &'a Language, project: &Path) -> Vec<&'a LanguageTool> {
    let started: Vec<_> = language.tools.iter().map(|tool| (tool, start(tool, project))).collect();
    let deadline = Instant::now() + TIMEOUT;
    let results = started.into_iter().map(|(tool, child)| (tool, child.is_some_and(|child| succeeds(child, deadline))));
    results.filter(|(_, is_installed)| !is_installed).map(|(tool, _)| tool).collect()
}

fn start(tool: &LanguageTool, project: &Path) -> Option<Child> {
    let (program, arguments) = tool.command.split_first()?;
    #[expect(clippy::disallowed_methods, reason = "the author's own tools, found as the author would find them")]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(project).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()
}

fn succeeds(mut child: Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
