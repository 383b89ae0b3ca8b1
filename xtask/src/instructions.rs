//! The instruction guard: runs the program of `tests/instructions` under valgrind and compares its figures with the committed
//! ones.

mod callgrind;
mod judge;
mod layers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use self::callgrind::{Dump, median};
use self::judge::{Counts, Figures};
use crate::shell::{self, Shell};

/// The command that commits the counted figures.
pub(crate) const ACCEPT: &str = "cargo xtask instructions --accept";

const USAGE: &str = "cargo xtask instructions [--accept | --prove]

Runs each hot path (the sandbox, the gateway, a worker, stdio, HTTP, routing, a page of a list) a few times under valgrind's
callgrind, and compares with tests/instructions/counts.toml: instructions in the program and the guest, instructions in the
C library, allocations, bytes allocated. Counts do not depend on the load of the machine. A path that costs more than its
tolerance allows is a failure. A path that costs less is printed; accept it, so that no later change loses the gain unnoticed.

  --accept  commit the counted figures; tolerances stay
  --prove   add a copy of one kilobyte to each path, and fail unless the comparison finds each";

/// How often the paths are counted, at most, until no figure is too high. Addresses and the seeds of hash maps differ from one
/// process to the next, and a path that became dearer is dearer in each of them.
const COUNTS: usize = 5;

/// The runs of the program, each with its option: the paths of the front, and the part of a worker.
const RUNS: [Option<&str>; 2] = [None, Some("counted-worker")];

/// The name that callgrind gives to code generated at run time: the guest's.
const MADE: &str = "???";

/// Counts and compares, or accepts.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    match arguments.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => check(shell).map(|note| println!("\n{note}")),
        ["--accept"] => accept(shell),
        ["--prove"] => prove(shell).map(|note| println!("\n{note}")),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}

/// Counts, and compares with the committed figures. Returns a note for the summary.
pub(crate) fn check(shell: &Shell) -> Result<String> {
    let expected = read(&file(shell))?;
    let Counted { figures: mut found, mut dumps } = count(shell, Waste::None)?;
    let mut judged = judge::judge(&expected, &found);
    for _ in 1..COUNTS {
        if judged.wrong.is_empty() {
            break;
        }
        println!("counted again, because of:\n{}\n", judged.wrong.join("\n"));
        let again = count(shell, Waste::None)?;
        (found, dumps) = (judge::lower(&found, &again.figures), again.dumps);
        judged = judge::judge(&expected, &found);
    }
    println!("{}", judged.table);
    println!("{}\n{}\n", judge::features(&found), layers::tables(&dumps));
    if !judged.cheaper.is_empty() {
        println!("lower than expected (`{ACCEPT}` keeps the gain):\n{}\n", judged.cheaper.join("\n"));
    }
    if judged.wrong.is_empty() {
        return Ok(format!("{} figures of {} paths are not higher than expected", judged.figures, found.len()));
    }
    let look = format!(
        "To see the function, run `callgrind_annotate FILE` on a file in {}.\nTo accept the new figures: {ACCEPT}",
        directory(shell).display()
    );
    bail!("higher than expected:\n{}\n{look}", judged.wrong.join("\n"))
}

fn accept(shell: &Shell) -> Result<()> {
    let Counted { figures: found, dumps } = count(shell, Waste::None)?;
    let path = file(shell);
    let before = read(&path).unwrap_or_default();
    println!("{}", judge::judge(&before, &found).table);
    println!("{}\n{}\n", judge::features(&found), layers::tables(&dumps));
    let text = before.accepting(&found).to_text()?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}

/// Adds a copy of one kilobyte to every path, and fails unless the comparison finds each.
pub(crate) fn prove(shell: &Shell) -> Result<String> {
    let expected = read(&file(shell))?;
    let found = count(shell, Waste::Planted)?.figures;
    let judged = judge::judge(&expected, &found);
    let is_told = |name: &str| judged.wrong.iter().any(|wrong| wrong.starts_with(&format!("{name}: ")));
    let missed: Vec<_> = found.iter().filter(|(name, _)| !is_told(name)).map(|(name, _)| name.as_str()).collect();
    if !missed.is_empty() {
        bail!("the comparison missed a copy of one kilobyte in: {}", missed.join("; "));
    }
    Ok(format!("the comparison found a copy of one kilobyte in each of {} paths", found.len()))
}

