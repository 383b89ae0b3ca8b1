//! Makes a provider in each language by `belljar new`, and builds and tests it with the commands of its README. The tests read
//! from the component, `target/languages/LANG.wasm`. Then the tests of the SDK itself run in the project, if there are some.
//!
//! In some languages, the project also gets the interface `parts`, by a patch: the tests then read through `read-part` there,
//! and through `read` in the other languages.
//!
//! Last, the provider of the project is replaced by one that sends requests. Its component is `target/languages/LANG-http.wasm`.
//!
//! The projects have every part of `belljar new --with`. Two languages also build a project without them: one whose template
//! leaves out files, and one whose template leaves out lines. Each language also builds a minimal project, and reads from it.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::output;
use crate::shell::{self, Shell, text};
use crate::tools;

/// The name of the projects. The templates have another name, so the build shows a place that `belljar new` did not replace.
const NAME: &str = "month-shelf";

/// Further parts of the projects.
const PARTS: &str = "tools,prompts";

/// The languages that also build a project without further parts.
const PLAIN: [&str; 2] = ["c", "rust"];

/// The tests of the SDKs, one folder for each language. Their files are added to a project, or replace files of its tests.
const SDK_TESTS: &str = "tests/sdk";

/// The patches that add the interface `parts` to a project, each with the name of its language.
const PATCHES: &str = "tests/sdk/parts";

/// The providers that send requests, one folder for each language. Their files are added to a project, or replace its files.
const HTTP: &str = "tests/sdk/http";

/// The further words of the build command that give a project HTTP, where no file of the project does.
const HTTP_WORDS: [(&str, &[&str]); 5] = [
    ("c", &["INTERFACES=http"]),
    ("cpp", &["INTERFACES=http"]),
    // The other files of this project need two interfaces. With `parts`, belljar would not call `Read`.
    ("go", &["INTERFACES=tools prompts http"]),
    ("rust", &["--features", "belljar-guest/http"]),
    ("zig", &["INTERFACES=http"]),
];

/// Makes a project in every language. Returns the time that each project took.
///
/// # Errors
/// Names the languages whose project does not build or fails its tests. A failed project does not stop the others.
pub(crate) fn run(shell: &Shell) -> Result<String> {
    let place = shell.target.join("languages");
    fs::create_dir_all(&place)?;
    let belljar = shell.built("belljar");
    let listed = shell::capture(shell.program(&belljar).args(["new", "--list", "--json"]))?;
    let listed: Value = serde_json::from_str(&listed)?;
    let languages = listed["languages"].as_array().context("belljar lists its languages")?;
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for language in languages {
        let lang = text(&language["lang"])?;
        for kind in [Kind::Full, Kind::Plain, Kind::Minimal] {
            if kind == Kind::Plain && !PLAIN.contains(&lang) {
                continue;
            }
            let shown = match kind {
                Kind::Full => lang.to_owned(),
                Kind::Plain => format!("{lang} without parts"),
                Kind::Minimal => format!("{lang} minimal"),
            };
            output::line(&format!("--- {shown}"));
            let began = Instant::now();
            match project(shell, &belljar, &place, lang, kind) {
                Ok(()) => took.push(format!("{shown} {} s", began.elapsed().as_secs())),
                Err(error) => {
                    output::line(&format!("{shown}: {error:#}"));
                    failed.push(shown);
                }
            }
        }
    }
    if !failed.is_empty() {
        bail!("these templates do not build or fail their tests: {}", failed.join(", "));
    }
    Ok(took.join(", "))
}

/// A kind of project.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With every part. Its component is left for the tests, and the tests of the SDK run in it.
    Full,
    /// Without further parts.
    Plain,
    /// With `--minimal`, so without tests.
    Minimal,
}

