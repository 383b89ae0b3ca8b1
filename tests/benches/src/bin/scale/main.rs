//! What many components cost: starts, cold and with compiled code in the cache; memory; reads, routing and pages of the list
//! at 1,000 mounts. Through the real binary over stdio, with components that all are different ones.
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

/// Rounds of what is quick, unless the command line says otherwise.
const ROUNDS: usize = 15;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let only = std::env::args().nth(2);
    let is_wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    site::compile(if is_wanted("start") || is_wanted("memory") || is_wanted("reading") { site::MANY } else { 1 });
    if is_wanted("start") {
        start::warm(rounds.div_ceil(2));
    }
    if is_wanted("memory") {
        memory::idle();
    }
    if is_wanted("reading") {
        reading::measure(rounds);
    }
    if is_wanted("cold") {
        start::cold();
    }
}
