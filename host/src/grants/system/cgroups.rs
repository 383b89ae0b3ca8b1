//! Walks the tree of control groups (cgroup v2), in which systemd and the runtimes of containers keep their processes.

use super::root::SystemRoot;

/// The deepest level that is searched.
const MAX_DEPTH: usize = 10;

/// The most groups that are visited.
const MAX_GROUPS: usize = 8192;

/// The place of the tree, or of its second version beside the first.
const PLACES: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

/// What one group uses. `None`: the kernel does not count it for this group.
#[derive(Clone, Copy)]
pub(super) struct GroupUsage {
    pub(super) memory: Option<u64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) processes: Option<u64>,
}

/// The tree of control groups.
pub(super) struct ControlGroups<'r> {
    root: &'r SystemRoot,
    place: &'static str,
}

impl<'r> ControlGroups<'r> {
    /// `None` if this system has no cgroup v2.
    pub(super) fn find(root: &'r SystemRoot) -> Option<Self> {
        let place = PLACES.into_iter().find(|place| root.has(&format!("{place}/cgroup.controllers")))?;
        Some(Self { root, place })
    }

    /// Calls `visit` with the path of every group, from the top. It returns true to go on below the group.
    pub(super) fn walk(&self, mut visit: impl FnMut(&str) -> bool) {
        let (mut pending, mut visited) = (vec![(String::new(), 0)], 0);
        while let Some((group, depth)) = pending.pop() {
            let directory = format!("{}{group}", self.place);
            for name in self.root.names(&directory).into_iter().rev() {
                // Files of a group have such names; groups of services and containers have not.
                let is_file =
                    name.starts_with("cgroup.") || !self.root.has(&format!("{directory}/{name}/cgroup.procs"));
                if is_file || visited >= MAX_GROUPS {
                    continue;
                }
                visited += 1;
                let below = format!("{group}/{name}");
                if visit(&below) && depth < MAX_DEPTH {
                    pending.push((below, depth + 1));
                }
            }
        }
    }

    /// What a group uses.
    pub(super) fn usage(&self, group: &str) -> GroupUsage {
        let file = |name: &str| format!("{}{group}/{name}", self.place);
        let counted = self.root.number(&file("pids.current"));
        let listed = || self.root.read(&file("cgroup.procs")).ok().map(|all| lines(&all));
        GroupUsage {
            memory: self.root.number(&file("memory.current")),
            cpu_seconds: self.root.read(&file("cpu.stat")).ok().and_then(|stat| cpu_seconds(&stat)),
            processes: counted.or_else(listed),
        }
    }
}

fn lines(file: &[u8]) -> u64 {
    file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64
}

/// The processor time in `cpu.stat`, which counts microseconds.
fn cpu_seconds(stat: &[u8]) -> Option<f64> {
    let line = stat.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"usage_usec "))?;
    let micros: u64 = std::str::from_utf8(line).ok()?.trim().parse().ok()?;
    Some(micros as f64 / 1e6)
}
