//! The processor time of a process and of all its descendants between two moments, from `/proc`.

use std::collections::HashMap;
use std::fs;

/// The processor time of each thread in a tree of processes at one moment, in nanoseconds.
///
/// The times come from `schedstat` of each thread, which counts nanoseconds. `stat` of a process counts only hundredths
/// of a second.
pub struct CpuSnapshot(HashMap<(u32, u32), u64>);

impl CpuSnapshot {
    /// Measures the process `root` and its descendants now.
    pub fn of(root: u32) -> CpuSnapshot {
        let mut threads = HashMap::new();
        for pid in processes(root) {
            for thread in numbers(&format!("/proc/{pid}/task")) {
                let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
                if let Some(nanos) = stat.split(' ').next().and_then(|field| field.parse().ok()) {
                    threads.insert((pid, thread), nanos);
                }
            }
        }
        CpuSnapshot(threads)
    }

    /// The processor time of all threads so far, in nanoseconds. Lacks the time of threads that have ended.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The processor time from `earlier` to this moment, in nanoseconds. Lacks the time of threads that ended
    /// meanwhile: see [`ticks`].
    pub fn since(&self, earlier: &CpuSnapshot) -> u64 {
        let used = |(thread, now): (&(u32, u32), &u64)| now.saturating_sub(earlier.0.get(thread).copied().unwrap_or(0));
        self.0.iter().map(used).sum()
    }
}

/// The processor time of the process `root` and its descendants, with their ended threads and reaped children. In
/// nanoseconds, with a resolution of 10 ms.
pub fn ticks(root: u32) -> u64 {
    const TICK: u64 = 10_000_000;
    let one = |pid| {
        let all = fields(pid)?;
        // utime, stime, cutime and cstime are the fields 14 to 17. `all` begins with field 3.
        Some(all.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum::<u64>())
    };
    processes(root).into_iter().filter_map(one).sum::<u64>() * TICK
}

/// The process `root` and all its descendants.
pub fn processes(root: u32) -> Vec<u32> {
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

/// The fields of `/proc/PID/stat` from the third field on. The second field, the name, may contain spaces.
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
    fn processor_time_of_a_grandchild_is_counted() {
        // The outer shell waits for the end of its input. Meanwhile, the inner shell computes without end.
        let spin = "while :; do :; done";
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sh -c '{spin}' & cat >/dev/null; kill $!")]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (before, began) = (CpuSnapshot::of(child.id()), Instant::now());
        let mut used = 0;
        while used < 50_000_000 && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
            used = CpuSnapshot::of(child.id()).since(&before);
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
    fn a_missing_process_has_no_processor_time() {
        let before = CpuSnapshot::of(u32::MAX);
        assert_eq!(CpuSnapshot::of(u32::MAX).since(&before), 0);
        assert_eq!(ticks(u32::MAX), 0);
    }
}
