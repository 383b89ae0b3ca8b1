//! What the console shows, as JSON. The page is in the folder beside this file.
//!
//! The page is for the operator, so it has host paths. Every text from a client or a provider is only data in it.

use serde::Serialize;
use serde_json::{Value, json};

use super::state::AdminState;
use crate::catalog::Snapshot;
use crate::gateway::GatewayStatus;
use crate::grants::GrantKind;
use crate::model::{Digest, MountName, command, text};
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
    let Some(gateway) = admin.gateway() else { return json!({}) };
    let (status, snapshot) = (gateway.status(), gateway.snapshot());
    let GatewayStatus { memory_used, memory_limit, turns_used, turns, .. } = status;
    let callers = report.callers.iter().take(MAX_ROWS).map(|(name, totals, last)| {
        json!({
            "principal": name.principal, "client": name.client, "transport": name.transport, "requests": totals.count,
            "failed": totals.failed, "bytes": totals.bytes, "cpu_micros": totals.cpu_micros, "last": millis(*last),
        })
    });
    let denials = report.denials.iter().take(MAX_ROWS);
    let denials = denials.map(|(used, times)| UseRow::new(used, *times, denial_command(used)));
    let limits = report.limits.iter().take(MAX_SHORT_ROWS).map(|((mount, limit), met)| {
        json!({
            "mount": mount.as_str(), "limit": limit, "times": met.times.times, "used": met.used, "cap": met.cap,
            "last": millis(met.times.last), "command": met.command,
        })
    });
    let upstreams = report.upstreams.iter().take(MAX_SHORT_ROWS).map(|(used, times)| UseRow::new(used, *times, None));
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

/// A row of uses of grants.
#[derive(Serialize)]
struct UseRow<'a> {
    mount: &'a str,
    grant: &'a str,
    what: &'a str,
    times: u64,
    last: u64,
    /// For a refused use: the command that would allow it.
    command: Option<String>,
}

impl<'a> UseRow<'a> {
    fn new(used: &'a GrantUse, times: Times, command: Option<String>) -> Self {
        let GrantUse { mount, grant, target } = used;
        Self { mount: mount.as_str(), grant, what: target, times: times.times, last: millis(times.last), command }
    }
}

/// The command that would allow a refused use, or an example of one.
fn denial_command(used: &GrantUse) -> Option<String> {
    GrantKind::find(&used.grant)?.command_for(used.mount.as_str(), &used.target)
}

/// A mount, in any state.
#[derive(Serialize)]
struct MountRow {
    name: String,
    base: Option<String>,
    component: Option<String>,
    digest: Option<String>,
    state: &'static str,
    /// Why it is not served.
    reason: Option<String>,
    /// Its grants, in the operator's words.
    may: Vec<String>,
    /// The command that leads on.
    command: Option<String>,
    calls: u64,
    served: u64,
    failed: u64,
    denied: u64,
    bytes: u64,
    cpu_micros: u64,
}

impl MountRow {
    fn new(name: &str, base: Option<&str>, state: &'static str, report: &ActivityReport) -> Self {
        let totals = MountName::new(name).ok().and_then(|name| report.mounts.get(&name)).copied().unwrap_or_default();
        let Totals { count: calls, served, failed, denied, bytes, cpu_micros } = totals;
        let (name, base, may) = (name.to_owned(), base.map(str::to_owned), Vec::new());
        let (component, digest, reason, command) = (None, None, None, None);
        Self {
            name,
            base,
            component,
            digest,
            state,
            reason,
            may,
            command,
            calls,
            served,
            failed,
            denied,
            bytes,
            cpu_micros,
        }
    }

    fn with_file(self, file: &str, digest: Digest) -> Self {
        Self { component: Some(file.to_owned()), digest: Some(digest.to_string()), ..self }
    }

    fn with_reason(self, reason: &str, command: Option<String>) -> Self {
        Self { reason: Some(text::excerpt(reason, MAX_REASON)), command, ..self }
    }
}

/// The mounts in every state, sorted by name.
fn mounts(snapshot: &Snapshot, report: &ActivityReport) -> Vec<MountRow> {
    let row = |name: &str, base: Option<&str>, state: &'static str| MountRow::new(name, base, state, report);
    let served = snapshot.mounts().iter().map(|mount| {
        let may = mount.configured_grants.granted.iter().map(|(kind, line)| format!("{kind}: {line}")).collect();
        let own = row(mount.name.as_str(), Some(&mount.base), "served").with_file(&mount.file, mount.digest);
        MountRow { may, ..own }
    });
    let quarantined = snapshot.quarantined().iter().map(|mount| {
        let command = command::line(["trust", mount.name.as_str()]);
        let own = row(mount.name.as_str(), Some(&mount.base), "quarantined").with_file(&mount.file, mount.found);
        own.with_reason(&mount.reason(), Some(command))
    });
    let compiling = snapshot.compiling().iter();
    let compiling = compiling.map(|mount| row(mount.name.as_str(), Some(&mount.base), "compiling"));
    let unserved = snapshot.unserved().iter().map(|mount| {
        let own = row(mount.name.as_str(), Some(&mount.base), "unserved");
        own.with_reason(&mount.reason.to_string(), Some(command::line(["check"])))
    });
    let refused = snapshot.refused().iter();
    let refused = refused
        .map(|mount| row(&mount.name, mount.base.as_deref(), "unserved").with_reason(&mount.reason, None))
        .collect::<Vec<_>>();
    // A refused mount is unserved, too. The refusal has the reason.
    let is_refused = |row: &MountRow| refused.iter().any(|refused| refused.name == row.name);
    let unserved: Vec<_> = unserved.filter(|row| !is_refused(row)).collect();
    let mut all: Vec<_> = served.chain(quarantined).chain(compiling).chain(unserved).collect();
    all.extend(refused);
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.truncate(MAX_MOUNTS);
    all
}
