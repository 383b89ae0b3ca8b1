//! Compares one belljar for all clients (`belljar up`) with one for each client.
//!
//! - Memory of 20 clients with 10 providers, as the sum of all processes' shares (PSS), also of 20 Node servers.
//! - Processor time of a read through a joined process, of all processes together.
//! - Wall time from the start of a client's process to the answer of `initialize`, compared with `belljar --version`.
//! - Wall time from a crash of the belljar until each of 20 clients is answered again.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio as Pipe};
use std::time::Instant;

use belljar_benches::{Record, Samples, process_cpu, row, tree};
use belljar_tests::{Client, Era, Site, Stdio, places};
use serde_json::json;

/// Clients of one user.
const CLIENTS: usize = 20;

/// The providers of the site.
const PROVIDERS: [&str; 10] = ["clock", "files", "git", "images", "logs", "pdf", "sqlite", "system", "tables", "web"];

/// The text that each client reads.
const READ: &str = "belljar://clock/utc";

/// Reads of one measurement of processor time.
const BATCH: u32 = 250;

/// Measurements of processor time in each round.
const BATCHES: u32 = 4;

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(7);
    let mut record = Record::new();
    let site = Site::new();
    PROVIDERS.iter().for_each(|stem| site.mount(stem));
    site.config("[callers]\nrate = 1000000\nburst = 1000000\n[mounts.clock]\ncache = \"off\"\n");
    assert!(site.run(&["check"]).status.success(), "the site is valid");
    memory(&site, &mut record);
    reads(&site, &mut record, rounds);
    starts(&site, &mut record, rounds);
    crashes(&site, &mut record, rounds);
    record.hand_over().expect("a file that can be written");
}

/// Starts the belljar that all clients join. Stopped when this value is dropped.
struct Up<'a>(&'a Site);

impl<'a> Up<'a> {
    fn new(site: &'a Site) -> Self {
        assert!(site.run(&["up", "--background"]).status.success(), "it starts");
        Up(site)
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.0.run(&["down"]);
    }
}

/// A client that joins, or one that serves alone.
fn client(site: &Site, is_alone: bool) -> Client<Stdio> {
    let verb: &[&str] = if is_alone { &["serve", "--alone"] } else { &["serve"] };
    Client::start(site.command(site.arguments(verb)), Era::Session)
}

/// A line of `/proc/PID/smaps_rollup`, in KiB.
fn smaps(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The share in memory of these processes and of all that they started, in MiB.
#[expect(clippy::cast_precision_loss, reason = "KiB far below 2^52")]
fn shares(pids: &[u32]) -> f64 {
    let all = pids.iter().flat_map(|pid| tree::processes(*pid)).map(|pid| smaps(pid, "Pss:")).sum::<u64>();
    all as f64 / 1024.0
}

fn memory(site: &Site, record: &mut Record) {
    let measure = |is_alone: bool, server: Option<u32>| {
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| client(site, is_alone)).collect();
        for client in &mut clients {
            client.resources();
            client.text(READ);
        }
        let mut pids: Vec<u32> = clients.iter().map(|client| client.wire_ref().process.id()).collect();
        let own = pids.iter().map(|pid| smaps(*pid, "Private_Dirty:")).max().unwrap_or(0);
        pids.extend(server);
        (shares(&pids), own)
    };
    let (alone, _) = measure(true, None);
    let up = Up::new(site);
    let (joined, own) = measure(false, Some(site.up_pid()));
    drop(up);
    println!("\n| {CLIENTS} clients, {} providers | MiB, sum of shares | ratio |\n|---|---|---|", PROVIDERS.len());
    println!(
        "| one belljar for each | {alone:.1} | 1.00x |\n| one belljar for all | {joined:.1} | {:.3}x |",
        joined / alone
    );
    record.row("memory of 20 clients", "one belljar for each", "MiB", &[alone]);
    record.row("memory of 20 clients", "one belljar for all", "MiB", &[joined]);
    match node(site) {
        Some(node) => {
            println!("| one Node server for each | {node:.1} | {:.3}x |", node / alone);
            println!("\nNode servers take {:.1}x of one belljar for all.", node / joined);
            record.row("memory of 20 clients", "one Node server for each", "MiB", &[node]);
        }
        None => println!("\nleft out: Node servers, which `cargo xtask bench --only peers` installs"),
    }
    println!("\nA joined process has {own} KiB of pages of its own.");
}

