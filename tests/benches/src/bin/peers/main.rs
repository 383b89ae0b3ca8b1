//! The one table: what a request costs belljar, and what it costs everything that a user would pick instead.
//!
//! Processor time of the server, with all that it started, over requests; every server of a group in every round, in turns.
//! `peers [ROUNDS] [PART OF A TITLE]` measures the groups whose title has that part. Less than five rounds are a trial: it warms
//! up a tenth as long, and its figures mean little.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first surprise, and prints"
)]

mod asker;
mod cases;
mod servers;
mod versions;

use std::time::{Duration, Instant};

use belljar_benches::{Record, tree};
use belljar_figures::tables;

use crate::asker::Askers;
use crate::cases::{CASES, Case};
use crate::servers::{Kind, Place};

/// How long a server gets to finish what it does after its last answer, before it is looked at.
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
    let mut askers = Askers::new(place);
    for case in CASES.iter().filter(|case| case.title().contains(&wanted)) {
        measure(case, rounds, &mut askers, &mut record);
        println!("\n{}", tables::group(&record, &case.title()));
    }
    println!("\n{}", tables::servers(&record));
    for missing in &record.missing {
        println!("**MISSING: {missing}**");
    }
    versions::add(&mut record, &askers.place);
    askers.judge();
    record.hand_over().expect("a file that can be written");
}

/// Measures one group, and adds a row for each server that has what is asked for.
fn measure(case: &Case, rounds: usize, askers: &mut Askers, record: &mut Record) {
    let mut all: Vec<(Kind, Vec<f64>)> = Vec::new();
    for kind in case.kinds() {
        if askers.place.lacks(kind).is_none() {
            askers.prepare(kind, case);
            askers.ask(kind, case, if rounds < 5 { case.warm() / 10 } else { case.warm() });
            all.push((kind, Vec::new()));
        }
    }
    let spent = |askers: &Askers, kind| tree::ticks(askers.pid(kind, case));
    let began = Instant::now();
    let before: Vec<u64> = all.iter().map(|(kind, _)| spent(askers, *kind)).collect();
    for round in 0..rounds {
        for turn in 0..all.len() {
            // Nobody is always the first, nor always after the same one.
            let at = (turn + round) % all.len();
            let (kind, figures) = &mut all[at];
            let pid = askers.pid(*kind, case);
            let begin = tree::Moment::of(pid);
            askers.ask(*kind, case, case.operations);
            std::thread::sleep(SETTLE);
            let used = tree::Moment::of(pid).since(&begin);
            #[expect(clippy::cast_precision_loss, reason = "microseconds of nanoseconds")]
            figures.push(used as f64 / 1000.0 / f64::from(case.operations));
        }
    }
    for ((kind, figures), before) in all.iter().zip(before) {
        let counted = figures.iter().sum::<f64>() * f64::from(case.operations) / 1e6;
        let all = Duration::from_nanos(spent(askers, *kind).saturating_sub(before)).as_secs_f64();
        // What a server does between its turns, and what a thread did that ended, is not in its row.
        if all > counted * 1.1 + 0.05 {
            let took = began.elapsed().as_secs();
            println!(
                "\n{} used {all:.2} s in {took} s, and {counted:.2} s of that in its turns: the rest is in no row.",
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
