//! What a read costs end to end: processor time of the server for one request, belljar against rmcp without a sandbox,
//! over stdio and HTTP, in interleaved rounds with one client each.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first surprise, and prints")]

use std::process::Command;

use belljar_benches::{Samples, process_cpu, row};
use belljar_tests::{Client, Era, Server, Site, Stdio, Wire};

/// Requests that warm a server up before anything is counted.
const WARM: u32 = 500;

/// Makes `operations` reads and says what they cost the server, in nanoseconds.
fn cost<W: Wire>(client: &mut Client<W>, pid: u32, uri: &str, operations: u32) -> u64 {
    let before = process_cpu(pid);
    for _ in 0..operations {
        client.read(uri).expect("a reading");
    }
    process_cpu(pid) - before
}

fn compare<W: Wire>(title: &str, mut belljar: (Client<W>, u32), mut native: (Client<W>, u32), rounds: u32) {
    for (label, reference, operations) in [("1 KiB text", "text/1024", 400u32), ("1 MiB text", "text/1048576", 25)] {
        let uri = format!("belljar://sized/{reference}");
        let (mut ours, mut theirs) = (Samples::default(), Samples::default());
        cost(&mut belljar.0, belljar.1, &uri, WARM.min(operations * 2));
        cost(&mut native.0, native.1, &uri, WARM.min(operations * 2));
        for _ in 0..rounds {
            theirs.add(cost(&mut native.0, native.1, &uri, operations), operations);
            ours.add(cost(&mut belljar.0, belljar.1, &uri, operations), operations);
        }
        println!(
            "\n| {title}, {label} | us CPU of the server, median | middle half | over no sandbox |\n|---|---|---|---|"
        );
        println!("{}", row("rmcp alone, no sandbox", &theirs, &theirs));
        println!("{}", row("belljar: a fresh sandbox for every read", &ours, &theirs));
    }
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(15);
    let native = std::env::current_exe().expect("our own path").with_file_name("native");
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    // Records are kept, as an operator would.
    site.config(&format!("audit = {:?}", site.path("audit.jsonl")));

    let mut client = site.stdio(Era::Modern);
    let mut other = Client::<Stdio>::start(Command::new(&native), Era::Modern);
    let pids = (client.wire().process.id(), other.wire().process.id());
    compare("stdio", (client, pids.0), (other, pids.1), rounds);

    let server = site.http();
    let mut command = Command::new(&native);
    command.arg("--http");
    let other = Server::start(command);
    let pids = (server.process.id(), other.process.id());
    compare("HTTP", (server.client(Era::Modern), pids.0), (other.client(Era::Modern), pids.1), rounds);
}
