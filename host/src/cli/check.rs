//! `belljar check`: everything that `serve` does before it serves.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::wall::{self, Standing};
use super::{Failure, Where, open};
use crate::catalog::{Mount, Snapshot};
use crate::config::Config;

pub(super) fn run(at: &Where, as_json: bool) -> Result<ExitCode, Failure> {
    super::start_log(if as_json { "error" } else { "warn,belljar::catalog=error" });
    let config = open::config(at, &[])?;
    let wall = wall::raise(&config, None)?;
    wall.runtime()?.block_on(async {
        let opened = open::open(config, true)?;
        let snapshot = opened.gateway.loaded().await;
        if as_json {
            super::print_json(&to_json(&opened.config, &wall.standing, &snapshot))?
        } else {
            super::print(&to_text(&opened.config, &wall.standing, &snapshot))?
        }
        Ok(if snapshot.refused().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// What a mount was given, as the operator wrote it.
fn granted(config: &Config, mount: &Mount) -> Vec<String> {
    let Some(written) = config.mounts.get(&mount.name) else { return Vec::new() };
    written.grants.describe().into_iter().map(|(kind, what)| format!("{kind}: {what}")).collect()
}

/// Grants that the component cannot use.
fn useless(mount: &Mount) -> Vec<&'static str> {
    mount.holds.iter().filter(|kind| !mount.uses.contains(kind)).copied().collect()
}

/// What the operator should know about a mount.
fn warnings(config: &Config, mount: &Mount) -> Vec<String> {
    let useless =
        useless(mount).into_iter().map(|kind| format!("the component cannot use the grant \"{kind}\"; remove it"));
    let held = config.mounts.get(&mount.name).and_then(|written| written.grants.configure(&config.ambient).ok());
    let held = held.map(|held| held.warnings()).unwrap_or_default();
    useless.chain(mount.warning.map(str::to_owned)).chain(held).collect()
}

fn to_text(config: &Config, wall: &Standing, snapshot: &Snapshot) -> String {
    let mut out = format!(
        "plugins  {}\ncache    {}\nstate    {}\nwall     {wall}\n",
        config.plugins.display(),
        config.cache.display(),
        config.state.display()
    );
    for mount in snapshot.mounts() {
        let _ = writeln!(out, "ok       {}  {}  ({}, {})", mount.name, mount.base, mount.file, mount.digest);
        for line in granted(config, mount) {
            let _ = writeln!(out, "           granted  {line}");
        }
        for warning in warnings(config, mount) {
            let _ = writeln!(out, "           warning  {warning}");
        }
    }
    for refused in snapshot.refused() {
        let _ = writeln!(out, "refused  {}: {}", refused.name, refused.reason);
    }
    let _ = writeln!(out, "{} would be served, {} refused", snapshot.mounts().len(), snapshot.refused().len());
    out
}

fn to_json(config: &Config, wall: &Standing, snapshot: &Snapshot) -> Value {
    let mounts: Vec<Value> = snapshot
        .mounts()
        .iter()
        .map(|mount| {
            json!({
                "name": mount.name.as_str(), "base": mount.base, "file": mount.file, "digest": mount.digest.to_string(),
                "granted": granted(config, mount), "useless": useless(mount), "uses": mount.uses,
                "warnings": warnings(config, mount),
            })
        })
        .collect();
    let refused: Vec<Value> = snapshot.refused().iter().map(|r| json!({"name": r.name, "reason": r.reason})).collect();
    let wall =
        json!({ "standing": wall.word(), "abi": wall.abi(), "missing": wall.missing(), "says": wall.to_string() });
    json!({
        "plugins": config.plugins, "cache": config.cache, "state": config.state, "wall": wall,
        "mounts": mounts, "refused": refused,
    })
}
