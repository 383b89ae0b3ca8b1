//! Real clients against the real binary: what users run, doing what users do; and beside them, in `wire`, what no real
//! client does.
//!
//! Each client lists everything, reads text, a blob and a templated resource, and asks for what is not there; over stdio
//! and over HTTP; each in the era or eras that it speaks. The values are exact: a client that sees less, or more, or
//! something else, fails.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is how a failure is told"
)]

mod clients;
mod consent;
mod endings;
mod expectations;
mod languages;
mod runs;
mod tools;
mod watching;
mod web;
mod wire;
