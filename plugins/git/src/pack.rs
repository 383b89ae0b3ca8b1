//! Reads a pack and its index in pieces by seeking. Neither file is ever in memory as a whole.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
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

/// The bytes of one block of a file that are read and kept together, and the most blocks that are kept.
const BLOCK_BYTES: usize = 16 * 1024;
const MAX_BLOCKS: usize = 256;

/// The length of the fan-out table, in bytes.
const FANOUT: u64 = 4 * 256;

/// A pack.
pub(crate) struct Pack {
    hash: gix_hash::Kind,
    index: PathBuf,
    path: PathBuf,
    opened: OnceCell<Index>,
    pack: OnceCell<File>,
    /// Recently read blocks of the pack and its index, by their number. Neighbours are often needed next, and each read
    /// of a file costs the host far more than the bytes.
    blocks: RefCell<HashMap<(Of, u64), Vec<u8>>>,
    /// Reused for all objects, because creating a decompressor costs more than using it.
    inflate: RefCell<Box<DecompressorOxide>>,
}

/// One of the two files of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Index,
    Pack,
}

/// The open index of a pack.
#[derive(Debug)]
struct Index {
    file: File,
    /// For each byte, the number of IDs whose first byte is at most this one.
    fanout: Vec<u32>,
    /// The offset of the sorted object IDs.
    ids: u64,
    /// True for version 1, in which each ID follows its offset in the pack.
    is_first: bool,
}

impl Index {
    /// Parses the begin of an index of `length` bytes. `None` if it is damaged.
    fn parse(file: File, head: &[u8], length: u64, hash: gix_hash::Kind) -> Option<Index> {
        let (is_first, ids) = match head.get(..8)? {
            [0xff, b't', b'O', b'c', 0, 0, 0, 2] => (false, 8 + FANOUT),
            [0xff, b't', b'O', b'c', ..] => return None,
            _ => (true, FANOUT),
        };
        let table = head.get(usize::try_from(ids - FANOUT).ok()?..usize::try_from(ids).ok()?)?;
        let fanout: Vec<u32> = numbers(table).collect();
        let names = u64::from(fanout.last().copied()?);
        let id = hash.len_in_bytes() as u64;
        let each = if is_first { id + 4 } else { id + 8 };
        let whole = length >= ids + names * each + 2 * id;
        (fanout.is_sorted() && whole).then_some(Index { file, fanout, ids, is_first })
    }

    /// The number of IDs.
    fn names(&self) -> u64 {
        u64::from(self.fanout.last().copied().unwrap_or_default())
    }
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
    pub(crate) fn at(index: PathBuf, hash: gix_hash::Kind) -> Pack {
        let path = index.with_extension("pack");
        Pack {
            hash,
            index,
            path,
            opened: OnceCell::new(),
            pack: OnceCell::new(),
            blocks: RefCell::default(),
            inflate: RefCell::default(),
        }
    }

