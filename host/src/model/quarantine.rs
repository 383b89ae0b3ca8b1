//! The reasons for which a mount that the lock binds to a component is not loaded.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::command;

/// Why a mount that the lock binds to a component is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quarantine {
    /// The component is not the one that the grants were given to.
    Changed,
    /// The lock does not say to which component the grants were given.
    Unknown,
    /// The publisher of the component revoked this version.
    Revoked,
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "in quarantine: its component is not the one that its grants were given to",
            Self::Revoked => "in quarantine: its publisher revoked this version",
            Self::Unknown => "in quarantine: its component could not be bound to its grants",
        })
    }
}

impl Quarantine {
    /// The command that the operator runs next.
    pub fn cure(self, mount: &str) -> String {
        match self {
            Self::Changed => format!("to see what changed and accept it, run: {}", command::line(["trust", mount])),
            Self::Revoked => format!("to take another version, run: {}", command::line(["upgrade", mount])),
            Self::Unknown => format!("to see why, run: {}", command::line(["check"])),
        }
    }
}
