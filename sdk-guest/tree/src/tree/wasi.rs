//! A granted directory inside the sandbox, through `wasi:filesystem`. The standard library is not used: it looks up every
//! directory entry once more for its inode number. In a large directory, these are 50,000 needless look-ups.

use std::io::{self, Read, Seek, SeekFrom};
use std::time::{Duration, UNIX_EPOCH};

use belljar_guest::{Error, Result};
use wasip2::filesystem::preopens;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, DirectoryEntryStream, ErrorCode, OpenFlags, PathFlags,
};

use super::{Entry, Kind, Meta};

/// A granted directory.
#[derive(Debug)]
pub struct Directory(Descriptor);

/// The granted directories, each with its guest path.
pub fn granted() -> Vec<(String, Directory)> {
    preopens::get_directories().into_iter().map(|(descriptor, path)| (path, Directory(descriptor))).collect()
}

/// The guest paths of the granted directories, for use with the standard library.
pub fn granted_paths() -> Vec<String> {
    preopens::get_directories().into_iter().map(|(_, path)| path).collect()
}

/// The bytes that are requested at once. The host may return fewer.
const CHUNK: u64 = 1024 * 1024;

impl Directory {
    /// The entries of a directory below this one, or of this one for `""`.
    pub(super) fn entries(&self, path: &str) -> Result<impl Iterator<Item = Entry> + use<>> {
        let stream = if path.is_empty() {
            self.0.read_directory()
        } else {
            self.open(path, OpenFlags::DIRECTORY)?.read_directory()
        };
        Ok(Entries(stream.map_err(error)?))
    }

    /// The metadata of a path. Does not open it.
    pub(super) fn meta(&self, path: &str) -> Result<Meta> {
        let stat = if path.is_empty() { self.0.stat() } else { self.0.stat_at(PathFlags::SYMLINK_FOLLOW, path) };
        let stat = stat.map_err(error)?;
        let modified = stat.data_modification_timestamp.and_then(|time| {
            UNIX_EPOCH.checked_add(Duration::from_secs(time.seconds) + Duration::from_nanos(time.nanoseconds.into()))
        });
        Ok(Meta { kind: stat.type_.into(), size: stat.size, modified })
    }

    /// The first `length` bytes of a file, or all of a shorter one.
    pub(super) fn read(&self, path: &str, length: u64) -> Result<Vec<u8>> {
        let file = self.open(path, OpenFlags::empty())?;
        let mut bytes = Vec::new();
        loop {
            let at = bytes.len() as u64;
            let wanted = length.saturating_sub(at).min(CHUNK);
            if wanted == 0 {
                return Ok(bytes);
            }
            let (chunk, end) = file.read(wanted, at).map_err(error)?;
            if chunk.is_empty() {
                return Ok(bytes);
            }
            if bytes.is_empty() {
                bytes = chunk;
                bytes.reserve_exact(usize::try_from(length).unwrap_or_default().saturating_sub(bytes.len()));
            } else {
                bytes.extend_from_slice(&chunk);
            }
            if end {
                return Ok(bytes);
            }
        }
    }

    pub(super) fn file(&self, path: &str) -> Result<File> {
        let descriptor = self.open(path, OpenFlags::empty())?;
        let size = descriptor.stat().map_err(error)?.size;
        Ok(File { descriptor, size, position: 0 })
    }

    fn open(&self, path: &str, flags: OpenFlags) -> Result<Descriptor> {
        self.0.open_at(PathFlags::SYMLINK_FOLLOW, path, flags, DescriptorFlags::READ).map_err(error)
    }
}

/// A file that can be read from any position.
#[derive(Debug)]
pub struct File {
    descriptor: Descriptor,
    size: u64,
    position: u64,
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = (buffer.len() as u64).min(CHUNK);
        let (bytes, _) = self.descriptor.read(wanted, self.position).map_err(io_error)?;
        let given = buffer.get_mut(..bytes.len()).ok_or_else(|| io_error(ErrorCode::Overflow))?;
        given.copy_from_slice(&bytes);
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

fn io_error(code: ErrorCode) -> io::Error {
    io::Error::other(code.message())
}

struct Entries(DirectoryEntryStream);

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            match self.0.read_directory_entry() {
                Ok(entry) => {
                    return entry.map(|entry| Entry { name: entry.name, kind: entry.type_.into() });
                }
                // Skip a name that is not UTF-8, because no reference can contain it.
                Err(ErrorCode::IllegalByteSequence) => {}
                Err(_) => return None,
            }
        }
    }
}

impl From<DescriptorType> for Kind {
    fn from(kind: DescriptorType) -> Self {
        match kind {
            DescriptorType::RegularFile => Kind::File,
            DescriptorType::Directory => Kind::Directory,
            DescriptorType::SymbolicLink => Kind::Symlink,
            _ => Kind::Other,
        }
    }
}

fn error(code: ErrorCode) -> Error {
    match code {
        // Absent paths, and names that no file can have.
        ErrorCode::NoEntry
        | ErrorCode::NotDirectory
        | ErrorCode::NameTooLong
        | ErrorCode::IllegalByteSequence
        | ErrorCode::Loop => Error::NotFound,
        ErrorCode::Access => Error::denied("permission denied on the host"),
        ErrorCode::NotPermitted => Error::denied("the path leads out of the granted directory"),
        ErrorCode::Busy | ErrorCode::WouldBlock | ErrorCode::Interrupted | ErrorCode::InsufficientMemory => {
            Error::unavailable(code.message())
        }
        _ => Error::failed(code.message()),
    }
}
