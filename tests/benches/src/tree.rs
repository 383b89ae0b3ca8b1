//! Processor time of a process and of all that it started, between two moments, seen from outside.

use std::collections::HashMap;
use std::fs;

/// What every thread of a tree of processes had used at one moment, in nanoseconds.
///
/// The scheduler's own account, a thread at a time: it counts nanoseconds where a process's own counts hundredths of a second.
pub struct Moment(HashMap<(u32, u32), u64>);

impl Moment {
    /// Now, for the process `root` and its children's children.
    pub fn of(root: u32) -> Moment {
        let mut threads = HashMap::new();
        for pid in family(root) {
            for thread in numbers(&format!("/proc/{pid}/task")) {
                let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
                if let Some(nanos) = stat.split(' ').next().and_then(|field| field.parse().ok()) {
                    threads.insert((pid, thread), nanos);
                }
            }
        }
        Moment(threads)
    }

    /// What was used from `earlier` to this moment, in nanoseconds. What a thread used that ended meanwhile is not known: see
    /// [`ticks`].
    pub fn since(&self, earlier: &Moment) -> u64 {
        let used = |(thread, now): (&(u32, u32), &u64)| now.saturating_sub(earlier.0.get(thread).copied().unwrap_or(0));
        self.0.iter().map(used).sum()
    }
}

/// Processor time of the process `root` and of all that it started, ended threads and collected children included, in
/// nanoseconds, of which only hundredths of a second are told.
pub fn ticks(root: u32) -> u64 {
    const TICK: u64 = 10_000_000;
    let one = |pid| {
        let all = fields(pid)?;
        // utime, stime, cutime and cstime are the fields 14 to 17; the first here is 3.
        Some(all.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum::<u64>())
    };
    family(root).into_iter().filter_map(one).sum::<u64>() * TICK
}

/// A process, its children, theirs, and so on.
fn family(root: u32) -> Vec<u32> {
    let parent = |pid: u32| Some((pid, fields(pid)?.get(1)?.parse::<u32>().ok()?));
    let parents: Vec<(u32, u32)> = numbers("/proc").into_iter().filter_map(parent).collect();
    let mut all = vec![root];
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        all.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    all
}

/// The fields of `/proc/PID/stat` from the third on: the name before them may hold spaces.
fn fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// The names in a directory that are numbers.
fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_a_grandchild_uses_is_counted() {
        // A shell that waits for a shell that spins for as long as its input is open, and half a second at least.
        let spin = "while :; do :; done";
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sh -c '{spin}' & cat >/dev/null; kill $!")]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (before, began) = (Moment::of(child.id()), Instant::now());
        let mut used = 0;
        while used < 50_000_000 && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
            used = Moment::of(child.id()).since(&before);
        }
        let own = belljar_tests::process::cpu_time(child.id());
        let ticked = ticks(child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(used >= 50_000_000, "{used}");
        assert!(own < Duration::from_nanos(used / 2), "the shell itself only waits: {own:?}");
        assert!(ticked >= used / 2, "{ticked} and {used}");
    }

    #[test]
    fn nothing_is_used_by_nobody() {
        let nobody = Moment::of(u32::MAX);
        assert_eq!(Moment::of(u32::MAX).since(&nobody), 0);
        assert_eq!(ticks(u32::MAX), 0);
    }
}
