//! The tools of other languages than Rust, as an author would install them: pinned, below the build directory, and on the
//! path of whatever is started with [`command`].

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::setup;
use crate::shell::{self, Shell};

/// What is compiled from crates, with the features that are needed: each takes a minute or two.
const CRATES: [(&str, &str); 2] = [("wit-bindgen-cli@0.63.0", "c,go"), ("wasm-tools@1.263.0", "component")];

/// Installs all of them.
///
/// # Errors
/// Says what is missing on this machine, or what failed.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    for program in ["python3", "npm", "make"] {
        if !shell::exists(program) {
            bail!("{program} is not installed");
        }
    }
    let tools = shell.target.join("tools");
    let pins = shell.root.join("xtask/tools/python.txt");
    setup::environment(&pins, &tools.join("python"), "componentize-py, Go and Zig")?;
    for (pinned, features) in CRATES {
        let (name, version) = pinned.split_once('@').context("a pin has a version")?;
        let program = tools.join("bin").join(name.trim_end_matches("-cli"));
        let mut asked = Command::new(&program);
        let is_there =
            program.is_file() && shell::capture(asked.arg("--version")).is_ok_and(|said| said.contains(version));
        if !is_there {
            setup::program(shell, pinned, &["--no-default-features", "--features", features])?;
        }
    }
    Ok(())
}

/// Whether they were installed.
pub(crate) fn are_there(shell: &Shell) -> bool {
    shell.target.join("tools/python/.installed").is_file()
}

/// A command that finds them.
pub(crate) fn command(shell: &Shell, program: &str) -> Result<Command> {
    let path = path(shell)?;
    let mut command = Command::new("env");
    // Looked up in the path that it gets.
    command.arg(program).env("PATH", path).current_dir(&shell.root);
    // What Go and Zig keep from one build to the next.
    for (name, folder) in [("GOCACHE", "go-cache"), ("GOPATH", "go"), ("ZIG_GLOBAL_CACHE_DIR", "zig-cache")] {
        command.env(name, shell.target.join("tools").join(folder));
    }
    Ok(command)
}

/// Names the C compiler that makes wasm, for crates that bring C along: the one that the environment names already, or Zig.
/// False when there is neither.
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

/// The path with the tools first.
fn path(shell: &Shell) -> Result<OsString> {
    let tools = shell.target.join("tools");
    let own = [tools.join("python/bin"), tools.join("bin")];
    let others = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(own.into_iter().chain(env::split_paths(&others)))?)
}
