//! The soak: hundreds of thousands of reads against the real binary, a fifth of them hostile, with cancellations and
//! disconnects. It checks every answer, and measures the processes from outside. `cargo xtask soak` runs it.
//!
//! The exit code is 1 if an answer is wrong, memory grows, or descriptors or threads are not released.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measuring program: it prints, and fails by a panic"
)]

mod cases;
mod drive;
mod figures;
mod plot;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::{DEADLINE, Era, Server};

use crate::cases::Random;
use crate::drive::{Counts, Load, Pipe};
use crate::figures::{Measured, Sample};

/// One of this number of reads goes over HTTP.
const HTTP_SHARE: usize = 5;

/// Concurrent clients of the HTTP server. The first one has a session (2025-11-25).
const CLIENTS: usize = 4;

/// The pause without requests before descriptors and threads are compared.
const REST: Duration = Duration::from_secs(5);

/// The options of the command line.
struct Options {
    reads: usize,
    cancels: usize,
    disconnects: usize,
    svg: Option<PathBuf>,
}

fn arguments() -> Options {
    let mut options = Options { reads: 200_000, cancels: 2_000, disconnects: 2_000, svg: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{word} {value}: expected a number"));
        match word.as_str() {
            "--reads" => options.reads = number(),
            "--cancels" => options.cancels = number(),
            "--disconnects" => options.disconnects = number(),
            "--svg" => options.svg = Some(value.into()),
            _ => panic!("no argument \"{word}\"; there are --reads, --cancels, --disconnects, --svg"),
        }
    }
    options
}

fn main() -> ExitCode {
    let options = arguments();
    let began = Instant::now();
    let site = cases::site();
    let mut pipe = Pipe::new(site.silent_stdio());
    let server = site.http();
    let mut load = Load::new(&server, CLIENTS);

    // Warm up with every kind of call, so that the servers have created everything that they create only once.
    let mut warm = Counts::default();
    tenth(&mut pipe, &mut load, &server, (options.reads / 50).max(4_000), 50, 50, 0, &mut warm);
    thread::sleep(REST);
    let baseline = samples(&pipe, &server);

    println!("{}", figures::HEAD);
    let mut measured =
        Measured { baseline, tenths: Vec::new(), end: baseline, wrong: warm.wrong, took: Duration::ZERO };
    for number in 1..=10 {
        let mut counts = Counts::default();
        tenth(
            &mut pipe,
            &mut load,
            &server,
            options.reads / 10,
            options.cancels / 10,
            options.disconnects / 10,
            number,
            &mut counts,
        );
        // Wait until the last cancelled calls have ended.
        thread::sleep(Duration::from_millis(500));
        let tenth = figures::Tenth::new(samples(&pipe, &server), &mut counts);
        println!("{}", tenth.row(number as usize));
        counts.wrong.iter().take(3).for_each(|wrong| println!("  wrong: {wrong}"));
        measured.wrong.append(&mut counts.wrong);
        measured.tenths.push(tenth);
    }
    thread::sleep(REST);
    measured.end = samples_when_released(&pipe, &server, &baseline);
    measured.took = began.elapsed();
    finish(pipe, load, server, &mut measured);

    let verdict = measured.verdict();
    println!("{}", verdict.text);
    if let Some(svg) = &options.svg {
        std::fs::write(svg, plot::svg(&measured)).unwrap_or_else(|error| panic!("{}: {error}", svg.display()));
        let page = svg.with_extension("md");
        let name = svg.file_name().unwrap_or_default().to_string_lossy();
        std::fs::write(&page, plot::page(&measured, &name, &options))
            .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        println!("\nwritten: {}, {}", svg.display(), page.display());
    }
    if verdict.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one part of the load, over both transports at once.
#[expect(clippy::too_many_arguments, reason = "one argument for each amount, and two transports")]
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
        pipe.run(reads - over_http, cancels, &mut Random::new(number), counts);
        counts.add(http.join().expect("an HTTP client failed"));
        disconnecting.join().expect("a client that disconnects failed");
    });
}

fn samples(pipe: &Pipe, server: &Server) -> [Sample; 2] {
    [Sample::of(pipe.process()), Sample::of(&server.process)]
}

/// Waits until at most as many descriptors and threads are in use as in `baseline`, and returns the samples. After
/// [`DEADLINE`], returns the last samples: the processes have not released all resources.
fn samples_when_released(pipe: &Pipe, server: &Server, baseline: &[Sample; 2]) -> [Sample; 2] {
    let began = Instant::now();
    loop {
        let samples = samples(pipe, server);
        let is_released =
            |(now, before): (&Sample, &Sample)| now.descriptors <= before.descriptors && now.threads <= before.threads;
        if samples.iter().zip(baseline).all(is_released) || began.elapsed() > DEADLINE {
            return samples;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Checks that no cancelled call still runs, and that both processes end without an error.
fn finish(mut pipe: Pipe, load: Load, server: Server, measured: &mut Measured) {
    let mut counts = Counts::default();
    pipe.check_no_call_runs(&mut counts);
    drop(load);
    let mut client = server.client(Era::Stateless);
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
