//! A real Redis on loopback, for belljars that share a store.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio as Pipe};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::debian;
use crate::net::free_port;
use crate::places;
use crate::process::Process;
use crate::wait::wait_until;

/// A Redis with a port of its own. Dropping this value kills it.
#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    port: u16,
    directory: TempDir,
    options: Vec<String>,
    has_tls: bool,
}

impl Redis {
    /// Starts a Redis with these options of its command line. `None` if none is installed, and `BELLJAR_SKIP` says so.
    pub fn start(options: &[&str]) -> Option<Redis> {
        Self::started(options, false)
    }

    /// Starts a Redis that takes encrypted connections alone. `certificate` and `key` are files.
    pub fn start_tls(certificate: &Path, key: &Path) -> Option<Redis> {
        let [certificate, key] = [certificate, key].map(|path| path.to_str().expect("a path of letters"));
        let options = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no"];
        Self::started(&options, true)
    }

    fn started(options: &[&str], has_tls: bool) -> Option<Redis> {
        places::program(&debian::REDIS)?;
        let port = free_port();
        let directory = TempDir::with_prefix("redis-").expect("a temporary directory");
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut redis = Redis { process: None, port, directory, options, has_tls };
        redis.restart();
        Some(redis)
    }

    /// The URL for `[replicas]`.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.has_tls { "rediss" } else { "redis" }, self.address())
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Starts it, without any data, on the same port.
    pub fn restart(&mut self) {
        self.kill();
        let program = places::program(&debian::REDIS).expect("it was there before");
        let mut command = Command::new(program);
        let port = self.port.to_string();
        let (plain, encrypted) = if self.has_tls { ("0", port.as_str()) } else { (port.as_str(), "0") };
        command.args(["--port", plain, "--tls-port", encrypted]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        command.args(&self.options).current_dir(self.directory.path()).stdin(Pipe::null()).stdout(Pipe::null());
        let process = Process::start(command);
        wait_until("Redis", || {
            let stream = TcpStream::connect(self.address());
            stream.map(drop).map_err(|error| format!("{error}: {}", process.stderr()))
        });
        self.process = Some(process);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
            process.wait(Duration::from_secs(60));
        }
    }

    /// Stops it: connections stay open, and nothing is answered. True starts it again.
    pub fn hold(&self, goes_on: bool) {
        let signal = if goes_on { Signal::CONT } else { Signal::STOP };
        let id = self.process.as_ref().expect("it runs").id();
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the process is ours");
    }

    /// The names of all keys.
    pub fn keys(&self) -> Vec<String> {
        let mut stream = TcpStream::connect(self.address()).expect("a Redis that accepts");
        stream.write_all(b"KEYS *\r\n").expect("a Redis that reads");
        let mut lines = BufReader::new(stream).lines();
        let mut next = || lines.next().expect("an answer").expect("a line");
        let count: usize = next().trim_start_matches('*').parse().expect("a count");
        (0..count).map(|_| (next(), next()).1).collect()
    }

    /// The answer to a command, given as its words: a text, or the first line of any other answer.
    pub fn ask(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(self.address()).expect("a Redis that accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
        stream.write_all(request.as_bytes()).expect("a Redis that reads");
        let (mut reader, mut line) = (BufReader::new(stream), String::new());
        reader.read_line(&mut line).expect("an answer");
        let line = line.trim_end();
        let Some(length) = line.strip_prefix('$').and_then(|length| length.parse().ok()) else {
            return line.to_owned();
        };
        let mut text = vec![0; length];
        reader.read_exact(&mut text).expect("the whole text");
        String::from_utf8_lossy(&text).into_owned()
    }
}
