//! Reads and changes the keys file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::files::{self, FileError};
use crate::auth::key_store::KeyStore;
use crate::auth::keys_file::{KeysEditError, KeysFileError};
use crate::config::Config;
use crate::model::command;

/// The permissions of a new keys file.
const MODE: u32 = 0o600;

/// Why the API keys cannot be used or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiKeysError {
    /// The file can be neither read nor written, or other users can change it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is wrong.
    #[error("{}: {error}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: KeysFileError,
    },
    /// The change is not possible.
    #[error("nothing was changed in \"{}\": {error}", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: KeysEditError,
    },
    /// The configuration demands keys, and there are none.
    #[error(
        "[auth]: there is no keys file \"{}\"; to make a key, run: {}",
        .0.display(),
        command::line(["key", "new", "NAME"])
    )]
    Absent(PathBuf),
    /// A question about a key that is refused anyway.
    #[error(
        "the key \"{name}\" has expired, so every request with it is refused; to replace it, run: {}, and then: {}",
        command::line(["key", "revoke", name]),
        command::line(["key", "new", name])
    )]
    Expired {
        /// The name of the key.
        name: String,
    },
    /// The operating system gives no random numbers.
    #[error("cannot make a key: {0}")]
    NoRandomness(#[from] getrandom::Error),
    /// The key cannot be printed.
    #[error("the key is stored, but it cannot be printed ({error}); revoke it, and make another one: {cure}")]
    Unprinted {
        /// The error of the operating system.
        error: io::Error,
        /// The command that revokes the key.
        cure: String,
    },
}

/// The text of the keys file. `None` if there is no file.
///
/// # Errors
/// If the file cannot be read, or other users can change it.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, FileError> {
    files::read_protected(path)
}

/// The keys in the text of the file `path`. A missing file has no keys.
///
/// # Errors
/// If the text is wrong.
pub(crate) fn parse(path: &Path, text: Option<&str>) -> Result<KeyStore, ApiKeysError> {
    KeyStore::parse(text.unwrap_or_default()).map_err(|error| ApiKeysError::Wrong { path: path.to_owned(), error })
}

/// The keys of the configuration, and the text that they are from. `None` without `[auth]`.
///
/// # Errors
/// If the keys file is wrong, or is missing although the configuration demands it.
pub(crate) fn load(config: &Config) -> Result<Option<(KeyStore, Option<String>)>, ApiKeysError> {
    let Some(auth) = &config.auth else { return Ok(None) };
    let path = &config.api_keys;
    let text = read_text(path)?;
    if text.is_none() && auth.needs_keys_file() {
        return Err(ApiKeysError::Absent(path.clone()));
    }
    let keys = parse(path, text.as_deref())?;
    if keys.count(SystemTime::now()).valid == 0 && auth.needs_keys_file() {
        tracing::warn!(
            "there is no valid API key in \"{}\", so every HTTP request is refused; to make a key, run: {}",
            path.display(),
            command::line(["key", "new", "NAME"])
        );
    }
    Ok(Some((keys, text)))
}

/// Changes the keys file. Returns its new text. Waits for other writers.
///
/// # Errors
/// If the file cannot be read or written, or the change is not possible. The file is unchanged then.
pub(crate) fn change(
    path: &Path,
    edit: impl FnOnce(&str) -> Result<String, KeysEditError>,
) -> Result<String, ApiKeysError> {
    let write_lock = files::lock_for_writing(&[path])?;
    let before = read_text(path)?.unwrap_or_default();
    let after = edit(&before).map_err(|error| ApiKeysError::Edit { path: path.to_owned(), error })?;
    files::replace(&write_lock, path, &after, MODE)?;
    Ok(after)
}
