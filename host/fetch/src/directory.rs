//! The directory that gets components and bundles: `HEX.wasm` is a complete and checked file, `HEX.part` one that is not. Opened before the
//! wall is raised; every later name is relative to it and follows no link.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use belljar_fetch_protocol::{ArtifactKind, Failure, FailureKind};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::digest::{Hasher, Sha256};
use crate::failure::{Outcome, failure};

/// The rights of a new file.
const RIGHTS: u32 = 0o644;

/// The bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// The directory.
pub(crate) struct Directory {
    handle: OwnedFd,
    kind: ArtifactKind,
    shown: String,
}

/// A file that is not complete. No other process writes it.
pub(crate) struct Part {
    file: File,
    name: String,
}

impl Directory {
    /// Opens the directory, for files of this kind.
    pub(crate) fn open(path: &Path, kind: ArtifactKind) -> Outcome<Self> {
        let shown = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let handle = opened.map_err(|error| unusable(&shown, error))?;
        Ok(Self { handle, kind, shown })
    }

    /// The name of the complete file.
    pub(crate) fn name(&self, digest: &Sha256) -> String {
        format!("{}.{}", digest.hex(), self.kind.extension())
    }

    /// The open directory, for the wall.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// True if the complete file is there with its digest. `each` gets its bytes.
    pub(crate) fn has(&self, digest: &Sha256, each: &mut dyn FnMut(&[u8])) -> Outcome<Option<u64>> {
        let name = self.name(digest);
        let Some(mut file) = self.open_file(&name, OFlags::RDONLY)? else { return Ok(None) };
        let mut hasher = Hasher::default();
        let size = read(&mut file, |bytes| hasher.update(bytes)).map_err(|error| self.broken(&name, &error))?;
        if hasher.finish() != *digest {
            // Somebody changed it. It is fetched again.
            return Ok(None);
        }
        read(&mut file, each).map_err(|error| self.broken(&name, &error))?;
        Ok(Some(size))
    }

    /// Opens or creates the file that is not complete, and locks it. `None` while another download has it.
    pub(crate) fn part(&self, digest: &Sha256) -> Outcome<Option<Part>> {
        let name = part_name(digest);
        let flags = OFlags::RDWR | OFlags::CREATE;
        let Some(file) = self.open_file(&name, flags)? else { return Err(unusable(&self.shown, Errno::NOENT)) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Between opening and locking, another download may have given the file its final name.
        let (own, named) =
            (rustix::fs::fstat(&file), rustix::fs::statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW));
        let is_named =
            own.is_ok_and(|own| named.is_ok_and(|named| (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)));
        Ok(is_named.then_some(Part { file, name }))
    }

    /// The failure of a download that waited for another one.
    pub(crate) fn busy(&self, digest: &Sha256) -> Box<Failure> {
        let problem = format!("\"{}\" in \"{}\" is being written by another download", part_name(digest), self.shown);
        failure(FailureKind::Directory, problem, "wait until it ends")
    }

    /// Makes a complete part the file that has its name by its digest.
    pub(crate) fn finish(&self, part: &Part, digest: &Sha256) -> Outcome<String> {
        let name = self.name(digest);
        part.file.sync_all().map_err(|error| self.broken(&part.name, &error))?;
        rustix::fs::renameat(&self.handle, &part.name, &self.handle, &name)
            .map_err(|error| unusable(&self.shown, error))?;
        rustix::fs::fsync(&self.handle).map_err(|error| unusable(&self.shown, error))?;
        Ok(name)
    }

    /// Removes a part whose bytes are wrong.
    pub(crate) fn discard(&self, part: &Part) {
        // The next download truncates what is left.
        let _ = rustix::fs::unlinkat(&self.handle, &part.name, AtFlags::empty());
    }

    /// The failure of an operation on a file.
    pub(crate) fn broken(&self, name: &str, error: &std::io::Error) -> Box<Failure> {
        let problem = format!("cannot use \"{name}\" in \"{}\": {error}", self.shown);
        failure(FailureKind::Directory, problem, "check the space and the rights of that directory")
    }

    fn open_file(&self, name: &str, flags: OFlags) -> Outcome<Option<File>> {
        // Without `NONBLOCK`, opening a pipe would wait.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(RIGHTS)) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.broken(name, &error.into())),
        };
        let meta = rustix::fs::fstat(&file).map_err(|error| self.broken(name, &error.into()))?;
        if FileType::from_raw_mode(meta.st_mode) != FileType::RegularFile || meta.st_nlink > 1 {
            let problem = format!("\"{name}\" in \"{}\" is no plain file", self.shown);
            return Err(failure(FailureKind::Directory, problem, "remove it"));
        }
        Ok(Some(file.into()))
    }
}

impl Part {
    /// The name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The bytes that are there. `each` gets them. The file is emptied first if it has more than `largest`.
    pub(crate) fn kept(&mut self, largest: u64, each: impl FnMut(&[u8])) -> std::io::Result<u64> {
        if self.file.seek(SeekFrom::End(0))? > largest {
            self.empty()?;
        }
        read(&mut self.file, each)
    }

    /// Forgets what is there.
    pub(crate) fn empty(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(drop)
    }

    /// Adds bytes at the end.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all(bytes)
    }
}

/// The name of the file that is not complete.
fn part_name(digest: &Sha256) -> String {
    format!("{}.part", digest.hex())
}

/// Gives all bytes of a file to `each`. Returns how many.
fn read(file: &mut File, mut each: impl FnMut(&[u8])) -> std::io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; PIECE];
    let mut size = 0;
    loop {
        let count = file.read(&mut buffer)?;
        let Some(piece) = buffer.get(..count).filter(|piece| !piece.is_empty()) else { return Ok(size) };
        each(piece);
        size += count as u64;
    }
}

fn unusable(shown: &str, error: Errno) -> Box<Failure> {
    let problem = format!("cannot use the directory \"{shown}\": {error}");
    failure(FailureKind::Directory, problem, "create it, or correct its rights")
}
