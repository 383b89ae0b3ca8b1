//! Formatting, clippy and documentation, each without a warning.

use anyhow::Result;

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
        // Advisories come over a network that CI does not have; the rest needs the lock file only.
        Ok(Some(program)) => report
            .step("cargo deny", || shell::run(shell.program(&program).args(["check", "bans", "licenses", "sources"]))),
        Ok(None) => report.skip("cargo deny", "not installed: `cargo install --locked cargo-deny`; CI does"),
        Err(error) => report.step("cargo deny", || Err(error)),
    }
}
