//! Measures large answers: 1 MiB and 8 MiB, text, lines of a log and blob, over both transports. Compares belljar with
//! rmcp without a sandbox. Each server has one client, and each round measures both servers. Also measures the memory for
//! one answer of 8 MiB.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::process::Command;

use belljar_benches::{Record, Samples, process_cpu, row};
use belljar_tests::process::Process;
use belljar_tests::{Client, Era, Server, Site, Stdio, Wire, places};

const MIB: u64 = 1 << 20;

/// The reads, as (kind, size in MiB, number of reads in a round).
const READ: [(&str, u64, u32); 5] = [("text", 1, 16), ("log", 1, 16), ("blob", 1, 16), ("text", 8, 3), ("blob", 8, 3)];

/// The two servers.
const SERVERS: [&str; 2] = ["rmcp alone, no sandbox", "belljar: a fresh sandbox for every read"];

fn uri(kind: &str, mib: u64) -> String {
    format!("belljar://sized/{kind}/{}", mib * MIB)
}

/// Makes `operations` reads. Returns the processor time of the server, in nanoseconds.
fn cost<W: Wire>(client: &mut Client<W>, pid: u32, uri: &str, operations: u32) -> u64 {
    let before = process_cpu(pid);
    for _ in 0..operations {
        client.read(uri).expect("a reading");
    }
    process_cpu(pid) - before
}

/// Measures all reads with both servers over the transport `wire`. Each server has a client and a process id.
fn compare<W: Wire>(record: &mut Record, wire: &str, mut servers: [(Client<W>, u32); 2], rounds: u32) {
    for (kind, mib, operations) in READ {
        let (uri, group) = (uri(kind, mib), format!("{mib} MiB {kind} over {wire}"));
        let mut samples = [Samples::default(), Samples::default()];
        for (client, pid) in &mut servers {
            cost(client, *pid, &uri, operations);
        }
        for _ in 0..rounds {
            for ((client, pid), samples) in servers.iter_mut().zip(&mut samples) {
                samples.add(cost(client, *pid, &uri, operations), operations);
            }
        }
        println!("\n| {group} | us CPU of the server, median | middle half | over no sandbox |\n|---|---|---|---|");
        for (name, own) in SERVERS.iter().zip(&samples) {
            println!("{}", row(name, own, &samples[0]));
            record.row(&group, name, "us", &own.0);
        }
    }
}

/// The growth of a server's memory at the peak of one read, divided by the size of the contents.
#[expect(clippy::cast_precision_loss, reason = "a ratio of sizes")]
fn peak<W: Wire>(client: &mut Client<W>, process: impl Fn(&mut Client<W>) -> (u64, u64), kind: &str) -> f64 {
    client.read(&uri("text", 0)).expect("a reading");
    let (before, _) = process(client);
    client.read(&uri(kind, 8)).expect("a reading");
    let (_, peak) = process(client);
    peak.saturating_sub(before) as f64 / (8 * MIB) as f64
}

/// The present and the peak resident memory of a process, in bytes.
fn held(process: &Process) -> (u64, u64) {
    (process.memory(), process.peak_memory())
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(15);
    let native = places::host().with_file_name("native");
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    // Write the audit record, as in production.
    let audit = site.path("audit.jsonl");
    site.config(&format!("audit = {audit:?}\n[limits]\nresult = \"16MiB\"\nmemory = \"128MiB\""));
    let stdio = |which: usize| match which {
        0 => Client::<Stdio>::start(Command::new(&native), Era::Stateless),
        _ => site.stdio(Era::Stateless),
    };
    let http = |which: usize| match which {
        0 => {
            let mut command = Command::new(&native);
            command.arg("--http");
            Server::start(command)
        }
        _ => site.http(),
    };
    let mut record = Record::new();
    for kind in ["text", "blob"] {
        for wire in ["stdio", "HTTP"] {
            let group = format!("memory for one answer, 8 MiB {kind} over {wire}");
            println!("\n| {group} | times its size |\n|---|---|");
            for (which, name) in SERVERS.iter().enumerate() {
                let each = (0..3).map(|_| match wire {
                    "stdio" => peak(&mut stdio(which), |client| held(&client.wire().process), kind),
                    _ => {
                        let server = http(which);
                        peak(&mut server.client(Era::Stateless), |_| held(&server.process), kind)
                    }
                });
                let samples = Samples(each.collect());
                println!("| {name} | {:.2}x |", samples.median());
                record
                    .row(&group, name, "x", &samples.0)
                    .note("the most it held beyond what it held before, over the size");
            }
        }
    }
    let with_pid = |which| {
        let mut client = stdio(which);
        let pid = client.wire().process.id();
        (client, pid)
    };
    compare(&mut record, "stdio", [0, 1].map(with_pid), rounds);
    let servers = [0, 1].map(http);
    let clients = [0, 1].map(|which: usize| {
        let server = servers.get(which).expect("two");
        (server.client(Era::Stateless), server.process.id())
    });
    compare(&mut record, "HTTP", clients, rounds);
    record.hand_over().expect("a file that can be written");
}
