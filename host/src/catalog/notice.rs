//! Notices of a listing about entries that it does not contain.

use std::fmt;

/// The reason why a listing lacks entries; sanitised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// All of a mount's entries are missing, or the rest of them: the mount failed, or waits for trust.
    LeftOut(String),
    /// The list was cut. Gives the reason and the cure.
    Cut(String),
    /// Some entries were left out.
    Entries {
        /// The number of these entries.
        count: u32,
        /// The reason for the first of them.
        first: String,
    },
    /// The mount is not served. Gives the reason and the cure.
    Unserved(String),
    /// The mount's component is being compiled.
    Compiling,
}

impl Notice {
    /// The notice for somebody who does not see all of the catalog: without a name, a number or a provider's words. `None`
    /// if nothing remains.
    #[must_use]
    pub fn without_details(self) -> Option<Self> {
        match self {
            Self::LeftOut(_) => Some(Self::LeftOut(LOGGED.to_owned())),
            Self::Cut(_) => Some(Self::Cut(LOGGED.to_owned())),
            // The entries may be hidden ones.
            Self::Entries { .. } => None,
            Self::Unserved(_) | Self::Compiling => Some(self),
        }
    }
}

/// The reason that is shown in place of one with details.
const LOGGED: &str = "the operator\u{2019}s log has the reason";

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut(why) => write!(f, "left out: {why}"),
            Self::Cut(why) => write!(f, "cut: {why}"),
            Self::Entries { count, first } => {
                write!(f, "{count} of its entries left out, the first because {first}")
            }
            Self::Unserved(why) => write!(f, "not served: {why}"),
            Self::Compiling => f.write_str("not ready yet: its component is being compiled; list again in a moment"),
        }
    }
}
