//! The part `containers`: running containers, from the tree of control groups. Their names and images are not there, only
//! the ids that the runtimes gave them.

use serde::Serialize;

use super::cgroups::ControlGroups;
use super::root::{SystemRoot, cleaned};

/// The most containers that are listed.
const MAX_CONTAINERS: usize = 1024;

/// The first part of the group's name, for runtimes that let systemd make the group (`docker-ID.scope`).
const SCOPES: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("crio-", "cri-o"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("machine-", "systemd-nspawn"),
];

/// The group of the program that watches over a container, and is no container.
const MONITOR: &str = "conmon-";

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct ContainerFacts {
    /// False if this system has no cgroup v2. Then nothing is known.
    available: bool,
    /// Containers that are not listed, because they are too many.
    left_out: usize,
    containers: Vec<Container>,
}

/// One running container.
#[derive(Serialize)]
struct Container {
    id: String,
    runtime: &'static str,
    memory: Option<u64>,
    cpu_seconds: Option<f64>,
    processes: Option<u64>,
}

pub(super) fn collect(root: &SystemRoot) -> ContainerFacts {
    let Some(groups) = ControlGroups::find(root) else {
        return ContainerFacts { available: false, left_out: 0, containers: Vec::new() };
    };
    let (mut containers, mut left_out) = (Vec::new(), 0);
    groups.walk(|group| {
        let Some((runtime, id)) = container(group) else { return true };
        if containers.len() >= MAX_CONTAINERS {
            left_out += 1;
            return false;
        }
        let usage = groups.usage(group);
        containers.push(Container {
            id: cleaned(id.as_bytes(), 128),
            runtime,
            memory: usage.memory,
            cpu_seconds: usage.cpu_seconds,
            processes: usage.processes,
        });
        // What runs inside is part of the container.
        false
    });
    containers.sort_by(|one, other| (one.runtime, &one.id).cmp(&(other.runtime, &other.id)));
    ContainerFacts { available: true, left_out, containers }
}

/// Runtime and id of the container that a group belongs to. `None` for any other group.
fn container(group: &str) -> Option<(&'static str, &str)> {
    let mut names = group.rsplit('/');
    let (name, above) = (names.next()?, names.next().unwrap_or_default());
    if let Some(scope) = name.strip_suffix(".scope") {
        let known = SCOPES.iter().find_map(|(start, runtime)| Some((*runtime, scope.strip_prefix(start)?)));
        return known.filter(|(_, id)| !id.is_empty() && !id.starts_with(MONITOR));
    }
    if let Some(id) = name.strip_prefix("lxc.payload.").filter(|id| !id.is_empty()) {
        return Some(("lxc", id));
    }
    // Runtimes that make the group themselves name it by the id: 64 hexadecimal digits.
    let is_id = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match above {
        _ if !is_id => None,
        "docker" => Some(("docker", name)),
        "libpod_parent" => Some(("podman", name)),
        above if above.starts_with("pod") => Some(("kubernetes", name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_containers_are_told_from_others() {
        let id = "0123456789abcdef".repeat(4);
        let docker = format!("/system.slice/docker-{id}.scope");
        assert_eq!(container(&docker), Some(("docker", id.as_str())));
        let plain = format!("/docker/{id}");
        assert_eq!(container(&plain), Some(("docker", id.as_str())));
        let pod = format!("/kubepods/burstable/pod12-34/{id}");
        assert_eq!(container(&pod), Some(("kubernetes", id.as_str())));
        assert_eq!(container("/user.slice/libpod-abc.scope"), Some(("podman", "abc")));
        assert_eq!(container("/lxc.payload.web"), Some(("lxc", "web")));
        assert_eq!(container("/machine.slice/machine-web.scope"), Some(("systemd-nspawn", "web")));
        for other in ["/user.slice/libpod-conmon-abc.scope", "/init.scope", "/docker-.scope", "/docker/x", "/a", ""] {
            assert_eq!(container(other), None, "{other}");
        }
    }
}
