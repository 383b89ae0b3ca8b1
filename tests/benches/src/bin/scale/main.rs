//! What many components cost: starts, cold and with compiled code in the cache; memory; reads and pages of the list at 1,000
//! mounts. Through the real binary over stdio, with components that all are different ones.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first surprise, and prints"
)]

mod memory;
mod reading;
mod site;
mod start;

use belljar_benches::Record;

/// Rounds of what is quick, unless the command line says otherwise.
const ROUNDS: usize = 15;

/// `scale [ROUNDS] [start|memory|reading|cold]`
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
