//! The real providers in the real binary, over real data: what they serve, compared with what other programs say of the same
//! files; what they refuse; and that the limits that belljar ships with are enough for them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test a panic is how a failure is told"
)]

mod calendar;
mod git;
mod mail;
mod pdf;
mod place;
mod sqlite;
mod tables;
