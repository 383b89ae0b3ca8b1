//! Whose files are trusted.

use cap_std::fs::{Metadata, MetadataExt};

/// True if files of this user are trusted: root, or the user of this process.
pub fn is_trusted_owner(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// True if a user who is not trusted can write the file, or put files into the directory.
pub fn is_writable_by_others(meta: &Metadata) -> bool {
    meta.mode() & 0o022 != 0 || !is_trusted_owner(meta.uid())
}
