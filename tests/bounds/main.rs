//! Providers that mean harm, clients that do too, and what must come of it: every call ends within its bounds and says
//! which one it met, no call sees another, nothing but what was granted is opened, and whatever goes on, the witness (the
//! mount `clock`) answers.
//!
//! The real binary is run, and judged from outside: by the bytes on its streams, by what the kernel says was opened
//! ([`belljar_tests::Watch`]), by its processor time and memory. `guest-imp` does what its reference says; what no
//! compiler would make is assembled here (`component`).
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is how a failure is told"
)]

mod answers;
mod by_hand;
mod cancellation;
mod compiler;
mod completion;
mod component;
mod configuration;
mod conformance;
mod consent;
mod crowds;
mod cures;
mod cursors;
mod dev;
mod escape;
mod fresh;
mod front;
mod grant;
mod growth;
mod http;
mod inspect;
mod isolation;
mod limits;
mod listing;
mod logs;
mod many;
mod network;
mod new;
mod origins;
mod pipes;
mod place;
mod record;
mod reload;
mod tools;
mod tree;
mod trust;
mod wall;
mod watching;
mod web;
