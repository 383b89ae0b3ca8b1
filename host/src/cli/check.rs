//! `belljar check`: does everything that `serve` does before it serves, and shows the result. Runs no code of a
//! component.

pub(super) mod compile;
pub(super) mod conformance;
mod definitions;
mod rule_warnings;

use super::output;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use serde_json::{Value, json};

use rule_warnings::rule_warnings;

use super::{login, progress, table};
use crate::auth::key_store::CurrentKeys;
use crate::auth::key_store::KeyCount;
use crate::catalog::{Mount, QuarantinedMount, Snapshot};
use crate::config::lock::Pins;
use crate::config::{Config, Isolation};
use crate::grants::GrantKind;
use crate::grants::Need;
use crate::model::MountName;
use crate::server::failure::Failure;
use crate::server::front_door::LiveAuthentication;
use crate::server::location::LocationArgs;
use crate::server::{
    api_keys, configuration, keys::Keys, keys::SharedCode, landlock, landlock::WallStatus, listening, pins,
    pins::Pinning, record, replicas, replicas::ProbedStore, startup, tls_files,
};

pub(super) fn run(at: &LocationArgs, dev: bool, as_json: bool) -> Result<ExitCode, Failure> {
    progress::start(if as_json { "error" } else { "warn,belljar::catalog=error" });
    let config = configuration::config(at, &[], Pinning::unless_dev(dev, Pinning::ReadOnly))?;
    let stored_keys = api_keys::load(&config)?.map(|(keys, _)| keys);
    let api_keys = stored_keys.as_ref().map(|keys| keys.count(SystemTime::now()));
    LiveAuthentication::new(&config, stored_keys.clone().map(CurrentKeys::new))?;
    config.serve.http.as_ref().map_or(Ok(()), |address| listening::check_address(address, Some(&config)))?;
    config.serve.tls.as_ref().map(tls_files::identity).transpose()?;
    // This process runs no component, so it may write compiled code into the cache that all configurations share.
    let keys = Keys::read(at, &config, SharedCode::Sign)?;
    let wall = landlock::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let audit = record::audit(&config, true)?;
        let host = startup::start(config, keys, audit, None)?;
        let snapshot = host.gateway.fully_loaded_snapshot().await;
        let store = replicas::probe_store(&host.config).await?;
        progress::end();
        let walls = worker_walls(&snapshot).await;
        let about_rules = rule_warnings(&host.config, stored_keys.as_ref(), &snapshot);
        if as_json {
            output::print_json(&to_json(
                &host.config,
                &wall.status,
                api_keys,
                (&snapshot, &walls, &about_rules),
                store.as_ref(),
            ))?
        } else {
            let lines = about_rules.iter().map(|one| format!("{}  {one}\n", table::styled(table::WARN, "warning")));
            let about_rules: String = lines.collect();
            table::print(
                &(to_text(&host.config, &wall.status, api_keys, (&snapshot, &walls), store.as_ref()) + &about_rules),
            )?
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

/// The states of the walls of worker processes, by mount.
type WorkerWalls = BTreeMap<MountName, String>;

/// Starts the worker process of each mount, and asks for its wall.
async fn worker_walls(snapshot: &Snapshot) -> WorkerWalls {
    let mut walls = WorkerWalls::new();
    for mount in snapshot.mounts() {
        let wall = match mount.loaded.worker_wall().await {
            Some(Ok(wall)) => wall,
            Some(Err(error)) => format!("unknown ({error})"),
            None => continue,
        };
        walls.insert(mount.name.clone(), wall);
    }
    walls
}

/// Where the calls of a mount run, in words.
fn placed(mount: &Mount, walls: &WorkerWalls) -> String {
    let place = match mount.isolation {
        Isolation::None => "in belljar's own process",
        Isolation::Shared if mount.configured_grants.is_empty() => {
            "in the worker process that mounts without grants share"
        }
        Isolation::Shared | Isolation::Mount => "in a worker process of its own",
        Isolation::Call => "in a worker process for each call",
    };
    let wall = walls.get(&mount.name).map(|wall| format!("; its wall: {wall}"));
    format!("{place}{}", wall.unwrap_or_default())
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

/// The warnings about a mount's grants, its file, and the names of its tools and prompts.
fn warnings(config: &Config, mount: &Mount, snapshot: &Snapshot) -> Vec<String> {
    let useless =
        useless(mount).into_iter().map(|kind| format!("the component cannot use the grant \"{kind}\"; remove it"));
    let held = config.mounts.get(&mount.name).and_then(|written| written.grants.configure(&config.ambient).ok());
    let held = held.map(|held| held.warnings()).unwrap_or_default();
    let names = definitions::warnings(mount, snapshot);
    let revoked = config.pins.revocation(&mount.name, &mount.digest);
    let names = names.into_iter().chain(revoked.map(|why| format!("{why}; {}", why.cure(&mount.name))));
    useless.chain(mount.warning.map(str::to_owned)).chain(held).chain(names).collect()
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

/// The logins of a mount, as JSON.
fn logins(config: &Config, mount: &Mount) -> Value {
    let states = login::states(config, &mount.name).into_iter();
    states.map(|(says, is_valid)| json!({ "says": says, "valid": is_valid })).collect()
}

fn to_text(
    config: &Config,
    wall: &WallStatus,
    api_keys: Option<KeyCount>,
    (snapshot, walls): (&Snapshot, &WorkerWalls),
    store: Option<&ProbedStore>,
) -> String {
    let mut out = format!(
        "plugins  {}\ncache    {}\nstate    {}\nwall     {wall}\n",
        config.plugins.display(),
        config.cache.display(),
        config.state.display()
    );
    if let Some(count) = api_keys {
        let _ = writeln!(out, "keys     {} ({count})", config.api_keys.display());
    }
    if let Some(ProbedStore { url, why_down }) = store {
        let _ = match why_down {
            None => writeln!(out, "store    {url} (reached)"),
            Some(why) => writeln!(
                out,
                "store    {url}\n{}  the store {why}; until it is reached, each replica works alone",
                table::styled(table::WARN, "warning")
            ),
        };
    }
    if matches!(config.pins, Pins::Off) {
        let _ = writeln!(out, "warning  {}", pins::DEV_WARNING);
    }
    let names = table::width(snapshot.mounts().iter().map(|mount| mount.name.as_str()), 40);
    let bases = table::width(snapshot.mounts().iter().map(|mount| mount.base.as_str()), 60);
    for mount in snapshot.mounts() {
        let (name, base) = (table::padded(table::NAME, &mount.name, names), &mount.base);
        let details = table::styled(table::FAINT, format!("({}, {})", mount.file, mount.digest.short()));
        let _ = writeln!(out, "{}       {name}  {base:bases$}  {details}", table::styled(table::GOOD, "ok"));
        if let Some(definitions) = definitions::describe(mount) {
            let _ = writeln!(out, "           serves   {definitions}");
        }
        out += &needs_text(mount);
        match bound(config, mount) {
            Some("off") => drop(writeln!(out, "           bound    to no digest, because of --dev")),
            Some("at-first-start") => drop(writeln!(out, "           bound    to this digest at the first start")),
            _ => {}
        }
        let _ = writeln!(out, "           runs     {}", placed(mount, walls));
        for line in granted(config, mount) {
            let _ = writeln!(out, "           granted  {line}");
        }
        for (login, _) in login::states(config, &mount.name) {
            let _ = writeln!(out, "           login    {login}");
        }
        for warning in warnings(config, mount, snapshot) {
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

fn to_json(
    config: &Config,
    wall: &WallStatus,
    api_keys: Option<KeyCount>,
    (snapshot, walls, about_rules): (&Snapshot, &WorkerWalls, &[String]),
    store: Option<&ProbedStore>,
) -> Value {
    let mounts: Vec<Value> = snapshot
        .mounts()
        .iter()
        .map(|mount| {
            json!({
                "name": mount.name.as_str(), "base": mount.base, "file": mount.file, "digest": mount.digest.to_string(),
                "granted": granted(config, mount), "useless": useless(mount), "uses": mount.usable_kinds, "needs": needs(mount),
                "bound": bound(config, mount), "warnings": warnings(config, mount, snapshot),
                "serves": definitions::kinds(mount), "toolPrefix": mount.tool_prefix, "isolation": mount.isolation, "workerWall": walls.get(&mount.name),
                "logins": logins(config, mount),
            })
        })
        .collect();
    let refused: Vec<Value> = snapshot.refused().iter().map(|r| json!({"name": r.name, "reason": r.reason})).collect();
    let wall =
        json!({ "standing": wall.word(), "abi": wall.abi(), "missing": wall.missing(), "says": wall.to_string() });
    let keys = api_keys.map(|count| json!({ "file": config.api_keys, "valid": count.valid, "expired": count.expired }));
    let store =
        store.map(|store| json!({ "url": store.url, "isReached": store.why_down.is_none(), "why": store.why_down }));
    json!({
        "plugins": config.plugins, "cache": config.cache, "state": config.state, "wall": wall, "keys": keys, "store": store,
        "mounts": mounts, "refused": refused, "warnings": about_rules,
        "quarantined": snapshot.quarantined().iter().map(quarantined).collect::<Vec<_>>(),
    })
}
