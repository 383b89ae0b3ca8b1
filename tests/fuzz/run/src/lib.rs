//! Fuzz targets and their short run. A target is a function that passes any bytes to a parser, and asserts its invariants.
//!
//! The crates `belljar-fuzz` and `belljar-fuzz-providers` have the targets. Their corpora are in `tests/fuzz/corpus/<target>/`.
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a fuzz target fails by a panic")]

pub mod corpus;
pub mod havoc;

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
    /// Makes further seeds from what was built.
    pub built: fn() -> Vec<(String, Vec<u8>)>,
}

/// No further seeds.
pub fn none() -> Vec<(String, Vec<u8>)> {
    Vec::new()
}

/// The target among `all` with this name.
///
/// # Panics
/// If no target has this name.
pub fn find(all: &'static [Target], name: &str) -> &'static Target {
    let known: Vec<_> = all.iter().map(|target| target.name).collect();
    all.iter()
        .find(|target| target.name == name)
        .unwrap_or_else(|| panic!("no fuzz target \"{name}\"; there are {}", known.join(", ")))
}

/// Makes one test for each of the targets `$all`, so that the name of a failed test is the name of its target. A further test
/// compares the names with the list.
#[macro_export]
macro_rules! short {
    ($all:expr; $($name:ident),* $(,)?) => {
        $(#[test] fn $name() {
            $crate::havoc::short($crate::find($all, stringify!($name))).unwrap_or_else(|why| panic!("{why}"));
        })*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            let all: Vec<_> = $all.iter().map(|target| target.name).collect();
            assert_eq!(run.as_slice(), all);
        }
    };
}
