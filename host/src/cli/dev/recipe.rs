//! The build of a project: the usual command of its language, or the author's own command, run as the author would run
//! it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::server::open_files;

/// How long a build may take to end after SIGTERM, before it gets SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// The commands that build a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    dir: PathBuf,
    steps: Vec<Step>,
    /// The directory of the built components, below the project. Used if there is no configuration.
    pub(super) output_dir: &'static str,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    command: Vec<String>,
    /// A path below the project. If it exists, the command is skipped.
    unless: Option<&'static str>,
}

fn step(command: &[&str]) -> Step {
    Step { command: command.iter().map(|word| (*word).to_owned()).collect(), unless: None }
}

impl Recipe {
    /// The author's own command, run by `sh`.
    pub(super) fn from_command(dir: &Path, command: &str) -> Self {
        Self { dir: dir.to_owned(), steps: vec![step(&["sh", "-c", command])], output_dir: "build" }
    }

    /// Detects the build tool by the files in `dir`.
    ///
    /// # Errors
    /// A message with the files that it looks for.
    pub(super) fn detect(dir: &Path) -> Result<Self, String> {
        let recipe = |steps, output_dir| Ok(Self { dir: dir.to_owned(), steps, output_dir });
        if dir.join("Cargo.toml").is_file() {
            let build = step(&["cargo", "build", "--release", "--target", "wasm32-wasip2"]);
            return recipe(vec![build], "target/wasm32-wasip2/release");
        }
        #[expect(clippy::disallowed_methods, reason = "the author's project")]
        let package = std::fs::read_to_string(dir.join("package.json")).ok();
        let package = package.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        if package.is_some_and(|package| package.pointer("/scripts/build").is_some_and(serde_json::Value::is_string)) {
            let install = Step { unless: Some("node_modules"), ..step(&["npm", "install"]) };
            return recipe(vec![install, step(&["npm", "run", "build"])], "build");
        }
        if ["Makefile", "makefile", "GNUmakefile"].iter().any(|name| dir.join(name).is_file()) {
            return recipe(vec![step(&["make"])], "build");
        }
        Err(format!(
            "\"{}\" has no Cargo.toml, no package.json with a \"build\" script and no Makefile; add the build command: --build 'COMMAND'",
            dir.display()
        ))
    }

    /// The commands as one line.
    pub(super) fn shown(&self) -> String {
        self.needed_steps().map(|step| step.command.join(" ")).collect::<Vec<_>>().join(" && ")
    }

    fn needed_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.unless.is_none_or(|path| !self.dir.join(path).exists()))
    }

    /// Starts a build. The output of the tools goes unchanged to the terminal.
    pub(super) fn start(&self) -> Build {
        let steps: Vec<Step> = self.needed_steps().cloned().collect();
        let (stop, dir) = (CancellationToken::new(), self.dir.clone());
        let own = stop.clone();
        let work = tokio::spawn(async move {
            for step in steps {
                run(&step.command, &dir, &own).await?;
            }
            Ok(())
        });
        Build { work, stop }
    }
}

/// A running build. Its processes are a group of their own: signals of the terminal do not reach them, and belljar ends
/// all of them together.
pub(super) struct Build {
    work: JoinHandle<Result<(), String>>,
    stop: CancellationToken,
}

impl Build {
    /// Waits for the end of the build. Cancel safe: a dropped future loses no result.
    pub(super) async fn ended(&mut self) -> Result<(), String> {
        (&mut self.work).await.unwrap_or_else(|error| Err(format!("cannot wait for the build: {error}")))
    }

    /// Stops the build and waits for its end.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        let _ = self.ended().await;
    }
}

async fn run(command: &[String], dir: &Path, stop: &CancellationToken) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    #[expect(clippy::disallowed_methods, reason = "the author's own tools, run as the author would")]
    let mut process = Command::new(program);
    process.args(arguments).current_dir(dir).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    let mut child = process.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no program \"{program}\" on the search path; install it, or add the build command: --build 'COMMAND'")
        }
        _ => format!("cannot run \"{program}\": {error}"),
    })?;
    open_files::restore_for(child.id());
    let status = tokio::select! {
        status = child.wait() => status,
        () = stop.cancelled() => end(&mut child).await,
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("\"{}\" ended with {status}", command.join(" "))),
        Err(error) => Err(format!("cannot wait for \"{program}\": {error}")),
    }
}

/// Ends the whole process group: sends SIGTERM, and after [`TERM_TIMEOUT`] SIGKILL.
async fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = signal(Signal::TERM);
    if let Ok(status) = timeout(TERM_TIMEOUT, child.wait()).await {
        // The first process has ended, but others of its group may still run.
        let _ = signal(Signal::KILL);
        return status;
    }
    crate::server::log::say("the build did not end after SIGTERM; killing it");
    let _ = signal(Signal::KILL);
    child.wait().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::waiting::wait_until;

    #[test]
    fn the_build_commands_of_a_project_are_detected() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let shown = || Recipe::detect(dir).map(|recipe| recipe.shown());
        assert!(shown().unwrap_err().contains("--build 'COMMAND'"));
        std::fs::write(dir.join("package.json"), "{}").unwrap();
        assert!(shown().is_err(), "a package without a script to build it");
        std::fs::write(dir.join("Makefile"), "").unwrap();
        assert_eq!(shown().as_deref(), Ok("make"));
        std::fs::write(dir.join("package.json"), r#"{"scripts":{"build":"x"}}"#).unwrap();
        assert_eq!(shown().as_deref(), Ok("npm install && npm run build"));
        std::fs::create_dir(dir.join("node_modules")).unwrap();
        assert_eq!(shown().as_deref(), Ok("npm run build"));
        std::fs::write(dir.join("Cargo.toml"), "").unwrap();
        assert_eq!(shown().as_deref(), Ok("cargo build --release --target wasm32-wasip2"));
        assert_eq!(Recipe::from_command(dir, "./x && y").shown(), "sh -c ./x && y");
    }

    #[tokio::test]
    async fn ending_a_build_ends_all_of_its_processes() {
        let temp = tempfile::tempdir().unwrap();
        let recipe = Recipe::from_command(temp.path(), "sleep 1000 & echo $! > id; wait");
        let build = recipe.start();
        let id = temp.path().join("id");
        let written = || std::fs::read_to_string(&id).is_ok_and(|text| text.ends_with('\n'));
        wait_until("the build has written its id", written).await;
        let child = std::fs::read_to_string(&id).unwrap();
        build.end().await;
        let status = format!("/proc/{}/stat", child.trim());
        let runs = || std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z "));
        wait_until("the build's child has ended", || !runs()).await;
    }

    #[tokio::test]
    async fn the_failing_command_is_named() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(Recipe::from_command(temp.path(), "true").start().ended().await, Ok(()));
        let why = Recipe::from_command(temp.path(), "exit 3").start().ended().await.unwrap_err();
        assert!(why.contains("exit 3") && why.contains("status: 3"), "{why}");
        let absent = Recipe {
            dir: temp.path().to_owned(),
            steps: vec![step(&["belljar-has-no-such-tool"])],
            output_dir: "build",
        };
        assert!(absent.start().ended().await.unwrap_err().contains("search path"));
    }
}
