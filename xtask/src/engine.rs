//! Whether the registry has a newer release of the engine's line: two aborts wait for wasmtime 48.0.9. Says so loudly, and
//! fails nothing: neither when there is one, nor when there is no network.

use std::process::Stdio;

use crate::shell::Shell;

/// The engine, and what must be of the same version.
const CRATES: [&str; 4] =
    ["wasmtime", "wasmtime-wasi", "wasmtime-wasi-http", "wasi-preview1-component-adapter-provider"];

/// What the registry has, in one line.
pub(crate) fn newer(shell: &Shell) -> String {
    let mut update = shell.cargo(["update", "--dry-run", "--color", "never"]);
    for name in CRATES {
        update.args(["--package", name]);
    }
    update.env("CARGO_NET_RETRY", "0").env("CARGO_HTTP_TIMEOUT", "10").stdin(Stdio::null());
    let told = match update.output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stderr).into_owned(),
        _ => return "not looked up: the registry cannot be reached".to_owned(),
    };
    match update_of(&told) {
        None => "the newest of its line is built".to_owned(),
        Some((from, to)) => {
            let packages = CRATES.map(|name| format!("-p {name}")).join(" ");
            let told = format!(
                "TAKE IT: wasmtime {to} is there, {from} is built: cargo update {packages}, docs/advisories.md"
            );
            println!("\n{0}\n!!! {told}\n{0}", "!".repeat(100));
            told
        }
    }
}

/// The step from one version of the engine to another that cargo would take.
fn update_of(told: &str) -> Option<(&str, &str)> {
    let step = told.lines().find_map(|line| line.trim_start().strip_prefix("Updating wasmtime v"))?;
    let (from, to) = step.split_once(" -> v")?;
    Some((from, to.split(' ').next().unwrap_or(to)))
}

#[cfg(test)]
mod tests {
    use super::update_of;

    #[test]
    fn the_engine_is_told_from_its_parts() {
        let told = "    Updating crates.io index\n     Locking 3 packages to latest compatible versions\n    Updating wasmtime-wasi v48.0.8 -> v48.0.9\n";
        assert_eq!(update_of(told), None);
        let told = format!("{told}    Updating wasmtime v48.0.8 -> v48.0.9 (available: v49.0.1)\n");
        assert_eq!(update_of(&told), Some(("48.0.8", "48.0.9")));
    }
}
