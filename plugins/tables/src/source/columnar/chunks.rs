//! Gives the Parquet library the bytes of a file.

use std::io::{self, Read, Seek as _, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_tree::File;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A file that is read from several positions.
#[derive(Clone)]
pub(crate) struct Chunks {
    file: Arc<Mutex<File>>,
    size: u64,
}

/// A reader of the file from a position.
pub(crate) struct FileReader {
    file: Arc<Mutex<File>>,
    position: u64,
}

impl Chunks {
    pub(crate) fn new(file: File, size: u64) -> Self {
        Chunks { file: Arc::new(Mutex::new(file)), size }
    }

    /// The size of the footer, as the end of the file says. `None` for a file of another form.
    pub(crate) fn footer(&self) -> Option<u64> {
        let tail = self.get_bytes(self.size.checked_sub(8)?, 8).ok()?;
        let size = tail.get(..4)?.try_into().ok()?;
        tail.ends_with(b"PAR1").then(|| u64::from(u32::from_le_bytes(size)))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<FileReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(FileReader { file: self.file.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // The length is from the file and may be wrong, so no more than the file's size is allocated.
        let length = length.min(usize::try_from(self.size.saturating_sub(start)).unwrap_or(usize::MAX));
        let mut bytes = Vec::with_capacity(length);
        FileReader { file: self.file.clone(), position: start }.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}