fn file(shell: &Shell) -> PathBuf {
    shell.root.join("tests/instructions/counts.toml")
}

/// The directory of the dumps.
fn directory(shell: &Shell) -> PathBuf {
    shell.target.join("instructions")
}

fn read(path: &Path) -> Result<Counts> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// The dumps of each path.
type Dumps = BTreeMap<String, Vec<Dump>>;

/// What one run of the program counted.
struct Counted {
    /// The median of each figure for each path, in the program's order.
    figures: Vec<(String, Figures)>,
    dumps: Dumps,
}

/// Extra work, added to each path.
#[derive(Clone, Copy, PartialEq)]
enum Waste {
    None,
    /// A copy of one kilobyte.
    Planted,
}

/// Builds the program and runs it under valgrind.
fn count(shell: &Shell, waste: Waste) -> Result<Counted> {
    shell::run(shell.cargo(["build", "--quiet", "--package", "belljar-instructions"]).args(shell.profile()))?;
    let program = shell.built("instructions");
    let directory = directory(shell);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let mut output = String::new();
    for run in RUNS {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--quiet", "--error-exitcode=9", "--instr-atstart=no"]);
        // One file for each thread. Only the first thread is compared: the others depend on the clock.
        valgrind.args(["--separate-threads=yes", "--compress-strings=no", "--compress-pos=no"]);
        valgrind.arg(format!("--callgrind-out-file={}", directory.join(run.unwrap_or("counted")).display()));
        valgrind.arg(&program).arg(shell.target.join("guests/guest_sized.wasm"));
        valgrind.args(run).args((waste == Waste::Planted).then_some("planted"));
        // Environment variables could choose another allocator or other copying routines.
        valgrind.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        output += &shell::capture(valgrind.current_dir(&directory)).context("the counted program failed")?;
    }
    let mut dumps = Dumps::new();
    for entry in fs::read_dir(&directory)? {
        let dump = callgrind::parse(&fs::read_to_string(entry?.path())?, |object| {
            object == MADE || Path::new(object) == program
        });
        if let Some(dump) = dump.filter(|dump| dump.thread == 1) {
            dumps.entry(dump.title.clone()).or_default().push(dump);
        }
    }
    let figures = output.lines().map(|line| figures(line, &dumps)).collect::<Result<_>>()?;
    Ok(Counted { figures, dumps })
}

/// The figures of a path: allocations as the program printed them, instructions as valgrind counted them.
fn figures(line: &str, counted: &Dumps) -> Result<(String, Figures)> {
    let fields: Vec<_> = line.split('\t').collect();
    let [name, allocations, bytes] = fields.as_slice() else {
        bail!("unexpected line of the counted program: \"{line}\"")
    };
    let dumps = counted.get(*name).with_context(|| format!("valgrind counted nothing for \"{name}\""))?;
    let figures = Figures {
        program: median(dumps.iter().map(|dump| dump.program)),
        library: median(dumps.iter().map(|dump| dump.library)),
        allocations: allocations.parse()?,
        bytes: bytes.parse()?,
    };
    Ok(((*name).to_owned(), figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_median_of_its_counts() {
        let calls = BTreeMap::new;
        let dump = |program, library| Dump { title: "a, b".to_owned(), thread: 1, program, library, calls: calls() };
        let counted = [("a, b".to_owned(), vec![dump(101, 7), dump(100, 5), dump(102, 6)])].into();
        let (name, found) = figures("a, b\t12\t345", &counted).unwrap();
        assert_eq!(name, "a, b");
        assert_eq!(found, Figures { program: 101, library: 6, allocations: 12, bytes: 345 });
        for wrong in ["a, b\t12", "c\t1\t2", "a, b\tx\t2", ""] {
            assert!(figures(wrong, &counted).is_err(), "{wrong}");
        }
    }
}
