//! Errors of the helper process, and of the communication with it.

use std::io;

use crate::config;
use crate::config::lock::LockError;
use crate::grants::edit::EditError;
use crate::model::{DigestError, MountName, NameError, command};
use crate::server::candidate::CandidateError;
use crate::server::configuration::{KeySetFileError, PolicyFileError};
use crate::server::edit::{ChangeError, NotEditable};
use crate::server::files::FileError;
use crate::server::location::ReadConfigError;
use crate::server::pins::LockFileError;

/// Why the helper process cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelperStartError {
    /// The operating system refuses.
    #[error("cannot start the helper process: {0}")]
    Spawn(#[from] io::Error),
    /// It was started without a pipe for its answers.
    #[error("cannot start the helper process: it has no pipe")]
    NoPipe,
}

/// Why a request to the helper failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelperError {
    /// The helper does not respond, or the response is malformed.
    #[error("the helper process does not respond ({0}); restart belljar")]
    Gone(#[from] io::Error),
    /// The helper could not execute the request. Holds its message.
    #[error("{0}")]
    Refused(String),
}

/// Why [`OperatorFiles`](super::OperatorFiles) have no valid configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperatorFilesError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// The lock is damaged.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The policies are not valid.
    #[error(transparent)]
    Policies(#[from] PolicyFileError),
}

/// Why the operator's files cannot be read again.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadFilesError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadConfigError),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// A key set cannot be read.
    #[error(transparent)]
    KeySet(#[from] KeySetFileError),
    /// The policies cannot be read.
    #[error(transparent)]
    Policies(#[from] PolicyFileError),
    /// The pins have a state that reading them never gives: a bug of belljar.
    #[error("the pins of belljar.lock have an unexpected state")]
    Pins,
}

/// Why a lasting consent cannot be saved.
#[derive(Debug, thiserror::Error)]
pub(super) enum PersistConsentError {
    /// The mount name is malformed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The digest is malformed.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// There is no such kind of grant.
    #[error("there is no such kind of grant")]
    Kind,
    /// The configuration cannot be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The mount's table cannot be edited.
    #[error(transparent)]
    Table(#[from] NotEditable),
    /// The grant cannot be written into the table.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The configuration no longer lets the mount ask for lasting consents.
    #[error("[mounts.{0}] no longer has  ask = \"persist\"")]
    NoLongerAsks(MountName),
    /// The component cannot be read.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The component changed after the question.
    #[error("the component of \"{0}\" has changed in the meantime; to review it, run: {trust}", trust = command::line(["trust", .0.as_str()]))]
    Exchanged(MountName),
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// A file cannot be read or replaced.
    #[error(transparent)]
    File(#[from] FileError),
    /// Other processes changed the configuration at every try.
    #[error("other processes keep changing the configuration; try again later")]
    Contended,
}
