//! Builds the binary, the real providers and the guests of the tests, and lays them where everything expects them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::setup::WASM_TARGET;
use crate::shell::{self, Shell, text};
use crate::tools;

/// The folders of programs that become components, and where those go.
const COMPONENTS: [(&str, &str); 2] = [("plugins", "plugins"), ("tests/guests", "guests")];

/// What is built for components only, and tested with them.
const THEIR_LIBRARIES: &str = "sdk-guest/tree";

/// Builds everything.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    shell::run(&mut shell.cargo(["build", "--release", "--package", "belljar"]))?;
    components(shell)
}

/// What a command is about. The components are never built together with the rest: cargo would give both the union of
/// the features that they ask of their dependencies, and compile wasmtime once for that and once without.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// The host, the SDK, the tests and this program.
    Host,
    /// The providers, the guests of the tests, and what only these are made of.
    Components,
}

impl Part {
    /// Both.
    pub(crate) const ALL: [Part; 2] = [Part::Host, Part::Components];

    /// The arguments that select its packages.
    pub(crate) fn packages(self, shell: &Shell) -> Result<Vec<String>> {
        self.packages_but(shell, |_| false)
    }

    /// The same, without those of the components that `left_out` names.
    pub(crate) fn packages_but(self, shell: &Shell, left_out: impl Fn(&Value) -> bool) -> Result<Vec<String>> {
        let folders = COMPONENTS.iter().map(|(folder, _)| *folder).chain([THEIR_LIBRARIES]);
        let components = folders.flat_map(|folder| shell.packages_below(folder));
        let components = components.filter(|package| !left_out(package)).map(|package| text(&package["name"]));
        let (mut arguments, flag) = match self {
            Part::Host => (vec!["--workspace".to_owned()], "--exclude"),
            Part::Components => (Vec::new(), "--package"),
        };
        for name in components {
            arguments.extend([flag.to_owned(), name?.to_owned()]);
        }
        Ok(arguments)
    }
}

fn components(shell: &Shell) -> Result<()> {
    for (folder, destination) in COMPONENTS {
        let mut files = BTreeMap::new();
        for package in shell.packages_below(folder) {
            // One by one, as its author would: together, each would get the features that another one asks of what they share,
            // and behave otherwise.
            let mut cargo =
                shell.cargo(["build", "--quiet", "--profile", "guest", "--target", WASM_TARGET, "--package"]);
            let name = text(&package["name"])?;
            if needs_c(package) && !tools::give_c_compiler(shell, &mut cargo)? {
                println!("left out: {name}, which needs a C compiler for wasm; `cargo xtask languages` installs one");
                continue;
            }
            shell::run(cargo.arg(name))?;
            for stem in library_stems(package)? {
                let built = shell.target.join(WASM_TARGET).join("guest").join(&stem).with_extension("wasm");
                let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
                files.insert(format!("{stem}.wasm"), bytes);
            }
        }
        files.extend(projects(shell, &shell.root.join(folder))?);
        for source in texts_in(&shell.root.join(folder))? {
            let stem = source.file_stem().context("a file has a name")?.to_string_lossy();
            files.insert(format!("{stem}.wasm"), wat::parse_file(&source)?);
        }
        lay_out(&shell.target.join(destination), &files)?;
    }
    Ok(())
}

/// Whether a package brings C along, and so needs a compiler that makes wasm of that.
pub(crate) fn needs_c(package: &Value) -> bool {
    package["metadata"]["belljar"]["c"] == true
}

/// Components written in other languages: a project with a `build.toml` says how it is built, and what that leaves. Where the
/// tools for that are not installed, they are left out.
fn projects(shell: &Shell, folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut components = Vec::new();
    for (project, how) in hows(folder)? {
        let name = project.file_name().unwrap_or_default().to_string_lossy();
        if !tools::are_there(shell) {
            println!("left out: {name}, which needs other tools than Rust's; `cargo xtask languages` installs them");
            continue;
        }
        if !how.install.is_empty() {
            run_in(shell, &project, &how.install)?;
        }
        run_in(shell, &project, &how.build)?;
        let built = project.join(&how.component);
        // What Rust's compiler does for the others: what the provider needs becomes a part of it.
        let needs = project.join("needs.toml");
        if needs.is_file() {
            let belljar = shell.target.join("release/belljar");
            shell::run_quietly(shell.program(&belljar).arg("declare").arg(&built).arg(&needs))?;
        }
        let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
        components.push((format!("{name}.wasm"), bytes));
    }
    Ok(components)
}

/// Runs the unit tests of the projects in other languages; says which those are.
pub(crate) fn test_projects(shell: &Shell) -> Result<String> {
    let mut tested = Vec::new();
    for (folder, _) in COMPONENTS {
        for (project, how) in hows(&shell.root.join(folder))? {
            run_in(shell, &project, &how.test)?;
            tested.push(project.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    Ok(tested.join(", "))
}

fn run_in(shell: &Shell, project: &Path, words: &[String]) -> Result<()> {
    let (program, arguments) = words.split_first().context("a build.toml says which command")?;
    shell::run(tools::command(shell, program)?.args(arguments).current_dir(project))
}

/// The projects of a folder that are not cargo's.
fn hows(folder: &Path) -> Result<Vec<(PathBuf, How)>> {
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

/// What a `build.toml` says; the tools that it names are for people.
#[derive(Deserialize)]
struct How {
    /// Brings what the project names; empty where that is nothing.
    #[serde(default)]
    install: Vec<String>,
    /// The command, run in the project.
    build: Vec<String>,
    /// The command that runs its unit tests.
    test: Vec<String>,
    /// The component that it leaves there.
    component: PathBuf,
}

/// The file stems of a package's dynamic libraries, which are what becomes a component.
fn library_stems(package: &Value) -> Result<Vec<String>> {
    let targets = package["targets"].as_array().into_iter().flatten();
    let dynamic = targets.filter(|target| {
        let kinds = target["crate_types"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
    });
    dynamic.map(|target| Ok(text(&target["name"])?.replace('-', "_"))).collect()
}

/// Components written by hand in the text format.
fn texts_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "wat")).collect())
}

/// Makes `directory` hold exactly `files`. What is the same is not written: a running belljar watches such directories.
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
        // By a rename, so that nobody who watches sees half a file.
        let arriving = directory.with_extension("arriving");
        fs::write(&arriving, bytes)?;
        fs::rename(&arriving, &path)?;
    }
    Ok(())
}
