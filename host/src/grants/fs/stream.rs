//! The bytes of a file as a stream. A read is made where it is asked for: the file is local, or the call has a thread of its
//! own. So nothing of a call is left behind in a thread of somebody else's when the call ends.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};

/// Bytes that are read at once, at most.
pub(super) const CHUNK: usize = 64 << 10;

/// Reads up to `len` bytes that begin at `offset`.
pub(super) fn read_at(file: &File, len: usize, offset: u64) -> Result<Vec<u8>, Errno> {
    let len = len.min(CHUNK);
    let mut bytes = Vec::with_capacity(len);
    if len == 0 {
        return Ok(bytes);
    }
    loop {
        match pread(file, spare_capacity(&mut bytes), offset) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) => {
                // An allocator may give more than it was asked for.
                bytes.truncate(len);
                return Ok(bytes);
            }
        }
    }
}

/// A file that is read from some place on.
pub(super) struct FileStream {
    file: Arc<File>,
    position: u64,
    is_closed: bool,
}

impl FileStream {
    pub(super) fn new(file: Arc<File>, position: u64) -> Self {
        Self { file, position, is_closed: false }
    }
}

#[async_trait]
impl Pollable for FileStream {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for FileStream {
    fn read(&mut self, size: usize) -> StreamResult<bytes::Bytes> {
        if self.is_closed {
            return Err(StreamError::Closed);
        }
        if size == 0 {
            return Ok(bytes::Bytes::new());
        }
        match read_at(&self.file, size, self.position) {
            Ok(read) if read.is_empty() => {
                self.is_closed = true;
                Err(StreamError::Closed)
            }
            Ok(read) => {
                self.position = self.position.saturating_add(read.len() as u64);
                Ok(read.into())
            }
            Err(errno) => {
                self.is_closed = true;
                Err(StreamError::LastOperationFailed(io::Error::from(errno).into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_on_where_it_was_and_ends_once() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        std::fs::write(&path, vec![7; CHUNK + 10]).unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let mut stream = FileStream::new(Arc::clone(&file), 4);
        assert_eq!(stream.read(0).unwrap().len(), 0);
        assert_eq!(stream.read(6).unwrap().len(), 6);
        assert_eq!(stream.read(usize::MAX).unwrap().len(), CHUNK);
        assert!(matches!(stream.read(1), Err(StreamError::Closed)));
        assert!(matches!(stream.read(1), Err(StreamError::Closed)));
        let mut behind = FileStream::new(Arc::clone(&file), u64::MAX);
        assert!(matches!(behind.read(1), Err(StreamError::LastOperationFailed(_))));
        assert!(matches!(behind.read(1), Err(StreamError::Closed)));
        assert_eq!(read_at(&file, 3, 0).unwrap(), [7, 7, 7]);
        assert!(read_at(&file, 0, 0).unwrap().is_empty());
    }
}
