//! A running process of belljar. Collects its standard error, waits for its end with a deadline, and reads its memory
//! from `/proc`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio as Pipe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::load;
use crate::wait::{DEADLINE, wait_until_within};

/// The longest time until a process ends after SIGTERM or the end of its input. The shutdown of the host has a shorter
/// deadline.
pub const END: Duration = DEADLINE;

/// The interval between two polls of a state for which no blocking call exists.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A child process. Dropping this value kills the process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stderr: Arc<Mutex<String>>,
    /// The thread that copies the standard error.
    stderr_reader: JoinHandle<()>,
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The complete standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command`, and collects its standard error.
    pub fn start(mut command: Command) -> Process {
        command.stderr(Pipe::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stderr = Arc::new(Mutex::new(String::new()));
        let stderr_reader = collect_lines(child.stderr.take().expect("piped above"), stderr.clone());
        Process { child, stderr, stderr_reader }
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes the standard input and output. Panics if the command did not pipe both, and in a second call.
    pub fn pipes(&mut self) -> (ChildStdin, ChildStdout) {
        let child = &mut self.child;
        child.stdin.take().zip(child.stdout.take()).expect("piped by the command, and not taken yet")
    }

    /// The standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until `pick` returns a value for a line of standard error, and returns that value.
    pub fn await_stderr<T>(&mut self, patience: Duration, pick: impl Fn(&str) -> Option<T>) -> T {
        wait_until_within(patience, "a line on standard error", || {
            let stderr = self.stderr();
            if let Some(found) = stderr.lines().find_map(&pick) {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait().expect("only this value waits for the child") {
                panic!("ended with {status} before it was ready:\n{stderr}");
            }
            Err(stderr)
        })
    }

    /// The processes that the process started, and those that they started.
    pub fn descendants(&self) -> Vec<u32> {
        load::processes_below(self.id()).into_iter().filter(|pid| *pid != self.id()).collect()
    }

    /// The worker processes of belljar that run now.
    pub fn workers(&self) -> Vec<u32> {
        let runs = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"serve-mount")
        };
        load::processes_below(self.id()).into_iter().filter(runs).collect()
    }

    /// The memory of all worker processes without the files that they map, in bytes: now, and the most of each.
    pub fn memory_of_workers(&self) -> (u64, u64) {
        let all = self.workers();
        let field = |name| all.iter().map(|worker| field_of(*worker, name).unwrap_or_default()).sum::<u64>();
        (field("RssAnon:"), field("VmHWM:").saturating_sub(field("RssFile:")))
    }

    /// The resident memory of the process, in bytes.
    pub fn memory(&self) -> u64 {
        self.status_field("VmRSS:")
    }

    /// The resident memory in anonymous ranges of 4 GiB and more, in bytes. These ranges are the slots in which guests
    /// run: each has the address space of the largest memory.
    pub fn slots(&self) -> u64 {
        const LARGE: u64 = 4 << 30;
        let maps = fs::read_to_string(format!("/proc/{}/smaps", self.id())).expect("the process runs");
        // The kernel splits a mapping into adjacent ranges if their protections differ. So add up adjacent ranges.
        let (mut all, mut range, mut end) = (0, (0, 0), 0);
        let settle = |(length, resident): (u64, u64)| if length >= LARGE { resident } else { 0 };
        for line in maps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let bounds = words.first().and_then(|word| word.split_once('-'));
            let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
            if let Some((from, to)) = bounds.and_then(|(from, to)| Some((hex(from)?, hex(to)?))) {
                let has_file = words.len() > 5;
                if from != end || has_file {
                    all += settle(std::mem::take(&mut range));
                }
                range.0 += if has_file { 0 } else { to - from };
                end = if has_file { 0 } else { to };
            } else if let ["Rss:", kib, ..] = words[..] {
                range.1 += if end == 0 { 0 } else { kib.parse::<u64>().expect("a number") * 1024 };
            }
        }
        all + settle(range)
    }

    /// The peak of the resident memory, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.status_field("VmHWM:")
    }

    /// The processor time of the process and of all processes that it started, in clock ticks of 10 ms.
    pub fn cpu_ticks(&self) -> u64 {
        load::ticks_of(self.id())
    }

    /// The exit status. `None` if the process still runs. Unlike [`Process::wait`], this method does not reap the child.
    pub fn ended(&self) -> Option<ExitStatus> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("the child is not reaped yet");
        // After the name in parentheses come the fields. The first is the state, and the last the exit status.
        let (_, rest) = stat.rsplit_once(')').expect("a stat line has a name");
        let mut fields = rest.split_whitespace();
        let state = fields.next().expect("a state");
        let status = fields.next_back().and_then(|status| status.parse().ok()).expect("a status");
        matches!(state, "Z" | "X").then(|| ExitStatus::from_raw(status))
    }

    /// The number of open descriptors.
    pub fn files(&self) -> usize {
        self.entries("fd")
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.entries("task")
    }

    /// The number of entries in a directory of `/proc/<pid>`.
    fn entries(&self, of: &str) -> usize {
        fs::read_dir(format!("/proc/{}/{of}", self.id())).expect("the process runs").count()
    }

    /// Kills the process with SIGKILL, and waits for its end.
    pub fn kill(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the process is ours");
        while self.ended().is_none() {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills the process and the others of its group with SIGKILL, and waits for its end. The command made a group of its own.
    pub fn kill_group(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).expect("the processes are ours");
        while self.ended().is_none() {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills one of [`Process::descendants`] with SIGKILL, unless it has ended.
    pub fn kill_descendant(&self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }

    /// Asks the process to end with SIGTERM, as a service manager does.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the process runs");
    }

    /// Asks the process to reload its configuration with SIGHUP, as an operator does.
    pub fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("the process runs");
    }

    /// The number of memory mappings. A growing number shows that the process never frees loaded code.
    pub fn mappings(&self) -> usize {
        fs::read_to_string(format!("/proc/{}/maps", self.id())).expect("the process runs").lines().count()
    }

    /// Waits for the end of the process. If the process runs for longer than `patience`, panics and kills it.
    pub fn wait(mut self, patience: Duration) -> Ended {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("only this value waits for the child") {
                // The pipe may still contain output. But do not wait longer than `patience`: a grandchild may keep the
                // pipe open.
                while !self.stderr_reader.is_finished() && Instant::now() < deadline {
                    thread::sleep(POLL_INTERVAL);
                }
                return Ended { status, stderr: self.stderr() };
            }
            assert!(Instant::now() < deadline, "did not end within {patience:?}:\n{}", self.stderr());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// A field of `/proc/<pid>/status` that counts KiB.
    fn status_field(&self, name: &str) -> u64 {
        field_of(self.id(), name).expect("the process runs")
    }
}

/// A field of `/proc/<pid>/status` that counts KiB, in bytes. `None` if the process has ended.
fn field_of(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(field.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ignore the errors: both calls fail only for a process that was already reaped.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The processor time of the living threads of a process, without its children. Zero if the process has ended.
///
/// `/proc/PID/task/*/schedstat` counts nanoseconds, but `/proc/PID/stat` only hundredths of a second.
pub fn cpu_time(pid: u32) -> Duration {
    let one = |task: fs::DirEntry| -> Option<u64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    Duration::from_nanos(tasks.filter_map(one).sum())
}

/// Runs `command` to its end. After `patience`, kills it and panics.
pub fn run(mut command: Command, patience: Duration) -> Output {
    command.stdin(Pipe::null()).stdout(Pipe::piped());
    let mut process = Process::start(command);
    let mut stdout = process.child.stdout.take().expect("piped above");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut bytes).map(|_| bytes)
    });
    let ended = process.wait(patience);
    Output {
        status: ended.status,
        stdout: reader.join().expect("the reader does not panic").expect("a readable pipe"),
        stderr: ended.stderr.into_bytes(),
    }
}

/// Copies a child's standard error line by line on a new thread, so that the child never blocks on a full pipe.
fn collect_lines(stderr: ChildStderr, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).into_owned();
            into.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            line.clear();
        }
    })
}
