//! Everything that CI runs: set-up, build, lints, and every test of the workspace, against what was just built.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::build::Part;
use crate::report::Report;
use crate::setup::{self, Missing};
use crate::shell::Shell;
use crate::{build, engine, instructions, languages, lint, tools};

/// A family of tests that needs a kernel with Landlock.
const LANDLOCK: &str = "landlock";

/// Runs it all; fails at the end if a part did.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    let mut report = Report::new("test");
    let mut missing = Vec::new();
    report.noted_step("the engine's newest release", || Ok(engine::newer(shell)));
    report.step("set-up", || {
        setup::wasm_target(shell)?;
        setup::lints(shell)?;
        missing = setup::clients(shell)?;
        Ok(())
    });
    report.step("tools of other languages", || {
        if let Err(error) = tools::run(shell) {
            if shell.ci {
                return Err(error.context("CI skips no language"));
            }
            missing.push(Missing { family: "languages", reason: format!("{error:#}") });
        }
        Ok(())
    });
    if !report.failed() {
        report.step("build", || build::run(shell));
    }
    if report.failed() {
        // Neither lints nor tests could say anything about what is not there.
        return report.finish();
    }
    lint::steps(shell, &mut report);
    match setup::valgrind(shell) {
        Ok(None) => {
            report.noted_step("instruction counts", || instructions::check(shell));
            report.noted_step("instruction counts can fail", || instructions::prove(shell));
        }
        Ok(Some(reason)) if !shell.ci => report.skip("instruction counts", reason),
        Ok(Some(reason)) => report.step("instruction counts", || bail!("{reason}, and CI skips nothing")),
        Err(error) => report.step("instruction counts", || Err(error)),
    }
    let mut skipped: Vec<_> = missing.iter().map(|missing| missing.family).collect();
    // What no set-up can bring: a kernel's feature. Whoever lacks it says so.
    let asked = std::env::var("BELLJAR_SKIP").unwrap_or_default();
    if !shell.ci && asked.split(',').any(|family| family == LANDLOCK) {
        skipped.push(LANDLOCK);
        report.skip("second wall", "left out by BELLJAR_SKIP=landlock");
    }
    if !skipped.contains(&"languages") {
        report.noted_step("a provider in each language", || languages::run(shell));
        report.noted_step("tests of other projects", || build::test_projects(shell));
    }
    report.noted_step("tests of components", || tests(shell, Part::Components, "unit", ""));
    report.noted_step("tests", || tests(shell, Part::Host, "release", &skipped.join(",")));
    for missing in &missing {
        report.skip(missing.family, &missing.reason);
    }
    report.finish()
}

/// Unit and documentation tests of every crate of a part, and every test binary. Components are tested as programs of
/// this machine here; what they do in a sandbox is for the host's tests.
fn tests(shell: &Shell, part: Part, profile: &str, skipped: &str) -> Result<String> {
    let mut cargo = shell.cargo(["test", "--profile", profile, "--no-fail-fast"]);
    cargo.args(part.packages(shell)?);
    cargo.env("BELLJAR_TEST_TARGET", &shell.target).env("BELLJAR_SKIP", skipped).stdout(Stdio::piped());
    let mut child = cargo.spawn().context("cannot start cargo")?;
    let mut counts = Counts::default();
    for line in BufReader::new(child.stdout.take().context("piped above")?).lines() {
        let line = line?;
        println!("{line}");
        counts.add(&line);
    }
    let status = child.wait()?;
    if !status.success() || counts.failed > 0 {
        bail!("{} passed, {} FAILED ({status})", counts.passed, counts.failed);
    }
    // A run that finds no test succeeds too.
    if counts.passed == 0 {
        bail!("no test was run");
    }
    Ok(format!("{} passed, {} ignored", counts.passed, counts.ignored))
}

/// What the test programs said of themselves, summed.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    /// Takes a line into account: `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let figures = result.split_once(". ").map_or("", |(_, figures)| figures);
        for figure in figures.split("; ") {
            let Some((number, what)) = figure.split_once(' ') else {
                continue;
            };
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn results_are_summed_and_other_lines_are_not() {
        let mut counts = Counts::default();
        for line in [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test a::b ... ok",
        ] {
            counts.add(line);
        }
        assert_eq!(counts, Counts { passed: 5, failed: 5, ignored: 1 });
    }
}
