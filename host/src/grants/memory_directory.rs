//! Directories whose files belljar makes in memory. A kind of grant gives them to a mount, and the functions of
//! `wasi:filesystem` (`grants/fs`) serve them: a guest needs no import beside plain WASI.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

/// A file that belljar made. It never changes: a later open gives another one.
#[derive(Debug)]
pub struct MemoryFile {
    /// The contents.
    pub bytes: Bytes,
    /// The time at which belljar made the file.
    pub modified: SystemTime,
}

/// Why a file of a [`MemoryDirectory`] is not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryFileError {
    /// There is no such file.
    Absent,
    /// The file exists, and the mount has no grant for it.
    NotGranted,
    /// The file must be made, which may block. The caller has to try again on a dedicated thread.
    NeedsThread,
    /// The file cannot be made now. Holds the reason, for the operator.
    Unavailable(String),
}

/// A read-only directory of files in memory, without directories below it.
pub trait MemoryDirectory: Send + Sync {
    /// The guest path.
    fn guest(&self) -> &str;

    /// The kind of grant that gives the directory, for the audit record.
    fn kind(&self) -> &'static str;

    /// The names of the files that the mount may open, sorted.
    fn names(&self) -> Vec<&'static str>;

    /// Opens a file. Makes it if the last one is too old, but only if `may_block`.
    ///
    /// # Errors
    /// [`MemoryFileError`].
    fn open(&self, name: &str, may_block: bool) -> Result<Arc<MemoryFile>, MemoryFileError>;

    /// How the operator grants the file `name` to `mount`. `None`: there is no such file.
    fn cure(&self, mount: &str, name: &str) -> Option<String>;
}
