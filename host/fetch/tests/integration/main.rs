//! Tests of the program `belljar-fetch` against registries on loopback: a small one of these tests, which can misbehave, and the
//! real one of Debian.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test uses the machine, and reports a failure by a panic"
)]

mod download;
mod hostile;
mod private;
mod real;
mod resolve;
mod revoked;
mod search;
mod signed;
mod support;
mod tls;
mod upload;
