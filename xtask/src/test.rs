//! The three tiers of tests: `--quick` before each commit, no option for CI, `--all` with the tests that take hours.
//!
//! Two lanes run at the same time, because one of them alone does not keep two processors busy: npm, pip and the linker
//! wait, and so do the tests of the real program. While these run, the other lane compiles, tests and lints.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::build::Part;
use crate::output;
use crate::report::{self, Awaited, Lane, Missing, Report};
use crate::setup;
use crate::shell::{self, Shell};
use crate::{build, engine, fuzz, hostile, instructions, languages, lint, soak, tools};

/// A family of tests that needs a kernel with Landlock.
const LANDLOCK: &str = "landlock";

/// The profile of the quick tier: belljar is compiled again in seconds.
const QUICK: &str = "quick";

/// The arguments of `cargo test` that select the unit tests of belljar.
const UNIT_TESTS: [&str; 3] = ["--package", "belljar", "--lib"];

/// The arguments of `cargo test` that select the examples in belljar's documentation.
const EXAMPLES: [&str; 3] = ["--package", "belljar", "--doc"];

/// The arguments of `cargo test` that leave out belljar's own tests.
const WITHOUT_BELLJAR: [&str; 2] = ["--exclude", "belljar"];

/// The arguments of `cargo test` that select the table of hostile rows.
const HOSTILE: [&str; 2] = ["--test", "hostile"];

/// The time after which CI gives up.
const CI_TIME: Duration = Duration::from_secs(85 * 60);

/// The niceness of programs beside the tests.
const NICE: i32 = 10;

/// The areas of `tests/integration` that the quick tier runs: fast ones that find many bugs.
const QUICK_AREAS: [&str; 4] = ["catalog::", "limits::", "lists::", "reads::"];

/// Runs the tests that CI runs. Fails at the end if a step failed.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    if shell.ci {
        report::end_after(CI_TIME);
    }
    let mut report = Report::new("test", &shell.target);
    ci(shell, &mut report);
    report.finish()
}

/// Runs the tests that CI runs, and then the tests that take hours: guards switched off, guided fuzzing, the soak.
pub(crate) fn all(shell: &Shell) -> Result<()> {
    let mut report = Report::new("test --all", &shell.target);
    ci(shell, &mut report);
    report.step("each hostile row without its guards", || hostile::prove_guards(shell));
    report.step("other values of isolation", || hostile::isolated(shell));
    report.step("fuzzing guided by coverage", || fuzz::run(shell, std::iter::empty()));
    report.step("soak", || soak::run(shell, std::iter::empty()));
    report.finish()
}

/// Runs the tests for each commit: formatting, clippy, house rules, unit tests, some tests of the real binary.
pub(crate) fn quick(shell: &Shell) -> Result<()> {
    let mut report = Report::new("test --quick", &shell.target);
    lint::format(shell, &mut report);
    report.step("clippy", || {
        let mut clippy = shell.cargo(["clippy", "--profile", QUICK, "--all-targets", "--test", "hostile", "--quiet"]);
        shell::run(clippy.args(Part::Host.packages(shell)?).args(["--", "--deny", "warnings"]))
    });
    report.step("build", || {
        shell::run(&mut shell.cargo(["build", "--profile", QUICK, "--package", "belljar"]))?;
        // Guests and providers rarely change, and `cargo xtask build` rebuilds them.
        if shell.target.join("guests/guest_hostile.wasm").is_file() {
            return Ok(());
        }
        setup::wasm_target(shell)?;
        build::run(shell)
    });
    report.noted_step("house rules and unit tests", || {
        let mut cargo = shell.cargo(["test", "--profile", QUICK, "--no-fail-fast", "--lib", "--bins"]);
        cargo.args([
            "--package",
            "belljar",
            "--package",
            "belljar-dist",
            "--package",
            "belljar-tests",
            "--package",
            "xtask",
        ]);
        cargo.args(["--test", "tidy"]);
        counted(shell, &mut cargo, "")
    });
    report.noted_step("tests of the real binary, some", || {
        let mut cargo = shell.cargo(["test", "--profile", QUICK, "--no-fail-fast", "--package", "belljar-tests"]);
        cargo.args(["--test", "integration", "--"]).args(QUICK_AREAS);
        cargo.env("BELLJAR_TEST_HOST", shell.target.join(QUICK).join("belljar"));
        counted(shell, &mut cargo, "")
    });
    report.finish()
}

