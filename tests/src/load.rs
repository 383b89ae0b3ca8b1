//! Measures how much other programs use the processors of this machine during a measurement.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

/// Clock ticks of processor time in a second, as the kernel counts them for programs (`USER_HZ`).
const TICKS: f64 = 100.0;

/// The share of the processors above which other programs make a measured time or ratio meaningless.
const IDLE: f64 = 0.1;

/// The processor time at the beginning of a measurement: that of all programs, and that of this test with its processes.
#[derive(Debug)]
pub struct Load {
    began: Instant,
    all: u64,
    own: u64,
}

impl Load {
    /// Begins a measurement.
    pub fn begin() -> Load {
        Load { began: Instant::now(), all: machine(), own: own() }
    }

    /// True if other programs or a hypervisor used more than a tenth of the processors since the beginning. Then a time
    /// that the test measured must not fail the test.
    pub fn is_shared(&self) -> bool {
        let (all, own) = (machine().saturating_sub(self.all), own().saturating_sub(self.own));
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        let capacity = self.began.elapsed().as_secs_f64() * TICKS * processors;
        all.saturating_sub(own) as f64 > IDLE * capacity
    }
}

/// The ticks in which all processors were busy. The sum of user, nice, system, irq, softirq and steal in the first line
/// of `/proc/stat`.
fn machine() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("a /proc");
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .filter_map(|field| field.parse().ok())
        .collect();
    [0, 1, 2, 5, 6, 7].iter().filter_map(|at| fields.get(*at)).sum()
}

/// The ticks of this process, of the processes that it started, of those that they started, and of all that ended.
fn own() -> u64 {
    ticks_of(std::process::id())
}

/// The ticks of a process, of the processes that it started, of those that they started, and of all that ended.
pub(crate) fn ticks_of(pid: u32) -> u64 {
    ticks_below(pid, &all_processes())
}

/// The processes that a process started, and those that they started.
pub(crate) fn processes_below(top: u32) -> Vec<u32> {
    let all = all_processes();
    all.keys().copied().filter(|pid| *pid != top && is_below(*pid, top, &all)).collect()
}

fn all_processes() -> HashMap<u32, ProcessTimes> {
    let all = fs::read_dir("/proc").expect("a /proc").flatten();
    let stats = all.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| process_times(&stat)).collect()
}

/// The ticks of the process `top`, and of all processes below it.
fn ticks_below(top: u32, all: &HashMap<u32, ProcessTimes>) -> u64 {
    all.iter().filter(|(pid, _)| is_below(**pid, top, all)).map(|(_, process)| process.ticks).sum()
}

/// True if `top` is the process, or started it, or started one that did.
fn is_below(pid: u32, top: u32, all: &HashMap<u32, ProcessTimes>) -> bool {
    let chain = std::iter::successors(Some(pid), |pid| all.get(pid).map(|process| process.parent));
    // Ids may be used again while `/proc` is read: a chain must not be endless.
    chain.take(all.len()).any(|pid| pid == top)
}

/// A process, as `/proc/PID/stat` describes it (proc(5)).
struct ProcessTimes {
    parent: u32,
    /// Processor time of the process, and of its children that ended.
    ticks: u64,
}

/// The id of a process, and its times.
fn process_times(stat: &str) -> Option<(u32, ProcessTimes)> {
    let pid = stat.split_once(' ')?.0.parse().ok()?;
    // The name in parentheses may contain spaces. After it come the state and the parent; utime, stime, cutime and cstime are
    // the 12th to the 15th of these fields.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((pid, ProcessTimes { parent, ticks }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::DEADLINE;

    #[test]
    fn the_processor_time_of_a_test_is_not_counted_as_foreign() {
        let (all, began) = (own(), Instant::now());
        while own() == all {
            assert!(began.elapsed() < DEADLINE, "no processor time in {DEADLINE:?}");
        }
        assert!(machine() >= own() - all);
    }

    /// A build that runs beside the tests belongs to the same process group.
    #[test]
    fn the_processor_time_of_a_parent_is_counted_as_foreign() {
        let parent = |parent, ticks| ProcessTimes { parent, ticks };
        let (pid, times) = process_times("7 (a) b) S 5 1 2 3 4 5 6 7 8 9 100 200 300 401 20 0").unwrap();
        assert_eq!((pid, times.parent, times.ticks), (7, 5, 1001));
        let all = HashMap::from([(1, parent(0, 1)), (5, parent(1, 10)), (6, parent(1, 100)), (7, parent(5, 1000))]);
        assert_eq!((ticks_below(5, &all), ticks_below(6, &all), ticks_below(1, &all)), (1010, 100, 1111));
    }
}
