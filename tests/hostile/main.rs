//! The hostile table: what a malicious provider, client or machine tries, and that nothing comes of it.
//!
//! Each row is run against the real binary, alone and together with all others, and is judged from outside the process:
//! see `oracle`. Not a program of `#[test]` functions, because rows are data and share processes:
//!
//! ```text
//! cargo test --release -p belljar-tests --test hostile                    every row, alone and together
//! cargo test --release -p belljar-tests --test hostile -- CPU MEM-01     rows whose id begins so, alone
//! cargo test --release -p belljar-tests --test hostile -- --seed 7       the order in which they run together
//! cargo xtask test --prove-guards                                         each row with its guards off: it must go red
//! ```
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "in a test a panic is how a failure is told, and this test tells a table"
)]

mod absent;
mod adv;
mod ask;
mod aud;
mod blk;
mod cancel;
mod cat;
mod cpu;
mod egress;
mod expect;
mod front;
mod fs;
#[path = "../bounds/component.rs"]
#[expect(dead_code, reason = "the tests of bounds use more of it")]
mod hand;
mod hung;
mod inf;
mod lif;
mod mcp;
mod mem;
mod net;
mod oracle;
mod prove;
mod reload;
mod res;
mod row;
mod runner;
mod scene;
mod sec;
mod stalled;
mod table;
mod tools;
mod upstreams;
mod watching;
mod xpl;

use std::process::ExitCode;
use std::time::Instant;

use belljar_tests::places;

use crate::row::{Row, Way};
use crate::runner::Verdict;

/// Every row, in the order of the table.
fn rows() -> Vec<Row> {
    let all = [
        cpu::rows(),
        blk::rows(),
        mem::rows(),
        fs::rows(),
        net::rows(),
        egress::rows(),
        upstreams::rows(),
        sec::rows(),
        cat::rows(),
        res::rows(),
        lif::rows(),
        reload::rows(),
        mcp::rows(),
        front::rows(),
        cancel::rows(),
        watching::rows(),
        xpl::rows(),
        adv::rows(),
        inf::rows(),
        stalled::rows(),
        ask::rows(),
        aud::rows(),
    ];
    all.into_iter().flatten().collect()
}

fn main() -> ExitCode {
    // A panic is a row's verdict, and told there.
    std::panic::set_hook(Box::new(|_| {}));
    let mut wanted = Vec::new();
    let mut seed = fastrand::u64(..1_000_000);
    let mut prove = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" => seed = arguments.next().and_then(|seed| seed.parse().ok()).expect("--seed N"),
            "--prove-guards" => prove = true,
            // What `cargo test` passes on to every test program is not for this one.
            flag if flag.starts_with('-') => {}
            id => wanted.push(id.to_owned()),
        }
    }
    let all = rows();
    let chosen: Vec<&Row> = all
        .iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|wanted| row.id.starts_with(wanted.as_str())))
        .collect();
    let missing = absent::missing(&all);
    if !missing.is_empty() {
        println!("rows that are neither run nor said to be left out: {}", missing.join(", "));
        return ExitCode::FAILURE;
    }
    if prove { prove::run(&chosen) } else { run(&chosen, wanted.is_empty(), seed) }
}

/// Runs rows alone and, when they are all, together; tells what came of it as a test program does.
fn run(rows: &[&Row], all: bool, seed: u64) -> ExitCode {
    let began = Instant::now();
    let tell = |verdict: &Verdict| println!("{}", table::line(verdict));
    println!("\n{} hostile rows, each in a process of its own\n{}", rows.len(), table::heading());
    let alone = runner::alone(rows, |_| None, tell);
    let mut together = Vec::new();
    if all {
        let mut shared: Vec<&Row> =
            rows.iter().copied().filter(|row| row.way == Way::Shared && row.needs.is_none()).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut shared);
        println!(
            "\n{} of them together in one process, in the order of --seed {seed}\n{}",
            shared.len(),
            table::heading()
        );
        together = runner::together(&shared, tell);
        together.last().into_iter().for_each(tell);
        println!("\nnot run:");
        absent::ABSENT.iter().for_each(|(id, why)| println!("{id:<9} {why}"));
        let json = table::json(rows, &alone, &together, seed);
        let path = places::target().join("hostile.json");
        std::fs::write(&path, format!("{json:#}\n")).expect("a writable build directory");
    }
    println!("\nanswers after their deadline, CPU and BLK, 99 of 100 rows: {:?}", table::overshoot(&alone));
    let verdicts: Vec<&Verdict> = alone.iter().chain(&together).collect();
    conclude(&verdicts, began)
}

/// The last line, as every test program has one.
fn conclude(verdicts: &[&Verdict], began: Instant) -> ExitCode {
    let red: Vec<&&Verdict> = verdicts.iter().filter(|verdict| !verdict.is_contained()).collect();
    for verdict in &red {
        println!("RED {}: {}", verdict.id, verdict.wrong.join("; "));
    }
    let word = if red.is_empty() { "ok" } else { "FAILED" };
    let skipped = verdicts.iter().filter(|verdict| verdict.skipped.is_some()).count();
    println!(
        "test result: {word}. {} passed; {} failed; {skipped} ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
        verdicts.len() - red.len() - skipped,
        red.len(),
        began.elapsed().as_secs_f64()
    );
    if red.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
