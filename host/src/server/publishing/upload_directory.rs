//! The directory through which `belljar-fetch` gets the blobs of an upload. It is removed when the upload ends.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::artifact::ArtifactDocuments;
use crate::server::directories::{self, PrivateDirError};

/// Directories of processes that were killed are removed after this time.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The directory of one upload. Dropping this value removes it.
pub(crate) struct UploadDirectory(PathBuf);

/// Why the blobs of an upload cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadDirectoryError {
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] PrivateDirError),
    /// A file in it cannot be written.
    #[error("cannot write \"{}\": {error}; check the space and the rights of the cache", path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl UploadDirectory {
    /// Writes the blobs into a new directory below `all`.
    ///
    /// # Errors
    /// If a directory or file cannot be written.
    pub(crate) fn write(all: &Path, documents: &ArtifactDocuments<'_>) -> Result<Self, UploadDirectoryError> {
        directories::private_dir(all)?;
        remove_abandoned(all);
        let own = Self(all.join(std::process::id().to_string()));
        own.remove();
        directories::private_dir(&own.0)?;
        for (digest, bytes) in documents.blobs() {
            let path = own.0.join(digest.hex());
            #[expect(clippy::disallowed_methods, reason = "belljar's own cache")]
            std::fs::write(&path, bytes).map_err(|error| UploadDirectoryError::Unwritten { path, error })?;
        }
        Ok(own)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for UploadDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}

fn remove_abandoned(all: &Path) {
    #[expect(clippy::disallowed_methods, reason = "belljar's own cache")]
    let Ok(entries) = std::fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
