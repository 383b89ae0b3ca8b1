//! The part `services`: the running services of systemd, from the tree of control groups.

use serde::Serialize;

use super::cgroups::ControlGroups;
use super::root::{SystemRoot, cleaned};

/// The most services that are listed.
const MAX_SERVICES: usize = 1024;

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct ServiceFacts {
    /// False if this system has no cgroup v2. Then nothing is known.
    available: bool,
    /// Services that are not listed, because they are too many.
    left_out: usize,
    services: Vec<Service>,
}

/// One running service.
#[derive(Serialize)]
struct Service {
    name: String,
    /// The group above it, such as `/system.slice`.
    group: String,
    memory: Option<u64>,
    cpu_seconds: Option<f64>,
    processes: Option<u64>,
}

pub(super) fn collect(root: &SystemRoot) -> ServiceFacts {
    let Some(groups) = ControlGroups::find(root) else {
        return ServiceFacts { available: false, left_out: 0, services: Vec::new() };
    };
    let (mut services, mut left_out) = (Vec::new(), 0);
    groups.walk(|group| {
        let (above, name) = group.rsplit_once('/').unwrap_or(("", group));
        if !name.ends_with(".service") {
            return true;
        }
        if services.len() >= MAX_SERVICES {
            left_out += 1;
            return false;
        }
        let usage = groups.usage(group);
        services.push(Service {
            name: cleaned(name.as_bytes(), 200),
            group: cleaned(if above.is_empty() { b"/" } else { above.as_bytes() }, 400),
            memory: usage.memory,
            cpu_seconds: usage.cpu_seconds,
            processes: usage.processes,
        });
        // The manager of a user is a service, and has services of its own.
        true
    });
    services.sort_by(|one, other| (&one.name, &one.group).cmp(&(&other.name, &other.group)));
    ServiceFacts { available: true, left_out, services }
}