/// Set-up, build, lints, and every test of the workspace, run against the programs and components of this build.
fn ci(shell: &Shell, report: &mut Report) {
    report.noted_step("the engine's newest release", || Ok(engine::newer(shell)));
    report.step("set-up", || {
        setup::wasm_target(shell)?;
        setup::lints(shell)
    });
    lint::format(shell, report);
    if report.failed() {
        // Without the set-up, lints and tests would fail for this reason only.
        return;
    }
    let made = Made::default();
    report.lanes(vec![
        Lane { name: "host", steps: Box::new(|report| host(shell, report, &made)) },
        Lane {
            name: "components",
            steps: Box::new(|report| {
                components(shell, report, &made);
                give_way();
                // Counting needs one processor; what comes after it uses all.
                counts(shell, report, &made);
                lints(shell, report);
            }),
        },
    ]);
    // Some rows measure, so nothing else runs now.
    report.noted_step("hostile rows", || {
        made.tests.wait("belljar and its tests")?;
        made.components.wait("the components")?;
        let mut cargo = cargo_test(shell, []);
        counted(shell, cargo.args(Part::Host.packages(shell)?).args(HOSTILE), "")
    });
}

/// The results that one lane makes and the other waits for.
#[derive(Default)]
struct Made {
    /// The program.
    belljar: Awaited,
    /// The program `instructions`, and all tests.
    tests: Awaited,
    /// The components. Reported when also the clients of other languages were looked for.
    components: Awaited,
    /// The families of clients that are missing. Set when `components` is reported.
    missing: OnceLock<Vec<Missing>>,
}

/// Builds belljar and the tests, and runs the tests.
fn host(shell: &Shell, report: &mut Report, made: &Made) {
    report.step("build of belljar", || build::host_and_unguarded(shell));
    made.belljar.report_result(!report.failed());
    report.step("build of the tests", || {
        let build = || cargo_test(shell, ["--no-run", "--quiet"]);
        shell::run(build().args(Part::Host.packages(shell)?).args(WITHOUT_BELLJAR))?;
        shell::run(build().args(shell.unoptimized()).args(UNIT_TESTS))?;
        shell::run(build().args(Part::Host.packages(shell)?).args(HOSTILE))
    });
    made.tests.report_result(!report.failed());
    let mut landlock = None;
    // A feature of the kernel cannot be installed. `BELLJAR_SKIP` says if this machine lacks it.
    let asked = std::env::var("BELLJAR_SKIP").unwrap_or_default();
    if !shell.ci && asked.split(',').any(|family| family == LANDLOCK) {
        landlock = Some(LANDLOCK);
        report.skip("second wall", "left out by BELLJAR_SKIP=landlock");
    }
    report.noted_step("unit tests", || {
        made.tests.wait("belljar and its tests")?;
        let test = || cargo_test(shell, ["--no-fail-fast"]);
        // They run for seconds, so they are not optimised.
        let unit = counted(shell, test().args(shell.unoptimized()).args(UNIT_TESTS), "")?;
        let examples = counted(shell, test().args(EXAMPLES), "")?;
        Ok(format!("{unit}; examples: {examples}"))
    });
    report.noted_step("tests", || {
        made.tests.wait("belljar and its tests")?;
        made.components.wait("the components")?;
        let missing = made.missing.get().into_iter().flatten();
        let skipped: Vec<_> = missing.map(|missing| missing.family).chain(landlock).collect();
        let mut cargo = cargo_test(shell, ["--no-fail-fast"]);
        cargo.env("BELLJAR_TEST_UNGUARDED", build::unguarded_path(shell));
        counted(shell, cargo.args(Part::Host.packages(shell)?).args(WITHOUT_BELLJAR), &skipped.join(","))
    });
}

/// Counts instructions.
fn counts(shell: &Shell, report: &mut Report, made: &Made) {
    match setup::valgrind(shell) {
        Ok(None) => {
            report.noted_step("instruction counts", || {
                // The counted paths read from a guest.
                made.components.wait("the components")?;
                made.tests.wait("belljar and its tests")?;
                instructions::check(shell)
            });
            report.noted_step("instruction counts can fail", || instructions::prove(shell));
        }
        Ok(Some(reason)) if !shell.ci => report.skip("instruction counts", &reason),
        Ok(Some(reason)) => report.step("instruction counts", || bail!("{reason}, and CI skips nothing")),
        Err(error) => report.step("instruction counts", || Err(error)),
    }
}

/// Gives this lane a low priority: tests run in the other one, and they wait most of the time. This lane can use the processors
/// whenever they do.
fn give_way() {
    // `None` means this thread. The programs that it starts have its priority.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        output::line(&format!("cannot lower the priority of the lints: {error}"));
    }
}

