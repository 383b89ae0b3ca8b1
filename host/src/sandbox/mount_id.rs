//! The identifiers of loaded mounts.

use serde::{Deserialize, Serialize};

/// The identifier of a loaded mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MountId(pub(super) u64);

impl MountId {
    /// The identifier of no mount: calls to it are refused.
    pub fn none() -> Self {
        Self(0)
    }

    /// The identifier as a number, unique in this process for all time.
    pub fn number(self) -> u64 {
        self.0
    }
}
