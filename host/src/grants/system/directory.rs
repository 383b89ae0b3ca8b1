//! The directory `/system` of one mount: a file for each granted part.

use std::sync::Arc;

use super::config::SystemConfig;
use super::editor::cure_of_file;
use super::name::{GUEST, NAME};
use super::parts::SystemPart;
use super::snapshots::SystemSnapshots;
use crate::grants::memory_directory::{MemoryDirectory, MemoryFile, MemoryFileError};

/// The files that a mount sees.
pub(super) struct SystemDirectory {
    pub(super) granted: SystemConfig,
    pub(super) snapshots: Arc<SystemSnapshots>,
}

impl MemoryDirectory for SystemDirectory {
    fn guest(&self) -> &str {
        GUEST
    }

    fn kind(&self) -> &'static str {
        NAME
    }

    fn names(&self) -> Vec<&'static str> {
        SystemPart::FILES.iter().filter(|part| self.granted.has(**part)).map(|part| part.file()).collect()
    }

    fn open(&self, name: &str, may_block: bool) -> Result<Arc<MemoryFile>, MemoryFileError> {
        let part = SystemPart::of_file(name).ok_or(MemoryFileError::Absent)?;
        if !self.granted.has(part) {
            return Err(MemoryFileError::NotGranted);
        }
        let with_arguments = part == SystemPart::Processes && self.granted.has(SystemPart::CommandLines);
        self.snapshots.get(if with_arguments { SystemPart::CommandLines } else { part }, may_block)
    }

    fn cure(&self, mount: &str, name: &str) -> Option<String> {
        cure_of_file(mount, name)
    }
}
