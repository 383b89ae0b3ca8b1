//! Formatting, clippy and documentation, each without a warning.

use anyhow::Result;

use crate::build;
use crate::report::Report;
use crate::setup::WASM_TARGET;
use crate::shell::{self, Shell};

/// Runs all of them, and fails at the end if one did.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    let mut report = Report::new("lint");
    steps(shell, &mut report)?;
    report.finish()
}

/// Runs all of them into `report`.
pub(crate) fn steps(shell: &Shell, report: &mut Report) -> Result<()> {
    // The release profile everywhere: the checked dependencies of clippy are then those of rustdoc too.
    report.step("rustfmt", || shell::run(&mut shell.cargo(["fmt", "--all", "--", "--check", "--files-with-diff"])));
    report.step("clippy", || {
        let mut clippy = shell.cargo(["clippy", "--release", "--workspace", "--all-targets", "--quiet"]);
        shell::run(clippy.args(["--", "--deny", "warnings"]))
    });
    let guests = build::guests(shell)?;
    report.step("clippy, as components", || {
        let mut clippy = shell.cargo(["clippy", "--release", "--target", WASM_TARGET, "--quiet"]);
        for package in guests {
            clippy.args(["--package", package]);
        }
        shell::run(clippy.args(["--", "--deny", "warnings"]))
    });
    report.step("rustdoc", || {
        let mut doc = shell.cargo(["doc", "--release", "--workspace", "--no-deps", "--quiet"]);
        shell::run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
    });
    if shell::exists("cargo-deny") {
        report.step("cargo deny", || {
            // Advisories come over a network that CI does not have; the rest needs the lock file only.
            shell::run(&mut shell.cargo(["deny", "--offline", "check", "bans", "licenses", "sources"]))
        });
    } else {
        let cure = "not installed: `cargo install --locked cargo-deny`; licences and sources are checked by tidy";
        report.skip("cargo deny", cure);
    }
    Ok(())
}
