//! Bytes in, bytes out: stdio lines and HTTP bodies, capped, timed and checked before rmcp sees them.

pub mod http;
mod message;
pub mod stdio;

/// Bytes of one message from a client. A read's URI has at most 2 KiB and a cursor 36; no lawful message comes near.
pub const MAX_MESSAGE: usize = 1 << 20;

/// How long requests under way may go on after a stop was asked for. Then they are stopped, and answered so.
pub const DRAIN: std::time::Duration = std::time::Duration::from_millis(800);

/// How long the answers of requests that were stopped may take to be written. It takes a fraction of that.
pub const LAST_ANSWERS: std::time::Duration = std::time::Duration::from_millis(500);
