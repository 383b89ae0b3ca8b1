//! Measures the cost of many different components: starts without and with compiled code in the cache, memory, and
//! reads and pages of the list with 1,000 mounts. Uses the real binary over stdio.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

mod memory;
mod reading;
mod site;
mod start;

use belljar_benches::Record;

/// The number of rounds, unless the command line has another number. Slow measurements have less rounds.
const ROUNDS: usize = 15;

/// Usage: `scale [ROUNDS] [start|memory|reading|cold]`. Without a part, measures all parts.
fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let only = std::env::args().nth(2);
    let is_wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    let mut record = Record::new();
    site::compile(site::MANY);
    if is_wanted("start") {
        start::warm(&mut record, rounds.div_ceil(2));
    }
    if is_wanted("memory") {
        memory::idle(&mut record);
    }
    if is_wanted("reading") {
        reading::measure(&mut record, rounds);
    }
    if is_wanted("cold") {
        start::cold(&mut record);
    }
    record.hand_over().expect("a file that can be written");
}