/// Tests and lints the components, lints everything else, judges the dependencies.
fn lints(shell: &Shell, report: &mut Report) {
    report.noted_step("clippy and tests of components", || {
        // The components are native programs here. The tests of the host run them in the sandbox.
        counted(shell, lint::component_tests(shell)?.arg("--no-fail-fast"), "")
    });
    lint::components(shell, report);
    lint::dependencies(shell, report);
    lint::steps(shell, report);
}

/// Installs the tools and clients of other languages, and builds the components.
fn components(shell: &Shell, report: &mut Report, made: &Made) {
    let mut missing = Vec::new();
    report.step("tools of other languages", || {
        if let Err(error) = tools::run(shell) {
            if shell.ci {
                return Err(error.context("CI skips no language"));
            }
            missing.push(Missing { family: "languages", reason: format!("{error:#}") });
        }
        Ok(())
    });
    report.step("build of components", || build::components(shell, || made.belljar.wait("belljar")));
    // The tests run even if a provider in another language fails later.
    let is_built = !report.failed();
    report.step("clients of other languages", || {
        missing.extend(setup::clients(shell)?);
        Ok(())
    });
    if missing.iter().all(|missing| missing.family != "languages") {
        report.noted_step("a provider in each language", || languages::run(shell));
        report.noted_step("tests of other projects", || build::test_projects(shell));
    }
    for missing in &missing {
        report.skip(missing.family, &missing.reason);
    }
    made.missing.get_or_init(|| missing);
    made.components.report_result(is_built);
}

/// `cargo test` in the profile of the tests, with the program of that profile.
fn cargo_test<const N: usize>(shell: &Shell, arguments: [&str; N]) -> Command {
    let mut cargo = shell.cargo(["test"]);
    cargo.args(shell.profile()).args(arguments).env("BELLJAR_TEST_HOST", shell.built("belljar"));
    cargo
}

/// Runs a command that runs tests. Returns how many passed; the error names those that failed.
fn counted(shell: &Shell, cargo: &mut Command, skipped: &str) -> Result<String> {
    cargo.env("BELLJAR_TEST_TARGET", &shell.target).env("BELLJAR_SKIP", skipped);
    // Most tests of the real binary wait for it.
    cargo.env("RUST_TEST_THREADS", (2 * thread::available_parallelism()?.get()).to_string());
    output::redirect(cargo)?;
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let mut counts = Counts::default();
    for line in BufReader::new(child.stdout.take().context("piped above")?).lines() {
        let line = line?;
        output::line(&line);
        counts.add(&line);
    }
    let status = output::wait(child)?;
    if !status.success() || counts.failed > 0 {
        let red = counts.failed_tests.join(", ");
        let (passed, failed, outputs) = (counts.passed, counts.failed, counts.outputs.join("\n"));
        bail!("{passed} passed, {failed} FAILED ({status}): {red}\n{outputs}");
    }
    // A run that finds no test succeeds too.
    if counts.passed == 0 {
        bail!("no test was run");
    }
    Ok(format!("{} passed, {} ignored", counts.passed, counts.ignored))
}

/// The summed results of the test programs.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// The names of the tests that failed.
    failed_tests: Vec<String>,
    /// The output of the failed tests.
    outputs: Vec<String>,
    /// True while the lines are output of failed tests.
    is_in_output: bool,
}

impl Counts {
    /// Adds the figures of a line such as `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        // A program prints the line `failures:` twice: before the output of the failed tests, and before a list of
        // their names.
        if line == "failures:" {
            self.is_in_output = !self.is_in_output;
        } else if self.is_in_output && !line.is_empty() {
            self.outputs.push(line.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            let test = line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... FAILED"));
            self.failed_tests.extend(test.map(str::to_owned));
            return;
        };
        self.is_in_output = false;
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
    fn results_are_summed_and_other_lines_are_ignored() {
        let mut counts = Counts::default();
        for line in [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "failures:",
            "",
            "---- a::c stdout ----",
            "waited for b, saw d",
            "",
            "failures:",
            "    a::c",
            "",
            "test result: FAILED. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "no test prints this",
        ] {
            counts.add(line);
        }
        assert_eq!((counts.passed, counts.failed, counts.ignored), (5, 5, 1));
        assert_eq!(
            (counts.failed_tests, counts.outputs),
            (vec!["a::c".to_owned()], vec!["---- a::c stdout ----".to_owned(), "waited for b, saw d".to_owned()])
        );
    }
}
