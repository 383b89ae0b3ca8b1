//! Runs the benchmarks. They compare the cost of the sandbox with the bare engine, and belljar with the servers that a
//! user would choose instead. One run writes one file with all figures, and prints a table of aims (targets for
//! figures). `--publish` also writes the figures into the documents. With `--only`, the other figures there stay, with the
//! date of their run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use belljar_figures::{FILE, Record, Run, read, tables, write};
use belljar_tests::debian;

use crate::report::Missing;
use crate::shell::{self, Shell};
use crate::{build, languages, profile, setup, tools};

const USAGE: &str = "cargo xtask bench [--rounds N] [--only PROGRAM,...] [--publish | --redraw]";

/// The benchmark program that also measures calls within its own process.
const FLOOR: &str = "floor";

/// The benchmark programs, in the order in which they run. Each prints its tables.
const PROGRAMS: [&str; 14] = [
    FLOOR,
    "peers",
    "big",
    "fair",
    "who",
    "tools",
    "seam",
    "live",
    "scale",
    "languages",
    "real",
    "database",
    "joined",
    "fetched",
];

/// The options of one run.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// Rounds of measurement. `None`: each program uses its default.
    rounds: Option<u32>,
    /// The programs to run. Empty: all.
    only: Vec<String>,
    is_published: bool,
    is_redrawn: bool,
}

/// Builds everything, runs the benchmark programs one after another, and prints whether each aim is met.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = parse(arguments)?;
    let published = shell.root.join("docs/measurements/bench.json");
    if options.is_redrawn {
        build_benches(shell, &["--bin", "plot"])?;
        return publish(shell, &read(&published).context("docs/measurements/bench.json")?);
    }
    setup::wasm_target(shell)?;
    let missing = prepare(shell, &options)?;
    let mut run = measure(shell, &options)?;
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
    if options.is_published {
        if !options.only.is_empty() {
            run = run.keeping(read(&published).context("docs/measurements/bench.json")?);
        }
        write(&published, &run)?;
        publish(shell, &run)?;
    }
    Ok(())
}

/// Installs and builds everything that the programs need. Returns the servers that are missing.
fn prepare(shell: &Shell, options: &Options) -> Result<Vec<Missing>> {
    let is_selected = |program: &str| options.only.is_empty() || options.only.iter().any(|one| one == program);
    let missing = if is_selected("peers") { setup::peers(shell)? } else { Vec::new() };
    for missing in &missing {
        println!("**MISSING: the {} servers: {}**", missing.family, missing.reason);
    }
    if is_selected("languages") {
        tools::run(shell)?;
    }
    if is_selected("real") {
        setup::native_libraries(shell)?;
    }
    let packages = [("database", debian::POSTGRESQL), ("fetched", debian::REGISTRY)];
    let packages: Vec<_> =
        packages.into_iter().filter(|(group, _)| is_selected(group)).map(|(_, package)| package).collect();
    for missing in setup::debian_packages(shell, &packages)? {
        println!("**MISSING: {}**", missing.reason);
    }
    build::run(shell)?;
    if is_selected("languages") {
        languages::run(shell)?;
    }
    build_benches(shell, &[])?;
    build_installed(shell)?;
    Ok(missing)
}

/// Builds belljar as it is installed: of the `dist` profile, with a profile of reads. The programs for comparison are built with
/// the same settings, but the counts are those of belljar.
fn build_installed(shell: &Shell) -> Result<()> {
    let build = |flags: &[String], directory: &Path| {
        let mut cargo = shell.cargo(["build", "--profile", "dist", "--target-dir"]);
        cargo.arg(directory).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        cargo
    };
    let counting = shell.target.join("counting");
    let flag = profile::make(shell, &counting.join("profile"), &shell.target.join("plugins"), |flags| {
        let mut cargo = build(flags, &counting);
        shell::run(cargo.args(profile::COUNTING).args(["--package", "belljar"]))?;
        Ok(counting.join("dist/belljar"))
    })?;
    let mut cargo = build(&[flag], &shell.target);
    for package in ["belljar", "belljar-join", "belljar-fetch", "belljar-benches"] {
        cargo.args(["--package", package]);
    }
    for program in ["belljar", "belljar-join", "belljar-fetch", "bare", "native", FLOOR] {
        cargo.args(["--bin", program]);
    }
    shell::run(&mut cargo)
}

