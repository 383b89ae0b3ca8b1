//! Compares reads of real files with native libraries, and measures how far the largest things can be read: a log of 4 GiB in
//! pieces, a directory of 1,000,000 entries by pages.
//!
//! The libraries run in one process of Python (`peers/native/libraries.py`). Both sides are measured in turn, as processor time.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio as Pipe};
use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu};
use belljar_tests::{Client, Era, Site, Stdio, places, process};
use serde_json::{Value, json};

/// Rounds, if the command line names no number.
const ROUNDS: usize = 15;

/// The reads of one case in a round.
const READS: u32 = 10;

/// The size of the large log, in bytes.
const LOG: u64 = 4 << 30;

/// The entries of the large directory.
const ENTRIES: u32 = 1_000_000;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let mut record = Record::new();
    libraries(rounds, &mut record);
    large();
    record.hand_over().expect("a file that can be written");
}

/// The process with the libraries.
struct Libraries {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Libraries {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line
    }

    /// The processor time of `READS` calls in nanoseconds.
    fn time(&mut self, case: usize) -> u64 {
        writeln!(self.asks, "{case} {READS}").expect("a process that reads");
        self.line().trim().parse().expect("a number")
    }
}

/// A case: a mount, its client, and the samples of both sides.
struct Case {
    provider: String,
    library: String,
    uri: String,
    client: Client<Stdio>,
    own: Samples,
    native: Samples,
    _site: Site,
}

impl Case {
    fn new(case: &Value, root: &std::path::Path) -> Self {
        let text = |key: &str| case[key].as_str().expect("a text").to_owned();
        let (provider, config) = (text("provider"), text("config"));
        let site = Site::new();
        site.mount(&provider);
        let data = root.join(&provider).join("data");
        let config = config.replace("\"data\"", &format!("{data:?}"));
        site.config(&format!("[mounts.{provider}]\n{config}\n"));
        compile(&site);
        let mut client = site.stdio(Era::Stateless);
        // The ID of a message is known only to the provider.
        let uri = match text("reference").as_str() {
            "@message" => client.uris().into_iter().find(|uri| uri.contains("/messages/")).expect("a message"),
            reference => format!("belljar://{provider}/{reference}"),
        };
        let library = text("library");
        Self { provider, library, uri, client, own: Samples::default(), native: Samples::default(), _site: site }
    }

    fn read(&mut self) {
        self.client.read(&self.uri).expect("a reading of each case");
    }

    fn measure(&mut self) {
        let id = self.client.wire().process.id();
        let before = process_cpu(id);
        (0..READS).for_each(|_| self.read());
        self.own.add(process_cpu(id) - before, READS);
    }
}

fn libraries(rounds: usize, record: &mut Record) {
    let Some(python) = places::native_python() else {
        println!("left out: the native libraries, which `cargo xtask test` installs");
        return;
    };
    let root = tempfile::tempdir().expect("a directory");
    let program = places::repository().join("tests/benches/peers/native/libraries.py");
    let mut process = Command::new(python)
        .arg(program)
        .arg(root.path())
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .spawn()
        .expect("Python");
    let (asks, answers) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
    let mut libraries = Libraries { process, asks, answers: BufReader::new(answers) };
    let cases: Vec<Value> = serde_json::from_str(&libraries.line()).expect("the cases");
    let mut cases: Vec<Case> = cases.iter().map(|case| Case::new(case, root.path())).collect();
    for (index, case) in cases.iter_mut().enumerate() {
        (0..READS).for_each(|_| case.read());
        libraries.time(index);
    }
    for _ in 0..rounds {
        for (index, case) in cases.iter_mut().enumerate() {
            case.measure();
            case.native.add(libraries.time(index), READS);
        }
    }
    println!("\nA read of a real file, in the whole process, against the native library in its own: processor time\n");
    println!("| provider | library | belljar, us | library, us | ratio |\n|---|---|---|---|---|");
    for case in &cases {
        let (own, native) = (case.own.median(), case.native.median());
        println!("| {} | {} | {own:.0} | {native:.0} | {:.2}x |", case.provider, case.library, own / native);
        record.row("a read of a real file", &format!("{}, {}", case.provider, case.library), "us", &case.own.0);
        record.note(&format!("the library takes {native:.0} us: {:.2}x", own / native));
    }
    drop(libraries.asks);
    libraries.process.wait().expect("an end");
}

/// Compiles the components of a site, so that no case waits for it.
fn compile(site: &Site) {
    let compiled = process::run(site.command(site.arguments(&["check", "--compile"])), Duration::from_secs(600));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// One row of the second table: a read, its time, and the memory of the process after it.
fn row(what: &str, client: &mut Client<Stdio>, base: u64, run: impl FnOnce(&mut Client<Stdio>)) {
    let began = Instant::now();
    run(client);
    let took = began.elapsed();
    let more = client.wire().process.memory().saturating_sub(base) >> 20;
    println!("| {what} | {:.1} | +{more} |", took.as_secs_f64() * 1000.0);
}

fn large() {
    let site = Site::new();
    site.mount("logs");
    site.mount("files");
    site.config("[mounts.logs]\nfs = { \"/data\" = \"data\" }\n[mounts.files]\nfs = { \"/data\" = \"many\" }\n");
    compile(&site);
    write_log(&site);
    std::fs::create_dir_all(site.path("many")).expect("a directory");
    for entry in 0..ENTRIES {
        File::create(site.path("many").join(format!("entry-{entry}.txt"))).expect("an entry");
    }
    let mut client = site.stdio(Era::Stateless);
    client.read("belljar://logs/small.log").expect("a first look");
    let base = client.wire().process.memory();
    println!("\nThe largest things\n\n| read | ms | memory of the process, MiB |\n|---|---|---|");
    for (what, at) in [("first", 0), ("middle", LOG / 2), ("last", LOG - (64 << 10))] {
        let uri = format!("belljar://logs/large.log?bytes={at}-{}", at + (64 << 10) - 1);
        client.read(&uri).expect("a piece");
        row(&format!("a log of 4 GiB, the {what} 64 KiB"), &mut client, base, |client| {
            client.read(&uri).expect("a piece");
        });
    }
    let (mut cursor, mut pages) = (None::<String>, 0u32);
    loop {
        let mut params = json!({"uri": "belljar://files/"});
        if let Some(cursor) = cursor.take() {
            params["cursor"] = cursor.into();
        }
        let list = |client: &mut Client<Stdio>| client.request("resources/directory/read", params).expect("a page");
        let mut page = Value::Null;
        match pages {
            0 | 1 | 500 | 900 => {
                row(&format!("1,000,000 entries, page {}", pages + 1), &mut client, base, |client| page = list(client));
            }
            _ => page = list(&mut client),
        }
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    println!("\n{pages} pages in all");
}

/// A log of 4 GiB with lines at the beginning, in the middle and at the end. The rest is a hole, which takes no space.
fn write_log(site: &Site) {
    site.write("data/small.log", "2026-11-24T10:00:00Z INFO one\n");
    let line = "2026-11-24T10:00:00Z INFO a line of sixty-four bytes, to the end\n";
    let block = line.repeat((1 << 20) / line.len());
    let mut file = File::create(site.path("data/large.log")).expect("a file");
    file.set_len(LOG).expect("a file that can be long");
    for at in [0, LOG / 2 - (512 << 10), LOG - block.len() as u64] {
        file.seek(SeekFrom::Start(at)).expect("a place");
        file.write_all(block.as_bytes()).expect("a place");
    }
}
