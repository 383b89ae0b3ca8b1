//! Brings what a fresh clone lacks: the wasm target, the lints, the real clients that the tests drive.
//!
//! Everything comes pinned from the usual registries, lands in ignored directories, and is left alone while its pins
//! have not changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell::{self, Shell};

/// The target that providers are built for.
pub(crate) const WASM_TARGET: &str = "wasm32-wasip2";

/// The family of clients that cannot run here, and why.
pub(crate) struct Missing {
    /// As the tests know it (`BELLJAR_SKIP`).
    pub(crate) family: &'static str,
    /// What to do about it.
    pub(crate) reason: String,
}

/// Adds the target that providers are built for, if it is missing.
pub(crate) fn wasm_target(shell: &Shell) -> Result<()> {
    let sysroot = shell::capture(Command::new("rustc").current_dir(&shell.root).args(["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib").join(WASM_TARGET).join("lib");
    if libraries.is_dir() {
        return Ok(());
    }
    println!("adding the target {WASM_TARGET}");
    shell::run(Command::new("rustup").current_dir(&shell.root).args(["target", "add", WASM_TARGET]))
        .with_context(|| format!("the target {WASM_TARGET} is missing and cannot be added"))
}

/// Adds rustfmt and clippy, if they are missing.
pub(crate) fn lints(shell: &Shell) -> Result<()> {
    for (program, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        if !shell::exists(program) {
            println!("adding {component}");
            shell::run(Command::new("rustup").current_dir(&shell.root).args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// Where cargo-deny is: on the path, or in the build directory, where CI puts it. None: it is not there, and compiling it
/// takes minutes that only CI is asked for.
pub(crate) fn deny(shell: &Shell) -> Result<Option<PathBuf>> {
    const PINNED: &str = "cargo-deny@0.20.2";
    if shell::exists("cargo-deny") {
        return Ok(Some("cargo-deny".into()));
    }
    let program = shell.target.join("tools/bin/cargo-deny");
    if !program.is_file() && shell.ci {
        self::program(shell, PINNED, &[])?;
    }
    Ok(program.is_file().then_some(program))
}

/// Compiles a program of crates.io into the build directory.
pub(crate) fn program(shell: &Shell, pinned: &str, options: &[&str]) -> Result<()> {
    println!("installing {pinned}");
    let mut cargo = shell.cargo(["install", "--locked", "--quiet", "--force"]);
    cargo.args(options).arg("--root").arg(shell.target.join("tools")).arg(pinned);
    // They run for a second at a time; what counts is how soon they are there.
    cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_LTO", "off");
    cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    shell::run(&mut cargo)
}

/// Why instructions cannot be counted here, if they cannot. Where valgrind is missing, CI installs it.
pub(crate) fn valgrind(shell: &Shell) -> Result<Option<&'static str>> {
    const PROGRAM: &str = "valgrind";
    if !cfg!(target_arch = "x86_64") {
        return Ok(Some("the expected figures are those of x86-64"));
    }
    if shell::exists(PROGRAM) {
        return Ok(None);
    }
    if !shell.ci {
        return Ok(Some("valgrind is not installed: `apt-get install valgrind`, or as your system does it; CI does"));
    }
    println!("installing {PROGRAM}");
    let is_root = shell::capture(Command::new("id").arg("-u"))?.trim() == "0";
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        command.args(if is_root { [].as_slice() } else { &["--non-interactive", "apt-get"] }).arg("--quiet");
        shell::run_quietly(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"])?;
    apt(&["install", "--yes", "--no-install-recommends", PROGRAM])?;
    Ok(None)
}

/// Installs the clients. A family that cannot be installed is told, and in CI it is a failure.
pub(crate) fn clients(shell: &Shell) -> Result<Vec<Missing>> {
    let mut missing = Vec::new();
    for (family, needs, install) in
        [("python", ["python3", "python3"], python as fn(&Shell) -> Result<()>), ("node", ["node", "npm"], node)]
    {
        let absent = needs.into_iter().find(|program| !shell::exists(program));
        let reason = match absent {
            Some(program) => format!("{program} is not installed"),
            None => match install(shell) {
                Ok(()) => continue,
                Err(error) => format!("{error:#}"),
            },
        };
        if shell.ci {
            bail!("the {family} clients are missing, and CI skips nothing: {reason}");
        }
        missing.push(Missing { family, reason });
    }
    Ok(missing)
}

/// Installs the servers that belljar is compared with. What cannot be installed is told, and in CI it is a failure.
pub(crate) fn peers(shell: &Shell) -> Result<Vec<Missing>> {
    let place = shell.root.join("tests/benches/peers");
    let mut missing = Vec::new();
    for (family, needs) in [("python", "python3"), ("node", "npm")] {
        let installed = match family {
            _ if !shell::exists(needs) => Err(anyhow::anyhow!("{needs} is not installed")),
            "python" => environment(&place.join("py/requirements.txt"), &shell.target.join("peers/py"), "FastMCP"),
            _ => packages(&place.join("node"), "the servers for Node"),
        };
        let Err(error) = installed else { continue };
        if shell.ci {
            return Err(error.context(format!("the {family} servers are missing, and CI skips nothing")));
        }
        missing.push(Missing { family, reason: format!("{error:#}") });
    }
    Ok(missing)
}

/// One virtual environment for each major version of the SDK: they cannot live in one.
fn python(shell: &Shell) -> Result<()> {
    for major in ["1", "2"] {
        let pins = shell.root.join(format!("tests/e2e/clients/py/requirements-{major}.txt"));
        let place = shell.target.join(format!("clients/py{major}"));
        environment(&pins, &place, &format!("the Python clients (mcp {major})"))?;
    }
    Ok(())
}

/// Makes a virtual environment in `place` with what the requirements `pins` name.
pub(crate) fn environment(pins: &PathBuf, place: &Path, what: &str) -> Result<()> {
    install(&[pins], place, what, || {
        shell::run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place))?;
        let mut pip = Command::new(place.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "--requirement",
        ]);
        shell::run_quietly(pip.arg(pins))
    })
}

fn node(shell: &Shell) -> Result<()> {
    packages(&shell.root.join("tests/e2e/clients/node"), "the TypeScript clients and the conformance suites")
}

/// Installs what the `package.json` in `directory` names, there.
fn packages(directory: &Path, what: &str) -> Result<()> {
    let pins = [directory.join("package.json"), directory.join("package-lock.json")];
    let place = directory.join("node_modules");
    install(&[&pins[0], &pins[1]], &place, what, || {
        // No package's install script runs: nothing here needs one, and they are other people's programs.
        let mut npm = Command::new("npm");
        npm.current_dir(directory).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        shell::run_quietly(&mut npm)
    })
}

/// Runs `steps` unless they have succeeded before with the same pins; the copy of the pins in `place` is the proof.
fn install(pins: &[&PathBuf], place: &Path, what: &str, steps: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = place.join(".installed");
    let mut wanted = String::new();
    for file in pins {
        wanted += &fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("installing {what}");
    steps().with_context(|| format!("cannot install {what}"))?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}
