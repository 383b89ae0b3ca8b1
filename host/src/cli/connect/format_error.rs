//! Why the file of a client cannot be edited.

use std::path::Path;

use crate::server::failure::Failure;

/// Why a client's file cannot be edited.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormatError {
    /// The file has another form.
    #[error("{0}")]
    Malformed(String),
    /// A key has a value that belljar does not edit.
    #[error("\"{key}\": expected {expected}; edit the file by hand, with what --print shows")]
    Unexpected {
        /// The key.
        key: String,
        /// What belljar can edit.
        expected: &'static str,
    },
}

impl FormatError {
    /// The failure of a command, with the file.
    pub(super) fn in_file(&self, path: &Path) -> Failure {
        Failure::Failed(format!("cannot use \"{}\": {self}", path.display()))
    }
}
