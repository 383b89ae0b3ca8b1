//! Mounts that are not served: refused, being compiled, or configured without a component.
//!
//! Clients receive this state and the kind of the reason. The reason itself may name paths of the host, and is for the
//! operator only.

use std::fmt;

use super::notice::Notice;
use crate::model::{MountName, ReadError};

/// The kind of reason why a mount is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnservedReason {
    /// A granted file or directory does not exist or cannot be opened.
    Grant,
    /// Its component is no provider, does not compile, or cannot be read.
    Component,
    /// Its configuration cannot be applied: the file does not exist, or the base is taken.
    Configuration,
}

impl fmt::Display for UnservedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grant => "something that it was granted does not exist or cannot be opened",
            Self::Component => "its component cannot be loaded",
            Self::Configuration => "its configuration names a missing file, or a URI that another mount has",
        })
    }
}

/// The cure, for the operator.
const CURE: &str = "for the reason, the operator runs: belljar check";

/// A mount that is configured and not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedMount {
    /// The name.
    pub name: MountName,
    /// The base.
    pub base: String,
    /// The kind of reason, for clients.
    pub reason: UnservedReason,
}

impl UnservedMount {
    /// The notice for a list.
    pub fn notice(&self) -> Notice {
        Notice::Unserved(format!("{}; {CURE}", self.reason))
    }

    /// The error for a read.
    pub fn error(&self) -> ReadError {
        ReadError::Unavailable(format!("mount \"{}\" is not served: {}; {CURE}", self.name, self.reason))
    }
}

/// A mount, or a file of the plugin directory, that is not served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedMount {
    /// The mount's name, or the file's name if there is no mount; sanitised.
    pub name: String,
    /// The reason and the cure; sanitised.
    pub reason: String,
    /// The base that it would have. No other mount gets it meanwhile.
    pub base: Option<String>,
    /// True if a restart of belljar is the cure.
    pub needs_restart: bool,
}

impl RefusedMount {
    /// A refusal without a base, which a restart does not cure.
    pub fn new(name: String, reason: String) -> Self {
        Self { name, reason, base: None, needs_restart: false }
    }
}

/// A mount whose component is being compiled for the first time, or waits for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilingMount {
    /// The name.
    pub name: MountName,
    /// The base.
    pub base: String,
}

impl CompilingMount {
    /// The notice for a list.
    pub fn notice(&self) -> Notice {
        Notice::Compiling
    }
}
