//! The type of one secret.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The shortest secret, in bytes. A shorter one could not be told from ordinary text.
pub(in crate::grants) const MIN_LENGTH: usize = 8;

/// The longest secret, in bytes.
pub(in crate::grants) const MAX_LENGTH: usize = 16 << 10;

/// Why a value is not allowed for a secret: belljar could not mask it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SecretValueError {
    /// The value is empty.
    #[error("it is empty")]
    Empty,
    /// The value is shorter than 8 bytes.
    #[error("it has fewer than {MIN_LENGTH} characters, and could not be told from ordinary text")]
    TooShort,
    /// The value is longer than 16 KiB.
    #[error("it has more than {MAX_LENGTH} bytes")]
    TooLong,
    /// The value has a line break or another control character.
    #[error("it has a line break or another control character in it")]
    Control,
}

/// One secret.
pub struct Secret {
    pub(super) name: String,
    pub(super) value: Zeroizing<String>,
}

impl Secret {
    /// The operator's name for the secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a secret.
    ///
    /// # Errors
    /// When the value is too short, too long, or has a control character.
    pub fn new(name: &str, value: Zeroizing<String>) -> Result<Self, SecretValueError> {
        match value.len() {
            0 => Err(SecretValueError::Empty),
            short if short < MIN_LENGTH => Err(SecretValueError::TooShort),
            long if long > MAX_LENGTH => Err(SecretValueError::TooLong),
            _ if value.chars().any(char::is_control) => Err(SecretValueError::Control),
            _ => Ok(Self { name: name.to_owned(), value }),
        }
    }
}
