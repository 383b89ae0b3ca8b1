//! Measures the cost of a provider's language, with the projects of `belljar new` and the real binary: size, first
//! compilation, a start with compiled code in the cache, a read in a fresh sandbox, and memory.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu};
use belljar_tests::{Client, Era, Site, Stdio, places, process};
use serde_json::Value;

const ROUNDS: usize = 15;

/// The number of reads in a round.
const READS: u32 = 50;

/// The number of starts with compiled code in the cache.
const STARTS: usize = 5;

/// A served provider, and its measurements.
struct Served {
    lang: String,
    site: Site,
    client: Client<Stdio>,
    /// The size of the component, in bytes.
    size: f64,
    /// The size of the compiled code, in bytes.
    code: f64,
    /// The time of the first compilation, in milliseconds.
    compiled: f64,
    start: Samples,
    read: Samples,
}

fn main() {
    let mut all: Vec<Served> = components().into_iter().map(|(lang, component)| served(lang, &component)).collect();
    for _ in 0..STARTS {
        for one in &mut all {
            one.start.add(start(&one.site), 1);
        }
    }
    for one in &mut all {
        (0..READS).for_each(|_| read(&mut one.client));
    }
    for _ in 0..ROUNDS {
        for one in &mut all {
            let id = one.client.wire().process.id();
            let before = process_cpu(id);
            (0..READS).for_each(|_| read(&mut one.client));
            one.read.add(process_cpu(id) - before, READS);
        }
    }
    all.sort_by(|a, b| a.read.median().total_cmp(&b.read.median()));
    println!(
        "\nA provider in each language: the template of `belljar new`, a read of a short text over stdio in a fresh sandbox\n"
    );
    println!(
        "| language | component, KiB | compiled, KiB | first compile, ms | start from the cache, ms | a read, processor us | the guest's memory, MiB | fuel of a read | belljar's RSS, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut record = Record::new();
    for mut one in all {
        let (memory, fuel) = used(&one.site);
        record.row("a provider in each language, a read over stdio in a fresh sandbox", &one.lang, "us", &one.read.0);
        record.note(&format!(
            "component {:.0} KiB, first compile {:.0} ms, start from the cache {:.1} ms, {memory:.1} MiB in the guest",
            one.size / 1024.0,
            one.compiled,
            one.start.median() / 1000.0
        ));
        #[expect(clippy::cast_precision_loss, reason = "shown to people, rounded")]
        let rss = one.client.wire().process.memory() as f64 / f64::from(1 << 20);
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.0} | {memory:.1} | {fuel} | {rss:.0} |",
            one.lang,
            one.size / 1024.0,
            one.code / 1024.0,
            one.compiled,
            one.start.median() / 1000.0,
            one.read.median(),
        );
    }
    record.hand_over().expect("a file that can be written");
}

/// The components that `cargo xtask languages` has built, with the names of their languages.
fn components() -> Vec<(String, PathBuf)> {
    let folder = fs::read_dir(places::target().join("languages")).expect("run \"cargo xtask languages\" first");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    let mut all: Vec<(String, PathBuf)> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "wasm"))
        .map(|path| (path.file_stem().expect("a stem").to_string_lossy().into_owned(), path))
        .collect();
    all.sort();
    all
}

/// Compiles a component, and serves it with a client on stdio.
fn served(lang: String, component: &PathBuf) -> Served {
    let site = Site::new();
    site.drop_in("shelf.wasm", fs::read(component).expect("a component"));
    site.config("audit = \"audit.jsonl\"\n[mounts.shelf]\n");
    let compile =
        process::run(site.command(site.arguments(&["check", "--compile", "--json"])), Duration::from_secs(600));
    let compiled: Value = serde_json::from_slice(&compile.stdout).expect("the JSON of `check --compile`");
    let figure = |key: &str| compiled[0][key].as_f64().expect("a figure");
    let (size, code, compiled) = (figure("size"), figure("code"), figure("milliseconds"));
    let client = site.stdio(Era::Stateless);
    Served { lang, site, client, size, code, compiled, start: Samples::default(), read: Samples::default() }
}

fn read(client: &mut Client<Stdio>) {
    client.read("belljar://shelf/hello.txt").expect("a reading");
}

/// The wall-clock time from the start of the process to the first answer, in nanoseconds.
fn start(site: &Site) -> u64 {
    let began = Instant::now();
    let mut client = site.stdio(Era::Stateless);
    read(&mut client);
    let took = began.elapsed();
    client.close();
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

/// The memory of the guest in MiB, and the fuel, from the audit record of the last read.
fn used(site: &Site) -> (f64, u64) {
    let records = site.audit();
    let last = records.iter().rev().find(|record| record["operation"] == "read").expect("a record");
    let memory = last["usage"]["memory"].as_f64().expect("memory") / f64::from(1 << 20);
    (memory, last["usage"]["fuel"].as_u64().expect("fuel"))
}
