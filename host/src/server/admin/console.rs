//! What the console shows, as JSON. The page is in the folder beside this file.
//!
//! The page is for the operator, so it has host paths. Every text from a client or a provider is only data in it.

use serde_json::{Value, json};

use super::AdminState;
use crate::catalog::Snapshot;
use crate::gateway::GatewayStatus;
use crate::grants::GrantKind;
use crate::model::{MountName, command, text};
use crate::telemetry::activity::{ActivityReport, GrantUse, Times, Totals, millis};

/// The most mounts that the page gets.
const MAX_MOUNTS: usize = 1000;

/// The most callers and refusals, each.
const MAX_ROWS: usize = 200;

/// The most entries of every other list.
const MAX_SHORT_ROWS: usize = 50;

/// Characters of a reason.
const MAX_REASON: usize = 500;

/// The page, and what it loads.
pub(super) const PAGE: &str = include_str!("console/index.html");
/// See [`PAGE`].
pub(super) const SCRIPT: &str = include_str!("console/console.js");
/// See [`PAGE`].
pub(super) const STYLE: &str = include_str!("console/console.css");

/// What a browser may load and run for the page: its own three files, and its own data. No text becomes markup.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The state of the page.
pub(super) fn state(admin: &AdminState) -> Value {
    let report = admin.activity.report();
    let Some(gateway) = admin.gateway.get() else { return json!({}) };
    let (status, snapshot) = (gateway.status(), gateway.snapshot());
    let GatewayStatus { memory_used, memory_limit, turns_used, turns, .. } = status;
    let callers = report.callers.iter().take(MAX_ROWS).map(|(name, totals, last)| {
        json!({
            "principal": name.principal, "client": name.client, "transport": name.transport, "requests": totals.count,
            "failed": totals.failed, "bytes": totals.bytes, "cpu_micros": totals.cpu_micros, "last": millis(*last),
        })
    });
    let denials = report.denials.iter().take(MAX_ROWS).map(|(used, times)| {
        let mut row = grant_use(used, *times);
        row["grant"] = used.grant.as_str().into();
        row["command"] = denial_command(used).into();
        row
    });
    let limits = report.limits.iter().take(MAX_SHORT_ROWS).map(|((mount, limit), met)| {
        json!({
            "mount": mount.as_str(), "limit": limit, "times": met.times.times, "used": met.used, "cap": met.cap,
            "last": millis(met.times.last), "command": met.command,
        })
    });
    let upstreams = report.upstreams.iter().take(MAX_SHORT_ROWS).map(|(used, times)| grant_use(used, *times));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now": millis(std::time::SystemTime::now()),
        "started": millis(admin.process.start()),
        "state": admin.state_word(&status),
        "configuration": status.configuration,
        "memory": { "used": memory_used, "limit": memory_limit },
        "turns": { "used": turns_used, "limit": turns },
        "subscribers": status.subscribers,
        "watched": status.watched,
        "records_waiting": status.records_waiting,
        "mounts": mounts(&snapshot, &report),
        "callers": callers.collect::<Vec<_>>(),
        "denials": denials.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
        "slowest": report.slowest,
        "largest": report.largest,
        "upstreams": upstreams.collect::<Vec<_>>(),
        "history": { "step": millis_of_step(), "points": report.history },
    })
}

fn millis_of_step() -> u64 {
    u64::try_from(crate::telemetry::activity::STEP.as_millis()).unwrap_or(u64::MAX)
}

fn grant_use(used: &GrantUse, times: Times) -> Value {
    json!({ "mount": used.mount.as_str(), "what": used.target, "times": times.times, "last": millis(times.last) })
}

/// The command that would allow a refused use, or an example of one.
fn denial_command(used: &GrantUse) -> Option<String> {
    GrantKind::find(&used.grant)?.command_for(used.mount.as_str(), &used.target)
}

/// The mounts in every state, sorted by name.
fn mounts(snapshot: &Snapshot, report: &ActivityReport) -> Vec<Value> {
    let mut all = Vec::new();
    let row = |name: &str, base: Option<&str>, state: &str, reason: Option<String>| {
        let totals = MountName::new(name).ok().and_then(|name| report.mounts.get(&name)).copied().unwrap_or_default();
        let Totals { count, served, failed, denied, bytes, cpu_micros } = totals;
        json!({
            "name": name, "base": base, "component": null, "digest": null, "state": state,
            "reason": reason.map(|reason| text::excerpt(&reason, MAX_REASON)), "may": [], "command": null,
            "calls": count, "served": served, "failed": failed, "denied": denied, "bytes": bytes,
            "cpu_micros": cpu_micros,
        })
    };
    for mount in snapshot.mounts() {
        let mut one = row(mount.name.as_str(), Some(&mount.base), "served", None);
        let may = mount.configured_grants.granted.iter().map(|(kind, line)| format!("{kind}: {line}"));
        one["may"] = may.collect::<Vec<_>>().into();
        one["component"] = mount.file.as_str().into();
        one["digest"] = mount.digest.to_string().into();
        all.push(one);
    }
    for mount in snapshot.quarantined() {
        let mut one = row(mount.name.as_str(), Some(&mount.base), "quarantined", Some(mount.reason()));
        one["component"] = mount.file.as_str().into();
        one["digest"] = mount.found.to_string().into();
        one["command"] = command::line(["trust", mount.name.as_str()]).into();
        all.push(one);
    }
    for mount in snapshot.compiling() {
        all.push(row(mount.name.as_str(), Some(&mount.base), "compiling", None));
    }
    for mount in snapshot.unserved() {
        let mut one = row(mount.name.as_str(), Some(&mount.base), "unserved", Some(mount.reason.to_string()));
        one["command"] = command::line(["check"]).into();
        all.push(one);
    }
    for mount in snapshot.refused() {
        all.push(row(&mount.name, mount.base.as_deref(), "unserved", Some(mount.reason.clone())));
    }
    all.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    // A refused mount may be unserved, too. The refusal has the reason.
    all.dedup_by(|later, earlier| {
        let is_same = later["name"] == earlier["name"];
        if is_same && earlier["command"].is_null() {
            earlier["command"] = later["command"].take();
        }
        is_same
    });
    all.truncate(MAX_MOUNTS);
    all
}
