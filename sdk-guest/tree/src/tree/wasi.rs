//! A granted directory inside the sandbox, through `wasi:filesystem`. The standard library is not used: it looks up every
//! directory entry once more for its inode number. In a large directory, these are 50,000 needless look-ups.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::time::{Duration, UNIX_EPOCH};

use belljar_guest::{Error, Result};
use wasip2::filesystem::preopens;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode, OpenFlags, PathFlags,
};

use super::records::{self, Record};
use super::{Chunk, Entry, Found, Kind, Meta};
use crate::part::Seekable;

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

/// The offset of position 0 in the records of a directory. Offsets of files are below it.
const RECORDS_FROM: u64 = 1 << 63;

/// The bytes of directory records that are requested at once: about 1,500 entries.
const RECORDS: u64 = 64 * 1024;

impl Directory {
    /// The entries of a directory below this one, or of this one for `""`.
    pub(super) fn entries(&self, path: &str) -> Result<impl Iterator<Item = Found> + use<>> {
        let directory = self.directory(path)?;
        let directory = directory.as_ref().unwrap_or(&self.0);
        // Records take one call for many entries, a stream takes one call for each.
        Ok(match records_at(directory, 0) {
            Some(Chunk { entries, next: None }) => Entries::Records(entries.into_iter(), None),
            Some(Chunk { entries, next: Some(next) }) => {
                let own = directory.open_at(PathFlags::empty(), ".", OpenFlags::DIRECTORY, DescriptorFlags::READ);
                Entries::Records(entries.into_iter(), Some((own.map_err(error)?, next)))
            }
            None => Entries::Stream(directory.read_directory().map_err(error)?),
        })
    }

    /// At least one and about `most` entries from a position. `None` if the host has no positions.
    pub(super) fn stored(&self, path: &str, position: u64, most: usize) -> Result<Option<Chunk<Found>>> {
        let directory = self.directory(path)?;
        let Some(mut chunk) = records_at(directory.as_ref().unwrap_or(&self.0), position) else { return Ok(None) };
        if chunk.entries.len() > most {
            chunk.entries.truncate(most);
            chunk.next = chunk.entries.last().map(|(_, after)| *after);
        }
        Ok(Some(chunk))
    }

    /// Opens a directory below this one. `None` for this one.
    fn directory(&self, path: &str) -> Result<Option<Descriptor>> {
        if path.is_empty() { Ok(None) } else { self.open(path, OpenFlags::DIRECTORY).map(Some) }
    }

    /// The metadata of a path. Does not open it.
    pub(super) fn meta(&self, path: &str) -> Result<Meta> {
        let stat = if path.is_empty() { self.0.stat() } else { self.0.stat_at(PathFlags::SYMLINK_FOLLOW, path) };
        Ok(stat.map_err(error)?.into())
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

/// The records of a directory from a position. `None` if the host has no positions.
fn records_at(directory: &Descriptor, position: u64) -> Option<Chunk<Found>> {
    // Hosts have several codes for this. A stream fails for the other reasons, too.
    let (bytes, end) = directory.read(RECORDS, RECORDS_FROM | position).ok()?;
    let found = |Record { after, kind, name }: Record<'_>| {
        let name = std::str::from_utf8(name);
        (name.map_or(Found::Unnamed, |name| Found::Entry(Entry { name: name.to_owned(), kind })), after)
    };
    let entries: Vec<(Found, u64)> = records::records(&bytes).map(found).collect();
    let next = entries.last().filter(|_| !end).map(|(_, after)| *after);
    Some(Chunk { entries, next })
}

impl Seekable for File {
    fn read_at(&self, position: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let got = bytes.len() as u64;
            let wanted = length.saturating_sub(got).min(CHUNK);
            if wanted == 0 {
                return Ok(bytes);
            }
            let (chunk, end) = self.descriptor.read(wanted, position.saturating_add(got)).map_err(error)?;
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

    fn state(&self) -> Result<Meta> {
        Ok(self.descriptor.stat().map_err(error)?.into())
    }
}

/// A file of the standard library, for providers that open files by their guest paths.
impl Seekable for fs::File {
    fn read_at(&self, position: u64, length: u64) -> Result<Vec<u8>> {
        let mut file = self;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(position))?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn state(&self) -> Result<Meta> {
        Ok(self.metadata()?.into())
    }
}

impl From<DescriptorStat> for Meta {
    fn from(stat: DescriptorStat) -> Self {
        let modified = stat.data_modification_timestamp.and_then(|time| {
            UNIX_EPOCH.checked_add(Duration::from_secs(time.seconds) + Duration::from_nanos(time.nanoseconds.into()))
        });
        Meta { kind: stat.type_.into(), size: stat.size, modified }
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

/// The entries of a directory.
enum Entries {
    /// Those at hand, and where the next ones are.
    Records(std::vec::IntoIter<(Found, u64)>, Option<(Descriptor, u64)>),
    /// One call for each.
    Stream(DirectoryEntryStream),
}

impl Iterator for Entries {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        match self {
            Entries::Records(at_hand, rest) => loop {
                if let Some((found, _)) = at_hand.next() {
                    return Some(found);
                }
                let (directory, position) = rest.take()?;
                // Like a stream, ends at an error.
                let chunk = records_at(&directory, position)?;
                *at_hand = chunk.entries.into_iter();
                *rest = chunk.next.map(|next| (directory, next));
            },
            Entries::Stream(stream) => match stream.read_directory_entry() {
                Ok(entry) => entry.map(|entry| Found::Entry(Entry { name: entry.name, kind: entry.type_.into() })),
                Err(ErrorCode::IllegalByteSequence) => Some(Found::Unnamed),
                Err(_) => None,
            },
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
