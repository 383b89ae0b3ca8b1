//! The part `processes`: names, users, memory and processor time of all processes. Arguments are read only for mounts with
//! `command-lines`. Environments, open files and memory of processes are never read: no path to them is in this file.

use std::collections::BTreeMap;
use std::io::Cursor;

use chrono::{DateTime, SecondsFormat};
use procfs_core::FromRead as _;
use procfs_core::process::Stat;
use serde::Serialize;

use super::error::CollectError;
use super::load::{constants, kernel_stats};
use super::root::{SystemRoot, cleaned};

/// The most processes that are listed: those with the most memory.
const MAX_PROCESSES: usize = 4096;

/// The most characters of a name. The kernel keeps 15 bytes of a program's name, and some more of a thread of its own.
const MAX_NAME: usize = 64;

/// The most bytes of the arguments of one process.
const MAX_ARGUMENT_BYTES: usize = 512;

/// The most bytes of a file of one process.
const MAX_PROCESS_FILE: u64 = 8 << 10;

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct ProcessFacts {
    /// The number of all processes.
    count: usize,
    /// How many processes are in each state.
    states: BTreeMap<&'static str, usize>,
    /// Processes that are not listed, because they are too many. They have the least memory.
    left_out: usize,
    processes: Vec<ProcessEntry>,
}

/// One process.
#[derive(Serialize)]
struct ProcessEntry {
    pid: i32,
    parent: i32,
    name: String,
    state: &'static str,
    /// The number of the user that started it.
    user: Option<u32>,
    threads: i64,
    /// Resident memory in bytes.
    memory: u64,
    cpu_seconds: f64,
    started: Option<String>,
    /// The arguments. Absent without the grant; empty for threads of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    /// True if there are more arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_cut: Option<bool>,
}

pub(super) fn collect(root: &SystemRoot, with_arguments: bool) -> Result<ProcessFacts, CollectError> {
    let constants = constants(kernel_stats(root)?.btime);
    let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let mut found = Vec::new();
    for pid in root.names("proc").into_iter().filter(is_process) {
        // A process may end at any time. Then it is left out.
        let Ok(stat) = root.read_at_most(&format!("proc/{pid}/stat"), MAX_PROCESS_FILE) else { continue };
        let Ok(stat) = Stat::from_read(Cursor::new(stat)) else { continue };
        found.push(stat);
    }
    let mut states = BTreeMap::new();
    for stat in &found {
        *states.entry(state(stat.state)).or_default() += 1;
    }
    let count = found.len();
    found.sort_by_key(|stat| (std::cmp::Reverse(stat.rss), stat.pid));
    found.truncate(MAX_PROCESSES);
    let ticks = constants.ticks_per_second;
    let entry = |stat: Stat| {
        let arguments = with_arguments.then(|| arguments(root, stat.pid)).flatten();
        let (command, command_cut) = arguments.unzip();
        let since = constants.boot_time_secs.saturating_add(stat.starttime / ticks);
        let started = i64::try_from(since).ok().and_then(|since| DateTime::from_timestamp(since, 0));
        ProcessEntry {
            pid: stat.pid,
            parent: stat.ppid,
            name: cleaned(stat.comm.as_bytes(), MAX_NAME),
            state: state(stat.state),
            user: user(root, stat.pid),
            threads: stat.num_threads,
            memory: stat.rss.saturating_mul(constants.page_size),
            cpu_seconds: stat.utime.saturating_add(stat.stime) as f64 / ticks as f64,
            started: started.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            command,
            command_cut,
        }
    };
    let processes: Vec<ProcessEntry> = found.into_iter().map(entry).collect();
    Ok(ProcessFacts { count, states, left_out: count - processes.len(), processes })
}

/// The word for a state in `proc_pid_stat(5)`.
fn state(letter: char) -> &'static str {
    match letter {
        'R' => "running",
        'S' => "sleeping",
        'D' => "waiting",
        'Z' => "zombie",
        'T' | 't' => "stopped",
        'I' => "idle",
        'X' | 'x' => "dead",
        _ => "unknown",
    }
}

/// The real user id: the first number after `Uid:` in `proc_pid_status(5)`.
fn user(root: &SystemRoot, pid: i32) -> Option<u32> {
    let status = root.read_at_most(&format!("proc/{pid}/status"), MAX_PROCESS_FILE).ok()?;
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The arguments of a process, and true if there are more. `None` if the process has ended.
fn arguments(root: &SystemRoot, pid: i32) -> Option<(Vec<String>, bool)> {
    let file = root.read_at_most(&format!("proc/{pid}/cmdline"), MAX_ARGUMENT_BYTES as u64 + 1).ok()?;
    let is_cut = file.len() > MAX_ARGUMENT_BYTES;
    let kept = file.get(..MAX_ARGUMENT_BYTES).unwrap_or(&file);
    let kept = kept.strip_suffix(b"\0").unwrap_or(kept);
    if kept.is_empty() {
        return Some((Vec::new(), false));
    }
    let words = kept.split(|byte| *byte == 0).map(|word| cleaned(word, MAX_ARGUMENT_BYTES));
    Some((words.collect(), is_cut))
}
