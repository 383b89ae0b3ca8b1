//! The names of mounts.

use std::fmt;
use std::sync::Arc;

use super::guard::Guard;
use super::text;

/// The name of a mount: `[a-z0-9][a-z0-9-]*`, at most 64 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountName(Arc<str>);

/// The longest mount name, in bytes. It fits a DNS label, a file stem and a column of the log.
pub const MAX_MOUNT_NAME: usize = 64;

/// The text is not a mount name. Each variant holds the text, safe to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty, too long, or contains a character that names may not contain.
    #[error(
        "\"{0}\" is not a mount name: a mount name is made of a-z, 0-9 and \"-\", begins with a letter or digit, and has at most 64 characters"
    )]
    Shape(String),
    /// The stem of a component file cannot be turned into a name.
    #[error(
        "the file name \"{0}.wasm\" does not make a mount name; rename the file to letters, digits and \"-\", or mount it under a name of its own: [mounts.NAME] component = \"{0}.wasm\""
    )]
    Stem(String),
}

impl MountName {
    /// Checks `name`.
    ///
    /// # Errors
    /// [`NameError::Shape`].
    pub fn new(name: &str) -> Result<Self, NameError> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = !name.is_empty() && name.len() <= MAX_MOUNT_NAME && name.chars().all(good) && !name.starts_with('-');
        if !fits && Guard::Name.is_on() {
            return Err(NameError::Shape(text::excerpt(name, 80)));
        }
        Ok(Self(name.into()))
    }

    /// The mount name that a component file implies: its stem in lower case, with `_` replaced by `-`.
    ///
    /// # Errors
    /// [`NameError::Stem`], which says how to set the name of the mount.
    pub fn from_stem(stem: &str) -> Result<Self, NameError> {
        Self::new(&stem.to_ascii_lowercase().replace('_', "-")).map_err(|_| NameError::Stem(text::excerpt(stem, 80)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}
