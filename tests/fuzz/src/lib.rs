//! Fuzzing: one function a target, each of which feeds any bytes to belljar's own code and asserts what must hold
//! whatever they are.
//!
//! It owns the targets, their words (what a mutation may put in) and their corpus (`tests/fuzz/corpus/<target>/`). It
//! must not know who makes the bytes: the tests of this crate mutate the corpus for a moment, with a fixed seed;
//! `cargo xtask fuzz` runs the same functions under libFuzzer for as long as one likes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a target fails"
)]

pub mod browser;
pub mod components;
pub mod corpus;
pub mod havoc;
mod input;
mod oracle;
mod targets;

/// Something that takes hostile bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and the name of its corpus.
    pub name: &'static str,
    /// Panics when an invariant is broken.
    pub run: fn(&[u8]),
    /// Inputs longer than this are not made.
    pub longest: usize,
    /// Mutated inputs in a short run: a few seconds at the most.
    pub iterations: usize,
    /// What a mutation may put in.
    pub words: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = targets::ALL;

/// The target of that name.
///
/// # Panics
/// When there is none.
pub fn target(name: &str) -> &'static Target {
    let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    TARGETS
        .iter()
        .find(|target| target.name == name)
        .unwrap_or_else(|| panic!("no fuzz target \"{name}\"; there are {}", known.join(", ")))
}
