//! Mounts whose grants were given to other bytes than the component has now, and mounts whose version was revoked. Such a
//! component is neither compiled nor run until the operator decides. The mount keeps its names, and every request for one of
//! them fails with the reason.

use super::notice::Notice;
use crate::config::lock::Mismatch;
use crate::model::error::Quarantine;
use crate::model::{Digest, MountName, ReadError, text};

/// A mount in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedMount {
    /// The name.
    pub name: MountName,
    /// The base.
    pub base: String,
    /// The component's file name.
    pub file: String,
    /// The digest of the component that is there now.
    pub found: Digest,
    /// The reason why it is not loaded.
    pub mismatch: Mismatch,
}

impl QuarantinedMount {
    /// The reason and the cure, for the operator.
    pub fn reason(&self) -> String {
        let Self { name, file, found, .. } = self;
        match &self.mismatch {
            Mismatch::Changed(pinned) => format!(
                "its grants were given to {}, and \"{}\" is {} now; {}",
                pinned.short(),
                text::excerpt(file, 100),
                found.short(),
                Quarantine::Changed.cure(name.as_str())
            ),
            Mismatch::Unknown(why) => why.clone(),
            Mismatch::Revoked(_, revocation) => {
                format!("{revocation}; {}, or set  revoked = \"warn\"  under [trust]", revocation.cure(name))
            }
        }
    }

    /// The digest in the lock, if there is one.
    pub fn pinned(&self) -> Option<Digest> {
        match self.mismatch {
            Mismatch::Changed(pinned) | Mismatch::Revoked(pinned, _) => Some(pinned),
            Mismatch::Unknown(_) => None,
        }
    }

    fn quarantine(&self) -> Quarantine {
        match self.mismatch {
            Mismatch::Changed(_) => Quarantine::Changed,
            Mismatch::Unknown(_) => Quarantine::Unknown,
            Mismatch::Revoked(..) => Quarantine::Revoked,
        }
    }

    /// The error for a read.
    pub fn error(&self) -> ReadError {
        ReadError::Quarantined(self.quarantine())
    }

    /// The notice for a list.
    pub fn notice(&self) -> Notice {
        let quarantine = self.quarantine();
        Notice::LeftOut(format!("{quarantine}; {}", quarantine.cure(self.name.as_str())))
    }
}
