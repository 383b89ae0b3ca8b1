//! An open granted directory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::open_directory;
use crate::grants::mountinfo::{FileIdentity, FilesystemKind};
use crate::grants::outside::OutsideOpener;

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
        Ok(Self::of(guest, host, open_directory::reopen_for_reading(handle)?, identity, kind))
    }

    /// A directory that is open for reading.
    fn of(guest: &Arc<str>, host: &Arc<Path>, dir: File, identity: FileIdentity, kind: FilesystemKind) -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self { guest: Arc::clone(guest), host: Arc::clone(host), dir: Arc::new(dir), identity, kind, user }
    }

    /// Opens the directory at the path. May wait for the drive. If the second wall hides the directory, asks `outside`.
    pub(super) fn open(guest: &Arc<str>, host: &Arc<Path>, outside: Option<&dyn OutsideOpener>) -> Result<Self, Errno> {
        let handle = open_directory::open_canonical(host)?;
        let identity = FileIdentity::of(&handle)?;
        let opened = Self::new(guest, host, &handle, identity, identity.kind());
        let (Err(Errno::ACCESS), Some(outside)) = (&opened, outside) else { return opened };
        let dir = outside.open_directory(host);
        let dir = File::from(dir.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ACCESS))?);
        // The path may lead to another directory by now.
        let identity = FileIdentity::of(&dir)?;
        Ok(Self::of(guest, host, dir, identity, identity.kind()))
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