/// The share in memory of 20 Node servers, each with one directory. `None` if they are not installed.
fn node(site: &Site) -> Option<f64> {
    let folder = places::repository().join("tests/benches/peers/node");
    let script = folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    if !script.is_file() {
        return None;
    }
    let mut clients: Vec<Client<Stdio>> = Vec::new();
    for _ in 0..CLIENTS {
        let mut command = Command::new("node");
        command.arg(&script).arg(site.path("plugins"));
        let mut client = Client::start(command, Era::Session);
        client.request("tools/list", json!({})).expect("tools");
        clients.push(client);
    }
    Some(shares(&clients.iter().map(|client| client.wire_ref().process.id()).collect::<Vec<_>>()))
}

fn reads(site: &Site, record: &mut Record, rounds: u32) {
    let _up = Up::new(site);
    let mut sides = [(client(site, true), None), (client(site, false), Some(site.up_pid()))];
    let mut samples = [Samples::default(), Samples::default()];
    for batch in 0..=rounds * BATCHES {
        for ((client, server), samples) in sides.iter_mut().zip(&mut samples) {
            let pids: Vec<u32> = [client.wire_ref().process.id()].into_iter().chain(*server).collect();
            let cpu = || pids.iter().map(|pid| process_cpu(*pid)).sum::<u64>();
            let before = cpu();
            (0..BATCH).for_each(|_| drop(client.text(READ)));
            // The first one warms up.
            if batch > 0 {
                samples.add(cpu() - before, BATCH);
            }
        }
    }
    let [alone, joined] = &samples;
    println!("\n| a read over stdio | us CPU of all processes, median | middle half | ratio |\n|---|---|---|---|");
    println!("{}\n{}", row("alone", alone, alone), row("joined", joined, alone));
    record.row("a read over stdio", "alone", "us", &alone.0);
    record.row("a read over stdio", "joined", "us", &joined.0);
}

fn starts(site: &Site, record: &mut Record, rounds: u32) {
    let _up = Up::new(site);
    let (mut version, mut joined, mut direct) = (Samples::default(), Samples::default(), Samples::default());
    let (method, params) = Era::Session.greeting();
    let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params });
    for round in 0..=rounds * 10 {
        let of_version = first_line(site.command(["--version"]), "");
        let of_joined = first_line(site.command(site.arguments(&["serve"])), &format!("{opening}\n"));
        let mut program = Command::new(places::host().with_file_name("belljar-join"));
        program.args(site.arguments(&["serve"])).env_clear().envs(site.environment()).current_dir(site.path("."));
        let of_direct = first_line(program, &format!("{opening}\n"));
        if round > 0 {
            version.add(of_version, 1);
            joined.add(of_joined, 1);
            direct.add(of_direct, 1);
        }
    }
    println!("\n| from the start | us, median | middle half | ratio |\n|---|---|---|---|");
    println!("{}", row("to the line of `belljar --version`", &version, &version));
    println!("{}", row("of `belljar-join` to the answer of initialize", &direct, &version));
    println!("{}", row("of `belljar serve` to the answer of initialize", &joined, &version));
    record.row("start", "belljar --version", "us", &version.0);
    record.row("start", "initialize by belljar-join", "us", &direct.0);
    record.row("start", "initialize by belljar serve", "us", &joined.0);
}

/// The time from the start of a program to its first line, in nanoseconds. The program gets `input`.
fn first_line(mut command: Command, input: &str) -> u64 {
    let began = Instant::now();
    let mut child = command.stdin(Pipe::piped()).stdout(Pipe::piped()).spawn().expect("it starts");
    let mut to_child = child.stdin.take().expect("piped above");
    // A program that prints and ends reads nothing.
    to_child.write_all(input.as_bytes()).ok();
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped above")).read_line(&mut line).expect("a line");
    let taken = began.elapsed();
    assert!(!line.is_empty(), "it said nothing");
    drop(to_child);
    child.wait().expect("it ends");
    u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX)
}

fn crashes(site: &Site, record: &mut Record, rounds: u32) {
    let _up = Up::new(site);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| client(site, false)).collect();
    clients.iter_mut().for_each(|client| drop(client.text(READ)));
    let mut samples = Samples::default();
    for _ in 0..rounds {
        site.kill_up();
        let began = Instant::now();
        clients.iter_mut().for_each(|client| drop(client.text(READ)));
        samples.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), 1);
    }
    println!(
        "\nAfter a crash, all {CLIENTS} clients were answered within {:.0} ms (median), {:.0} ms (longest).",
        samples.median() / 1000.0,
        samples.quantile(1.0) / 1000.0
    );
    record.row("crash", "until 20 clients are answered", "us", &samples.0);
}
