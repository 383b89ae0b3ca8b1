//! What is sent over the local socket before the messages of MCP.

use serde::{Deserialize, Serialize};

/// The version of these lines.
pub const PROTOCOL: u32 = 1;

/// The first line of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "belljar", rename_all = "kebab-case")]
pub enum Greeting {
    /// Lines of MCP follow.
    Join {
        /// See [`PROTOCOL`].
        protocol: u32,
    },
    /// Asks for the status of the belljar.
    Status,
}

/// Why a connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRefusal {
    /// The reason and its cure.
    pub refused: String,
}
