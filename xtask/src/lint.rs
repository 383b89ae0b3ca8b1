//! Formatting, clippy and documentation, each without a warning.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::build::{self, Part};
use crate::report::Report;
use crate::setup::{self, WASM_TARGET};
use crate::shell::{self, Shell};
use crate::tools;

/// Runs all of them, and fails at the end if one did.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    let mut report = Report::new("lint");
    steps(shell, &mut report);
    report.finish()
}

/// Runs all of them into `report`.
pub(crate) fn steps(shell: &Shell, report: &mut Report) {
    report.step("rustfmt", || shell::run(&mut shell.cargo(["fmt", "--all", "--", "--check", "--files-with-diff"])));
    // The release profile everywhere: what clippy has checked of the dependencies, rustdoc need not check again.
    report.step("clippy", || {
        Part::ALL.iter().try_for_each(|part| {
            let mut clippy = shell.cargo(["clippy", "--release", "--all-targets", "--quiet"]);
            shell::run(clippy.args(part.packages(shell)?).args(["--", "--deny", "warnings"]))
        })
    });
    report.step("clippy, as components", || {
        let mut clippy = shell.cargo(["clippy", "--release", "--target", WASM_TARGET, "--quiet"]);
        let has_c = tools::give_c_compiler(shell, &mut clippy)?;
        let packages = Part::Components.packages_but(shell, |package| build::needs_c(package) && !has_c)?;
        shell::run(clippy.args(packages).args(["--", "--deny", "warnings"]))
    });
    report.step("rustdoc", || {
        Part::ALL.iter().try_for_each(|part| {
            let mut doc = shell.cargo(["doc", "--release", "--no-deps", "--quiet"]);
            shell::run(doc.args(part.packages(shell)?).env("RUSTDOCFLAGS", "--deny warnings"))
        })
    });
    match setup::deny(shell) {
        Ok(Some(program)) => {
            // These need the lock file only.
            report.step("cargo deny", || {
                shell::run(shell.program(&program).args(["check", "bans", "licenses", "sources"]))
            });
            advisories(shell, report, &program);
        }
        Ok(None) => report.skip("cargo deny", "not installed: `cargo install --locked cargo-deny`; CI does"),
        Err(error) => report.step("cargo deny", || Err(error)),
    }
}

/// What cargo-deny says where it cannot get the database. Anything else that fails is a finding.
const UNREACHABLE: [&str; 3] =
    ["failed to fetch advisory database", "failed to load advisory database", "failed to open advisory database"];

/// Compares the lock file with the RustSec database. That is a repository on GitHub, which no registry carries: where it
/// cannot be reached, the report says that nothing was compared.
fn advisories(shell: &Shell, report: &mut Report, program: &Path) {
    const STEP: &str = "advisories";
    const SKIPPED: &str = "NOT COMPARED with published advisories: github.com/rustsec/advisory-db cannot be reached from here. Run `cargo deny check advisories` where it can; docs/advisories.md has what was known of the engine, with its date";
    let mut deny = shell.program(program);
    deny.args(["--color", "never", "check", "advisories"]).stdin(Stdio::null());
    match deny.output().context("cannot start cargo-deny") {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() && UNREACHABLE.iter().any(|words| said.contains(words)) {
                println!("\n=== {STEP}\n{said}\n{SKIPPED}");
                return report.skip(STEP, SKIPPED);
            }
            report.step(STEP, || {
                print!("{said}");
                if output.status.success() { Ok(()) } else { bail!("a crate has a published advisory, or was yanked") }
            });
        }
        Err(error) => report.step(STEP, || Err(error)),
    }
}
