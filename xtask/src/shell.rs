//! Starts other programs. Knows the paths of the repository and of its build directory.

use std::env;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::output;

/// The repository and its build directory.
pub(crate) struct Shell {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// The build directory: `target`, or the value of `CARGO_TARGET_DIR`.
    pub(crate) target: PathBuf,
    /// The output of `cargo metadata`.
    pub(crate) workspace: Value,
    /// True in CI, where nothing may be skipped.
    pub(crate) ci: bool,
    /// The profile in which belljar and its tests are compiled.
    profile: &'static str,
}

/// The profile of a verb that uses belljar as its users build it.
const RELEASE: &str = "release";

/// The profile of a verb that tests belljar. It compiles in two thirds of the time.
const TESTED: &str = "tested";

impl Shell {
    /// Asks cargo for the workspace, and the environment for `CI`. `tests`: true for the profile of tests.
    pub(crate) fn new(tests: bool) -> Result<Shell> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask is a folder of the repository")?
            .to_path_buf();
        let mut metadata = Command::new("cargo");
        metadata.current_dir(&root).args(["metadata", "--format-version", "1", "--no-deps"]);
        let workspace: Value = serde_json::from_str(&capture(&mut metadata)?)?;
        let target = text(&workspace["target_directory"])?.into();
        let profile = if tests { TESTED } else { RELEASE };
        Ok(Shell { root, target, workspace, ci: env::var("CI").is_ok_and(|ci| ci == "true"), profile })
    }

    /// The arguments of cargo that select the profile.
    pub(crate) fn profile(&self) -> [&'static str; 2] {
        ["--profile", self.profile]
    }

    /// The argument of cargo that leaves belljar itself without optimisation.
    pub(crate) fn unoptimized(&self) -> [String; 2] {
        ["--config".to_owned(), format!("profile.{}.package.belljar.opt-level=0", self.profile)]
    }

    /// The path of a program, after a build in the profile.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        self.target.join(self.profile).join(program)
    }

    /// A cargo command in the repository.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).args(arguments);
        // `cargo xtask` sets these for xtask. The build script of ring runs again when they change, and belljar with it is
        // compiled again: at each change between `cargo` and `cargo xtask`.
        for (name, _) in env::vars_os().filter(|(name, _)| is_of_package(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command
    }

    /// A command that runs a program of the build directory, in the repository.
    pub(crate) fn program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command.current_dir(&self.root).env("BELLJAR_TEST_TARGET", &self.target);
        command
    }

    /// The workspace's packages below `directory` (relative to the root).
    pub(crate) fn packages_below<'a>(&'a self, directory: &str) -> Vec<&'a Value> {
        let directory = self.root.join(directory);
        let packages = self.workspace["packages"].as_array();
        let below = |package: &&Value| {
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            Path::new(manifest).starts_with(&directory)
        };
        packages.into_iter().flatten().filter(below).collect()
    }
}

/// True for the variables that cargo sets for the package that it runs.
fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_PACKAGE"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// Makes clippy the compiler of this repository's packages, with warnings denied: what cargo builds is also checked. `cargo
/// clippy` would check all dependencies again. Clippy leaves out optimisations, so only unoptimised programs use this.
pub(crate) fn compile_with_clippy(cargo: &mut Command) {
    // As `cargo clippy` starts it.
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    cargo.env("CLIPPY_ARGS", ["--deny", "warnings", ""].join("__CLIPPY_HACKERY__"));
}

/// A string in the output of `cargo metadata`.
pub(crate) fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata has another shape than expected")
}

/// Runs a command. Its output goes where [`crate::output`] sends that of this thread.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    output::redirect(command)?;
    let child = command.spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    let status = output::wait(child)?;
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a command and shows its output only if it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    capture(command).map(drop)
}

/// Runs a command and returns its standard output. If it fails, the error contains all of its output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both pipes are read at once: a program that fills one of them would wait for its reader.
    thread::scope(|scope| {
        let reader = scope.spawn(|| stderr.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut err)));
        stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut out))?;
        reader.join().unwrap_or(Ok(0))
    })?;
    let status = output::wait(child)?;
    if !status.success() {
        let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
        bail!("{} failed ({status}):\n{out}{err}", shown(command));
    }
    Ok(String::from_utf8(out)?)
}

/// True if a program can be started.
pub(crate) fn exists(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The command line, for messages.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
