//! Text files that are compressed as a whole: gzip, Zstandard, xz and bzip2. They are unpacked as a stream, from the
//! beginning.

use std::io::{self, BufRead as _, BufReader, Read};

use belljar_tree::File;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// The most memory that an xz stream may ask for, in KiB. Its preset 6, the default, takes 9 MiB, and 9 takes 65 MiB.
const MAX_XZ_KIB: u32 = 33 * 1024;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstandard,
    Xz,
    Bzip2,
}

impl Packing {
    /// The packing that the first bytes of a file show.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let known = [
            (&b"\x1f\x8b\x08"[..], Packing::Gzip),
            (b"\x28\xb5\x2f\xfd", Packing::Zstandard),
            (b"\xfd7zXZ\0", Packing::Xz),
        ];
        // The fourth byte of bzip2 is the size of its blocks, and a magic number follows.
        if let [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] = head {
            return Some(Packing::Bzip2);
        }
        known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, packing)| *packing)
    }

    /// The name of a file without the ending of its packing, such as `a.csv` for `a.csv.gz`.
    pub(crate) fn stripped(name: &str) -> Option<&str> {
        let (stem, ending) = name.rsplit_once('.')?;
        let is_known = ["gz", "zst", "zstd", "xz", "bz2"].iter().any(|known| known.eq_ignore_ascii_case(ending));
        (is_known && !stem.is_empty()).then_some(stem)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zstandard => "Zstandard",
            Packing::Xz => "xz",
            Packing::Bzip2 => "bzip2",
        }
    }

    /// The most unpacked bytes that one read may skip. Chosen so that fuel and time suffice.
    pub(crate) fn most_skipped(self) -> u64 {
        let mebibytes = match self {
            Packing::Gzip | Packing::Zstandard => 192,
            Packing::Xz => 64,
            Packing::Bzip2 => 24,
        };
        mebibytes * 1024 * 1024
    }

    /// The unpacked bytes of a file.
    pub(crate) fn open<'r>(self, file: impl Read + 'r) -> Box<dyn Read + 'r> {
        let file = BufReader::with_capacity(64 * 1024, file);
        match self {
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Packing::Zstandard => Box::new(Zstandard::new(file)),
            Packing::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, MAX_XZ_KIB)),
            Packing::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        }
    }
}

/// The text of a file, from its beginning.
pub(crate) fn text(file: File, packing: Option<Packing>) -> Box<dyn Read> {
    match packing {
        Some(packing) => packing.open(file),
        None => Box::new(file),
    }
}

/// A Zstandard file: frames one after the other.
struct Zstandard<R: Read> {
    /// `None` between two frames, and at the end.
    frame: Option<StreamingDecoder<BufReader<R>, FrameDecoder>>,
    rest: Option<BufReader<R>>,
}

impl<R: Read> Zstandard<R> {
    fn new(file: BufReader<R>) -> Self {
        Zstandard { frame: None, rest: Some(file) }
    }

    /// Begins the next frame. False at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        let Some(mut rest) = self.rest.take() else { return Ok(false) };
        loop {
            let head = rest.fill_buf()?;
            if head.is_empty() {
                return Ok(false);
            }
            // A skippable frame: a magic number of sixteen, and the length of its data.
            let mut start = [0; 8];
            if !matches!(head, [0x50..=0x5f, ..]) {
                break;
            }
            rest.read_exact(&mut start)?;
            let [_, 0x2a, 0x4d, 0x18, a, b, c, d] = start else {
                return Err(io::Error::other("the data after a Zstandard frame is not another frame"));
            };
            io::copy(&mut (&mut rest).take(u64::from(u32::from_le_bytes([a, b, c, d]))), &mut io::sink())?;
        }
        self.frame = Some(StreamingDecoder::new(rest).map_err(io::Error::other)?);
        Ok(true)
    }
}

impl<R: Read> Read for Zstandard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 {
                    return Ok(read);
                }
                self.rest = self.frame.take().map(StreamingDecoder::into_inner);
            }
            if !self.begin()? {
                return Ok(0);
            }
        }
    }
}
