//! Runs the fuzz targets of `tests/fuzz` and `tests/fuzz/providers` under libFuzzer, guided by coverage.
//!
//! Only belljar's own crates are instrumented. The guided program is a workspace of its own, so no other command builds it. It
//! shares the build directory and the lock file, so cargo compiles again only what has further features there: the providers
//! need them. The engine is among that, in the first run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::shell::{self, Shell};
use crate::{build, setup};

const USAGE: &str = "cargo xtask fuzz [--target NAME] [--seconds N] [--keep]";

/// Default of `--seconds`, for each target.
const SECONDS: u64 = 60;

/// The instrumented crates.
const INSTRUMENTED: &str = "belljar|belljar_fuzz|belljar_fuzz_guided|belljar_fuzz_providers|belljar_sql|belljar_tree|git|images|logs|pdf|postgres|sqlite|tables|web";

/// The flags of rustc that instrument a crate, and enable overflow checks and debug assertions. They work with a stable
/// compiler, which can run an LLVM pass by name.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Copt-level=1 -Cdebug-assertions=yes -Coverflow-checks=yes";

/// The options.
#[derive(Debug, PartialEq)]
struct Options {
    target: Option<String>,
    seconds: u64,
    keep: bool,
}

/// A fuzz target, as the guided program lists it.
struct Target {
    name: String,
    /// The most bytes of an input.
    longest: String,
    corpus: PathBuf,
}

/// The result of one target.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    executions: u64,
    /// Covered edges: by the corpus alone, and at the end.
    coverage: (u64, u64),
    /// New inputs that reach new code.
    inputs: u64,
}

/// Builds everything and runs each target for its time.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = parse(arguments)?;
    if !["c++", "g++", "clang++"].into_iter().any(shell::exists) {
        bail!("libFuzzer is C++, and there is no compiler for it: install g++ or clang (apt install g++)");
    }
    // The built components are part of the corpus.
    setup::wasm_target(shell)?;
    build::run(shell)?;
    let program = guided(shell)?;
    let work = shell.target.join("fuzz");
    let targets = targets(shell, &program, &work)?;
    let known = targets.iter().map(|target| target.name.clone()).collect::<Vec<_>>().join(", ");
    let chosen = |target: &&Target| options.target.as_ref().is_none_or(|name| *name == target.name);
    let chosen: Vec<_> = targets.iter().filter(chosen).collect();
    if chosen.is_empty() {
        bail!("no target \"{}\"; there are {known}", options.target.unwrap_or_default());
    }
    println!("| target | executions | a second | edges, from the corpus | after | inputs gained | verdict |");
    println!("|---|---|---|---|---|---|---|");
    let mut broken = Vec::new();
    for target in chosen {
        let (figures, verdict) = fuzz(shell, &program, &work, target, &options)?;
        let Figures { executions, coverage: (before, after), inputs } = figures;
        let rate = executions / options.seconds.max(1);
        let shown = if verdict.is_some() { "BROKEN" } else { "holds" };
        println!("| {} | {executions} | {rate} | {before} | {after} | {inputs} | {shown} |", target.name);
        broken.extend(verdict.map(|log| format!("{}: see {}", target.name, log.display())));
    }
    if !broken.is_empty() {
        bail!(
            "{} of the targets broke; the inputs are in {}\n{}",
            broken.len(),
            work.join("found").display(),
            broken.join("\n")
        );
    }
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options { target: None, seconds: SECONDS, keep: false };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value: {USAGE}"));
        match argument.as_str() {
            "--target" => options.target = Some(value()?),
            "--seconds" => {
                options.seconds = value()?.parse().with_context(|| format!("--seconds is a number: {USAGE}"))?
            }
            "--keep" => options.keep = true,
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
    }
    Ok(options)
}

/// Builds the guided program.
fn guided(shell: &Shell) -> Result<PathBuf> {
    let directory = shell.root.join("tests/fuzz/guided");
    // With the same versions, cargo uses the crates that it has compiled already.
    fs::copy(shell.root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&directory).args(["build", "--release", "--target-dir"]).arg(&shell.target);
    shell::run(cargo.env("RUSTC_WRAPPER", wrapper(shell)?))?;
    Ok(shell.target.join("release/belljar-fuzz-guided"))
}

