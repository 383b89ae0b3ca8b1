//! The files of TLS: the certificate and the private key. Read at the start, and by the helper process when they change.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::files::{self, FileError};
use crate::config::serve::TlsFiles;
use crate::model::command;
use crate::transport::http::{TlsIdentity, TlsIdentityError, TlsPem};

/// Why the files of TLS cannot be used. Names the files, so it is for the operator only.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFilesError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file does not exist.
    #[error("serve.tls: there is no file \"{}\"", .0.display())]
    Absent(PathBuf),
    /// The pair cannot be used.
    #[error("serve.tls: \"{}\" and \"{}\": {problem}", files.cert.display(), files.key.display())]
    Useless {
        /// The files.
        files: TlsFiles,
        /// The reason.
        problem: TlsIdentityError,
    },
}

/// The text of both files. The helper process sends it to the server.
#[derive(Serialize, Deserialize)]
pub(crate) struct TlsTexts {
    cert: String,
    key: String,
}

/// Reads both files.
///
/// # Errors
/// Names the file that cannot be read, or that other users can change.
pub(crate) fn read(files: &TlsFiles) -> Result<TlsTexts, TlsFilesError> {
    let text = |path: &PathBuf| files::read_protected(path)?.ok_or_else(|| TlsFilesError::Absent(path.clone()));
    Ok(TlsTexts { cert: text(&files.cert)?, key: text(&files.key)? })
}

impl TlsTexts {
    fn into_pem(self) -> TlsPem {
        TlsPem { cert: self.cert.into_bytes(), key: Zeroizing::new(self.key.into_bytes()) }
    }
}

/// The certificate in these files. Warns if every user of this machine can read the private key.
///
/// # Errors
/// The files cannot be read, or cannot be used together.
pub(crate) fn identity(files: &TlsFiles) -> Result<TlsIdentity, TlsFilesError> {
    if files::is_readable_by_all(&files.key) {
        let path = files.key.to_string_lossy();
        tracing::warn!(
            "every user of this machine can read the private key \"{path}\"; run: chmod o-r {}",
            command::shell_quoted(&path)
        );
    }
    TlsIdentity::new(&read(files)?.into_pem()).map_err(|problem| useless(files, problem))
}

/// Uses another certificate for new connections. True if it is another one.
///
/// # Errors
/// The texts cannot be used. The old certificate stays in use.
pub(crate) fn replace(identity: &TlsIdentity, files: &TlsFiles, texts: TlsTexts) -> Result<bool, TlsFilesError> {
    identity.replace(&texts.into_pem()).map_err(|problem| useless(files, problem))
}

fn useless(files: &TlsFiles, problem: TlsIdentityError) -> TlsFilesError {
    TlsFilesError::Useless { files: files.clone(), problem }
}
