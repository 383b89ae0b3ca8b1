//! The audit record: one event for each finished call, written as one line of JSON, in the order in which calls end.
//!
//! `docs/reference/record.md` documents the fields of a line; a test compares the document with the code. This folder knows a
//! call only as plain data of `model`.

mod event;
pub mod log_queue;
pub mod sink;

pub use event::{ConsentRecord, Event};
pub use sink::Sink;
