//! How a project is built: by the command that its language's custom gives it, run as its author would run it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cli::open_files;

/// How long a build may take to end once it was asked to.
const END: Duration = Duration::from_secs(2);

/// What builds a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    dir: PathBuf,
    steps: Vec<Step>,
    /// Where it leaves components, when no configuration says it.
    pub(super) leaves: &'static str,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    command: Vec<String>,
    /// It is left out where this is there, below the project.
    unless: Option<&'static str>,
}

fn step(command: &[&str]) -> Step {
    Step { command: command.iter().map(|word| (*word).to_owned()).collect(), unless: None }
}

impl Recipe {
    /// The author's own command.
    pub(super) fn given(dir: &Path, command: &str) -> Self {
        Self { dir: dir.to_owned(), steps: vec![step(&["sh", "-c", command])], leaves: "build" }
    }

    /// By what lies in `dir`.
    ///
    /// # Errors
    /// Says what was looked for.
    pub(super) fn find(dir: &Path) -> Result<Self, String> {
        let recipe = |steps, leaves| Ok(Self { dir: dir.to_owned(), steps, leaves });
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
            "\"{}\" has no Cargo.toml, no package.json with a \"build\" script and no Makefile; say what builds it: --build 'COMMAND'",
            dir.display()
        ))
    }

    /// What is run, as one line.
    pub(super) fn shown(&self) -> String {
        self.wanted().map(|step| step.command.join(" ")).collect::<Vec<_>>().join(" && ")
    }

    fn wanted(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.unless.is_none_or(|place| !self.dir.join(place).exists()))
    }

    /// Starts building. What the tools print is the author's to read, as it is.
    pub(super) fn start(&self) -> Build {
        let steps: Vec<Step> = self.wanted().cloned().collect();
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

/// A build that runs. Its processes are a group of their own: what the terminal tells belljar is not for them, and belljar ends
/// all of them together.
pub(super) struct Build {
    work: JoinHandle<Result<(), String>>,
    stop: CancellationToken,
}

impl Build {
    /// Waits for its end. Nothing is lost when this is dropped.
    pub(super) async fn ended(&mut self) -> Result<(), String> {
        (&mut self.work).await.unwrap_or_else(|error| Err(format!("the build cannot be followed: {error}")))
    }

    /// Ends it.
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
    // Standard output is for answers to the author's commands; both are shown on the terminal.
    let mut child = process.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no program \"{program}\" on the search path; install it, or say what builds the project: --build 'COMMAND'")
        }
        _ => format!("cannot run \"{program}\": {error}"),
    })?;
    open_files::give_back(child.id());
    let status = tokio::select! {
        status = child.wait() => status,
        () = stop.cancelled() => end(&mut child).await,
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("\"{}\" ended with {status}", command.join(" "))),
        Err(error) => Err(format!("\"{program}\" cannot be waited for: {error}")),
    }
}

/// Asks the whole group to end, and sees to it.
async fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = signal(Signal::TERM);
    if let Ok(status) = timeout(END, child.wait()).await {
        // Those of the group that the first one left behind.
        let _ = signal(Signal::KILL);
        return status;
    }
    crate::cli::log::say("the build does not end by itself; it is killed");
    let _ = signal(Signal::KILL);
    child.wait().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_says_how_it_is_built() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let shown = || Recipe::find(dir).map(|recipe| recipe.shown());
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
        assert_eq!(Recipe::given(dir, "./x && y").shown(), "sh -c ./x && y");
    }

    #[tokio::test]
    async fn a_build_is_ended_with_all_that_it_started() {
        let temp = tempfile::tempdir().unwrap();
        let recipe = Recipe::given(temp.path(), "sleep 1000 & echo $! > id; wait");
        let build = recipe.start();
        let id = temp.path().join("id");
        let written = || std::fs::read_to_string(&id).is_ok_and(|text| text.ends_with('\n'));
        while !written() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let child = std::fs::read_to_string(&id).unwrap();
        build.end().await;
        let status = format!("/proc/{}/stat", child.trim());
        let runs = || std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z "));
        while runs() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn what_fails_is_named() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(Recipe::given(temp.path(), "true").start().ended().await, Ok(()));
        let why = Recipe::given(temp.path(), "exit 3").start().ended().await.unwrap_err();
        assert!(why.contains("exit 3") && why.contains("status: 3"), "{why}");
        let absent =
            Recipe { dir: temp.path().to_owned(), steps: vec![step(&["belljar-has-no-such-tool"])], leaves: "build" };
        assert!(absent.start().ended().await.unwrap_err().contains("search path"));
    }
}
