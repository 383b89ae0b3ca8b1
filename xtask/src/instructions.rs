//! The guard of what reads cost: runs the program of `tests/instructions` under valgrind, and judges what it counted by the
//! committed figures.

mod callgrind;
mod judge;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use self::callgrind::Dump;
use self::judge::{Counts, Figures};
use crate::shell::{self, Shell};

/// How to take what was found for what is expected from then on.
pub(crate) const ACCEPT: &str = "cargo xtask instructions --accept";

const USAGE: &str = "cargo xtask instructions [--accept | --prove]

Runs each hot path (the sandbox, the gateway, stdio, HTTP, routing, a page of a list) a few times under valgrind's
callgrind, and compares with tests/instructions/counts.toml: instructions in the program and the guest, instructions in the
C library, allocations, bytes allocated. Counts do not depend on how busy the machine is. More than a path's tolerance is a
failure; less is told, and to be accepted, so that nobody can lose again unseen what was gained.

  --accept  what was found is what is expected from now on; tolerances stay
  --prove   has each path waste the copy of one kilobyte, and fails unless each is found out";

/// What stands in the program's name for code that was made while it ran: the guest's.
const MADE: &str = "???";

/// Counts and judges, or accepts.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    match arguments.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => check(shell).map(|told| println!("\n{told}")),
        ["--accept"] => accept(shell),
        ["--prove"] => prove(shell).map(|told| println!("\n{told}")),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}

/// Counts and judges what was built. Says how many figures were found to be right.
pub(crate) fn check(shell: &Shell) -> Result<String> {
    let expected = read(&file(shell))?;
    let found = count(shell, Waste::None)?;
    let judged = judge::judge(&expected, &found);
    println!("{}", judged.table);
    if !judged.cheaper.is_empty() {
        println!("cheaper than it was ({ACCEPT} keeps it so):\n{}\n", judged.cheaper.join("\n"));
    }
    if judged.wrong.is_empty() {
        return Ok(format!("{} figures of {} paths are no dearer than expected", judged.figures, found.len()));
    }
    let look = format!(
        "Which function it is says `callgrind_annotate FILE`, of a file in {}.\nIf that is as it should be: {ACCEPT}",
        dumps(shell).display()
    );
    bail!("dearer than it was:\n{}\n{look}", judged.wrong.join("\n"))
}

fn accept(shell: &Shell) -> Result<()> {
    let found = count(shell, Waste::None)?;
    let path = file(shell);
    let before = read(&path).unwrap_or_default();
    println!("{}", judge::judge(&before, &found).table);
    let text = before.accepting(&found).to_text()?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}

/// Has every path waste a little, and sees that each is found out.
pub(crate) fn prove(shell: &Shell) -> Result<String> {
    let expected = read(&file(shell))?;
    let found = count(shell, Waste::Planted)?;
    let judged = judge::judge(&expected, &found);
    let is_told = |name: &str| judged.wrong.iter().any(|wrong| wrong.starts_with(&format!("{name}: ")));
    let missed: Vec<_> = found.iter().filter(|(name, _)| !is_told(name)).map(|(name, _)| name.as_str()).collect();
    if !missed.is_empty() {
        bail!("the copy of a kilobyte was not found out in: {}", missed.join("; "));
    }
    Ok(format!("the copy of a kilobyte was found out in each of {} paths", found.len()))
}

fn file(shell: &Shell) -> PathBuf {
    shell.root.join("tests/instructions/counts.toml")
}

fn dumps(shell: &Shell) -> PathBuf {
    shell.target.join("instructions")
}

fn read(path: &Path) -> Result<Counts> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// What is added to each path.
#[derive(Clone, Copy, PartialEq)]
enum Waste {
    None,
    /// The copy of a kilobyte.
    Planted,
}

/// Builds the program, runs it under valgrind, and takes the median of each figure of each path, in the program's order.
fn count(shell: &Shell, waste: Waste) -> Result<Vec<(String, Figures)>> {
    shell::run(&mut shell.cargo(["build", "--release", "--quiet", "--package", "belljar-instructions"]))?;
    let program = shell.target.join("release/instructions");
    let dumps = dumps(shell);
    if dumps.exists() {
        fs::remove_dir_all(&dumps)?;
    }
    fs::create_dir_all(&dumps)?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet", "--error-exitcode=9", "--instr-atstart=no"]);
    // A file a thread, so that only the one is judged that does not go by the clock.
    valgrind.args(["--separate-threads=yes", "--compress-strings=no", "--compress-pos=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", dumps.join("counted").display()));
    valgrind.arg(&program).arg(shell.target.join("guests/guest_sized.wasm"));
    valgrind.args((waste == Waste::Planted).then_some("planted"));
    // What is set here could choose another allocator, or other ways to copy.
    valgrind.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let output = valgrind.current_dir(&dumps).stdin(Stdio::null()).output().context("cannot start valgrind")?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("the counted program failed ({}):\n{}", output.status, String::from_utf8_lossy(&said));
    }
    let mut counted: BTreeMap<String, Vec<Dump>> = BTreeMap::new();
    for entry in fs::read_dir(&dumps)? {
        let dump = callgrind::parse(&fs::read_to_string(entry?.path())?, |object| {
            object == MADE || Path::new(object) == program
        });
        if let Some(dump) = dump.filter(|dump| dump.thread == 1) {
            counted.entry(dump.title.clone()).or_default().push(dump);
        }
    }
    let told = String::from_utf8(output.stdout)?;
    told.lines().map(|line| figures(line, &counted)).collect()
}

/// The figures of a path, of what the program said of it and what valgrind did.
fn figures(line: &str, counted: &BTreeMap<String, Vec<Dump>>) -> Result<(String, Figures)> {
    let fields: Vec<_> = line.split('\t').collect();
    let [name, allocations, bytes] = fields.as_slice() else { bail!("the counted program said: {line}") };
    let dumps = counted.get(*name).with_context(|| format!("valgrind counted nothing of \"{name}\""))?;
    let figures = Figures {
        program: median(dumps.iter().map(|dump| dump.program)),
        library: median(dumps.iter().map(|dump| dump.library)),
        allocations: allocations.parse()?,
        bytes: bytes.parse()?,
    };
    Ok(((*name).to_owned(), figures))
}

fn median(all: impl Iterator<Item = u64>) -> u64 {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_median_of_what_was_counted() {
        let dump = |program, library| Dump { title: "a, b".to_owned(), thread: 1, program, library };
        let counted = [("a, b".to_owned(), vec![dump(101, 7), dump(100, 5), dump(102, 6)])].into();
        let (name, found) = figures("a, b\t12\t345", &counted).unwrap();
        assert_eq!(name, "a, b");
        assert_eq!(found, Figures { program: 101, library: 6, allocations: 12, bytes: 345 });
        for wrong in ["a, b\t12", "c\t1\t2", "a, b\tx\t2", ""] {
            assert!(figures(wrong, &counted).is_err(), "{wrong}");
        }
    }
}
