//! The paths of the built binary and components, and of the clients that `cargo xtask test` installed.
//!
//! This module does not build anything. If a test built the binary, it would be unclear which binary the other tests use.

use std::env;
use std::path::{Path, PathBuf};

use crate::debian::Package;

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the repository").to_path_buf()
}

/// The build directory whose binary and components are tested.
///
/// `BELLJAR_TEST_TARGET` names the directory; `cargo xtask test` sets this variable. Otherwise, the directory is the
/// one of the running test if it has a binary, and else `target` in the repository.
pub fn target() -> PathBuf {
    if let Some(named) = env::var_os("BELLJAR_TEST_TARGET") {
        return PathBuf::from(named);
    }
    // A test runs as <target>/<profile>/deps/<name>.
    let own = env::current_exe()
        .ok()
        .and_then(|exe| exe.ancestors().nth(3).map(Path::to_path_buf))
        .filter(|directory| directory.join("release/belljar").is_file());
    own.unwrap_or_else(|| repository().join("target"))
}

/// The binary of belljar: the release build, or the file that `BELLJAR_TEST_HOST` names.
pub fn host() -> PathBuf {
    env::var_os("BELLJAR_TEST_HOST").map_or_else(|| built("release/belljar"), PathBuf::from)
}

/// The path of a built component by its file stem: a real provider (`clock`) or a test guest (`guest_fixture`).
pub fn component(stem: &str) -> PathBuf {
    let plugin = target().join(format!("plugins/{stem}.wasm"));
    if plugin.is_file() {
        return plugin;
    }
    built(&format!("guests/{stem}.wasm"))
}

/// The program of a package of Debian. `None` if it is not installed, and `BELLJAR_SKIP` says so.
pub fn program(package: &Package) -> Option<PathBuf> {
    installed(package.name, package.find().unwrap_or_else(|| package.program.into()))
}

/// A program of the Python environment with the tools that check the files of `deploy/`. `None` if `BELLJAR_SKIP` says that this
/// machine lacks Python.
pub fn deploy_tool(program: &str) -> Option<PathBuf> {
    installed("deploy", target().join("clients/deploy/bin").join(program))
}

/// The built provider from `belljar new` in this language. `None` if `BELLJAR_SKIP` says that this machine lacks the
/// tools.
pub fn language(lang: &str) -> Option<PathBuf> {
    installed("languages", target().join(format!("languages/{lang}.wasm")))
}

/// The interpreter of the Python environment with this major version of the SDK. `None` if `BELLJAR_SKIP` says that this
/// machine lacks Python.
pub fn python(major: u32) -> Option<PathBuf> {
    installed("python", target().join(format!("clients/py{major}/bin/python")))
}

/// The interpreter of the Python environment with the native libraries of the corpus. `None` if `BELLJAR_SKIP` says that this
/// machine lacks Python.
pub fn native_python() -> Option<PathBuf> {
    installed("python", target().join("clients/native/bin/python"))
}

/// The installed Node 22: the conformance suites and the Inspector need this version.
pub fn node() -> Option<PathBuf> {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    node_module(&format!("node-linux-{architecture}/bin/node"))
}

/// A file of an installed npm package.
pub fn node_module(path: &str) -> Option<PathBuf> {
    installed("node", client_script("node/node_modules").join(path))
}

/// The client that uses rmcp.
pub fn rust_client() -> PathBuf {
    let program = target().join("clients/rust/belljar-oauth-client");
    assert!(program.exists(), "{} is missing: `cargo xtask test` builds it", program.display());
    program
}

/// A program of this repository that drives a real client.
pub fn client_script(path: &str) -> PathBuf {
    repository().join("tests/clients").join(path)
}

/// True if `BELLJAR_SKIP` lists `family`, because this machine lacks it: `landlock`, `python`, `node`, `languages`, `deploy`, or
/// a name of [`crate::debian`]. `cargo xtask test` sets the variable with a visible warning, and never in CI.
pub fn lacks(family: &str) -> bool {
    env::var("BELLJAR_SKIP").unwrap_or_default().split(',').any(|name| name == family)
}

/// `path`, if it is installed. `None` if this machine [`lacks`] `family`. Panics if `path` is missing otherwise.
fn installed(family: &str, path: PathBuf) -> Option<PathBuf> {
    if lacks(family) {
        return None;
    }
    assert!(path.exists(), "{} is missing: `cargo xtask test` installs it", path.display());
    Some(path)
}

fn built(path: &str) -> PathBuf {
    let full = target().join(path);
    assert!(full.exists(), "{} is missing: run `cargo xtask build` first", full.display());
    full
}
