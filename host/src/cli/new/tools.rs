//! Looks whether the programs are there that a language needs: each is asked, in the new project, as the author would.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::language::{Language, Tool};

/// How long all of them may take to answer. Some are interpreters that load a lot.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether they have.
const GLANCE: Duration = Duration::from_millis(10);

/// The tools that do not answer.
pub(super) fn missing<'a>(language: &'a Language, project: &Path) -> Vec<&'a Tool> {
    let asked: Vec<_> = language.tools.iter().map(|tool| (tool, ask(tool, project))).collect();
    let by = Instant::now() + PATIENCE;
    let answers = asked.into_iter().map(|(tool, child)| (tool, child.is_some_and(|child| succeeds(child, by))));
    answers.filter(|(_, is_there)| !is_there).map(|(tool, _)| tool).collect()
}

fn ask(tool: &Tool, project: &Path) -> Option<Child> {
    let (program, arguments) = tool.command.split_first()?;
    #[expect(clippy::disallowed_methods, reason = "the author's own tools, found as the author would find them")]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(project).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()
}

fn succeeds(mut child: Child, by: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < by => std::thread::sleep(GLANCE),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
