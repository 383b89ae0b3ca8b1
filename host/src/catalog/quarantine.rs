//! Mounts whose grants were given to other bytes than those that lie there now: nothing of them is compiled or run until
//! the operator trusts them. They keep their names, and every request for one is told so.

use super::plan::Plan;
use crate::config::lock::{Mismatch, Pins};
use crate::model::error::Quarantine;
use crate::model::{Digest, MountName, ReadError, text};

/// A mount in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name.
    pub name: MountName,
    /// Its base.
    pub base: String,
    /// The component's file name.
    pub file: String,
    /// The digest of the bytes that lie there.
    pub found: Digest,
    /// Why they are not loaded.
    pub why: Mismatch,
}

impl Quarantined {
    /// Why, and the cure, for the operator.
    pub fn reason(&self) -> String {
        let Self { name, file, found, .. } = self;
        match &self.why {
            Mismatch::Changed(pinned) => format!(
                "its grants were given to {}, and \"{}\" is {} now; {}",
                pinned.short(),
                text::excerpt(file, 100),
                found.short(),
                Quarantine::Changed.cure(name.as_str())
            ),
            Mismatch::Unknown(why) => why.clone(),
        }
    }

    /// What the lock has, if it has anything.
    pub fn pinned(&self) -> Option<Digest> {
        match self.why {
            Mismatch::Changed(pinned) => Some(pinned),
            Mismatch::Unknown(_) => None,
        }
    }

    fn quarantine(&self) -> Quarantine {
        match self.why {
            Mismatch::Changed(_) => Quarantine::Changed,
            Mismatch::Unknown(_) => Quarantine::Unknown,
        }
    }

    /// What whoever reads from it is told.
    pub fn error(&self) -> ReadError {
        ReadError::Quarantined(self.quarantine())
    }

    /// What whoever lists is told.
    pub fn notice(&self) -> String {
        let quarantine = self.quarantine();
        format!("left out: {quarantine}; {}", quarantine.cure(self.name.as_str()))
    }
}

/// What keeps these bytes from being loaded for `plan`, whose mount holds grants.
pub(super) fn judge(plan: &Plan, found: &Digest, pins: &Pins) -> Option<Quarantined> {
    let why = pins.judge(&plan.name, found).err()?;
    let (name, base, file) = (plan.name.clone(), plan.base.clone(), plan.file.clone());
    Some(Quarantined { name, base, file, found: *found, why })
}
