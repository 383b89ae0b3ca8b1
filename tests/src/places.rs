//! Where built things are: the binary, the components, the clients that set-up installed.
//!
//! Nothing is built here: a test that started a build would hide what it tested.

use std::env;
use std::path::{Path, PathBuf};

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the repository").to_path_buf()
}

/// The build directory whose binary and components are tested.
///
/// `BELLJAR_TEST_TARGET` names it; `cargo xtask test` sets it. Otherwise it is the one that holds the running test, or
/// the repository's own if that one holds no binary.
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

/// The real binary: as it is built for tests, or the one that `BELLJAR_TEST_HOST` names.
pub fn host() -> PathBuf {
    env::var_os("BELLJAR_TEST_HOST").map_or_else(|| built("release/belljar"), PathBuf::from)
}

/// A built component by its file stem: a real provider (`clock`) or a test guest (`guest_fixture`).
pub fn component(stem: &str) -> PathBuf {
    let plugin = target().join(format!("plugins/{stem}.wasm"));
    if plugin.is_file() {
        return plugin;
    }
    built(&format!("guests/{stem}.wasm"))
}

/// A provider that was made with `belljar new` in this language, and built; `None` where this machine lacks the tools, and
/// set-up has said so.
pub fn language(lang: &str) -> Option<PathBuf> {
    installed("languages", target().join(format!("languages/{lang}.wasm")))
}

/// The interpreter of the Python environment that holds this major version of the SDK; `None` where this machine cannot
/// have one, and set-up has said so.
pub fn python(major: u32) -> Option<PathBuf> {
    installed("python", target().join(format!("clients/py{major}/bin/python")))
}

/// The Node 22 that came with the TypeScript clients: the conformance suites and the Inspector need one so new.
pub fn node() -> Option<PathBuf> {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    node_module(&format!("node-linux-{architecture}/bin/node"))
}

/// A file of an installed npm package.
pub fn node_module(path: &str) -> Option<PathBuf> {
    installed("node", client_script("node/node_modules").join(path))
}

/// A program of this repository that drives a real client.
pub fn client_script(path: &str) -> PathBuf {
    repository().join("tests/e2e/clients").join(path)
}

/// `path`, which set-up installed, unless `family` cannot be had here.
///
/// `BELLJAR_SKIP` lists the families (`python`, `node`, `languages`) that this machine lacks. `cargo xtask test` sets it, loudly and
/// never in CI; without it a missing program is a failure.
fn installed(family: &str, path: PathBuf) -> Option<PathBuf> {
    let skipped = env::var("BELLJAR_SKIP").unwrap_or_default();
    if skipped.split(',').any(|name| name == family) {
        return None;
    }
    assert!(path.exists(), "{} is missing: `cargo xtask test` brings it", path.display());
    Some(path)
}

fn built(path: &str) -> PathBuf {
    let full = target().join(path);
    assert!(full.exists(), "{} is missing: run `cargo xtask build` first", full.display());
    full
}
