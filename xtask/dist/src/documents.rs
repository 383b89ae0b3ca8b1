//! Manual pages, completions, README and licence. The program writes the first two itself, so they cannot be out of date.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::program::Program;
use crate::project::Project;
use crate::tree::Tree;

/// Where each shell looks for the completions of a command, below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/belljar"),
    ("zsh", "share/zsh/site-functions/_belljar"),
    ("fish", "share/fish/vendor_completions.d/belljar.fish"),
];

/// The program that runs on this machine.
pub(crate) fn native(programs: &[Program]) -> Result<&Program> {
    if let Some(native) = programs.iter().find(|program| program.is_native()) {
        return Ok(native);
    }
    let here = std::env::consts::ARCH;
    match programs.first() {
        None => bail!("no program to pack: name it with --program"),
        Some(program) => bail!(
            "\"{}\" is a program for {}, and this machine has {here}: belljar writes its own manual pages, so pack a program for {here} too",
            program.path.display(),
            program.target.architecture.name(),
        ),
    }
}

/// Adds the documents to the tree. `program` runs on this machine.
pub(crate) fn add(tree: &mut Tree, program: &Program, project: &Project) -> Result<()> {
    check_version(program, project)?;
    let place = tempfile::tempdir().context("cannot create a directory for the manual pages")?;
    run(program, &["man", &place.path().to_string_lossy()])?;
    let before = tree.iter().count();
    for entry in fs::read_dir(place.path())? {
        let entry = entry?;
        tree.file(format!("share/man/man1/{}", entry.file_name().to_string_lossy()), fs::read(entry.path())?);
    }
    if tree.iter().count() == before {
        bail!("`{} man` has written no manual page", program.path.display());
    }
    for (shell, path) in COMPLETIONS {
        tree.file(path, run(program, &["completions", shell])?.into_bytes());
    }
    tree.file("share/doc/belljar/LICENSE", project.license_text.clone().into_bytes());
    tree.file("share/doc/belljar/README.md", project.readme.clone().into_bytes());
    Ok(())
}

/// Fails if the program has another version than the repository: it is another program, or was built long ago.
fn check_version(program: &Program, project: &Project) -> Result<()> {
    let printed = run(program, &["--version"])?;
    let expected = format!("belljar {}", project.version);
    if printed.trim() != expected {
        bail!(
            "\"{} --version\" prints \"{}\", and the repository has \"{expected}\": build the program again",
            program.path.display(),
            printed.lines().next().unwrap_or_default(),
        );
    }
    Ok(())
}

/// Runs the program, and returns its output. It gets no environment: the user's colours and language must not get into packages.
fn run(program: &Program, arguments: &[&str]) -> Result<String> {
    let shown = format!("`{} {}`", program.path.display(), arguments.join(" "));
    let done = Command::new(&program.path)
        .env_clear()
        .args(arguments)
        .output()
        .with_context(|| format!("cannot start {shown}"))?;
    if !done.status.success() {
        bail!("{shown} failed ({}): {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8(done.stdout)?)
}
