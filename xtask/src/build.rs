//! Builds belljar, the providers and the guests of the tests, and puts the components where tests and demo look for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use belljar_dist::COMPANIONS;
use serde::Deserialize;
use serde_json::Value;

use crate::output;
use crate::setup::WASM_TARGET;
use crate::shell::{self, Shell, text};
use crate::tools;

/// The folders of packages that become components, and the directory below `target` for each.
const COMPONENTS: [(&str, &str); 2] = [("plugins", "plugins"), ("tests/guests", "guests")];

/// The folders of the libraries that only components use.
const COMPONENT_LIBRARIES: [&str; 2] = ["sdk-guest/sql", "sdk-guest/tree"];

/// The folder of the fuzz targets of the providers. It uses the providers as native libraries, so it belongs to the components.
const COMPONENT_TARGETS: &str = "tests/fuzz/providers";

/// The folder of the clients of the tests. The client in Rust uses features of rmcp that belljar does not use.
const CLIENTS: &str = "tests/clients";

/// Builds everything.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    host(shell)?;
    components(shell, || Ok(()))
}

/// Builds belljar, and the programs beside it.
pub(crate) fn host(shell: &Shell) -> Result<()> {
    let companions = COMPANIONS.iter().flat_map(|name| ["--package", name]);
    shell::run(shell.cargo(["build", "--package", "belljar"]).args(companions).args(shell.profile()))
}

/// Builds one provider of `plugins/` that is written in Rust. Returns its path.
pub(crate) fn provider(shell: &Shell, name: &str) -> Result<PathBuf> {
    shell::run(guest(shell).arg(name))?;
    Ok(built(shell, name))
}

/// Builds everything, and also a belljar whose guards can be switched off. Returns the path of the latter.
pub(crate) fn unguarded(shell: &Shell) -> Result<PathBuf> {
    let unguarded = unguarded_program(shell, &[])?;
    // The program in the directory of the profile must be the one with guards: tests and demo use it.
    run(shell)?;
    Ok(unguarded)
}

/// Builds a belljar whose workers a test can take over, not optimised, and then belljar.
pub(crate) fn host_and_unguarded(shell: &Shell) -> Result<()> {
    unguarded_program(shell, &shell.unoptimized())?;
    host(shell)
}

/// The path of the belljar whose guards can be switched off, after a build.
pub(crate) fn unguarded_path(shell: &Shell) -> PathBuf {
    shell.target.join("unguarded/belljar")
}

/// Builds a belljar whose guards can be switched off. Leaves it also in the directory of the profile.
fn unguarded_program(shell: &Shell, options: &[String]) -> Result<PathBuf> {
    let mut cargo = shell.cargo(["build", "--package", "belljar", "--features", "unguarded"]);
    shell::run(cargo.args(shell.profile()).args(options))?;
    let unguarded = unguarded_path(shell);
    fs::create_dir_all(shell.target.join("unguarded"))?;
    fs::copy(shell.built("belljar"), &unguarded)?;
    Ok(unguarded)
}

/// The packages that a cargo command is for. Two parts are never built in one command: cargo would unite the features of their
/// shared dependencies, and compile wasmtime twice.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// The host, the SDK, the tests and this program. The runner of fuzz targets is among them; the components use it too.
    Host,
    /// The providers, the guests of the tests, their library, and the fuzz targets of the providers.
    Components,
}

impl Part {
    /// The arguments of cargo that select its packages.
    pub(crate) fn packages(self, shell: &Shell) -> Result<Vec<String>> {
        self.packages_but(shell, |_| false)
    }

    /// The same, without the components for which `left_out` is true.
    pub(crate) fn packages_but(self, shell: &Shell, left_out: impl Fn(&Value) -> bool) -> Result<Vec<String>> {
        let folders = COMPONENTS.iter().map(|(folder, _)| *folder);
        let components: Vec<&str> = folders.chain(COMPONENT_LIBRARIES).chain([COMPONENT_TARGETS]).collect();
        let (mut arguments, flag, folders) = match self {
            Part::Host => (vec!["--workspace".to_owned()], "--exclude", [components, vec![CLIENTS]].concat()),
            Part::Components => (Vec::new(), "--package", components),
        };
        let named = folders.into_iter().flat_map(|folder| shell.packages_below(folder));
        for name in named.filter(|package| !left_out(package)).map(|package| text(&package["name"])) {
            arguments.extend([flag.to_owned(), name?.to_owned()]);
        }
        Ok(arguments)
    }
}

/// The command that builds a package as a component, without the package's name.
fn guest(shell: &Shell) -> Command {
    shell.cargo(["build", "--quiet", "--profile", "guest", "--target", WASM_TARGET, "--package"])
}

/// The path at which cargo leaves the component with this file stem.
fn built(shell: &Shell, stem: &str) -> PathBuf {
    shell.target.join(WASM_TARGET).join("guest").join(stem).with_extension("wasm")
}

