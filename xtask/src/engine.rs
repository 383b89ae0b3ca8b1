//! Looks up whether the registry has a newer patch release of the engine: two known aborts are fixed in wasmtime 48.0.9.
//! A newer release is printed prominently. It is no failure, and a missing network is no failure either.

use std::process::Stdio;

use crate::shell::Shell;

/// The engine's crates. All must have the same version.
const CRATES: [&str; 4] =
    ["wasmtime", "wasmtime-wasi", "wasmtime-wasi-http", "wasi-preview1-component-adapter-provider"];

/// The result, in one line.
pub(crate) fn newer(shell: &Shell) -> String {
    let mut update = shell.cargo(["update", "--dry-run", "--color", "never"]);
    for name in CRATES {
        update.args(["--package", name]);
    }
    update.env("CARGO_NET_RETRY", "0").env("CARGO_HTTP_TIMEOUT", "10").stdin(Stdio::null());
    let output = match update.output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stderr).into_owned(),
        _ => return "not looked up: the registry cannot be reached".to_owned(),
    };
    match update_of(&output) {
        None => "the newest patch release is used".to_owned(),
        Some((from, to)) => {
            let packages = CRATES.map(|name| format!("-p {name}")).join(" ");
            let message = format!(
                "UPDATE: wasmtime {to} is published, {from} is used: cargo update {packages}, docs/measurements/advisories.md"
            );
            println!("\n{0}\n!!! {message}\n{0}", "!".repeat(100));
            message
        }
    }
}

/// The current version and the one that `cargo update` would take, from its output.
fn update_of(output: &str) -> Option<(&str, &str)> {
    let step = output.lines().find_map(|line| line.trim_start().strip_prefix("Updating wasmtime v"))?;
    let (from, to) = step.split_once(" -> v")?;
    Some((from, to.split(' ').next().unwrap_or(to)))
}

#[cfg(test)]
mod tests {
    use super::update_of;

    #[test]
    fn an_update_of_wasmtime_is_found_and_one_of_wasmtime_wasi_is_not() {
        let output = "    Updating crates.io index\n     Locking 3 packages to latest compatible versions\n    Updating wasmtime-wasi v48.0.8 -> v48.0.9\n";
        assert_eq!(update_of(output), None);
        let output = format!("{output}    Updating wasmtime v48.0.8 -> v48.0.9 (available: v49.0.1)\n");
        assert_eq!(update_of(&output), Some(("48.0.8", "48.0.9")));
    }
}
