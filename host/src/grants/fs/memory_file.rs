//! A file of a directory in memory, as a guest has it open: its contents, a stream of them, and its metadata.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType};
use wasmtime_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};

use super::metadata::DescriptorMetadata;
use super::stream::CHUNK;
use crate::grants::memory_directory::{MemoryDirectory, MemoryFile};

/// A device number that no device has, so that no file of the host has the identity of a file in memory.
const NO_DEVICE: u64 = u64::MAX;

/// A file in memory that a guest has opened.
#[derive(Clone)]
pub(super) struct OpenMemoryFile {
    file: Arc<MemoryFile>,
    inode: u64,
}

impl OpenMemoryFile {
    /// The file `name` of a directory.
    pub(super) fn new(dir: &dyn MemoryDirectory, name: &str, file: Arc<MemoryFile>) -> Self {
        Self { file, inode: inode(dir, name) }
    }

    /// The size in bytes. The call pays for it as long as it has the handle: the host keeps the file only for others.
    pub(super) fn size(&self) -> u64 {
        self.file.bytes.len() as u64
    }

    /// At most `len` bytes from `offset`, and at most [`CHUNK`].
    pub(super) fn read(&self, len: u64, offset: u64) -> Bytes {
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(self.file.bytes.len());
        let start = at(offset);
        let len = usize::try_from(len).unwrap_or(CHUNK).min(CHUNK);
        self.file.bytes.slice(start..start.saturating_add(len).min(self.file.bytes.len()))
    }

    pub(super) fn metadata(&self) -> DescriptorMetadata {
        metadata(DescriptorType::RegularFile, self.size(), Some(self.file.modified), self.inode)
    }
}

/// The metadata of the directory itself.
pub(super) fn directory_metadata(dir: &dyn MemoryDirectory) -> DescriptorMetadata {
    metadata(DescriptorType::Directory, 0, None, inode(dir, ""))
}

fn metadata(type_: DescriptorType, size: u64, modified: Option<SystemTime>, inode: u64) -> DescriptorMetadata {
    let time = modified.and_then(|time| {
        let since = time.duration_since(UNIX_EPOCH).ok()?;
        Some(Datetime { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() })
    });
    let stat = DescriptorStat {
        type_,
        link_count: 1,
        size,
        data_access_timestamp: None,
        data_modification_timestamp: time,
        status_change_timestamp: time,
    };
    DescriptorMetadata { stat, identity: (NO_DEVICE, inode) }
}

fn inode(dir: &dyn MemoryDirectory, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (dir.guest(), name).hash(&mut hasher);
    hasher.finish()
}

/// A stream of the bytes of a file in memory from a position on.
pub(super) struct MemoryStream {
    pub(super) file: OpenMemoryFile,
    pub(super) position: u64,
}

#[async_trait]
impl Pollable for MemoryStream {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for MemoryStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 && self.position < self.file.size() {
            return Ok(Bytes::new());
        }
        let read = self.file.read(size as u64, self.position);
        if read.is_empty() {
            return Err(StreamError::Closed);
        }
        self.position = self.position.saturating_add(read.len() as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_read_in_pieces_from_any_position() {
        let bytes = Bytes::from(vec![7; CHUNK + 10]);
        let file = Arc::new(MemoryFile { bytes, modified: SystemTime::UNIX_EPOCH });
        let file = OpenMemoryFile { file, inode: 1 };
        assert_eq!(file.read(4, 0).len(), 4);
        assert_eq!(file.read(u64::MAX, 4).len(), CHUNK);
        assert_eq!(file.read(u64::MAX, CHUNK as u64 + 4).len(), 6);
        assert!(file.read(u64::MAX, u64::MAX).is_empty());
        let mut stream = MemoryStream { file, position: 4 };
        assert_eq!(stream.read(0).unwrap().len(), 0);
        assert_eq!(stream.read(usize::MAX).unwrap().len(), CHUNK);
        assert_eq!(stream.read(usize::MAX).unwrap().len(), 6);
        assert!(matches!(stream.read(1), Err(StreamError::Closed)));
        assert!(matches!(stream.read(0), Err(StreamError::Closed)));
    }
}
