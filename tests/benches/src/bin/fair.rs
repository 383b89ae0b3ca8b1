//! Measures how much sixteen hostile mounts slow another client. The hostile mounts compute without end. The other
//! client sends short reads over HTTP; rounds without and with the attack alternate. Then it requests lists during the
//! attack. Each client has its own connection.
//!
//! `--binary FILE` measures another build. With a build that has the feature `unguarded`, `--off long-calls` shows the
//! effect of that guard.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu};
use belljar_tests::{Client, Era, Http, Server, Site};
use serde_json::json;

/// The number of mounts that compute without end.
const CROWD: usize = 16;

/// The time of one measurement.
const ROUND: Duration = Duration::from_secs(4);

/// The measurements of one round.
#[derive(Default)]
struct Measurement {
    latency: Samples,
    done: u32,
}

/// The measurements of all rounds.
#[derive(Default)]
struct Row {
    median: Samples,
    p99: Samples,
    rate: Samples,
}

/// Calls `ask` again and again for [`ROUND`].
fn measure(client: &mut Client<Http>, ask: impl Fn(&mut Client<Http>)) -> Measurement {
    let mut seen = Measurement::default();
    let end = Instant::now() + ROUND;
    while Instant::now() < end {
        let began = Instant::now();
        ask(client);
        seen.latency.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), 1);
        seen.done += 1;
    }
    seen
}

fn read(client: &mut Client<Http>) {
    client.read("belljar://sized/text/1024").expect("a reading");
}

fn list_templates(client: &mut Client<Http>) {
    client.request("resources/templates/list", json!({})).expect("an answer");
}

/// The command-line argument after `name`.
fn argument(name: &str) -> Option<String> {
    let mut all = std::env::args().skip_while(|argument| argument != name);
    all.nth(1)
}

fn main() {
    let rounds: usize = argument("--rounds").and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    for n in 0..CROWD {
        site.mount_as("guest_hostile", &format!("hostile{n}.wasm"));
    }
    site.config(
        "audit = \"off\"\n[limits]\ntime = \"250ms\"\nfuel = 100000000000\n[mounts.sized.limits]\ntime = \"5s\"\n",
    );
    if let Some(off) = argument("--off") {
        site.env("BELLJAR_UNGUARDED", off);
    }
    let mut command = match argument("--binary") {
        Some(binary) => {
            let mut command = Command::new(binary);
            command.args(site.arguments(&["serve", "--http", "127.0.0.1:0"])).env_clear().envs(site.environment());
            command
        }
        None => site.command(site.arguments(&["serve", "--http", "127.0.0.1:0"])),
    };
    command.current_dir(site.path("."));
    let server = Server::start(command);
    let pid = server.process.id();
    let (is_on, is_over, spun) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for n in 0..CROWD {
            let (server, is_on, is_over, spun) = (&server, &is_on, &is_over, &spun);
            scope.spawn(move || {
                let mut client = server.client(Era::Stateless);
                let mut turn = 0;
                while !is_over.load(Ordering::Relaxed) {
                    if !is_on.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                    turn += 1;
                    // Read another resource each time. Otherwise, the circuit breaker would stop the repeated failures.
                    let _ = client.read(&format!("belljar://hostile{n}/spin/{turn}"));
                    spun.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut client = server.client(Era::Stateless);
        for _ in 0..500 {
            read(&mut client);
        }
        let (mut alone, mut crowd, mut cost) = (Row::default(), Row::default(), Samples::default());
        for _ in 0..rounds {
            for (row, has_crowd) in [(&mut alone, false), (&mut crowd, true)] {
                is_on.store(has_crowd, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(600));
                let before = process_cpu(pid);
                let seen = measure(&mut client, read);
                if !has_crowd {
                    cost.add(process_cpu(pid) - before, seen.done);
                }
                row.median.0.push(seen.latency.median());
                row.p99.0.push(seen.latency.quantile(0.99));
                row.rate.0.push(f64::from(seen.done) / ROUND.as_secs_f64());
            }
        }
        is_on.store(true, Ordering::Relaxed);
        let lists = measure(&mut client, list_templates);
        is_over.store(true, Ordering::Relaxed);
        println!(
            "\n| short reads over HTTP, medians of {rounds} rounds | alone | with {CROWD} mounts that compute for 250 ms in each call | ratio |\n|---|---|---|---|"
        );
        let mut record = Record::new();
        for (name, unit, alone, crowd) in [
            ("latency, median, us", "us", &alone.median, &crowd.median),
            ("latency, p99, us", "us", &alone.p99, &crowd.p99),
            ("reads a second", "reads/s", &alone.rate, &crowd.rate),
        ] {
            let group = format!("short reads over HTTP, {name}");
            record.row(&group, "alone", unit, &alone.0);
            record.row(&group, &format!("beside {CROWD} mounts that compute without end"), unit, &crowd.0);
            let (alone, crowd) = (alone.median(), crowd.median());
            println!("| {name} | {alone:.0} | {crowd:.0} | {:.2}x |", crowd / alone);
        }
        record.hand_over().expect("a file that can be written");
        println!(
            "\n{} hostile calls; a list over all mounts during the attack: median {:.0} us, p99 {:.0} us; {:.0} us CPU for a read without the attack",
            spun.load(Ordering::Relaxed),
            lists.latency.median(),
            lists.latency.quantile(0.99),
            cost.median()
        );
    });
}
