//! Bytes in, bytes out: stdio lines and HTTP bodies, capped, timed and checked before rmcp sees them.

pub mod http;
mod message;
pub mod stdio;

/// Bytes of one message from a client. A read's URI has at most 2 KiB and a cursor 36; no lawful message comes near.
pub const MAX_MESSAGE: usize = 1 << 20;

/// How long answers under way may take after a stop was asked for.
pub const DRAIN: std::time::Duration = std::time::Duration::from_secs(5);
