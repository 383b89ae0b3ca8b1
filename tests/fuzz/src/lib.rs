//! The fuzz targets. Each target is a function that passes any bytes to belljar's code, and asserts its invariants.
//!
//! This crate owns the targets of the host and their dictionaries. A target does not depend on the source of its bytes. The
//! tests of this crate mutate the corpus for some seconds, with a fixed seed.
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
mod input;
mod oracle;
mod targets;

use belljar_fuzz_run::Target;

/// All targets.
pub const TARGETS: &[Target] = targets::ALL;

/// The target with this name.
///
/// # Panics
/// If no target has this name.
pub fn target(name: &str) -> &'static Target {
    belljar_fuzz_run::find(TARGETS, name)
}
