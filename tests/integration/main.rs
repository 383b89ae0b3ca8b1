//! The tests of the real `belljar` binary, one folder for each area.
//!
//! `<area>.rs` describes the area. `<area>/hostile_*.rs` holds rows of the hostile table: attacks on the area. The test program
//! `hostile` (`hostile/main.rs`) runs these rows, not this program.
//!
//! The tests observe belljar from outside: the bytes on its streams, the files that the kernel reports as opened
//! ([`belljar_tests::Watch`]), its processor time and its memory. During an attack, another mount must answer: the witness,
//! mount `clock`.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a failure by a panic"
)]

mod auth;
mod catalog;
mod clients;
mod commands;
mod configuration;
mod conformance;
mod consent;
mod corpus;
mod deploy;
mod grants;
mod languages;
mod limits;
mod lists;
mod providers;
mod reads;
mod record;
mod registries;
mod replicas;
mod sandbox;
mod server;
mod skills;
mod subscriptions;
mod support;
mod tools;
mod transport;
mod trust;
