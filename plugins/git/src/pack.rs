//! Reads a pack and its index in pieces by seeking. Neither file is ever in memory as a whole.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use belljar_guest::{Error, Result};
use flate2::bufread::ZlibDecoder;
use gix_hash::{ObjectId, oid};
use gix_object::Kind;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// The object IDs that a search reads at once.
const BLOCK: u64 = 64;

/// The offset of the fan-out table in an index of version 2.
const FANOUT: u64 = 8;

/// The offset of the sorted object IDs in an index of version 2.
const IDS: u64 = FANOUT + 4 * 256;

/// A pack.
pub(crate) struct Pack {
    index: PathBuf,
    path: PathBuf,
    opened: OnceCell<Opened>,
    /// Reused for all objects, because creating a decompressor costs more than using it.
    inflate: RefCell<Box<DecompressorOxide>>,
}

/// The open files of a pack.
#[derive(Debug)]
struct Opened {
    index: File,
    pack: File,
    /// For each byte, the number of IDs whose first byte is at most this one.
    fanout: Vec<u32>,
}

/// The representation of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A complete object.
    Whole(Kind),
    /// A delta to the entry at this offset.
    Offset(u64),
    /// A delta to the object with this ID.
    Reference(ObjectId),
}

/// An entry of a pack, still compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) form: Form,
    /// The decompressed size of the object or the delta, in bytes.
    pub(crate) size: u64,
    /// The offset of the compressed data in the pack.
    data: u64,
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pack").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Pack {
    /// The pack with this index.
    pub(crate) fn at(index: PathBuf) -> Pack {
        let path = index.with_extension("pack");
        Pack { index, path, opened: OnceCell::new(), inflate: RefCell::default() }
    }

    /// The offset of an object, if the pack contains it.
    pub(crate) fn find(&self, id: &oid) -> Result<Option<u64>> {
        let first = id.as_bytes().first().copied().unwrap_or_default();
        let Some((low, names)) = self.around(first, id.as_bytes())? else { return Ok(None) };
        let found = names.chunks_exact(20).position(|name| name == id.as_bytes());
        found.map(|at| self.offset(low + at as u64)).transpose()
    }

    /// At most `most` objects whose IDs begin with these hex digits.
    pub(crate) fn begin_with(&self, prefix: &str, most: usize) -> Result<Vec<ObjectId>> {
        // The smallest ID with this prefix; the others follow it.
        let padded = format!("{prefix:0<40}");
        let Ok(smallest) = ObjectId::from_hex(padded.as_bytes()) else { return Ok(Vec::new()) };
        let first = smallest.as_bytes().first().copied().unwrap_or_default();
        let Some((_, names)) = self.around(first, smallest.as_bytes())? else { return Ok(Vec::new()) };
        let ids = names.chunks_exact(20).filter_map(|name| ObjectId::try_from(name).ok());
        Ok(ids.filter(|id| id.to_hex().to_string().starts_with(prefix)).take(most).collect())
    }

    /// The entry at an offset.
    pub(crate) fn entry(&self, offset: u64) -> Result<Entry> {
        let opened = self.open()?;
        let mut head = [0; 64];
        let got = read_some(&opened.pack, offset, &mut head)?;
        let head = head.get(..got).unwrap_or_default();
        self.parse(head, offset).ok_or_else(|| self.damaged("an entry in it has a malformed header"))
    }

    fn parse(&self, head: &[u8], offset: u64) -> Option<Entry> {
        let mut bytes = head.iter().copied();
        let first = bytes.next()?;
        let mut size = u64::from(first & 0x0f);
        let mut shift = 4;
        let mut last = first;
        while last & 0x80 != 0 {
            last = bytes.next()?;
            size |= u64::from(last & 0x7f).checked_shl(shift).filter(|_| shift < 60)?;
            shift += 7;
        }
        let form = match first >> 4 & 7 {
            1 => Form::Whole(Kind::Commit),
            2 => Form::Whole(Kind::Tree),
            3 => Form::Whole(Kind::Blob),
            4 => Form::Whole(Kind::Tag),
            6 => {
                let mut byte = bytes.next()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = bytes.next()?;
                    back = back.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
                }
                // The base always comes before the delta, so these deltas cannot form a cycle.
                Form::Offset(offset.checked_sub(back).filter(|_| back > 0)?)
            }
            7 => {
                let name: Vec<u8> = bytes.by_ref().take(20).collect();
                Form::Reference(ObjectId::try_from(name.as_slice()).ok()?)
            }
            _ => return None,
        };
        let read = head.len() - bytes.len();
        Some(Entry { form, size, data: offset + read as u64 })
    }

    /// The decompressed data of an entry. Allocates `entry.size` bytes; the caller checks that size first.
    pub(crate) fn data(&self, entry: &Entry) -> Result<Vec<u8>> {
        let mut data = vec![0; usize::try_from(entry.size).unwrap_or_default()];
        // One read is nearly always enough: compressed data is rarely longer than the original.
        let mut piece = vec![0; data.len().saturating_add(64).clamp(256, 16 * 1024)];
        let mut inflate = self.inflate.borrow_mut();
        inflate.init();
        let (mut from, mut to) = (entry.data, 0);
        loop {
            let got = read_some(&self.open()?.pack, from, &mut piece)?;
            let more = if got == piece.len() { TINFL_FLAG_HAS_MORE_INPUT } else { 0 };
            let flags = TINFL_FLAG_PARSE_ZLIB_HEADER
                | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
                | TINFL_FLAG_COMPUTE_ADLER32
                | more;
            let given = piece.get(..got).unwrap_or_default();
            let (status, read, written) = decompress(&mut inflate, given, &mut data, to, flags);
            from += read as u64;
            to += written;
            match status {
                TINFLStatus::Done if to == data.len() => return Ok(data),
                TINFLStatus::NeedsMoreInput if read > 0 => {}
                _ => return Err(self.damaged("an object in it cannot be decompressed")),
            }
        }
    }

    /// The decompressed data of an entry as a stream.
    pub(crate) fn stream(&self, entry: &Entry) -> Result<impl Read> {
        let mut file = &self.open()?.pack;
        file.seek(SeekFrom::Start(entry.data))?;
        let buffer = usize::try_from(entry.size).unwrap_or(usize::MAX).clamp(512, 16 * 1024);
        Ok(ZlibDecoder::new(BufReader::with_capacity(buffer, file)))
    }

    /// The error for a damaged pack.
    pub(crate) fn damaged(&self, why: &str) -> Error {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Error::failed(format_args!("the pack \"{name}\" is damaged: {why}; run  git fsck"))
    }

    fn open(&self) -> Result<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let index = File::open(&self.index)?;
        let pack = File::open(&self.path)?;
        let mut head = [0; IDS as usize];
        let whole = read_some(&index, 0, &mut head)? == head.len();
        if !whole || head.get(..8) != Some(&[0xff, b't', b'O', b'c', 0, 0, 0, 2]) {
            return Err(self.damaged("its index is truncated, or not of version 2"));
        }
        let fanout: Vec<u32> = numbers(head.get(8..).unwrap_or_default()).collect();
        let names = u64::from(fanout.last().copied().unwrap_or_default());
        let enough = index.metadata()?.len() >= IDS + names * 28 + 40;
        if !fanout.is_sorted() || !enough {
            return Err(self.damaged("its index is truncated"));
        }
        Ok(self.opened.get_or_init(|| Opened { index, pack, fanout }))
    }

    /// A sorted run of IDs that begins at or before `name`, and the position of its first ID in the index. `None` if no ID
    /// begins with the byte `first`.
    fn around(&self, first: u8, name: &[u8]) -> Result<Option<(u64, Vec<u8>)>> {
        let opened = self.open()?;
        let until = |byte: u8| u64::from(opened.fanout.get(usize::from(byte)).copied().unwrap_or_default());
        let mut low = if first == 0 { 0 } else { until(first - 1) };
        let high = until(first);
        let mut end = high;
        while end - low > BLOCK {
            let middle = low + (end - low) / 2;
            let mut probe = [0; 20];
            self.read(&opened.index, IDS + middle * 20, &mut probe)?;
            if probe.as_slice() <= name {
                low = middle;
            } else {
                end = middle;
            }
        }
        // Further IDs with the same prefix may follow, so the run extends beyond `name`.
        let count = (high - low).min(2 * BLOCK);
        if count == 0 {
            return Ok(None);
        }
        let mut names = vec![0; usize::try_from(count * 20).unwrap_or_default()];
        self.read(&opened.index, IDS + low * 20, &mut names)?;
        Ok(Some((low, names)))
    }

    fn offset(&self, number: u64) -> Result<u64> {
        let opened = self.open()?;
        let names = u64::from(opened.fanout.last().copied().unwrap_or_default());
        let offsets = IDS + names * 24;
        let mut bytes = [0; 4];
        self.read(&opened.index, offsets + number * 4, &mut bytes)?;
        let offset = u32::from_be_bytes(bytes);
        if offset & 0x8000_0000 == 0 {
            return Ok(u64::from(offset));
        }
        let mut bytes = [0; 8];
        self.read(&opened.index, offsets + names * 4 + u64::from(offset & 0x7fff_ffff) * 8, &mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn read(&self, file: &File, at: u64, bytes: &mut [u8]) -> Result<()> {
        let wanted = bytes.len();
        if read_some(file, at, bytes)? == wanted { Ok(()) } else { Err(self.damaged("its index is truncated")) }
    }
}

/// The packs in the directory `objects`.
pub(crate) fn all(objects: &Path) -> Result<Vec<Pack>> {
    let mut paths = Vec::new();
    if let Ok(entries) = std::fs::read_dir(objects.join("pack")) {
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "idx") {
                paths.push(path);
            }
        }
    }
    if paths.len() > 200 {
        return Err(Error::failed(format_args!("the repository has {} packs; run  git gc", paths.len())));
    }
    paths.sort();
    Ok(paths.into_iter().map(Pack::at).collect())
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|four| four.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Fills `bytes` from the offset `at`. Returns fewer bytes only at the end of the file.
fn read_some(mut file: &File, at: u64, bytes: &mut [u8]) -> Result<usize> {
    file.seek(SeekFrom::Start(at))?;
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            count => got += count,
        }
    }
    Ok(got)
}