/// Writes a wrapper of rustc that adds [`FLAGS`] for our own crates. Returns its path.
fn wrapper(shell: &Shell) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = shell.target.join("fuzz");
    fs::create_dir_all(&directory)?;
    let path = directory.join("rustc.sh");
    let script = format!(
        "#!/bin/sh\n# rustc PROGRAM ...: `cargo xtask fuzz` made this.\ncase \" $* \" in\n  *\" --crate-name \"*)\n    \
         name=\"${{*#*--crate-name }}\"\n    case \"${{name%% *}}\" in {INSTRUMENTED}) exec \"$@\" {FLAGS};; esac;;\nesac\nexec \"$@\"\n"
    );
    if !fs::read_to_string(&path).is_ok_and(|old| old == script) {
        fs::write(&path, script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}

/// Asks the guided program for its targets.
fn targets(shell: &Shell, program: &Path, work: &Path) -> Result<Vec<Target>> {
    let listed = shell::capture(shell.program(program).env("BELLJAR_FUZZ_LIST", work.join("targets")))?;
    let target = |line: &str| {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let mut next = || words.next().context("a target has a name, a longest input and a corpus");
        Ok(Target { name: next()?, longest: next()?, corpus: next()?.into() })
    };
    listed.lines().map(target).collect()
}

/// Runs one target. Returns its figures, and the path of its log if it failed.
fn fuzz(
    shell: &Shell,
    program: &Path,
    work: &Path,
    target: &Target,
    options: &Options,
) -> Result<(Figures, Option<PathBuf>)> {
    let own = work.join("targets").join(&target.name);
    let (gained, found) = (own.join("gained"), work.join("found"));
    for directory in [&gained, &found] {
        fs::create_dir_all(directory)?;
    }
    let before = count(&gained)?;
    let log = own.join("log");
    let command = || {
        let mut command = shell.program(program);
        command.env("BELLJAR_FUZZ_TARGET", &target.name).stdin(Stdio::null()).stdout(Stdio::null());
        command.arg(format!("-max_len={}", target.longest));
        command
    };
    let mut fuzzer = command();
    fuzzer.arg(format!("-max_total_time={}", options.seconds)).args(["-timeout=20", "-rss_limit_mb=4096"]);
    fuzzer.args(["-print_final_stats=1", "-reload=0"]);
    fuzzer.arg(format!("-artifact_prefix={}/{}-", found.display(), target.name));
    fuzzer.arg(format!("-dict={}", own.join("dictionary").display()));
    fuzzer.arg(&gained).arg(&target.corpus).arg(own.join("built"));
    let status = fuzzer.stderr(fs::File::create(&log)?).status().context("cannot start the guided program")?;
    let mut figures = read(&String::from_utf8_lossy(&fs::read(&log)?));
    figures.inputs = count(&gained)?.saturating_sub(before);
    if options.keep && status.success() {
        // libFuzzer keeps the smallest inputs that reach code which the corpus does not reach.
        let mut merge = command();
        merge.arg("-merge=1").arg(&target.corpus).arg(&gained).stderr(Stdio::null());
        shell::run(&mut merge)?;
    }
    Ok((figures, (!status.success()).then_some(log)))
}

fn count(directory: &Path) -> Result<u64> {
    Ok(fs::read_dir(directory)?.count() as u64)
}

/// Parses libFuzzer's log: lines such as `#12 INITED cov: 345 ft: ...`, and the statistics at its end.
fn read(log: &str) -> Figures {
    let mut figures = Figures::default();
    for line in log.lines() {
        if let Some(executed) = line.strip_prefix("stat::number_of_executed_units:") {
            figures.executions = executed.trim().parse().unwrap_or_default();
        }
        let mut words = line.split_whitespace();
        if line.starts_with('#')
            && let Some(covered) = words.by_ref().skip_while(|word| *word != "cov:").nth(1)
            && let Ok(covered) = covered.parse()
        {
            if line.contains("INITED") {
                figures.coverage.0 = covered;
            }
            figures.coverage.1 = covered;
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split_whitespace().map(str::to_owned)
    }

    #[test]
    fn arguments_are_parsed() {
        let options = parse(words("--target text --seconds 5 --keep")).unwrap();
        assert_eq!(options, Options { target: Some("text".to_owned()), seconds: 5, keep: true });
        assert_eq!(parse(words("")).unwrap().seconds, SECONDS);
        for bad in ["--seconds", "--seconds x", "--fast", "text"] {
            assert!(parse(words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn figures_are_read_from_a_log() {
        let log = "INFO: Seed: 1\n#2\tINITED cov: 10 ft: 11 corp: 1/1b\n#9\tNEW    cov: 12 ft: 13\n#99\tDONE   cov: 14 ft: 15\nstat::number_of_executed_units: 99\n";
        assert_eq!(read(log), Figures { executions: 99, coverage: (10, 14), inputs: 0 });
        assert_eq!(read("ERROR: libFuzzer"), Figures::default());
    }
}
