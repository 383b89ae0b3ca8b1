//! Makes a provider in each language by `belljar new`, and builds and tests it with the commands of its README. The tests read
//! from the component, `target/languages/LANG.wasm`.

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

/// Makes a project in every language. Returns the time that each project took.
///
/// # Errors
/// Names the languages whose project does not build or fails its tests. A failed project does not stop the others.
pub(crate) fn run(shell: &Shell) -> Result<String> {
    let place = shell.target.join("languages");
    fs::create_dir_all(&place)?;
    let belljar = shell.target.join("release/belljar");
    let listed = shell::capture(shell.program(&belljar).args(["new", "--list", "--json"]))?;
    let listed: Value = serde_json::from_str(&listed)?;
    let languages = listed["languages"].as_array().context("belljar lists its languages")?;
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for language in languages {
        let lang = text(&language["lang"])?;
        output::line(&format!("--- {lang}"));
        let began = Instant::now();
        match project(shell, &belljar, &place, lang) {
            Ok(()) => took.push(format!("{lang} {} s", began.elapsed().as_secs())),
            Err(error) => {
                output::line(&format!("{lang}: {error:#}"));
                failed.push(lang.to_owned());
            }
        }
    }
    if !failed.is_empty() {
        bail!("these templates do not build or fail their tests: {}", failed.join(", "));
    }
    Ok(took.join(", "))
}

fn project(shell: &Shell, belljar: &Path, place: &Path, lang: &str) -> Result<()> {
    let project = place.join(lang);
    let wasm = place.join(lang).with_extension("wasm");
    let _ = fs::remove_file(&wasm);
    if project.exists() {
        fs::remove_dir_all(&project)?;
    }
    let mut new = tools::command(shell, &belljar.to_string_lossy())?;
    new.args(["new", "--json", "--lang", lang, NAME, "--dir"]).arg(&project);
    let made: Value = serde_json::from_str(&shell::capture(&mut new)?)?;
    if let Some(missing) = made["missing"].as_array().and_then(|missing| missing.first()) {
        bail!("{} is missing; {}", missing["name"], missing["get"]);
    }
    // The project uses the same versions as the repository.
    if project.join("Cargo.toml").is_file() {
        fs::copy(shell.root.join("Cargo.lock"), project.join("Cargo.lock"))?;
    }
    for step in ["setup", "build", "test"] {
        let words: Vec<&str> = made[step].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some((program, arguments)) = words.split_first() else { continue };
        let mut command = tools::command(shell, program)?;
        command.args(arguments).current_dir(&project);
        shell::run(&mut command)?;
    }
    let component = project.join(text(&made["component"])?);
    fs::copy(&component, &wasm).with_context(|| format!("the build left no {}", component.display()))?;
    Ok(())
}
