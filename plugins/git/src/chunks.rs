//! Files of chunks with a table of contents: the commit-graph and the multi-pack-index
//! (<https://git-scm.com/docs/gitformat-chunk>). Both only speed up what packs answer too, so a damaged file counts as
//! absent. Files are read by seeking.

use std::fs::File;
use std::path::{Path, PathBuf};

use gix_hash::{Kind, ObjectId, oid};

use crate::pack::{numbers, read_some};

/// The most object IDs of one search that are read at once.
const BLOCK: u64 = 32;

/// An open file of chunks.
#[derive(Debug)]
pub(crate) struct Chunks {
    file: File,
    hash: Kind,

    chunks: Vec<Chunk>,
    /// For each byte, the number of IDs whose first byte is at most this one.
    fanout: Vec<u32>,
}

#[derive(Debug)]
struct Chunk {
    name: [u8; 4],
    start: u64,
    end: u64,
}

impl Chunks {
    /// Opens a file that begins with `magic`, and whose table of contents begins at `table`. `None` if there is no such
    /// file, or if it is damaged.
    pub(crate) fn open(path: &Path, magic: [u8; 4], table: usize, hash: Kind) -> Option<Chunks> {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let mut header = vec![0; table];
        (read_some(&file, 0, &mut header).ok()? == table).then_some(())?;
        let version = if hash == Kind::Sha1 { 1 } else { 2 };
        let is_ours = header.get(..4)? == magic && header.get(4..6)? == [1, version];
        let count = usize::from(*header.get(6).filter(|_| is_ours)?);
        let mut contents = vec![0; (count + 1) * 12];
        (read_some(&file, table as u64, &mut contents).ok()? == contents.len()).then_some(())?;
        let entries: Vec<([u8; 4], u64)> = contents
            .chunks_exact(12)
            .filter_map(|entry| {
                let (name, offset) = entry.split_first_chunk::<4>()?;
                Some((*name, u64::from_be_bytes(offset.try_into().ok()?)))
            })
            .collect();
        let ends = entries.iter().skip(1).map(|(_, offset)| *offset);
        let chunks: Vec<Chunk> =
            entries.iter().zip(ends).map(|((name, start), end)| Chunk { name: *name, start: *start, end }).collect();
        let fits = chunks.iter().all(|chunk| chunk.start <= chunk.end && chunk.end <= length);
        let mut open = Chunks { file, hash, chunks, fanout: Vec::new() };
        let mut fanout = vec![0; 4 * 256];
        open.read(b"OIDF", 0, &mut fanout).filter(|()| fits)?;
        open.fanout = numbers(&fanout).collect();
        let ids = open.len(b"OIDL")? / hash.len_in_bytes() as u64;
        (open.fanout.is_sorted() && u64::from(open.count()) <= ids).then_some(open)
    }

    /// Fills `bytes` from the offset `at` of a chunk. `None` if the chunk is shorter, or absent.
    pub(crate) fn read(&self, name: &[u8; 4], at: u64, bytes: &mut [u8]) -> Option<()> {
        let chunk = self.chunks.iter().find(|chunk| chunk.name == *name)?;
        let start = chunk.start.checked_add(at)?;
        (start.checked_add(bytes.len() as u64)? <= chunk.end).then_some(())?;
        (read_some(&self.file, start, bytes).ok()? == bytes.len()).then_some(())
    }

    /// A number of four bytes in a chunk.
    pub(crate) fn number(&self, name: &[u8; 4], at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(name, at, &mut bytes)?;
        Some(u32::from_be_bytes(bytes))
    }

    /// The length of a chunk, in bytes.
    pub(crate) fn len(&self, name: &[u8; 4]) -> Option<u64> {
        self.chunks.iter().find(|chunk| chunk.name == *name).map(|chunk| chunk.end - chunk.start)
    }

    /// The number of objects.
    pub(crate) fn count(&self) -> u32 {
        self.fanout.last().copied().unwrap_or_default()
    }

    /// The position of an object among the sorted IDs.
    pub(crate) fn position(&self, id: &oid) -> Option<u32> {
        let first = usize::from(*id.as_bytes().first()?);
        let mut low = u64::from(first.checked_sub(1).and_then(|before| self.fanout.get(before)).copied().unwrap_or(0));
        let mut end = u64::from(*self.fanout.get(first)?);
        let length = self.hash.len_in_bytes();
        let mut probe = vec![0; length];
        while end - low > BLOCK {
            let middle = low + (end - low) / 2;
            self.read(b"OIDL", middle * length as u64, &mut probe)?;
            if probe.as_slice() <= id.as_bytes() {
                low = middle;
            } else {
                end = middle;
            }
        }
        let mut ids = vec![0; usize::try_from(end - low).ok()? * length];
        self.read(b"OIDL", low * length as u64, &mut ids)?;
        let found = ids.chunks_exact(length).position(|one| one == id.as_bytes())?;
        u32::try_from(low + found as u64).ok()
    }

    /// The ID at a position.
    pub(crate) fn id(&self, position: u32) -> Option<ObjectId> {
        let mut bytes = vec![0; self.hash.len_in_bytes()];
        self.read(b"OIDL", u64::from(position) * bytes.len() as u64, &mut bytes)?;
        ObjectId::try_from(bytes.as_slice()).ok()
    }
}

/// A multi-pack-index: finds an object in many packs with one search.
#[derive(Debug)]
pub(crate) struct MultiIndex {
    chunks: Chunks,
    /// The names of the indexes of its packs, by number.
    pub(crate) packs: Vec<String>,
}

impl MultiIndex {
    /// The multi-pack-index of an object store, if there is one.
    pub(crate) fn of(objects: &Path, hash: Kind) -> Option<MultiIndex> {
        MultiIndex::open(&objects.join("pack/multi-pack-index"), hash)
    }

    pub(crate) fn open(path: &Path, hash: Kind) -> Option<MultiIndex> {
        let chunks = Chunks::open(path, *b"MIDX", 12, hash)?;
        // Names of packs need about 50 bytes each.
        let length = usize::try_from(chunks.len(b"PNAM")?).ok().filter(|length| *length < 4 * 1024 * 1024)?;
        let mut names = vec![0; length];
        chunks.read(b"PNAM", 0, &mut names)?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let packs = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Some(MultiIndex { chunks, packs })
    }

    /// The number of the pack that has an object, and the offset of the object in it.
    pub(crate) fn find(&self, id: &oid) -> Option<(usize, u64)> {
        let position = u64::from(self.chunks.position(id)?);
        let pack = self.chunks.number(b"OOFF", position * 8)?;
        let offset = self.chunks.number(b"OOFF", position * 8 + 4)?;
        let pack = usize::try_from(pack).ok()?;
        if offset & 0x8000_0000 == 0 || self.chunks.len(b"LOFF").is_none() {
            return Some((pack, u64::from(offset)));
        }
        let mut bytes = [0; 8];
        self.chunks.read(b"LOFF", u64::from(offset & 0x7fff_ffff) * 8, &mut bytes)?;
        Some((pack, u64::from_be_bytes(bytes)))
    }
}

/// The file of a commit-graph in an object store.
pub(crate) fn graph_files(objects: &Path) -> Vec<PathBuf> {
    let single = objects.join("info/commit-graph");
    if single.is_file() {
        return vec![single];
    }
    let chain = std::fs::read_to_string(objects.join("info/commit-graphs/commit-graph-chain")).unwrap_or_default();
    let is_name = |line: &&str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names = chain.lines().map(str::trim).filter(is_name).take(64);
    names.map(|name| objects.join(format!("info/commit-graphs/graph-{name}.graph"))).collect()
}
