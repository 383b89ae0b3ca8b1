//! The tools of languages other than Rust. Their versions are pinned, they are installed below the build directory, and they
//! are on the `PATH` of every [`command`].

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::setup;
use crate::shell::{self, Shell};

/// The tools that are compiled from crates.io, and their features. Each takes about a minute.
const CRATES: [(&str, &str); 2] = [("wit-bindgen-cli@0.63.0", "c,go"), ("wasm-tools@1.263.0", "component")];

/// Installs all tools.
///
/// # Errors
/// A program is missing on this machine, or an installation failed.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    for program in ["python3", "npm", "make"] {
        if !shell::exists(program) {
            bail!("{program} is not installed");
        }
    }
    let tools = shell.target.join("tools");
    let pins = shell.root.join("xtask/tools/python.txt");
    setup::environment(&pins, &tools.join("python"), "componentize-py, Go, Zig and flit-core")?;
    for (pinned, features) in CRATES {
        let (name, version) = pinned.split_once('@').context("a pin has a version")?;
        let program = tools.join("bin").join(name.trim_end_matches("-cli"));
        let mut version_command = Command::new(&program);
        let is_there = program.is_file()
            && shell::capture(version_command.arg("--version")).is_ok_and(|output| output.contains(version));
        if !is_there {
            setup::program(shell, pinned, &["--no-default-features", "--features", features])?;
        }
    }
    Ok(())
}

/// True if the tools are installed.
pub(crate) fn are_there(shell: &Shell) -> bool {
    shell.target.join("tools/python/.installed").is_file()
}

/// A command that has the tools on its `PATH`.
pub(crate) fn command(shell: &Shell, program: &str) -> Result<Command> {
    let path = path(shell)?;
    let mut command = Command::new("env");
    // `env` looks the program up in the `PATH` that is set here.
    command.arg(program).env("PATH", path).current_dir(&shell.root);
    // The caches of Go and Zig.
    for (name, folder) in [("GOCACHE", "go-cache"), ("GOPATH", "go"), ("ZIG_GLOBAL_CACHE_DIR", "zig-cache")] {
        command.env(name, shell.target.join("tools").join(folder));
    }
    Ok(command)
}

/// Sets the C compiler for wasm, for crates that contain C: the compiler that the environment names, or Zig. Returns false if
/// neither exists.
pub(crate) fn give_c_compiler(shell: &Shell, command: &mut Command) -> Result<bool> {
    if env::var_os("CC_wasm32_wasip2").is_some() {
        return Ok(true);
    }
    if !are_there(shell) {
        return Ok(false);
    }
    let scripts = shell.root.join("xtask/tools");
    command.env("CC_wasm32_wasip2", scripts.join("zig-cc")).env("AR_wasm32_wasip2", scripts.join("zig-ar"));
    command.env("PATH", path(shell)?).env("ZIG_GLOBAL_CACHE_DIR", shell.target.join("tools/zig-cache"));
    Ok(true)
}

/// `PATH`, with the tools first.
fn path(shell: &Shell) -> Result<OsString> {
    let tools = shell.target.join("tools");
    let own = [tools.join("python/bin"), tools.join("bin")];
    let others = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(own.into_iter().chain(env::split_paths(&others)))?)
}
