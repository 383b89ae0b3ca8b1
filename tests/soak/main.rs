//! The soak: hundreds of thousands of reads against the real binary, a fifth of them hostile, with withdrawals and
//! disconnects; every answer checked, and the processes looked at from outside. `cargo xtask soak` runs it.
//!
//! Fails, by its exit code, when an answer is wrong, memory grows, or descriptors or threads stay behind.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measuring program: it speaks to a terminal, and a panic is how it fails"
)]

mod cases;
mod drive;
mod figures;
mod plot;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::{Era, Server};

use crate::cases::Dice;
use crate::drive::{Counts, Load, Pipe};
use crate::figures::{Measured, Sample};

/// Of so many reads, one goes over HTTP.
const HTTP_SHARE: usize = 5;

/// Clients of the HTTP server at once; the first of them of the older era, with a session.
const CLIENTS: usize = 4;

/// How long nothing is asked before descriptors and threads are compared.
const REST: Duration = Duration::from_secs(5);

/// What was asked for.
struct Asked {
    reads: usize,
    cancels: usize,
    disconnects: usize,
    svg: Option<PathBuf>,
}

fn arguments() -> Asked {
    let mut asked = Asked { reads: 200_000, cancels: 2_000, disconnects: 2_000, svg: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{word} {value}: expected a number"));
        match word.as_str() {
            "--reads" => asked.reads = number(),
            "--cancels" => asked.cancels = number(),
            "--disconnects" => asked.disconnects = number(),
            "--svg" => asked.svg = Some(value.into()),
            _ => panic!("no argument \"{word}\"; there are --reads, --cancels, --disconnects, --svg"),
        }
    }
    asked
}

fn main() -> ExitCode {
    let asked = arguments();
    let began = Instant::now();
    let site = cases::site();
    let mut pipe = Pipe::new(site.silent_stdio());
    let server = site.http();
    let mut load = Load::new(&server, CLIENTS);

    // Every kind of call, so that what is made once is made.
    let mut warm = Counts::default();
    tenth(&mut pipe, &mut load, &server, (asked.reads / 50).max(4_000), 50, 50, 0, &mut warm);
    thread::sleep(REST);
    let baseline = look(&pipe, &server);

    println!("{}", figures::HEAD);
    let mut measured =
        Measured { baseline, tenths: Vec::new(), end: baseline, wrong: warm.wrong, took: Duration::ZERO };
    for number in 1..=10 {
        let mut counts = Counts::default();
        tenth(
            &mut pipe,
            &mut load,
            &server,
            asked.reads / 10,
            asked.cancels / 10,
            asked.disconnects / 10,
            number,
            &mut counts,
        );
        // What was withdrawn last is gone.
        thread::sleep(Duration::from_millis(500));
        let tenth = figures::Tenth::new(look(&pipe, &server), &mut counts);
        println!("{}", tenth.row(number as usize));
        counts.wrong.iter().take(3).for_each(|wrong| println!("  wrong: {wrong}"));
        measured.wrong.append(&mut counts.wrong);
        measured.tenths.push(tenth);
    }
    thread::sleep(REST);
    measured.end = look(&pipe, &server);
    measured.took = began.elapsed();
    finish(pipe, load, server, &mut measured);

    let verdict = measured.verdict();
    println!("{}", verdict.text);
    if let Some(svg) = &asked.svg {
        std::fs::write(svg, plot::svg(&measured)).unwrap_or_else(|error| panic!("{}: {error}", svg.display()));
        let page = svg.with_extension("md");
        let name = svg.file_name().unwrap_or_default().to_string_lossy();
        std::fs::write(&page, plot::page(&measured, &name, &asked))
            .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        println!("\nwritten: {}, {}", svg.display(), page.display());
    }
    if verdict.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One part of the load, over both transports at once.
#[expect(clippy::too_many_arguments, reason = "two transports and how much of everything")]
fn tenth(
    pipe: &mut Pipe,
    load: &mut Load,
    server: &Server,
    reads: usize,
    cancels: usize,
    disconnects: usize,
    number: u64,
    counts: &mut Counts,
) {
    let over_http = reads / HTTP_SHARE;
    thread::scope(|scope| {
        let disconnecting = scope.spawn(|| drive::disconnect(server, disconnects));
        let http = scope.spawn(|| load.run(over_http, number));
        pipe.run(reads - over_http, cancels, &mut Dice::new(number), counts);
        counts.add(http.join().expect("an HTTP client failed"));
        disconnecting.join().expect("a client that goes away failed");
    });
}

fn look(pipe: &Pipe, server: &Server) -> [Sample; 2] {
    [Sample::of(pipe.process()), Sample::of(&server.process)]
}

/// Whatever was withdrawn left its place to others; and both processes end well.
fn finish(mut pipe: Pipe, load: Load, server: Server, measured: &mut Measured) {
    let mut counts = Counts::default();
    pipe.places_are_free(&mut counts);
    drop(load);
    let mut client = server.client(Era::Modern);
    if let Err(why) = cases::free().check(&client.read(cases::FREE)) {
        counts.wrong.push(why);
    }
    drop(client);
    for ended in [pipe.close(), server.stop()] {
        if !ended.status.success() {
            counts.wrong.push(format!("a server ended with {}: {}", ended.status, ended.stderr));
        }
        if ended.stderr.contains("panicked") {
            counts.wrong.push(format!("a server panicked: {}", ended.stderr));
        }
    }
    measured.wrong.append(&mut counts.wrong);
}
