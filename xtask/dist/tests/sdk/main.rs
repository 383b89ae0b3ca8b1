//! Uses each package of the SDKs as an author does: a project of `belljar new` is built with the SDK from the package, and the
//! built component is checked.
//!
//! The tests pack the SDKs once. They use the tools that `cargo xtask languages` installed, and need no network: the caches of
//! cargo and npm have what a project of `belljar new` needs. No test finds the SDK outside of the package: it removes the one that
//! the project came with.
#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test reports a failure by a panic")]

#[path = "../common/mod.rs"]
mod common;
mod component;
mod contents;
mod projects;
mod support;
