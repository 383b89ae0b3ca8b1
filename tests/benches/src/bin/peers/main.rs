//! Compares the processor time of a request in belljar with that in servers that a user could choose instead.
//!
//! The bench divides the processor time of a server and its child processes by the number of requests. Each round
//! measures all servers of a group, one after the other.
//!
//! `peers [ROUNDS] [PART OF A TITLE]` measures only groups with that part in their title. A run of less than five
//! rounds only tests the bench itself: it warms up a tenth as long, and its figures mean little.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

mod cases;
mod clients;
mod servers;
mod versions;

use std::time::{Duration, Instant};

use belljar_benches::{Record, tree};
use belljar_figures::tables;

use crate::cases::{CASES, Case};
use crate::clients::Clients;
use crate::servers::{Kind, Place};

/// The pause between the last answer and the measurement. The server finishes its work in this pause.
const SETTLE: Duration = Duration::from_millis(2);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(11);
    let wanted = arguments.next().unwrap_or_default();
    let place = Place::new();
    let mut record = Record::new();
    for kind in Kind::ALL {
        if let Some(why) = place.lacks(kind) {
            println!("\n**MISSING: {}: {why}**", kind.name());
            record.missing(&format!("{}: {why}", kind.name()));
        }
    }
    let mut clients = Clients::new(place);
    for case in CASES.iter().filter(|case| case.title().contains(&wanted)) {
        measure(case, rounds, &mut clients, &mut record);
        println!("\n{}", tables::group(&record, &case.title()));
    }
    println!("\n{}", tables::servers(&record));
    for missing in &record.missing {
        println!("**MISSING: {missing}**");
    }
    versions::add(&mut record, &clients.place);
    clients.check_records();
    record.hand_over().expect("a file that can be written");
}

/// Measures one group, and adds a row for each server that supports the operation.
fn measure(case: &Case, rounds: usize, clients: &mut Clients, record: &mut Record) {
    let mut all: Vec<(Kind, Vec<f64>)> = Vec::new();
    for kind in case.kinds() {
        if clients.place.lacks(kind).is_none() {
            clients.prepare(kind, case);
            clients.ask(kind, case, if rounds < 5 { case.warm() / 10 } else { case.warm() });
            all.push((kind, Vec::new()));
        }
    }
    let spent = |clients: &Clients, kind| tree::ticks(clients.pid(kind, case));
    let began = Instant::now();
    let before: Vec<u64> = all.iter().map(|(kind, _)| spent(clients, *kind)).collect();
    for round in 0..rounds {
        for turn in 0..all.len() {
            // Change the order in each round, so that no server is always the first.
            let at = (turn + round) % all.len();
            let (kind, figures) = &mut all[at];
            let pid = clients.pid(*kind, case);
            let begin = tree::CpuSnapshot::of(pid);
            clients.ask(*kind, case, case.operations);
            std::thread::sleep(SETTLE);
            let used = tree::CpuSnapshot::of(pid).since(&begin);
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds far below 2^52")]
            figures.push(used as f64 / 1000.0 / f64::from(case.operations));
        }
    }
    for ((kind, figures), before) in all.iter().zip(before) {
        let counted = figures.iter().sum::<f64>() * f64::from(case.operations) / 1e6;
        let all = Duration::from_nanos(spent(clients, *kind).saturating_sub(before)).as_secs_f64();
        // The row lacks the work of a server outside of its measurements, and the work of ended threads. Report a large
        // difference.
        if all > counted * 1.1 + 0.05 {
            let took = began.elapsed().as_secs();
            println!(
                "\n{} used {all:.2} s in {took} s, but only {counted:.2} s during its measurements; the row lacks the rest.",
                kind.name()
            );
        }
        let note = [kind.note(), case.note(*kind)].into_iter().flatten().collect::<Vec<_>>().join("; ");
        record.row(&case.title(), kind.name(), "us", figures);
        if !note.is_empty() {
            record.note(&note);
        }
    }
}
