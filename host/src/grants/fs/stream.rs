//! Reads a file as a WASI input stream. Each read happens on the current thread: the file is local, or the call has a
//! dedicated thread. So no work of a call remains on a shared thread after the call.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};

/// The most bytes of one read.
pub(super) const CHUNK: usize = 64 << 10;

/// Reads up to `len` bytes, and at most [`CHUNK`], from `offset`.
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
                // The allocated capacity may exceed `len`.
                bytes.truncate(len);
                return Ok(bytes);
            }
        }
    }
}

/// A stream of the bytes of a file from a position on.
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
    fn a_stream_continues_and_stays_closed() {
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
