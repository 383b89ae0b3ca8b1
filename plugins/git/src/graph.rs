//! The commit-graph (<https://git-scm.com/docs/commit-graph-format>): parents, dates and trees of commits without their
//! objects, and Bloom filters of the paths that each commit changed.

use std::path::{Path, PathBuf};

use gix_hash::{Kind, ObjectId, oid};

use crate::chunks::{Chunks, graph_files};

/// The longest Bloom filter that Git makes by default has 512 paths with their directories. A longer one is not read.
const MAX_FILTER: u32 = 64 * 1024;

/// The most parents of a commit. Git's own limit is 65,536 bytes of them.
const MAX_PARENTS: usize = 4096;

/// The bit of a parent's position that says the commit has no parent here, and of one in the list of extra edges.
const NO_PARENT: u32 = 0x7000_0000;
const EXTRA: u32 = 0x8000_0000;

/// The commit-graph of a repository.
#[derive(Debug)]
pub(crate) struct Graph {
    hash: Kind,
    /// Files of a chain, the oldest commits first.
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    chunks: Chunks,
    /// The number of commits in the layers before this one.
    base: u32,
    bloom: Option<Bloom>,
}

/// The settings of the Bloom filters of a layer.
#[derive(Debug, Clone, Copy)]
struct Bloom {
    version: u32,
    hashes: u32,
}

/// A commit, as the commit-graph has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    /// The committer's time, in seconds since 1970.
    pub(crate) seconds: i64,
}

impl Graph {
    /// The commit-graph of an object store. `None` if there is none, or if a part of it is absent or damaged.
    pub(crate) fn of(objects: &Path, hash: Kind) -> Option<Graph> {
        Graph::open(&graph_files(objects), hash)
    }

    pub(crate) fn open(files: &[PathBuf], hash: Kind) -> Option<Graph> {
        let mut layers: Vec<Layer> = Vec::new();
        let mut base = 0u32;
        for path in files {
            let chunks = Chunks::open(path, *b"CGPH", 8, hash)?;
            let bloom = bloom(&chunks);
            let count = chunks.count();
            layers.push(Layer { chunks, base, bloom });
            base = base.checked_add(count)?;
        }
        (!layers.is_empty()).then_some(Graph { hash, layers })
    }

    /// The position of a commit.
    pub(crate) fn position(&self, id: &oid) -> Option<u32> {
        self.layers.iter().rev().find_map(|layer| Some(layer.chunks.position(id)? + layer.base))
    }

    /// The commit at a position.
    pub(crate) fn node(&self, position: u32) -> Option<Node> {
        let (layer, at) = self.layer(position)?;
        let length = self.hash.len_in_bytes();
        let mut record = vec![0; length + 16];
        layer.chunks.read(b"CDAT", u64::from(at) * record.len() as u64, &mut record)?;
        let (tree, rest) = record.split_at_checked(length)?;
        let mut numbers = crate::pack::numbers(rest);
        let (first, second) = (numbers.next()?, numbers.next()?);
        let (high, low) = (numbers.next()?, numbers.next()?);
        let mut parents = Vec::new();
        if first != NO_PARENT {
            parents.push(self.id(first)?);
        }
        if second & EXTRA != 0 {
            let mut at = u64::from(second & !EXTRA);
            loop {
                let edge = layer.chunks.number(b"EDGE", at * 4)?;
                parents.push(self.id(edge & !EXTRA)?);
                at += 1;
                if edge & EXTRA != 0 {
                    break;
                }
                (parents.len() < MAX_PARENTS).then_some(())?;
            }
        } else if second != NO_PARENT {
            parents.push(self.id(second)?);
        }
        let seconds = i64::from(high & 3) << 32 | i64::from(low);
        Some(Node { tree: ObjectId::try_from(tree).ok()?, parents, seconds })
    }

