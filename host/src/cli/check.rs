//! `belljar check`: everything that `serve` does before it serves.

pub(super) mod compile;
pub(super) mod conformance;

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::keys::{Keys, Shared};
use super::pins::{self, Pinning};
use super::wall::{self, Standing};
use super::{Failure, Where, open, progress, shown};
use crate::catalog::{Mount, Quarantined, Snapshot};
use crate::config::Config;
use crate::config::lock::Pins;
use crate::grants::Kind;
use crate::grants::needs::Need;

pub(super) fn run(at: &Where, dev: bool, as_json: bool) -> Result<ExitCode, Failure> {
    progress::start(if as_json { "error" } else { "warn,belljar::catalog=error" });
    let config = open::config(at, &[], Pinning::unless_dev(dev, Pinning::Look))?;
    // No code of any component runs here, so that what is compiled is for every configuration.
    let keys = Keys::read(at, &config, Shared::Made)?;
    let wall = wall::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let audit = open::audit(&config, true)?;
        let opened = open::open(config, keys, audit, None, None)?;
        let snapshot = opened.gateway.loaded().await;
        progress::end();
        if as_json {
            super::print_json(&to_json(&opened.config, &wall.standing, &snapshot))?
        } else {
            shown::print(&to_text(&opened.config, &wall.standing, &snapshot))?
        }
        let is_fine = snapshot.refused().is_empty() && snapshot.quarantined().is_empty();
        Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// Which bytes may use a mount's grants, as far as the lock knows; none when it holds none.
fn bound(config: &Config, mount: &Mount) -> Option<&'static str> {
    config.mounts.get(&mount.name).filter(|written| written.needs_pin())?;
    Some(match &config.pins {
        Pins::Off => "off",
        pins if pins.lock().and_then(|lock| lock.pin(&mount.name)).is_some() => "yes",
        _ => "at-first-start",
    })
}

/// A mount in quarantine, as data.
pub(super) fn quarantined(one: &Quarantined) -> Value {
    json!({
        "name": one.name.as_str(), "base": one.base, "file": one.file, "digest": one.found.to_string(),
        "pinned": one.pinned().map(|digest| digest.to_string()), "reason": one.reason(),
    })
}

/// What the operator should know about a mount.
fn warnings(config: &Config, mount: &Mount) -> Vec<String> {
    let useless =
        useless(mount).into_iter().map(|kind| format!("the component cannot use the grant \"{kind}\"; remove it"));
    let held = config.mounts.get(&mount.name).and_then(|written| written.grants.configure(&config.ambient).ok());
    let held = held.map(|held| held.warnings()).unwrap_or_default();
    useless.chain(mount.warning.map(str::to_owned)).chain(held).collect()
}

/// What a mount's component needs, and what its imports would let it use.
fn wants(mount: &Mount) -> String {
    let mut out = String::new();
    for (at, need) in mount.needs.all().iter().enumerate() {
        let title = if at == 0 { "needs" } else { "" };
        let lacking = if mount.lacks.contains(need) { not_granted(mount, need) } else { "  (granted)".to_owned() };
        let _ = writeln!(out, "           {title:8} {}{lacking}", need.shown());
    }
    // What is needed is said; that a language's library imports more says nothing.
    let needed = mount.needs.kinds();
    let could: Vec<&str> = mount.uses.iter().filter(|kind| !needed.contains(kind)).copied().collect();
    if !could.is_empty() {
        let asked: Vec<&str> = could.iter().filter(|kind| !mount.holds.contains(kind)).copied().collect();
        let not = if asked.is_empty() { String::new() } else { format!("  (not granted: {})", asked.join(", ")) };
        let _ = writeln!(out, "           could use  {}{not}", could.join(", "));
    }
    out
}

fn not_granted(mount: &Mount, need: &Need) -> String {
    let run = Kind::find(need.kind).and_then(|kind| kind.command(mount.name.as_str(), Some(need)));
    match run.filter(|_| !need.optional) {
        Some(run) => format!("  (not granted; run: {run})"),
        None => "  (not granted)".to_owned(),
    }
}

/// What a mount's component needs, as data.
pub(super) fn needs(mount: &Mount) -> Value {
    let one = |need: &Need| {
        json!({
            "grant": need.kind, "what": need.what, "any": need.any, "optional": need.optional, "why": need.why,
            "granted": !mount.lacks.contains(need),
        })
    };
    mount.needs.all().iter().map(one).collect()
}

fn to_text(config: &Config, wall: &Standing, snapshot: &Snapshot) -> String {
    let mut out = format!(
        "plugins  {}\ncache    {}\nstate    {}\nwall     {wall}\n",
        config.plugins.display(),
        config.cache.display(),
        config.state.display()
    );
    if matches!(config.pins, Pins::Off) {
        let _ = writeln!(out, "warning  {}", pins::DEV);
    }
    let names = shown::width(snapshot.mounts().iter().map(|mount| mount.name.as_str()), 40);
    let bases = shown::width(snapshot.mounts().iter().map(|mount| mount.base.as_str()), 60);
    for mount in snapshot.mounts() {
        let (name, base) = (shown::padded(shown::NAME, &mount.name, names), &mount.base);
        let beside = shown::styled(shown::FAINT, format!("({}, {})", mount.file, mount.digest.short()));
        let _ = writeln!(out, "{}       {name}  {base:bases$}  {beside}", shown::styled(shown::GOOD, "ok"));
        out += &wants(mount);
        match bound(config, mount) {
            Some("off") => drop(writeln!(out, "           bound    to nothing, by --dev")),
            Some("at-first-start") => drop(writeln!(out, "           bound    to these bytes, by the first start")),
            _ => {}
        }
        for line in granted(config, mount) {
            let _ = writeln!(out, "           granted  {line}");
        }
        for warning in warnings(config, mount) {
            let _ = writeln!(out, "           {}  {warning}", shown::styled(shown::WARN, "warning"));
        }
    }
    for refused in snapshot.refused() {
        let _ = writeln!(out, "{}  {}: {}", shown::styled(shown::BAD, "refused"), refused.name, refused.reason);
    }
    for one in snapshot.quarantined() {
        let what = shown::styled(shown::BAD, "quarantine");
        let _ = writeln!(out, "{what}  {}  {}: {}", one.name, one.base, one.reason());
    }
    let held_back = match snapshot.quarantined().len() {
        0 => String::new(),
        some => format!(", {some} in quarantine"),
    };
    let _ =
        writeln!(out, "{} would be served, {} refused{held_back}", snapshot.mounts().len(), snapshot.refused().len());
    out
}

fn to_json(config: &Config, wall: &Standing, snapshot: &Snapshot) -> Value {
    let mounts: Vec<Value> = snapshot
        .mounts()
        .iter()
        .map(|mount| {
            json!({
                "name": mount.name.as_str(), "base": mount.base, "file": mount.file, "digest": mount.digest.to_string(),
                "granted": granted(config, mount), "useless": useless(mount), "uses": mount.uses, "needs": needs(mount),
                "bound": bound(config, mount), "warnings": warnings(config, mount),
            })
        })
        .collect();
    let refused: Vec<Value> = snapshot.refused().iter().map(|r| json!({"name": r.name, "reason": r.reason})).collect();
    let wall =
        json!({ "standing": wall.word(), "abi": wall.abi(), "missing": wall.missing(), "says": wall.to_string() });
    json!({
        "plugins": config.plugins, "cache": config.cache, "state": config.state, "wall": wall,
        "mounts": mounts, "refused": refused,
        "quarantined": snapshot.quarantined().iter().map(quarantined).collect::<Vec<_>>(),
    })
}
