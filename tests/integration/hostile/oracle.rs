//! Checks the attacked process from outside, for every row. Is it alive? Which files and connections did the kernel
//! report? Did it write a secret? Which resources does it hold afterwards? How fast did it answer the witness?

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_tests::net::sockets_of_one_port;
use belljar_tests::{Process, Site, Watch};

use crate::tools::deadline;

/// How long the process may take to release files, threads and memory, if guards are off.
const QUIESCENCE: Duration = Duration::from_secs(5);

/// A file that no provider may open or read, and sockets that no provider may reach.
pub(crate) struct Canaries {
    directory: PathBuf,
    /// The secret text in the file, and in the variable `CANARY` of the host's environment.
    pub(crate) secret: String,
    watch: Watch,
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Canaries {
    /// Creates the file and the sockets in a site.
    pub(crate) fn new(site: &mut Site) -> Canaries {
        let secret = format!("canary-{:032x}", fastrand::u128(..));
        site.write("canary/secret.txt", &secret);
        site.env("CANARY", &secret);
        let directory = site.path("canary");
        let (tcp, udp) = sockets_of_one_port();
        Canaries { watch: Watch::over(&directory), directory, secret, tcp, udp }
    }

    /// The file that no provider may open.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join("secret.txt")
    }

    /// The address that no provider may connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.tcp.local_addr().expect("a bound socket")
    }

    /// Describes each open of the file, each connection and each datagram since the last call.
    pub(crate) fn touched(&mut self) -> Vec<String> {
        let mut all: Vec<String> =
            self.watch.opened().iter().map(|path| format!("the canary {} was opened", path.display())).collect();
        if !self.tcp.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            all.push("a client connected to the canary's TCP port".to_owned());
        }
        if !self.udp.recv(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            all.push("a datagram arrived at the canary's UDP port".to_owned());
        }
        all
    }
}

/// The most files that belljar holds for a worker process.
const FILES_OF_WORKER: usize = 6;

/// The memory of a worker process that runs no call, without the files that it maps, in bytes.
const MEMORY_OF_WORKER: u64 = 12 << 20;

/// The open files and threads of belljar's process, and the memory of this process and its workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) files: usize,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
    workers: usize,
}

impl Holdings {
    /// What a process and its workers hold now.
    pub(crate) fn of(process: &Process) -> Holdings {
        let (memory, workers) = (process.memory() + process.memory_of_workers().0, process.workers().len());
        Holdings { files: process.files(), threads: process.threads(), memory, workers }
    }

    /// The most memory that the process and its workers held beyond `self`, in bytes. A worker that has started since
    /// then counts with what its calls used.
    pub(crate) fn peak(self, process: &Process) -> u64 {
        let most = process.peak_memory() + process.memory_of_workers().1;
        most.saturating_sub(self.memory + self.started(process.workers().len()) as u64 * MEMORY_OF_WORKER)
    }

    /// How many workers have started, of `now` that run.
    fn started(self, now: usize) -> usize {
        now.saturating_sub(self.workers)
    }

    /// Waits until the process has no more files and threads than `self`. The memory may exceed `self` by a twentieth or by
    /// `keeps` bytes, and a worker that has started since then holds some. Returns the last measured values, and a message for each value that is still too high.
    pub(crate) fn settle(self, process: &Process, keeps: u64) -> (Holdings, Vec<String>) {
        let deadline = Instant::now() + deadline(QUIESCENCE);
        loop {
            if process.ended().is_some() {
                return (self, Vec::new());
            }
            let now = Holdings::of(process);
            let over = self.exceeded(now, keeps);
            if over.is_empty() || Instant::now() >= deadline {
                return (now, over);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn exceeded(self, now: Holdings, keeps: u64) -> Vec<String> {
        let mut all = Vec::new();
        let started = self.started(now.workers);
        if now.files > self.files + started * FILES_OF_WORKER {
            all.push(format!("{} files are open after the attack, {} before it", now.files, self.files));
        }
        if now.threads > self.threads {
            all.push(format!("{} threads run after the attack, {} before it", now.threads, self.threads));
        }
        let most = self.memory + (self.memory / 20).max(keeps) + started as u64 * MEMORY_OF_WORKER;
        if now.memory > most {
            all.push(format!(
                "the process uses {} MiB after the attack, {} before it",
                now.memory >> 20,
                self.memory >> 20
            ));
        }
        all
    }
}

/// Describes the failures of a process: it ended, or it panicked.
pub(crate) fn health(process: &Process) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(status) = process.ended() {
        all.push(format!("the process ended: {status}"));
    }
    // Each line of the log begins with the time (`20...`), and may quote a guest's output. The message of a host panic
    // begins without a time.
    let stderr = process.stderr();
    if let Some(line) = stderr.lines().find(|line| line.contains("panicked at") && !line.starts_with("20")) {
        all.push(format!("the host panicked: {line}"));
    }
    all
}

/// Describes each place that contains the secret: standard error, or the audit records.
pub(crate) fn leaks(site: &Site, stderr: &str, secret: &str) -> Vec<String> {
    let mut all = Vec::new();
    if stderr.contains(secret) {
        all.push("a secret on stderr".to_owned());
    }
    if fs::read_to_string(site.path("audit.jsonl")).is_ok_and(|records| records.contains(secret)) {
        all.push("a secret in the records".to_owned());
    }
    all
}

/// The reads of a witness.
#[derive(Clone, Debug, Default)]
pub(crate) struct WitnessTimes {
    /// How long each read took.
    pub(crate) times: Vec<Duration>,
    /// Wrong answers, and missing ones.
    pub(crate) wrong: Vec<String>,
}

impl WitnessTimes {
    /// Adds the outcome of one read. Keeps at most five failures.
    pub(crate) fn note(&mut self, outcome: Result<Duration, String>) {
        match outcome {
            Ok(took) => self.times.push(took),
            Err(why) if self.wrong.len() < 5 => self.wrong.push(format!("the witness: {why}")),
            Err(_) => {}
        }
    }

    /// The given percentile of the read times.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        percentile(&self.times, percent)
    }
}

/// The given percentile of `times`: `percent` % of the values are not larger.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}
