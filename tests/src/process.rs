//! A running belljar: its standard error kept, its end awaited with a deadline, its memory looked at from outside.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio as Pipe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a process may take to end once it has been asked to. A drain has its own, shorter deadline in the host.
pub const END: Duration = Duration::from_secs(20);

/// How often a state that cannot be waited for is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// A child process that dies with this value.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stderr: Arc<Mutex<String>>,
    keeper: JoinHandle<()>,
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// All that it wrote to standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command`, keeping its standard error.
    pub fn start(mut command: Command) -> Process {
        command.stderr(Pipe::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stderr = Arc::new(Mutex::new(String::new()));
        let keeper = keep(child.stderr.take().expect("piped above"), stderr.clone());
        Process { child, stderr, keeper }
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard input and output, where the command piped both; once.
    pub fn pipes(&mut self) -> (ChildStdin, ChildStdout) {
        let child = &mut self.child;
        child.stdin.take().zip(child.stdout.take()).expect("piped by the command, and not taken yet")
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until standard error has a line for which `pick` answers, and returns that answer.
    pub fn await_stderr<T>(&mut self, patience: Duration, pick: impl Fn(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(found) = self.stderr().lines().find_map(&pick) {
                return found;
            }
            if let Some(status) = self.child.try_wait().expect("the child is ours to wait for") {
                panic!("ended with {status} before it was ready:\n{}", self.stderr());
            }
            assert!(Instant::now() < deadline, "not ready within {patience:?}:\n{}", self.stderr());
            thread::sleep(GLANCE);
        }
    }

    /// Bytes of memory it holds now (resident).
    pub fn memory(&self) -> u64 {
        self.status_field("VmRSS:")
    }

    /// Bytes of memory that it holds in ranges of 4 GiB and more without a file: those are the slots in which guests run, each
    /// with address space for the largest memory that there can be.
    pub fn slots(&self) -> u64 {
        const LARGE: u64 = 4 << 30;
        let maps = fs::read_to_string(format!("/proc/{}/smaps", self.id())).expect("the process runs");
        // What is side by side was one range, and each of its parts has protections of its own.
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

    /// The most memory it ever held (resident).
    pub fn peak_memory(&self) -> u64 {
        self.status_field("VmHWM:")
    }

    /// Processor time it has used, its ended children included, in clock ticks of 10 ms.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("the process runs");
        // The name in parentheses may hold spaces; utime, stime, cutime and cstime are fields 14 to 17.
        let (_, rest) = stat.rsplit_once(')').expect("a stat line has a name");
        rest.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().expect("a tick count")).sum()
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("nobody has waited for the child");
        // After the name in parentheses: the state, and as the very last the status that waits to be collected.
        let (_, rest) = stat.rsplit_once(')').expect("a stat line has a name");
        let mut fields = rest.split_whitespace();
        let state = fields.next().expect("a state");
        let status = fields.next_back().and_then(|status| status.parse().ok()).expect("a status");
        matches!(state, "Z" | "X").then(|| ExitStatus::from_raw(status))
    }

    /// How many files it has open.
    pub fn files(&self) -> usize {
        self.entries("fd")
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.entries("task")
    }

    /// How many entries a directory of `/proc/<pid>` has.
    fn entries(&self, of: &str) -> usize {
        fs::read_dir(format!("/proc/{}/{of}", self.id())).expect("the process runs").count()
    }

    /// Ends it without asking (SIGKILL).
    pub fn kill(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the process is ours");
        while self.ended().is_none() {
            thread::sleep(GLANCE);
        }
    }

    /// Asks it to end, as a service manager does (SIGTERM).
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the process runs");
    }

    /// Has it read everything again, as an operator does (SIGHUP).
    pub fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("the process runs");
    }

    /// How many pieces of memory it has mapped: what is loaded and never let go shows there.
    pub fn mappings(&self) -> usize {
        fs::read_to_string(format!("/proc/{}/maps", self.id())).expect("the process runs").lines().count()
    }

    /// Waits for its end; one that does not end in time is killed, and that is a failure.
    pub fn wait(mut self, patience: Duration) -> Ended {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours to wait for") {
                // Its last words may still be in the pipe; a grandchild that holds the pipe open is not waited for.
                while !self.keeper.is_finished() && Instant::now() < deadline {
                    thread::sleep(GLANCE);
                }
                return Ended { status, stderr: self.stderr() };
            }
            assert!(Instant::now() < deadline, "did not end within {patience:?}:\n{}", self.stderr());
            thread::sleep(GLANCE);
        }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// A field of `/proc/<pid>/status` that counts KiB.
    fn status_field(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("the process runs");
        let field = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = field.and_then(|rest| rest.split_whitespace().next()).expect("a size in KiB");
        kib.parse::<u64>().expect("a number") * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has already been waited for.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Processor time that the living threads of a process used, its children not counted; nothing when it is gone.
///
/// The scheduler's own account (`/proc/PID/task/*/schedstat`) counts nanoseconds where `stat` counts hundredths of a second.
pub fn cpu_time(pid: u32) -> Duration {
    let one = |task: fs::DirEntry| -> Option<u64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    Duration::from_nanos(tasks.filter_map(one).sum())
}

/// Runs `command` to its end; past `patience` it is killed, and that is a failure.
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

/// Copies a child's standard error line by line, so that it never blocks on a full pipe.
fn keep(stderr: ChildStderr, into: Arc<Mutex<String>>) -> JoinHandle<()> {
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