    /// The name of the index, as in a multi-pack-index.
    pub(crate) fn name(&self) -> String {
        self.index.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The offset of an object, if the pack contains it.
    pub(crate) fn find(&self, id: &oid) -> Result<Option<u64>> {
        let first = id.as_bytes().first().copied().unwrap_or_default();
        let Some((low, names)) = self.around(first, id.as_bytes())? else { return Ok(None) };
        let stride = self.stride()?;
        let found = names.chunks_exact(stride).position(|name| self.id_in(name) == id.as_bytes());
        found.map(|at| self.offset(low + at as u64)).transpose()
    }

    /// At most `most` objects whose IDs begin with these hex digits.
    pub(crate) fn begin_with(&self, prefix: &str, most: usize) -> Result<Vec<ObjectId>> {
        // The smallest ID with this prefix; the others follow it.
        let padded = format!("{prefix:0<0$}", self.hash.len_in_hex());
        let Ok(smallest) = ObjectId::from_hex(padded.as_bytes()) else { return Ok(Vec::new()) };
        let first = smallest.as_bytes().first().copied().unwrap_or_default();
        let Some((_, names)) = self.around(first, smallest.as_bytes())? else { return Ok(Vec::new()) };
        let ids = names.chunks_exact(self.stride()?).filter_map(|name| ObjectId::try_from(self.id_in(name)).ok());
        Ok(ids.filter(|id| id.to_hex().to_string().starts_with(prefix)).take(most).collect())
    }

    /// The entry at an offset.
    pub(crate) fn entry(&self, offset: u64) -> Result<Entry> {
        let mut head = [0; 64];
        let got = self.read_block(Of::Pack, self.file()?, offset, &mut head)?;
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
                let name: Vec<u8> = bytes.by_ref().take(self.hash.len_in_bytes()).collect();
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
            let got = self.read_block(Of::Pack, self.file()?, from, &mut piece)?;
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
    pub(crate) fn stream(&self, entry: &Entry) -> Result<impl Read + use<'_>> {
        let mut file = self.file()?;
        file.seek(SeekFrom::Start(entry.data))?;
        let buffer = usize::try_from(entry.size).unwrap_or(usize::MAX).clamp(512, 16 * 1024);
        Ok(ZlibDecoder::new(BufReader::with_capacity(buffer, file)))
    }

    /// The error for a damaged pack.
    pub(crate) fn damaged(&self, why: &str) -> Error {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Error::failed(format_args!("the pack \"{name}\" is damaged: {why}; run  git fsck"))
    }

    fn file(&self) -> Result<&File> {
        match self.pack.get() {
            Some(file) => Ok(file),
            None => {
                let file = File::open(&self.path)?;
                Ok(self.pack.get_or_init(|| file))
            }
        }
    }

    fn open(&self) -> Result<&Index> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let file = File::open(&self.index)?;
        let mut head = [0; 8 + FANOUT as usize];
        let got = read_some(&file, 0, &mut head)?;
        let length = file.metadata()?.len();
        let index = Index::parse(file, head.get(..got).unwrap_or_default(), length, self.hash);
        let index = index.ok_or_else(|| self.damaged("its index is truncated, or not of version 1 or 2"))?;
        Ok(self.opened.get_or_init(|| index))
    }

    /// The bytes from one ID to the next.
    fn stride(&self) -> Result<usize> {
        Ok(self.hash.len_in_bytes() + if self.open()?.is_first { 4 } else { 0 })
    }

