//! Starts other programs, and knows where this repository and its build directory are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The repository as its commands see it.
pub(crate) struct Shell {
    /// The repository's root.
    pub(crate) root: PathBuf,
    /// Where cargo builds: `target`, unless `CARGO_TARGET_DIR` says otherwise.
    pub(crate) target: PathBuf,
    /// What `cargo metadata` says of the workspace.
    pub(crate) workspace: Value,
    /// Whether this is CI, where nothing may be skipped.
    pub(crate) ci: bool,
}

impl Shell {
    /// Looks around.
    pub(crate) fn new() -> Result<Shell> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask is a folder of the repository")?
            .to_path_buf();
        let mut metadata = Command::new("cargo");
        metadata.current_dir(&root).args(["metadata", "--format-version", "1", "--no-deps"]);
        let workspace: Value = serde_json::from_str(&capture(&mut metadata)?)?;
        let target = text(&workspace["target_directory"])?.into();
        Ok(Shell { root, target, workspace, ci: env::var("CI").is_ok_and(|ci| ci == "true") })
    }

    /// A cargo command in the repository.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).args(arguments);
        command
    }

    /// A program that was built here, in the repository.
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

/// A string in cargo's answer.
pub(crate) fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata has another shape than expected")
}

/// Runs a command whose output the person sees.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a command that is of interest only when it fails: then all that it said is shown.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    capture(command).map(drop)
}

/// Runs a command for its output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!(
            "{} failed ({}):\n{}{}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a program can be started at all.
pub(crate) fn exists(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A command as a person would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
