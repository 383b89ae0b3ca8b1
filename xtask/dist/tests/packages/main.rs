//! Installs each package as a user does, and reads a first note with the installed program.
//!
//! The tests pack the program and the providers of [`places`] once. They need no network: pip and npm install from files.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a failure by a panic"
)]

#[path = "../common/mod.rs"]
mod common;
mod contents;
mod failures;
mod install;
mod publish;
mod support;
mod workflow;