    /// The ID in one record of the index.
    fn id_in<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.get(record.len().saturating_sub(self.hash.len_in_bytes())..).unwrap_or_default()
    }

    /// A sorted run of IDs that begins at or before `name`, and the position of its first ID in the index. `None` if no ID
    /// begins with the byte `first`.
    fn around(&self, first: u8, name: &[u8]) -> Result<Option<(u64, Vec<u8>)>> {
        let opened = self.open()?;
        let stride = self.stride()?;
        let until = |byte: u8| u64::from(opened.fanout.get(usize::from(byte)).copied().unwrap_or_default());
        let mut low = if first == 0 { 0 } else { until(first - 1) };
        let high = until(first);
        let mut end = high;
        let mut probe = vec![0; stride];
        while end - low > BLOCK {
            let middle = low + (end - low) / 2;
            self.read(&opened.file, opened.ids + middle * stride as u64, &mut probe)?;
            if self.id_in(&probe) <= name {
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
        let mut names = vec![0; usize::try_from(count * stride as u64).unwrap_or_default()];
        self.read(&opened.file, opened.ids + low * stride as u64, &mut names)?;
        Ok(Some((low, names)))
    }

    fn offset(&self, number: u64) -> Result<u64> {
        let opened = self.open()?;
        let (names, id) = (opened.names(), self.hash.len_in_bytes() as u64);
        let mut bytes = [0; 4];
        if opened.is_first {
            self.read(&opened.file, opened.ids + number * (id + 4), &mut bytes)?;
            return Ok(u64::from(u32::from_be_bytes(bytes)));
        }
        // The IDs are followed by a checksum of four bytes for each, and by the offsets.
        let offsets = opened.ids + names * (id + 4);
        self.read(&opened.file, offsets + number * 4, &mut bytes)?;
        let offset = u32::from_be_bytes(bytes);
        if offset & 0x8000_0000 == 0 {
            return Ok(u64::from(offset));
        }
        let mut bytes = [0; 8];
        self.read(&opened.file, offsets + names * 4 + u64::from(offset & 0x7fff_ffff) * 8, &mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Fills `bytes` from the offset `at` of the index.
    fn read(&self, file: &File, at: u64, bytes: &mut [u8]) -> Result<()> {
        let wanted = bytes.len();
        let got = self.read_block(Of::Index, file, at, bytes)?;
        if got == wanted { Ok(()) } else { Err(self.damaged("its index is truncated")) }
    }

    /// Like [`read_some`], from blocks that are kept. Reads many bytes directly.
    fn read_block(&self, of: Of, file: &File, at: u64, bytes: &mut [u8]) -> Result<usize> {
        if bytes.len() > BLOCK_BYTES / 2 {
            return read_some(file, at, bytes);
        }
        let mut blocks = self.blocks.borrow_mut();
        let mut got = 0;
        while got < bytes.len() {
            let from = at + got as u64;
            let number = from / BLOCK_BYTES as u64;
            if !blocks.contains_key(&(of, number)) {
                if blocks.len() >= MAX_BLOCKS {
                    blocks.clear();
                }
                let mut block = vec![0; BLOCK_BYTES];
                let length = read_some(file, number * BLOCK_BYTES as u64, &mut block)?;
                block.truncate(length);
                blocks.insert((of, number), block);
            }
            let block = blocks.get(&(of, number)).map(Vec::as_slice).unwrap_or_default();
            let skipped = usize::try_from(from % BLOCK_BYTES as u64).unwrap_or_default();
            let rest = block.get(skipped..).unwrap_or_default();
            let Some(place) = bytes.get_mut(got..).filter(|_| !rest.is_empty()) else { break };
            let count = rest.len().min(place.len());
            if let (Some(to), Some(from)) = (place.get_mut(..count), rest.get(..count)) {
                to.copy_from_slice(from);
            }
            got += count;
        }
        Ok(got)
    }
}

/// What the directory `pack` of an object store has.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// The indexes of packs.
    pub(crate) indexes: Vec<PathBuf>,
    /// The names of packs that have no index, so their objects cannot be found.
    pub(crate) unindexed: Vec<String>,
    /// True if a pack came from a remote that promises the objects which are absent here: a partial clone.
    pub(crate) is_promised: bool,
}

/// The packs in the directory `objects`.
pub(crate) fn list(objects: &Path) -> Result<Listed> {
    let mut listed = Listed::default();
    let mut packs = Vec::new();
    if let Ok(entries) = std::fs::read_dir(objects.join("pack")) {
        for entry in entries {
            let path = entry?.path();
            match path.extension().and_then(|end| end.to_str()) {
                Some("idx") => listed.indexes.push(path),
                Some("pack") => packs.push(path),
                Some("promisor") => listed.is_promised = true,
                _ => {}
            }
        }
    }
    listed.indexes.sort();
    let lacks_index = |pack: &PathBuf| listed.indexes.binary_search(&pack.with_extension("idx")).is_err();
    let name = |pack: PathBuf| pack.file_name().map(|name| name.to_string_lossy().into_owned());
    listed.unindexed = packs.into_iter().filter(lacks_index).filter_map(name).collect();
    Ok(listed)
}

/// Numbers of four bytes each.
pub(crate) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|four| four.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Fills `bytes` from the offset `at`. Returns fewer bytes only at the end of the file.
pub(crate) fn read_some(mut file: &File, at: u64, bytes: &mut [u8]) -> Result<usize> {
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
