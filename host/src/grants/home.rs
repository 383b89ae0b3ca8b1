//! The error for `~` in a path without a home directory.

use serde::{Deserialize, Serialize};

/// A path starts with `~`, but no home directory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("\"~\" is used, but HOME is not set; write the whole path")]
pub struct NoHome;
