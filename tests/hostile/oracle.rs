//! What is judged of every row, from outside the process that is attacked: whether it lives, what the kernel saw it open
//! and connect to, what it wrote, what it holds afterwards, and how a witness fared meanwhile.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_tests::{Process, Site, Watch};

/// How long everything may take to be as before.
const QUIESCENCE: Duration = Duration::from_secs(5);

/// Nobody may open this file, learn what is in it, or reach these sockets.
pub(crate) struct Canaries {
    directory: PathBuf,
    /// What is in the file, and in the host's environment.
    pub(crate) secret: String,
    watch: Watch,
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Canaries {
    /// Puts them up in a site.
    pub(crate) fn new(site: &mut Site) -> Canaries {
        let secret = format!("canary-{:032x}", fastrand::u128(..));
        site.write("canary/secret.txt", &secret);
        site.env("CANARY", &secret);
        let directory = site.path("canary");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let udp = UdpSocket::bind(tcp.local_addr().expect("a bound socket")).expect("the same port for datagrams");
        tcp.set_nonblocking(true).and_then(|()| udp.set_nonblocking(true)).expect("a socket");
        Canaries { watch: Watch::over(&directory), directory, secret, tcp, udp }
    }

    /// The file that nobody may open.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join("secret.txt")
    }

    /// Where nobody may connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.tcp.local_addr().expect("a bound socket")
    }

    /// What was touched since the last look.
    pub(crate) fn touched(&mut self) -> Vec<String> {
        let mut all: Vec<String> =
            self.watch.opened().iter().map(|path| format!("the canary {} was opened", path.display())).collect();
        if !self.tcp.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            all.push("somebody connected to the canary".to_owned());
        }
        if !self.udp.recv(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            all.push("somebody sent the canary a datagram".to_owned());
        }
        all
    }
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holdings {
    pub(crate) files: usize,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
}

impl Holdings {
    /// What it holds now.
    pub(crate) fn of(process: &Process) -> Holdings {
        Holdings { files: process.files(), threads: process.threads(), memory: process.memory() }
    }

    /// Waits until no more is held than before; says what is, when that does not come.
    pub(crate) fn settle(self, process: &Process, keeps: u64) -> (Holdings, Vec<String>) {
        let deadline = Instant::now() + QUIESCENCE;
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
        if now.files > self.files {
            all.push(format!("{} files are open afterwards, {} were before", now.files, self.files));
        }
        if now.threads > self.threads {
            all.push(format!("{} threads run afterwards, {} did before", now.threads, self.threads));
        }
        let most = self.memory + (self.memory / 20).max(keeps);
        if now.memory > most {
            all.push(format!("{} MiB are held afterwards, {} were before", now.memory >> 20, self.memory >> 20));
        }
        all
    }
}

/// What is wrong with a process: it ended, or it panicked.
pub(crate) fn health(process: &Process) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(status) = process.ended() {
        all.push(format!("the process ended: {status}"));
    }
    // What a guest printed stands in a line of the log, which begins with the time; a panic of the host's own does not.
    let stderr = process.stderr();
    if let Some(line) = stderr.lines().find(|line| line.contains("panicked at") && !line.starts_with("20")) {
        all.push(format!("the host panicked: {line}"));
    }
    all
}

/// Where a secret was written: to stderr, or into the records.
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

/// How a witness fared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fared {
    /// How long each read took.
    pub(crate) times: Vec<Duration>,
    /// What it got that was not its due.
    pub(crate) wrong: Vec<String>,
}

impl Fared {
    /// Takes a read into account.
    pub(crate) fn note(&mut self, outcome: Result<Duration, String>) {
        match outcome {
            Ok(took) => self.times.push(took),
            Err(why) if self.wrong.len() < 5 => self.wrong.push(format!("the witness: {why}")),
            Err(_) => {}
        }
    }

    /// The time that `percent` of all reads took at most.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        percentile(&self.times, percent)
    }
}

/// The value that `percent` of all do not exceed.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}
