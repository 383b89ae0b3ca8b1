//! Mounts that are configured and not served. Clients are told that, and of what kind the reason is; the reason itself may
//! name paths of the host, and is for the operator.

use std::fmt;

use crate::model::{MountName, ReadError};

/// Of what kind the reason is for which a mount is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was granted something that is not there, or cannot be opened.
    Grant,
    /// Its component is no provider, does not compile, or cannot be read.
    Component,
    /// What is written for it cannot be: there is no such file, or its base is taken.
    Configuration,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grant => "something that it was granted is not there or cannot be opened",
            Self::Component => "its component cannot be loaded",
            Self::Configuration => "its configuration names a file or a URI that it cannot have",
        })
    }
}

/// What the operator does about it.
const CURE: &str = "the operator sees why with: belljar check";

/// A mount that is configured and not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// Its name.
    pub name: MountName,
    /// Its base.
    pub base: String,
    /// Why, as far as clients are told.
    pub cause: Cause,
}

impl Unserved {
    /// What whoever lists is told.
    pub fn notice(&self) -> String {
        format!("not served: {}; {CURE}", self.cause)
    }

    /// What whoever reads from it is told.
    pub fn error(&self) -> ReadError {
        ReadError::Unavailable(format!("mount \"{}\" is not served: {}; {CURE}", self.name, self.cause))
    }
}
