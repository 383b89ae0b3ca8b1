//! Unpacks compressed files: gzip, xz, bzip2, Zstandard and LZ4. The first bytes of a file decide, not its name.
//!
//! A file is unpacked from its beginning, and only its end is kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::time::Instant;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

use crate::source::{Budget, End};

/// How much of the end of an unpacked file is kept and searched, in bytes.
pub(crate) const MAX_KEPT: usize = 8 * 1024 * 1024;

/// The bytes that are unpacked at once.
const BLOCK: usize = 64 * 1024;

/// The most memory that a file may ask for to be unpacked, in bytes. The sandbox has 64 MiB by default. `xz -9` and
/// `zstd --ultra` ask for more.
const MAX_MEMORY: u32 = 33 * 1024 * 1024;

/// The formats that are read, for messages.
pub(crate) const FORMATS: &str = "gzip, xz, bzip2, Zstandard or LZ4";

/// A reader of the unpacked bytes of a file.
pub(crate) fn reader<'r>(mut file: impl Read + Seek + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.by_ref().take(6).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    let file = BufReader::with_capacity(BLOCK, file);
    Ok(match head.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(XzReader::new_mem_limit(file, true, MAX_MEMORY / 1024)),
        [b'B', b'Z', b'h', ..] => Box::new(MultiBzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Box::new(Frames::Between(file)),
        [0x04, 0x22, 0x4d, 0x18, ..] => Box::new(Lz4Decoder::new(file)),
        _ => return Err(io::Error::new(ErrorKind::InvalidData, format!("it is not in a known format: {FORMATS}"))),
    })
}

/// The frames of a Zstandard file, one after the other.
enum Frames<R: Read> {
    Between(BufReader<R>),
    Within(Box<StreamingDecoder<BufReader<R>, ruzstd::decoding::FrameDecoder>>),
    End,
}

impl<R: Read + Seek> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Frames::End) {
                Frames::End => return Ok(0),
                Frames::Within(mut decoder) => {
                    let read = decoder.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        *self = Frames::Within(decoder);
                        return Ok(read);
                    }
                    *self = Frames::Between(decoder.into_inner());
                }
                Frames::Between(mut file) => {
                    if file.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let start = file.stream_position()?;
                    match StreamingDecoder::new_with_max_window_size(&mut file, MAX_MEMORY.into()) {
                        Ok(_) => {
                            // Reads the header a second time, with a decoder that owns the file.
                            file.seek(SeekFrom::Start(start))?;
                            let decoder = StreamingDecoder::new_with_max_window_size(file, MAX_MEMORY.into());
                            *self = Frames::Within(Box::new(decoder.map_err(io::Error::other)?));
                        }
                        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                            length,
                            ..
                        })) => {
                            io::copy(&mut file.by_ref().take(length.into()), &mut io::sink())?;
                            *self = Frames::Between(file);
                        }
                        Err(error) => return Err(io::Error::other(error)),
                    }
                }
            }
        }
    }
}

/// The end of an unpacked file.
pub(crate) struct Unpacked {
    pub(crate) bytes: Vec<u8>,
    /// The position of `bytes` in the unpacked file.
    pub(crate) start: u64,
    pub(crate) end: End,
    /// True if it ends within a line.
    pub(crate) partial: bool,
    /// The reason why the rest was not unpacked.
    pub(crate) damage: Option<String>,
}

/// Unpacks a file up to `limit` bytes, or up to the first block for which `beyond` is true, and keeps its end.
pub(crate) fn unpack(
    mut file: File,
    limit: Option<u64>,
    budget: &mut Budget,
    beyond: impl Fn(&[u8]) -> bool,
) -> Unpacked {
    let mut unpacked = Unpacked { bytes: Vec::new(), start: 0, end: End::Beginning, partial: false, damage: None };
    if limit.is_none() && size_of_gzip(&mut file).is_ok_and(|size| size > budget.left) {
        return Unpacked { end: End::TooLarge, ..unpacked };
    }
    let mut left = limit.unwrap_or(u64::MAX);
    let mut blocks: VecDeque<Vec<u8>> = VecDeque::new();
    let mut kept = 0;
    let mut decoder = match reader(file) {
        Ok(decoder) => decoder,
        Err(error) => return Unpacked { damage: Some(error.to_string()), ..unpacked },
    };
    while left > 0 {
        if budget.left == 0 || Instant::now() > budget.deadline {
            // A read needs the end of the file, and the budget does not reach it.
            return Unpacked { end: End::TooLarge, ..unpacked };
        }
        let mut block = Vec::with_capacity(BLOCK);
        let read = decoder.by_ref().take(left.min(BLOCK as u64)).read_to_end(&mut block);
        if matches!(read, Ok(0)) {
            break;
        }
        left = left.saturating_sub(block.len() as u64);
        budget.left = budget.left.saturating_sub(block.len() as u64);
        // A log that fits whole is read whole: its times may run backwards.
        unpacked.partial = unpacked.start > 0 && beyond(&block);
        kept += block.len();
        blocks.push_back(block);
        while kept > MAX_KEPT {
            let dropped = blocks.pop_front().map_or(0, |block| block.len());
            kept -= dropped;
            unpacked.start += dropped as u64;
            unpacked.end = End::Dropped;
        }
        unpacked.damage = read.err().map(|error| error.to_string());
        if unpacked.damage.is_some() || unpacked.partial {
            break;
        }
    }
    // Frees its memory before the blocks are copied.
    drop(decoder);
    unpacked.bytes.reserve_exact(kept);
    for block in blocks {
        unpacked.bytes.extend_from_slice(&block);
    }
    if unpacked.damage.is_some() {
        // Drop the incomplete last line.
        let whole = memchr::memrchr(b'\n', &unpacked.bytes).map_or(0, |newline| newline + 1);
        unpacked.bytes.truncate(whole);
    }
    unpacked
}

/// The unpacked size from the last four bytes of a gzip file (RFC 1952, section 2.3.1). Too small if the file has several
/// members. 0 if the value is impossible, or the file is of another format.
fn size_of_gzip(file: &mut File) -> io::Result<u64> {
    /// The best compression ratio of deflate.
    const MAX_RATIO: u64 = 1032;
    let (mut magic, mut size) = ([0; 2], [0; 4]);
    file.read_exact(&mut magic)?;
    let length = file.seek(SeekFrom::End(-4))? + 4;
    file.read_exact(&mut size)?;
    file.seek(SeekFrom::Start(0))?;
    let size = Some(u64::from(u32::from_le_bytes(size)));
    Ok(size.filter(|size| magic == [0x1f, 0x8b] && *size <= length * MAX_RATIO).unwrap_or_default())
}
