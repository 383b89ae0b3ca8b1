//! The events of requests and calls, and what is made of them: the audit record, one line of JSON for each event, in the
//! order in which calls end; and the metrics.
//!
//! `docs/reference/record.md` documents the fields of a line; a test compares the document with the code. This folder knows a
//! call only as plain data of `model`.

pub mod activity;
mod chain;
mod event;
mod line;
pub mod log_queue;
mod metrics;
mod observer;
pub mod sink;
pub mod trace;

pub use chain::{ChainCheck, ChainFault, CheckedChain, LineChain};
pub use event::{ConsentRecord, Event, EventError, REFUSED_AT_THE_DOOR};
pub use line::schema_text;
pub use metrics::Metrics;
pub use observer::EventObserver;
pub use sink::{LineFormat, RecordFormat, RecordUnavailable, Sink};