/// Builds the providers and the guests of the tests. Providers in other languages than Rust need the program `belljar`:
/// `belljar_is_built` waits for it.
pub(crate) fn components(shell: &Shell, belljar_is_built: impl Fn() -> Result<()>) -> Result<()> {
    let mut made = Vec::new();
    for (folder, destination) in COMPONENTS {
        let mut files = BTreeMap::new();
        for package in shell.packages_below(folder) {
            // One command for each package, as its author would build it. In one command, cargo would unite the features of
            // their shared dependencies, and change the behaviour.
            let mut cargo = guest(shell);
            let name = text(&package["name"])?;
            if needs_c(package) && !tools::give_c_compiler(shell, &mut cargo)? {
                output::line(&format!(
                    "left out: {name}, which needs a C compiler for wasm; `cargo xtask languages` installs one"
                ));
                continue;
            }
            shell::run(cargo.arg(name))?;
            for stem in library_stems(package)? {
                let built = built(shell, &stem);
                let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
                files.insert(format!("{stem}.wasm"), bytes);
            }
        }
        for source in texts_in(&shell.root.join(folder))? {
            let stem = source.file_stem().context("a file has a name")?.to_string_lossy();
            files.insert(format!("{stem}.wasm"), wat::parse_file(&source)?);
        }
        made.push((folder, destination, files));
    }
    belljar_is_built()?;
    for (folder, destination, mut files) in made {
        files.extend(projects(shell, &shell.root.join(folder))?);
        lay_out(&shell.target.join(destination), &files)?;
    }
    Ok(())
}

/// True if a package contains C, and so needs a C compiler for wasm.
pub(crate) fn needs_c(package: &Value) -> bool {
    package["metadata"]["belljar"]["c"] == true
}

/// True if a package is only for this machine, and not for wasm.
pub(crate) fn is_native(package: &Value) -> bool {
    package["metadata"]["belljar"]["native"] == true
}

/// Builds the components in other languages: each project has a `build.toml` with its commands and the path of its component.
/// Leaves them out if their tools are not installed.
fn projects(shell: &Shell, folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut components = Vec::new();
    for (project, how) in build_files(folder)? {
        let name = project.file_name().unwrap_or_default().to_string_lossy();
        if !tools::are_there(shell) {
            output::line(&format!(
                "left out: {name}, which needs other tools than Rust's; `cargo xtask languages` installs them"
            ));
            continue;
        }
        if !how.install.is_empty() {
            run_in(shell, &project, &how.install)?;
        }
        run_in(shell, &project, &how.build)?;
        let built = project.join(&how.component);
        // In a Rust provider, a macro writes the declared needs into the component.
        let needs = project.join("needs.toml");
        if needs.is_file() {
            let belljar = shell.built("belljar");
            shell::run_quietly(shell.program(&belljar).arg("declare").arg(&built).arg(&needs))?;
        }
        let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
        components.push((format!("{name}.wasm"), bytes));
    }
    Ok(components)
}

/// Runs the unit tests of the projects in other languages. Returns their names.
pub(crate) fn test_projects(shell: &Shell) -> Result<String> {
    let mut tested = Vec::new();
    for (folder, _) in COMPONENTS {
        for (project, how) in build_files(&shell.root.join(folder))? {
            run_in(shell, &project, &how.test)?;
            tested.push(project.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    Ok(tested.join(", "))
}

fn run_in(shell: &Shell, project: &Path, words: &[String]) -> Result<()> {
    let (program, arguments) = words.split_first().context("a build.toml has a command without words")?;
    shell::run(tools::command(shell, program)?.args(arguments).current_dir(project))
}

/// The projects of a folder that have a `build.toml`, sorted by path.
fn build_files(folder: &Path) -> Result<Vec<(PathBuf, BuildFile)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let project = entry?.path();
        let file = project.join("build.toml");
        if let Ok(how) = fs::read_to_string(&file) {
            all.push((project, toml::from_str(&how).with_context(|| file.display().to_string())?));
        }
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(all)
}

/// The contents of a `build.toml`. Its list of tools is for people.
#[derive(Deserialize)]
struct BuildFile {
    /// The command that installs the project's dependencies. Empty if the project has none.
    #[serde(default)]
    install: Vec<String>,
    /// The command that builds the component. It is run in the directory of the project.
    build: Vec<String>,
    /// The command that runs the unit tests of the project.
    test: Vec<String>,
    /// The component that the build leaves in the project.
    component: PathBuf,
}

/// The file stems of a package's dynamic libraries. Each becomes a component.
fn library_stems(package: &Value) -> Result<Vec<String>> {
    let targets = package["targets"].as_array().into_iter().flatten();
    let dynamic = targets.filter(|target| {
        let kinds = target["crate_types"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
    });
    dynamic.map(|target| Ok(text(&target["name"])?.replace('-', "_"))).collect()
}

/// The components written in the text format.
fn texts_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "wat")).collect())
}

/// Makes `directory` contain exactly `files`. Does not write a file that is the same: a running belljar watches the directory.
fn lay_out(directory: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !files.contains_key(entry.file_name().to_string_lossy().as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    for (name, bytes) in files {
        let path = directory.join(name);
        if fs::read(&path).is_ok_and(|old| old == *bytes) {
            continue;
        }
        // Write a temporary file and rename it, so that a watching belljar never reads an incomplete file.
        let arriving = directory.with_extension("arriving");
        fs::write(&arriving, bytes)?;
        fs::rename(&arriving, &path)?;
    }
    Ok(())
}
