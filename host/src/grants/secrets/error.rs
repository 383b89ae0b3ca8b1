//! Why secrets cannot be used. These errors are plain data without any value, because one belljar process reads secrets
//! for another.

use serde::{Deserialize, Serialize};

use super::principal_path::PrincipalPathError;
use super::secret::SecretValueError;
use crate::grants::home::NoHome;
use crate::model::command;

/// Why a secret cannot be used by a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SecretError {
    /// The configuration declares no secret of this name. A name consists of letters, digits, "-" and "_".
    #[error(
        "there is no secret \"{name}\"; put its value into an environment variable of belljar's, or into a file that only you can read, and add  {name} = {{ env = \"VARIABLE\" }}  or  {name} = {{ file = \"FILE\" }}  to [secrets]; for the first, run: {}",
        command::line(["set", &format!("secrets.{name} = {{ env = \"{}\" }}", suggested_variable(name))])
    )]
    Undeclared {
        /// The name of the secret.
        name: String,
    },
    /// The secret is declared, but cannot be read.
    #[error("the secret \"{name}\" cannot be used: {reason}")]
    Unusable {
        /// The name of the secret.
        name: String,
        /// The reason.
        reason: SecretSourceError,
    },
}

/// Why a secret cannot be read from its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SecretSourceError {
    /// The environment variable is not set. Holds its name.
    #[error("the environment variable \"{}\" is not set", .0.escape_debug())]
    NotSet(String),
    /// The value of the environment variable is not UTF-8. Holds its name.
    #[error("the environment variable \"{}\" is not UTF-8", .0.escape_debug())]
    NotText(String),
    /// The path of the file uses the placeholder for principals wrongly.
    #[error(transparent)]
    Path(#[from] PrincipalPathError),
    /// The path of the file needs a home directory.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// The file of the secret cannot be used.
    #[error("\"{path}\": {problem}")]
    File {
        /// The path of the file, for display.
        path: String,
        /// The problem of the file.
        problem: SecretFileProblem,
    },
    /// The value is not allowed for a secret.
    #[error(transparent)]
    Value(#[from] SecretValueError),
}

/// The problem of a secret's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SecretFileProblem {
    /// There is no file.
    #[error("it does not exist")]
    Absent,
    /// The file cannot be opened or read. Holds the message of the system.
    #[error("{0}")]
    Unreadable(String),
    /// The path names a directory, a FIFO or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// Other users can read the file. Holds the command that prevents this.
    #[error("others can read it; run: {0}")]
    Open(String),
    /// The owner is neither the current user nor root.
    #[error("it belongs to another user; make it your own")]
    Foreign,
    /// The content is not UTF-8.
    #[error("it is not UTF-8")]
    NotText,
}

/// A principal has no usable secret of its own. Names no directory of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrincipalSecretError {
    /// The name of the secret.
    pub name: String,
    /// The file of the principal, below the directory of the secret.
    pub file: String,
    /// True if there is no file. False if it cannot be used; the log has the reason.
    pub is_absent: bool,
}

/// A text has a malformed reference to a secret. The right form is `${secret:NAME}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected ${{secret:NAME}}, with a name of letters, digits, \"-\" and \"_\"")]
pub struct SecretTemplateError;

/// The name of an environment variable that suits a secret of this name.
fn suggested_variable(name: &str) -> String {
    let name = name.to_ascii_uppercase().replace('-', "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("SECRET_{name}") } else { name }
}
