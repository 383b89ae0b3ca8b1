//! Why a `system` grant cannot be used, and why facts cannot be collected.

use crate::grants::drive_timeout::Stalled;

/// Why a `system` grant cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SystemGrantError {
    /// No part has this name.
    #[error("unknown part \"{word}\"; expected {expected}")]
    Unknown {
        /// The name, shortened for display.
        word: String,
        /// The names of all parts.
        expected: String,
    },
    /// Command lines are granted without the processes that have them.
    #[error("\"command-lines\" adds to the part \"processes\", which is not granted; grant \"processes\" too")]
    OnlyCommandLines,
}

/// Why the facts of a part cannot be collected.
#[derive(Debug, thiserror::Error)]
pub(super) enum CollectError {
    /// A file of the kernel cannot be read.
    #[error("\"/{file}\" cannot be read: {error}")]
    Unreadable {
        /// The path below the root.
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file of the kernel has an unknown form. Holds the path below the root.
    #[error("\"/{0}\" has an unknown form")]
    Malformed(String),
    /// The facts cannot be written as JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The kernel does not answer.
    #[error("the kernel does not answer; see which process or drive hangs (ps, dmesg)")]
    Stalled,
}

impl From<Stalled> for CollectError {
    fn from(_: Stalled) -> Self {
        Self::Stalled
    }
}
