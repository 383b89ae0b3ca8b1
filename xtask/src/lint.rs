//! Formatting, clippy and documentation, each without a warning.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::build::{self, Part};
use crate::output;
use crate::report::Report;
use crate::setup::{self, WASM_TARGET};
use crate::shell::{self, Shell, text};
use crate::tools;

/// The packages of this machine whose documentation others read: a folder of packages, and the manifest of one.
const DOCUMENTED: [&str; 2] = ["host", "sdk-guest/Cargo.toml"];

/// Runs all checks, and fails at the end if one of them failed.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    let mut report = Report::new("lint", &shell.target);
    format(shell, &mut report);
    steps(shell, &mut report);
    report.step("clippy of the client", || setup::rust(shell));
    report.step("clippy of the tests of components", || {
        shell::run(component_tests(shell)?.args(["--no-run", "--quiet"]))
    });
    components(shell, &mut report);
    dependencies(shell, &mut report);
    report.finish()
}

/// Checks the formatting.
pub(crate) fn format(shell: &Shell, report: &mut Report) {
    report.step("rustfmt", || shell::run(&mut shell.cargo(["fmt", "--all", "--", "--check", "--files-with-diff"])));
}

/// Runs clippy and rustdoc.
pub(crate) fn steps(shell: &Shell, report: &mut Report) {
    // The same profile everywhere: rustdoc uses the dependencies that clippy has checked.
    report.step("clippy", || {
        // The hostile table is no default target.
        let mut clippy = shell.cargo(["clippy", "--all-targets", "--test", "hostile", "--quiet"]);
        clippy.args(shell.profile());
        shell::run(clippy.args(Part::Host.packages(shell)?).args(["--", "--deny", "warnings"]))
    });
    report.step("rustdoc", || {
        let mut doc = shell.cargo(["doc", "--no-deps", "--quiet"]);
        doc.args(shell.profile());
        for package in DOCUMENTED.iter().flat_map(|folder| shell.packages_below(folder)) {
            doc.args(["--package", text(&package["name"])?]);
        }
        shell::run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
    });
}

/// The command that tests the components as programs of this machine. Clippy compiles them; see [`shell::compile_with_clippy`].
pub(crate) fn component_tests(shell: &Shell) -> Result<Command> {
    let mut cargo = shell.cargo(["test", "--profile", "unit"]);
    shell::compile_with_clippy(cargo.args(Part::Components.packages(shell)?));
    Ok(cargo)
}

/// Runs clippy and rustdoc on the components, for their target.
pub(crate) fn components(shell: &Shell, report: &mut Report) {
    report.step("clippy of components", || {
        let mut clippy = shell.cargo(["clippy", "--profile", "guest", "--target", WASM_TARGET, "--quiet"]);
        let has_c = tools::give_c_compiler(shell, &mut clippy)?;
        let packages = for_wasm(shell, has_c)?;
        shell::run(clippy.args(packages).args(["--", "--deny", "warnings"]))
    });
    report.step("rustdoc of components", || {
        let mut doc = shell.cargo(["doc", "--profile", "guest", "--target", WASM_TARGET, "--no-deps", "--quiet"]);
        let has_c = tools::give_c_compiler(shell, &mut doc)?;
        let packages = for_wasm(shell, has_c)?;
        shell::run(doc.args(packages).env("RUSTDOCFLAGS", "--deny warnings"))
    });
}

/// The components that this machine can compile for wasm: if it has no C compiler for wasm, those without C.
fn for_wasm(shell: &Shell, has_c: bool) -> Result<Vec<String>> {
    Part::Components.packages_but(shell, |package| build::is_native(package) || (build::needs_c(package) && !has_c))
}

/// Checks the dependencies: licences, sources, duplicates, advisories.
pub(crate) fn dependencies(shell: &Shell, report: &mut Report) {
    match setup::deny(shell) {
        Ok(program) => {
            // These checks need no network.
            report.step("cargo deny", || {
                shell::run(shell.program(&program).args([
                    "check",
                    "--hide-inclusion-graph",
                    "bans",
                    "licenses",
                    "sources",
                ]))
            });
            advisories(shell, report, &program);
        }
        Err(error) if !shell.ci => report.skip("cargo deny", &format!("{error:#}")),
        Err(error) => report.step("cargo deny", || Err(error)),
    }
}

/// The messages of cargo-deny if it cannot get the database. Every other failure is a finding.
const UNREACHABLE: [&str; 3] =
    ["failed to fetch advisory database", "failed to load advisory database", "failed to open advisory database"];

/// Compares the lock file with the RustSec database, a repository on GitHub. If it cannot be reached, the report says that
/// nothing was compared.
fn advisories(shell: &Shell, report: &mut Report, program: &Path) {
    const STEP: &str = "advisories";
    const SKIPPED: &str = "NOT COMPARED with published advisories: github.com/rustsec/advisory-db cannot be reached from here. Run `cargo deny check advisories` where it can; docs/measurements/advisories.md has the advisories on the engine that were known at its date";
    let mut deny = shell.program(program);
    deny.args(["--color", "never", "check", "advisories"]).stdin(Stdio::null());
    match deny.output().context("cannot start cargo-deny") {
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() && UNREACHABLE.iter().any(|words| messages.contains(words)) {
                output::line(&format!("{STEP}:\n{messages}\n{SKIPPED}"));
                return report.skip(STEP, SKIPPED);
            }
            report.step(STEP, || {
                output::line(&messages);
                if output.status.success() { Ok(()) } else { bail!("a crate has a published advisory, or was yanked") }
            });
        }
        Err(error) => report.step(STEP, || Err(error)),
    }
}
