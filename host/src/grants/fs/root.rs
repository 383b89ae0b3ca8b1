//! An open granted directory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::open_directory;
use crate::grants::mountinfo::{FileIdentity, FilesystemKind};

/// A granted directory as it was when it was opened.
#[derive(Debug)]
pub(super) struct OpenRoot {
    guest: Arc<str>,
    host: Arc<Path>,
    dir: Arc<File>,
    identity: FileIdentity,
    kind: FilesystemKind,
    /// The id of the user that runs belljar.
    user: u32,
}

impl OpenRoot {
    /// Opens the directory of the `O_PATH` handle `lookup`. May wait for the drive if it can stall.
    pub(super) fn new(
        guest: &Arc<str>,
        host: &Arc<Path>,
        handle: &File,
        identity: FileIdentity,
        kind: FilesystemKind,
    ) -> Result<Self, Errno> {
        Ok(Self {
            guest: Arc::clone(guest),
            host: Arc::clone(host),
            dir: Arc::new(open_directory::reopen_for_reading(handle)?),
            identity,
            kind,
            user: rustix::process::geteuid().as_raw(),
        })
    }

    /// Opens the directory at the path. May wait for the drive.
    pub(super) fn open(guest: &Arc<str>, host: &Arc<Path>) -> Result<Self, Errno> {
        let handle = open_directory::open_canonical(host)?;
        let identity = FileIdentity::of(&handle)?;
        Self::new(guest, host, &handle, identity, identity.kind())
    }

    /// The guest path.
    pub(super) fn guest(&self) -> &str {
        &self.guest
    }

    /// The absolute host path, without symbolic links.
    pub(super) fn host(&self) -> &Path {
        &self.host
    }

    /// The directory, opened for reading.
    pub(super) fn dir(&self) -> &Arc<File> {
        &self.dir
    }

    pub(super) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// The kind of its file system.
    pub(super) fn kind(&self) -> FilesystemKind {
        self.kind
    }

    pub(super) fn user(&self) -> u32 {
        self.user
    }

    /// True if its file system can stall (network, FUSE, unknown).
    pub(super) fn may_stall(&self) -> bool {
        self.kind != FilesystemKind::Local
    }
}
