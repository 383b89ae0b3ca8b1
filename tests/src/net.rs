//! A network of its own for one test: public addresses that lead to this very process, and a name server that says so.
//! Nothing of it is seen by, or sees, anything outside.
//!
//! A kernel gives a network to a process, not to a thread: the test runs itself once more, inside.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::process;

/// Set for the run inside: the name of the test.
const INSIDE: &str = "BELLJAR_TEST_NETWORK";

/// How long a test inside may take: it compiles its components anew.
const PATIENCE: Duration = Duration::from_secs(300);

/// An address of the public internet, which leads here.
pub const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);

/// The name of the test whose network this is; none on the machine's own.
pub fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// Runs `body` in a network of its own, where [`PUBLIC`] leads to this machine. `name`: the path of the test, as it is
/// chosen on the command line.
pub fn isolated(name: &str, body: impl FnOnce()) {
    if inside().is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("a test program");
    let mut command = Command::new("unshare");
    let setup = format!("ip link set lo up && ip addr add {PUBLIC}/32 dev lo && exec \"$@\"");
    command.args(["--net", "--map-root-user", "sh", "-c", &setup, "sh"]).arg(program);
    command.args([name, "--exact", "--nocapture"]).env(INSIDE, name.replace("::", "-"));
    let output = process::run(command, PATIENCE);
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("1 passed"), "in a network of its own:\n{told}");
}

/// A name server on UDP, for these names alone.
#[derive(Debug)]
pub struct Names {
    /// Where it listens.
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Names {
    /// Answers for each name with its address, and for others that there is no such name.
    pub fn serve(names: &[(&str, Ipv4Addr)]) -> Names {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        let names: BTreeMap<String, Ipv4Addr> = names.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                counter.fetch_add(1, Ordering::Relaxed);
                if let Some(answer) = answer(&packet[..length], &names) {
                    socket.send_to(&answer, from).ok();
                }
            }
        });
        Names { address, asked }
    }

    /// How many questions came.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// The answer to a question as RFC 1035 writes it: an address for type A, none for any other type.
fn answer(question: &[u8], names: &BTreeMap<String, Ipv4Addr>) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(question.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let kind = question.get(at..at + 2)?;
    let end = at + 4;
    let found = names.get(&labels.join("."));
    let is_address = found.is_some() && kind == [0, 1];
    let code = if found.is_some() { 0 } else { 3 };
    let mut out = question.get(..2)?.to_vec();
    out.extend([0x85, 0x80 | code, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    out.extend(question.get(12..end)?);
    if let Some(address) = found.filter(|_| is_address) {
        out.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        out.extend(address.octets());
    }
    Some(out)
}

/// A web server that answers every request in the same way, and counts who comes.
#[derive(Debug)]
pub struct Upstream {
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// Listens on `address`, port 80.
    pub fn serve(address: impl Into<IpAddr>) -> Upstream {
        let listener = TcpListener::bind(SocketAddr::new(address.into(), 80)).expect("a free port");
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || respond(stream).ok());
            }
        });
        Upstream { connections }
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn respond(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}