/// Makes, builds and tests a project.
fn project(shell: &Shell, belljar: &Path, place: &Path, lang: &str, kind: Kind) -> Result<()> {
    let project = place.join(match kind {
        Kind::Full => lang.to_owned(),
        Kind::Plain => format!("{lang}-plain"),
        Kind::Minimal => format!("{lang}-minimal"),
    });
    let wasm = project.with_extension("wasm");
    let _ = fs::remove_file(&wasm);
    if project.exists() {
        fs::remove_dir_all(&project)?;
    }
    let mut new = tools::command(shell, &belljar.to_string_lossy())?;
    new.args(["new", "--json", "--lang", lang, NAME, "--dir"]).arg(&project);
    match kind {
        Kind::Full => drop(new.args(["--with", PARTS])),
        Kind::Plain => {}
        Kind::Minimal => drop(new.arg("--minimal")),
    }
    let made: Value = serde_json::from_str(&shell::capture(&mut new)?)?;
    if let Some(missing) = made["missing"].as_array().and_then(|missing| missing.first()) {
        bail!("{} is missing; {}", missing["name"], missing["get"]);
    }
    // The project uses the same versions as the repository.
    if project.join("Cargo.toml").is_file() {
        fs::copy(shell.root.join("Cargo.lock"), project.join("Cargo.lock"))?;
    }
    // The other projects use the dependencies that cargo compiled for this one.
    let cargo_target = place.join(lang).join("target");
    if kind == Kind::Full {
        let patch = shell.root.join(PATCHES).join(lang).with_extension("patch");
        if patch.is_file() {
            apply(shell, &patch, &project).context("if the template has changed, change the patch, too")?;
        }
    }
    for name in ["setup", "build", "test"] {
        step(shell, &made, name, &[], &project, &cargo_target)?;
    }
    if kind == Kind::Minimal {
        let component = text(&made["component"])?;
        let built = match component.strip_prefix("target/") {
            Some(rest) => cargo_target.join(rest),
            None => project.join(component),
        };
        return read(shell, belljar, &project, built.parent().unwrap_or(&project));
    }
    if kind == Kind::Plain {
        return Ok(());
    }
    let component = project.join(text(&made["component"])?);
    fs::copy(&component, &wasm).with_context(|| format!("the build left no {}", component.display()))?;
    let sdk_tests = shell.root.join(SDK_TESTS).join(lang);
    if sdk_tests.is_dir() {
        copy_below(&sdk_tests, &project)?;
        step(shell, &made, "test", &[], &project, &cargo_target).context("the tests of the SDK")?;
    }
    copy_below(&shell.root.join(HTTP).join(lang), &project)?;
    let words = HTTP_WORDS.iter().find(|(known, _)| *known == lang).map_or(&[][..], |(_, words)| *words);
    step(shell, &made, "build", words, &project, &cargo_target).context("the provider that sends requests")?;
    fs::copy(&component, place.join(format!("{lang}-http.wasm")))?;
    Ok(())
}

/// Runs one of the commands that `belljar new` printed, with further words, in the project. cargo builds in `cargo_target`.
fn step(shell: &Shell, made: &Value, name: &str, more: &[&str], project: &Path, cargo_target: &Path) -> Result<()> {
    let words: Vec<&str> = made[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let mut command = tools::command(shell, program)?;
    shell::run(command.args(arguments).args(more).current_dir(project).env("CARGO_TARGET_DIR", cargo_target))
}

/// Reads the resource of a minimal project. `plugins`: the directory of its component.
fn read(shell: &Shell, belljar: &Path, project: &Path, plugins: &Path) -> Result<()> {
    let uri = format!("belljar://{NAME}/hello.txt");
    let mut command = tools::command(shell, &belljar.to_string_lossy())?;
    let text = shell::capture(command.args(["read", &uri, "--plugins"]).arg(plugins).current_dir(project))?;
    let expected = format!("Hello from {NAME}.");
    if text.trim_end() != expected {
        bail!("the provider says {text:?} instead of {expected:?}");
    }
    Ok(())
}

/// Applies a patch to a project.
fn apply(shell: &Shell, patch: &Path, project: &Path) -> Result<()> {
    let place = project.parent().context("a project is in a directory")?;
    // Below this ceiling, git does not look for the repository around the project.
    let mut git = tools::command(shell, "git")?;
    shell::run(git.arg("apply").arg(patch).current_dir(project).env("GIT_CEILING_DIRECTORIES", place))
}

/// Copies all files below a directory.
fn copy_below(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_below(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}
