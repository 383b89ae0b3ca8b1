//! Why a request or a call failed.

use std::fmt;

use crate::model::{Blame, ReadError};

/// Why a request or a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventError {
    /// The error of a call, or of a request that could have made one.
    Call(ReadError),
    /// The error that the client got for a request.
    Answer {
        /// One lower-case word for each kind of error.
        kind: &'static str,
        /// The message, as the client got it.
        message: String,
        /// The party that caused it.
        blame: Blame,
    },
}

impl EventError {
    /// One lower-case word for each kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Call(error) => error.kind(),
            Self::Answer { kind, .. } => kind,
        }
    }

    /// The party that caused the failure.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Call(error) => error.blame(),
            Self::Answer { blame, .. } => *blame,
        }
    }

    /// The error of the call, if there was one.
    pub fn of_call(&self) -> Option<&ReadError> {
        match self {
            Self::Call(error) => Some(error),
            Self::Answer { .. } => None,
        }
    }
}

impl From<ReadError> for EventError {
    fn from(error: ReadError) -> Self {
        Self::Call(error)
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(out),
            Self::Answer { message, .. } => out.write_str(message),
        }
    }
}
