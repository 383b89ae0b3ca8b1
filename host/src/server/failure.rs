//! The failure of a command, with its message and its exit code.

use super::admin::AdminEndpointError;
use super::api_keys::ApiKeysError;
use super::candidate::CandidateError;
use super::configuration::{CertificatesError, ConfigurationError};
use super::directories::PluginsError;
use super::edit::{ChangeError, NotEditable};
use super::fetcher::FetchError;
use super::files::FileError;
use super::invocation::PlaceNameError;
use super::keys::KeysError;
use super::landlock::WallError;
use super::listening::ListenError;
use super::location::{NoWorkingDirectory, ReadConfigError};
use super::pins::LockFileError;
use super::privileged_helper::HelperStartError;
use super::record::AuditError;
use super::shared_socket::SharedSocketError;
use super::tls_files::TlsFilesError;
use super::up::UpError;
use crate::auth::TokenVerifierError;
use crate::config;
use crate::grants::edit::EditError;
use crate::grants::secrets::SecretError;
use crate::model::{DigestError, Fault, NameError};
use crate::sandbox::SandboxError;
use crate::transport::ServeError;

/// Why a command failed. Holds the message for standard error.
pub(crate) enum Failure {
    /// Wrong usage: exit code 2.
    Misused(String),
    /// The command could not do its work: exit code 1.
    Failed(String),
}

impl Failure {
    /// Wrong usage, with the error as the message.
    pub(crate) fn misused(why: impl std::fmt::Display) -> Self {
        Self::Misused(why.to_string())
    }

    /// The message.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Misused(why) | Self::Failed(why) => why,
        }
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Makes each error type a [`Failure::Failed`] with the error's own message.
macro_rules! fails {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        })*
    };
}

fails!(
    AdminEndpointError,
    ApiKeysError,
    AuditError,
    CandidateError,
    CertificatesError,
    ChangeError,
    ConfigurationError,
    DigestError,
    EditError,
    FetchError,
    FileError,
    ReadConfigError,
    SecretError,
    KeysError,
    ListenError,
    LockFileError,
    NameError,
    NoWorkingDirectory,
    NotEditable,
    PluginsError,
    SandboxError,
    ServeError,
    SharedSocketError,
    TlsFilesError,
    TokenVerifierError,
    HelperStartError,
    UpError,
    WallError,
    config::Error,
    std::io::Error,
);

impl From<PlaceNameError> for Failure {
    fn from(error: PlaceNameError) -> Self {
        match error {
            PlaceNameError::Wrong { .. } => Self::misused(error),
            PlaceNameError::NoState(_) | PlaceNameError::Unreadable(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let details = match &fault.error {
            crate::model::ReadError::Internal(details) => format!("\n  {details}"),
            _ => String::new(),
        };
        Self::Failed(format!("{}{details}", fault.multi_line()))
    }
}
