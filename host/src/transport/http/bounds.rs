//! Caps and time-outs of the endpoint.

use std::time::Duration;

use crate::model::bounds;
use crate::transport::limits::DRAIN;

/// Caps and time-outs of the endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Most open connections. One more evicts the least active one.
    pub connections: usize,
    /// Most sessions of clients up to 2025-11-25, about 50 KiB each. One more evicts the least active one.
    pub sessions: usize,
    /// A session ends after this time without a request.
    pub session_idle: Duration,
    /// Most time for the headers of a request, and for a pause between two requests of a connection.
    pub headers: Duration,
    /// Most time for the body of a request.
    pub body: Duration,
    /// Most time in which a client may read no byte of its answer. Also the time that each answer has in any case,
    /// before its length adds more.
    pub write: Duration,
    /// Most bytes of large answers that wait for their clients, over all connections.
    pub response_bytes: usize,
    /// Running requests may continue for this time after a shutdown begins.
    pub drain: Duration,
    /// True if most requests are answered without rmcp. rmcp gives the same answers, and takes 1.5 times the processor time,
    /// or more.
    pub fast_path: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: bounds::MAX_HTTP_CONNECTIONS.get(),
            sessions: bounds::MAX_SESSIONS.get(),
            session_idle: Duration::from_secs(600),
            headers: bounds::HEADER_TIME.get(),
            body: bounds::BODY_TIME.get(),
            write: bounds::WRITE_TIME.get(),
            response_bytes: 256 << 20,
            drain: DRAIN,
            fast_path: true,
        }
    }
}
