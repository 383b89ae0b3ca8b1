//! The figures: what the sandbox adds to the bare engine, and what belljar costs against everything that a user would pick
//! instead. One run of several programs becomes one file, one verdict, and, when asked, the figures in the documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use belljar_figures::{FILE, Record, Run, read, tables, write};

use crate::setup::Missing;
use crate::shell::{self, Shell};
use crate::{build, languages, setup, tools};

const USAGE: &str = "cargo xtask bench [--rounds N] [--only PROGRAM,...] [--publish | --redraw]";

/// The program that measures what is in its own process as well.
const FLOOR: &str = "floor";

/// The programs, in the order in which they are run; each prints its tables.
const PROGRAMS: [&str; 8] = [FLOOR, "peers", "big", "fair", "seam", "live", "scale", "languages"];

/// What is asked of a run.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    /// For the programs that take it; each has its own number otherwise.
    rounds: Option<u32>,
    /// All, where it is empty.
    only: Vec<String>,
    is_published: bool,
    is_redrawn: bool,
}

/// Builds everything, runs the benches one after the other, and says what came of the aims.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let asked = parse(arguments)?;
    let published = shell.root.join("docs/bench.json");
    if asked.is_redrawn {
        build_benches(shell, &["--bin", "plot"])?;
        return publish(shell, &read(&published).context("docs/bench.json")?);
    }
    setup::wasm_target(shell)?;
    let missing = prepare(shell, &asked)?;
    let mut run = measure(shell, &asked)?;
    run.record
        .missing
        .extend(missing.iter().map(|missing| format!("the {} servers: {}", missing.family, missing.reason)));
    let file = shell.target.join("bench.json");
    write(&file, &run)?;
    println!("\n{}", tables::verdict(&run.record));
    println!("all figures: {}", file.display());
    for missing in &run.record.missing {
        println!("**MISSING: {missing}**");
    }
    if shell.ci && !run.record.missing.is_empty() {
        bail!("CI skips nothing");
    }
    if asked.is_published {
        write(&published, &run)?;
        publish(shell, &run)?;
    }
    Ok(())
}

/// Brings what the programs need.
fn prepare(shell: &Shell, asked: &Asked) -> Result<Vec<Missing>> {
    let is_asked = |program: &str| asked.only.is_empty() || asked.only.iter().any(|one| one == program);
    let missing = if is_asked("peers") { setup::peers(shell)? } else { Vec::new() };
    for missing in &missing {
        println!("**MISSING: the {} servers: {}**", missing.family, missing.reason);
    }
    if is_asked("languages") {
        tools::run(shell)?;
    }
    build::run(shell)?;
    if is_asked("languages") {
        languages::run(shell)?;
    }
    build_benches(shell, &[])?;
    // What is measured is built as it is installed, and what it is compared with likewise.
    let programs = ["belljar", "native", FLOOR].map(|name| ["--bin", name]);
    let mut command =
        shell.cargo(["build", "--profile", "dist", "--package", "belljar", "--package", "belljar-benches"]);
    shell::run(command.args(programs.as_flattened()))?;
    Ok(missing)
}

fn build_benches(shell: &Shell, which: &[&str]) -> Result<()> {
    shell::run(shell.cargo(["build", "--release", "--package", "belljar-benches"]).args(which))
}

/// Runs the programs, and collects what they hand over.
fn measure(shell: &Shell, asked: &Asked) -> Result<Run> {
    let folder = shell.target.join("bench");
    fs::create_dir_all(&folder)?;
    let mut run = Run {
        date: shell::capture(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned(),
        machine: machine(),
        record: Record::new(),
    };
    for program in
        PROGRAMS.iter().filter(|program| asked.only.is_empty() || asked.only.iter().any(|one| one == *program))
    {
        let file = folder.join(program).with_extension("json");
        // What an earlier run left must not be taken for this one's.
        let _ = fs::remove_file(&file);
        let profile = if *program == FLOOR { "dist" } else { "release" };
        let mut command = shell.program(&shell.target.join(profile).join(program));
        command.args(asked.rounds.map(|rounds| rounds.to_string())).env(FILE, &file);
        command.env("BELLJAR_TEST_HOST", shell.target.join("dist/belljar"));
        shell::run(&mut command)?;
        // Not every program has figures for the table.
        if file.is_file() {
            run.record.extend(read(&file).with_context(|| format!("what {program} handed over"))?);
        }
    }
    Ok(run)
}

/// What the figures were measured on; nothing that tells whose it is.
fn machine() -> BTreeMap<String, String> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What follows the numbers is whoever built it.
    let kernel = kernel.trim().split(['-', '+']).next().unwrap_or_default().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = model.map_or("unknown", |(_, model)| model);
    [("processor", processor.to_owned()), ("cores", cores.to_string()), ("Linux", kernel)]
        .into_iter()
        .map(|(what, which)| (what.to_owned(), which))
        .collect()
}

/// Writes the picture and the generated part of each page.
fn publish(shell: &Shell, run: &Run) -> Result<()> {
    let docs = shell.root.join("docs");
    let plot = shell.target.join("release/plot");
    shell::run(shell.program(&plot).arg(docs.join("bench.json")).arg(docs.join("bench.svg")))?;
    for (page, part) in tables::PAGES {
        replace(&shell.root.join(page), &part(run))?;
    }
    println!("written: docs/bench.json, docs/bench.svg, {}", tables::PAGES.map(|(page, _)| page).join(", "));
    Ok(())
}

fn replace(page: &Path, generated: &str) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let text = tables::between_marks(&text, generated)
        .with_context(|| format!("{} has no place for figures: {}", page.display(), tables::MARKS.join(" and ")))?;
    Ok(fs::write(page, text)?)
}

/// Checks before minutes are spent on building.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Asked> {
    let mut asked = Asked::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--publish" => asked.is_published = true,
            "--redraw" => asked.is_redrawn = true,
            "--rounds" => {
                let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).filter(|rounds| *rounds > 0);
                asked.rounds = Some(rounds.with_context(|| format!("--rounds needs a number: {USAGE}"))?);
            }
            "--only" => {
                let programs = arguments.next().with_context(|| format!("--only needs programs: {USAGE}"))?;
                asked.only = programs.split(',').map(str::to_owned).collect();
                if let Some(other) = asked.only.iter().find(|one| !PROGRAMS.contains(&one.as_str())) {
                    bail!("no program \"{other}\"; there are {}", PROGRAMS.join(", "));
                }
            }
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
    }
    if asked.is_published && (asked.is_redrawn || !asked.only.is_empty() || asked.rounds.is_some()) {
        bail!("what is published is a whole run: --publish takes nothing beside it");
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::{Asked, parse};

    #[test]
    fn arguments() {
        let parse = |line: &str| parse(line.split_whitespace().map(str::to_owned));
        assert_eq!(parse("").unwrap(), Asked::default());
        let few = Asked { rounds: Some(3), only: vec!["floor".to_owned(), "peers".to_owned()], ..Asked::default() };
        assert_eq!(parse("--rounds 3 --only floor,peers").unwrap(), few);
        assert!(parse("--publish").unwrap().is_published);
        for bad in ["--rounds", "--rounds 0", "--only ends", "--publish --only floor", "--publish --rounds 3", "fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
