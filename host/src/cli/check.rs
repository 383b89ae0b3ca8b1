//! `belljar check`: does everything that `serve` does before it serves, and shows the result. Runs no code of a
//! component.

pub(super) mod compile;
pub(super) mod conformance;

use super::output;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{progress, table};
use crate::catalog::{Mount, QuarantinedMount, Snapshot};
use crate::config::Config;
use crate::config::lock::Pins;
use crate::grants::GrantKind;
use crate::grants::Need;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{
    configuration, keys::Keys, keys::SharedCode, landlock, landlock::WallStatus, pins, pins::Pinning, record, startup,
};

pub(super) fn run(at: &LocationArgs, dev: bool, as_json: bool) -> Result<ExitCode, Failure> {
    progress::start(if as_json { "error" } else { "warn,belljar::catalog=error" });
    let config = configuration::config(at, &[], Pinning::unless_dev(dev, Pinning::ReadOnly))?;
    // This process runs no component, so it may write compiled code into the cache that all configurations share.
    let keys = Keys::read(at, &config, SharedCode::Sign)?;
    let wall = landlock::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let audit = record::audit(&config, true)?;
        let host = startup::start(config, keys, audit, None)?;
        let snapshot = host.gateway.fully_loaded_snapshot().await;
        progress::end();
        if as_json {
            output::print_json(&to_json(&host.config, &wall.status, &snapshot))?
        } else {
            table::print(&to_text(&host.config, &wall.status, &snapshot))?
        }
        let is_fine = snapshot.refused().is_empty() && snapshot.quarantined().is_empty();
        Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The grants of a mount, as the operator wrote them: "kind: description".
fn granted(config: &Config, mount: &Mount) -> Vec<String> {
    let Some(written) = config.mounts.get(&mount.name) else { return Vec::new() };
    written.grants.describe().into_iter().map(|(kind, what)| format!("{kind}: {what}")).collect()
}

/// The kinds of grants that the mount holds and its component cannot use.
fn useless(mount: &Mount) -> Vec<&'static str> {
    mount.granted_kinds.iter().filter(|kind| !mount.usable_kinds.contains(kind)).copied().collect()
}

/// Whether the lock binds the mount's grants to a digest: "yes", "at-first-start" or "off". `None` without grants.
fn bound(config: &Config, mount: &Mount) -> Option<&'static str> {
    config.mounts.get(&mount.name).filter(|written| written.needs_pin())?;
    Some(match &config.pins {
        Pins::Off => "off",
        pins if pins.lock().and_then(|lock| lock.pin(&mount.name)).is_some() => "yes",
        _ => "at-first-start",
    })
}

/// A mount in quarantine, as JSON.
pub(super) fn quarantined(one: &QuarantinedMount) -> Value {
    json!({
        "name": one.name.as_str(), "base": one.base, "file": one.file, "digest": one.found.to_string(),
        "pinned": one.pinned().map(|digest| digest.to_string()), "reason": one.reason(),
    })
}

/// The warnings about a mount's grants.
fn warnings(config: &Config, mount: &Mount) -> Vec<String> {
    let useless =
        useless(mount).into_iter().map(|kind| format!("the component cannot use the grant \"{kind}\"; remove it"));
    let held = config.mounts.get(&mount.name).and_then(|written| written.grants.configure(&config.ambient).ok());
    let held = held.map(|held| held.warnings()).unwrap_or_default();
    useless.chain(mount.warning.map(str::to_owned)).chain(held).collect()
}

/// The lines about the grants that a mount's component needs, and those that its imports could use.
fn needs_text(mount: &Mount) -> String {
    let mut out = String::new();
    for (at, need) in mount.needs.all().iter().enumerate() {
        let title = if at == 0 { "needs" } else { "" };
        let lacking =
            if mount.missing_needs.contains(need) { not_granted(mount, need) } else { "  (granted)".to_owned() };
        let _ = writeln!(out, "           {title:8} {}{lacking}", need.describe());
    }
    // A component that declares needs of a kind may import more of that kind only because of its language's library.
    let needed = mount.needs.kinds();
    let could: Vec<&str> = mount.usable_kinds.iter().filter(|kind| !needed.contains(kind)).copied().collect();
    if !could.is_empty() {
        let asked: Vec<&str> = could.iter().filter(|kind| !mount.granted_kinds.contains(kind)).copied().collect();
        let not = if asked.is_empty() { String::new() } else { format!("  (not granted: {})", asked.join(", ")) };
        let _ = writeln!(out, "           could use  {}{not}", could.join(", "));
    }
    out
}

fn not_granted(mount: &Mount, need: &Need) -> String {
    let run = GrantKind::find(need.kind).and_then(|kind| kind.command(mount.name.as_str(), Some(need)));
    match run.filter(|_| !need.optional) {
        Some(run) => format!("  (not granted; run: {run})"),
        None => "  (not granted)".to_owned(),
    }
}

/// The declared needs of a mount's component, as JSON.
pub(super) fn needs(mount: &Mount) -> Value {
    let one = |need: &Need| {
        json!({
            "grant": need.kind, "what": need.name, "any": need.any, "optional": need.optional, "why": need.reason,
            "granted": !mount.missing_needs.contains(need),
        })
    };
    mount.needs.all().iter().map(one).collect()
}

fn to_text(config: &Config, wall: &WallStatus, snapshot: &Snapshot) -> String {
    let mut out = format!(
        "plugins  {}\ncache    {}\nstate    {}\nwall     {wall}\n",
        config.plugins.display(),
        config.cache.display(),
        config.state.display()
    );
    if matches!(config.pins, Pins::Off) {
        let _ = writeln!(out, "warning  {}", pins::DEV_WARNING);
    }
    let names = table::width(snapshot.mounts().iter().map(|mount| mount.name.as_str()), 40);
    let bases = table::width(snapshot.mounts().iter().map(|mount| mount.base.as_str()), 60);
    for mount in snapshot.mounts() {
        let (name, base) = (table::padded(table::NAME, &mount.name, names), &mount.base);
        let details = table::styled(table::FAINT, format!("({}, {})", mount.file, mount.digest.short()));
        let _ = writeln!(out, "{}       {name}  {base:bases$}  {details}", table::styled(table::GOOD, "ok"));
        out += &needs_text(mount);
        match bound(config, mount) {
            Some("off") => drop(writeln!(out, "           bound    to no digest, because of --dev")),
            Some("at-first-start") => drop(writeln!(out, "           bound    to this digest at the first start")),
            _ => {}
        }
        for line in granted(config, mount) {
            let _ = writeln!(out, "           granted  {line}");
        }
        for warning in warnings(config, mount) {
            let _ = writeln!(out, "           {}  {warning}", table::styled(table::WARN, "warning"));
        }
    }
    for refused in snapshot.refused() {
        let _ = writeln!(out, "{}  {}: {}", table::styled(table::BAD, "refused"), refused.name, refused.reason);
    }
    for one in snapshot.quarantined() {
        let what = table::styled(table::BAD, "quarantine");
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

fn to_json(config: &Config, wall: &WallStatus, snapshot: &Snapshot) -> Value {
    let mounts: Vec<Value> = snapshot
        .mounts()
        .iter()
        .map(|mount| {
            json!({
                "name": mount.name.as_str(), "base": mount.base, "file": mount.file, "digest": mount.digest.to_string(),
                "granted": granted(config, mount), "useless": useless(mount), "uses": mount.usable_kinds, "needs": needs(mount),
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