    /// False if the commit at a position certainly changed none of these paths, compared with its first parent. `None` if
    /// the commit-graph does not know.
    pub(crate) fn may_have_changed(&self, position: u32, path: &Key) -> Option<bool> {
        let (layer, at) = self.layer(position)?;
        let settings = layer.bloom?;
        let end = layer.chunks.number(b"BIDX", u64::from(at) * 4)?;
        let start = match at.checked_sub(1) {
            Some(before) => layer.chunks.number(b"BIDX", u64::from(before) * 4)?,
            None => 0,
        };
        let length = end.checked_sub(start).filter(|length| (1..=MAX_FILTER).contains(length))?;
        let mut filter = vec![0; usize::try_from(length).ok()?];
        layer.chunks.read(b"BDAT", 12 + u64::from(start), &mut filter)?;
        let (one, other) = if settings.version == 1 { path.signed } else { path.unsigned };
        let bits = u64::from(length) * 8;
        Some((0..settings.hashes).all(|number| {
            let bit = u64::from(one.wrapping_add(number.wrapping_mul(other))) % bits;
            let byte = usize::try_from(bit / 8).ok().and_then(|at| filter.get(at)).copied().unwrap_or(0xff);
            byte & 1 << (bit % 8) != 0
        }))
    }

    fn id(&self, position: u32) -> Option<ObjectId> {
        let (layer, at) = self.layer(position)?;
        layer.chunks.id(at)
    }

    fn layer(&self, position: u32) -> Option<(&Layer, u32)> {
        let layer = self.layers.iter().rev().find(|layer| layer.base <= position)?;
        let at = position - layer.base;
        (at < layer.chunks.count()).then_some((layer, at))
    }
}

/// The settings of the Bloom filters, if the layer has some that are understood.
fn bloom(chunks: &Chunks) -> Option<Bloom> {
    let (version, hashes) = (chunks.number(b"BDAT", 0)?, chunks.number(b"BDAT", 4)?);
    let all = chunks.len(b"BIDX")? / 4 >= u64::from(chunks.count());
    (matches!(version, 1 | 2) && (1..=64).contains(&hashes) && all).then_some(Bloom { version, hashes })
}

/// The hashes of a path for Bloom filters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// For version 1, which takes bytes as signed.
    signed: (u32, u32),
    unsigned: (u32, u32),
}

impl Key {
    /// The key of a path without a slash at its end.
    pub(crate) fn of(path: &[u8]) -> Key {
        let both = |is_signed| (murmur(0x293a_e76f, path, is_signed), murmur(0x7e64_6e2c, path, is_signed));
        Key { signed: both(true), unsigned: both(false) }
    }
}

/// The 32-bit hash `murmur3`.
fn murmur(seed: u32, bytes: &[u8], is_signed: bool) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    // A signed byte of 128 or more fills the bits above it.
    let wide = |byte: u8| if is_signed { i32::from(byte.cast_signed()).cast_unsigned() } else { u32::from(byte) };
    let mut hash = seed;
    let mut blocks = bytes.chunks_exact(4);
    for block in blocks.by_ref() {
        let word = block.iter().enumerate().fold(0u32, |word, (at, byte)| word | wide(*byte) << (8 * at));
        hash ^= word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let rest = blocks.remainder();
    if !rest.is_empty() {
        let word = rest.iter().enumerate().fold(0u32, |word, (at, byte)| word ^ wide(*byte) << (8 * at));
        hash ^= word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    }
    hash ^= u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that Git's own tests have (t0095-bloom.sh).
    #[test]
    fn hashes_are_those_of_git() {
        assert_eq!(murmur(0, b"", false), 0);
        assert_eq!(murmur(0, b"Hello world!", false), 0x627b_0c2c);
        assert_eq!(murmur(0, b"The quick brown fox jumps over the lazy dog", false), 0x2e4f_f723);
        assert_eq!(murmur(0, b"\x99\xaa\xbb\xcc\xdd\xee\xff", false), 0xa183_ccfd);
        assert_ne!(murmur(0, b"\x99\xaa\xbb\xcc\xdd\xee\xff", true), 0xa183_ccfd);
    }
}
