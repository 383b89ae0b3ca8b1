//! What is known of one request to an upstream server, for a trace.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// What is known of one request to an upstream server, for a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamSpan {
    /// Its span. The upstream server got it as its parent.
    pub span: [u8; 8],
    /// The method.
    pub method: String,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The begin.
    pub started_at: SystemTime,
    /// The time until the head of the response, or until the request failed.
    pub took: Duration,
    /// The status of the response.
    pub status: Option<u16>,
    /// Why there is no response.
    pub error: Option<String>,
}