fn build_benches(shell: &Shell, which: &[&str]) -> Result<()> {
    shell::run(shell.cargo(["build", "--release", "--package", "belljar-benches"]).args(which))
}

/// Runs the programs and collects their figures.
fn measure(shell: &Shell, options: &Options) -> Result<Run> {
    let folder = shell.target.join("bench");
    fs::create_dir_all(&folder)?;
    let mut run = Run {
        date: shell::capture(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned(),
        machine: machine(),
        earlier: Vec::new(),
        record: Record::new(),
    };
    for program in
        PROGRAMS.iter().filter(|program| options.only.is_empty() || options.only.iter().any(|one| one == *program))
    {
        let file = folder.join(program).with_extension("json");
        // A file of an earlier run must not be taken for a result of this one.
        let _ = fs::remove_file(&file);
        let profile = if *program == FLOOR { "dist" } else { "release" };
        let mut command = shell.program(&shell.target.join(profile).join(program));
        command.args(options.rounds.map(|rounds| rounds.to_string())).env(FILE, &file);
        command.env("BELLJAR_TEST_HOST", shell.target.join("dist/belljar"));
        shell::run(&mut command)?;
        // Some programs have no figures for the table.
        if file.is_file() {
            run.record.extend(read(&file).with_context(|| format!("the figures of {program}"))?);
        }
    }
    Ok(run)
}

/// The processor and the kernel that the figures were measured on. Names of hosts and vendors of kernels are left out.
fn machine() -> BTreeMap<String, String> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // The part after the version names the builder of the kernel.
    let kernel = kernel.trim().split(['-', '+']).next().unwrap_or_default().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = model.map_or("unknown", |(_, model)| model);
    [("processor", processor.to_owned()), ("cores", cores.to_string()), ("Linux", kernel)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Writes the chart and the generated part of each page.
fn publish(shell: &Shell, run: &Run) -> Result<()> {
    let docs = shell.root.join("docs/measurements");
    let plot = shell.target.join("release/plot");
    shell::run(shell.program(&plot).arg(docs.join("bench.json")).arg(docs.join("bench.svg")))?;
    for (page, part) in tables::PAGES {
        replace(&shell.root.join(page), &part(run))?;
    }
    println!(
        "written: docs/measurements/bench.json, docs/measurements/bench.svg, {}",
        tables::PAGES.map(|(page, _)| page).join(", ")
    );
    Ok(())
}

fn replace(page: &Path, generated: &str) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let text = tables::between_marks(&text, generated)
        .with_context(|| format!("{} has no place for figures: {}", page.display(), tables::MARKS.join(" and ")))?;
    Ok(fs::write(page, text)?)
}

/// Parses the arguments. Runs first: building takes minutes.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--publish" => options.is_published = true,
            "--redraw" => options.is_redrawn = true,
            "--rounds" => {
                let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).filter(|rounds| *rounds > 0);
                options.rounds = Some(rounds.with_context(|| format!("--rounds needs a number: {USAGE}"))?);
            }
            "--only" => {
                let programs = arguments.next().with_context(|| format!("--only needs programs: {USAGE}"))?;
                options.only = programs.split(',').map(str::to_owned).collect();
                if let Some(other) = options.only.iter().find(|one| !PROGRAMS.contains(&one.as_str())) {
                    bail!("no program \"{other}\"; there are {}", PROGRAMS.join(", "));
                }
            }
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
    }
    if options.is_published && (options.is_redrawn || options.rounds.is_some()) {
        bail!("--publish needs all rounds, so it excludes --rounds and --redraw");
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::{Options, parse};

    #[test]
    fn arguments_are_parsed() {
        let parse = |line: &str| parse(line.split_whitespace().map(str::to_owned));
        assert_eq!(parse("").unwrap(), Options::default());
        let few = Options { rounds: Some(3), only: vec!["floor".to_owned(), "peers".to_owned()], ..Options::default() };
        assert_eq!(parse("--rounds 3 --only floor,peers").unwrap(), few);
        assert!(parse("--publish").unwrap().is_published && parse("--publish --only floor").unwrap().is_published);
        for bad in ["--rounds", "--rounds 0", "--only ends", "--publish --redraw", "--publish --rounds 3", "fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
