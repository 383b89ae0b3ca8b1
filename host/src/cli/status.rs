//! `belljar status`: the belljars that `belljar up` started, and their clients.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use belljar_join::Instance;
use serde_json::{Value, json};

use super::output;
use crate::server::failure::Failure;
use crate::server::shared_socket::SharedSocket;
use crate::server::{processes, up};
use crate::transport::local_socket::{ConnectedClient, ServingStatus};

/// The help of `status`.
pub(super) const HELP: &str = "Examples:
  belljar status
  belljar status --json

The exit code is 1 if a belljar that was started does not serve, or if none was started.";

/// A belljar that was started.
struct Started {
    instance: Instance,
    log: String,
    /// `None` if it does not serve.
    status: Option<ServingStatus>,
}

/// Prints all belljars of this user.
pub(super) fn run(is_json: bool) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    for socket in SharedSocket::all()? {
        let Some(instance) = socket.files().instance() else { continue };
        all.push(Started { log: up::log_of(&socket, &instance), instance, status: socket.status() });
    }
    match is_json {
        true => output::print_json(&json!({ "belljars": all.iter().map(json_of).collect::<Vec<_>>() }))?,
        false if all.is_empty() => output::print("No belljar was started. To start one: belljar up\n")?,
        false => output::print(&all.iter().map(text_of).collect::<String>())?,
    }
    let is_fine = !all.is_empty() && all.iter().all(|one| one.status.is_some());
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json_of(started: &Started) -> Value {
    let Started { instance, log, status } = started;
    let client = |client: &ConnectedClient| {
        let name = client.pid.and_then(processes::parent_name);
        json!({ "pid": client.pid, "since": client.since, "started_by": name })
    };
    let memory = status.as_ref().and_then(|status| processes::memory(status.pid));
    json!({
        "configuration": instance.config,
        "program": instance.program,
        "systemd": instance.is_unit,
        "log": log,
        "serves": status.is_some(),
        "pid": status.as_ref().map(|status| status.pid),
        "version": status.as_ref().map(|status| &status.version),
        "since": status.as_ref().map(|status| status.since),
        "memory": memory,
        "clients": status.as_ref().map(|status| status.clients.iter().map(client).collect::<Vec<_>>()),
    })
}

fn text_of(started: &Started) -> String {
    let Started { instance, log, status } = started;
    let mut out = format!("{}\n", instance.config.display());
    let Some(status) = status else {
        let _ = writeln!(
            out,
            "  does not serve; to start it again: belljar up --place {}\n  log      {log}",
            instance.place
        );
        return out;
    };
    let memory =
        processes::memory(status.pid).map(|bytes| format!(", {} of memory", bytesize::ByteSize(bytes).display().iec()));
    let by = if instance.is_unit { ", run by systemd" } else { "" };
    let _ = writeln!(
        out,
        "  serves   pid {}, version {}, for {}{}{by}",
        status.pid,
        status.version,
        age(status.since),
        memory.unwrap_or_default()
    );
    if status.version != env!("CARGO_PKG_VERSION") {
        let _ = writeln!(
            out,
            "           this program is version {}; to use it: belljar up --restart",
            env!("CARGO_PKG_VERSION")
        );
    }
    for client in &status.clients {
        let pid = client.pid.map(|pid| format!("pid {pid}")).unwrap_or_default();
        let name = client.pid.and_then(processes::parent_name).map(|name| format!(", started by {name}"));
        let _ = writeln!(out, "  client   {pid}{}, for {}", name.unwrap_or_default(), age(client.since));
    }
    if status.clients.is_empty() {
        out.push_str("  client   none\n");
    }
    let _ = writeln!(out, "  log      {log}");
    out
}

/// How long ago a time was, in seconds since 1970.
fn age(since: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    humantime::format_duration(Duration::from_secs(now.saturating_sub(since))).to_string()
}
