//! The fuzz targets. Each target is a function that passes any bytes to belljar's code, and asserts its invariants.
//!
//! This crate owns the targets, their dictionaries and their corpora (`tests/fuzz/corpus/<target>/`). A target does not
//! depend on the source of its bytes. The tests of this crate mutate the corpus for some seconds, with a fixed seed.
//! `cargo xtask fuzz` runs the same functions under libFuzzer for any time.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fuzz target fails by a panic"
)]

pub mod browser;
pub mod components;
pub mod corpus;
pub mod havoc;
mod input;
mod oracle;
mod targets;

/// A function to fuzz, with its settings.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, and of the directory of its corpus.
    pub name: &'static str,
    /// Runs one input. Panics if an invariant is broken.
    pub run: fn(&[u8]),
    /// The most bytes of a mutated input.
    pub longest: usize,
    /// Mutated inputs in a short run: a few seconds at the most.
    pub iterations: usize,
    /// The dictionary: texts that a mutation may insert.
    pub dictionary: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = targets::ALL;

/// The target with this name.
///
/// # Panics
/// If no target has this name.
pub fn target(name: &str) -> &'static Target {
    let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    TARGETS
        .iter()
        .find(|target| target.name == name)
        .unwrap_or_else(|| panic!("no fuzz target \"{name}\"; there are {}", known.join(", ")))
}
