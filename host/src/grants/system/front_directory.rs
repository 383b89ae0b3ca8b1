//! The directory `/system` of a mount in a worker process. The front makes the files.

use std::sync::Arc;

use super::editor::cure_of_file;
use super::name::{GUEST, NAME};
use super::parts::SystemPart;
use crate::grants::memory_directory::{MemoryDirectory, MemoryFile, MemoryFileError};

/// The names of the files that the mount may open, sorted.
pub(super) struct FrontSystemDirectory(pub(super) Vec<&'static str>);

impl MemoryDirectory for FrontSystemDirectory {
    fn guest(&self) -> &str {
        GUEST
    }

    fn kind(&self) -> &'static str {
        NAME
    }

    fn names(&self) -> Vec<&'static str> {
        self.0.clone()
    }

    /// Never has the file itself: `fs` asks the front for a file that needs a thread.
    fn open(&self, name: &str, _: bool) -> Result<Arc<MemoryFile>, MemoryFileError> {
        match SystemPart::of_file(name) {
            None => Err(MemoryFileError::Absent),
            Some(part) if !self.0.contains(&part.file()) => Err(MemoryFileError::NotGranted),
            Some(_) => Err(MemoryFileError::NeedsThread),
        }
    }

    fn cure(&self, mount: &str, name: &str) -> Option<String> {
        cure_of_file(mount, name)
    }
}
