//! Builds the binary, the real providers and the guests of the tests, and lays them where everything expects them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::setup::WASM_TARGET;
use crate::shell::{self, Shell, text};

/// The folders of programs that become components, and where those go.
const COMPONENTS: [(&str, &str); 2] = [("plugins", "plugins"), ("tests/guests", "guests")];

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
    /// The providers and the guests of the tests.
    Components,
}

impl Part {
    /// Both.
    pub(crate) const ALL: [Part; 2] = [Part::Host, Part::Components];

    /// The arguments that select its packages.
    pub(crate) fn packages(self, shell: &Shell) -> Result<Vec<String>> {
        let components = COMPONENTS.iter().flat_map(|(folder, _)| shell.packages_below(folder));
        let components = components.map(|package| text(&package["name"]));
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
            shell::run(cargo.arg(text(&package["name"])?))?;
            for stem in library_stems(package)? {
                let built = shell.target.join(WASM_TARGET).join("guest").join(&stem).with_extension("wasm");
                let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
                files.insert(format!("{stem}.wasm"), bytes);
            }
        }
        for source in texts_in(&shell.root.join(folder))? {
            let stem = source.file_stem().context("a file has a name")?.to_string_lossy();
            files.insert(format!("{stem}.wasm"), wat::parse_file(&source)?);
        }
        lay_out(&shell.target.join(destination), &files)?;
    }
    Ok(())
}

/// The file stems of a package's dynamic libraries, which are what becomes a component.
fn library_stems(package: &serde_json::Value) -> Result<Vec<String>> {
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
