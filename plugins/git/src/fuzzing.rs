//! The parsers of this provider that read bytes of strangers, for a fuzzer. None may panic or hang.

use std::io::Write as _;
use std::path::PathBuf;

use gix_hash::{Kind, ObjectId};

use crate::chunks::MultiIndex;
use crate::graph::{Graph, Key};
use crate::objects::{Gaps, Object, Objects};
use crate::pack::Pack;
use crate::range::Piece;

/// A file with these bytes, below the directory for temporary files.
fn file(name: &str, bytes: &[u8]) -> Option<PathBuf> {
    let directory = std::env::temp_dir().join(format!("git-fuzzing-{}", std::process::id()));
    std::fs::create_dir_all(&directory).ok()?;
    let path = directory.join(name);
    std::fs::File::create(&path).ok()?.write_all(bytes).ok()?;
    Some(path)
}

fn some_id(kind: Kind) -> ObjectId {
    ObjectId::null(kind)
}

/// The index of a pack, of versions 1 and 2.
pub fn pack_index(bytes: &[u8]) {
    let Some(path) = file("pack.idx", bytes) else { return };
    for kind in [Kind::Sha1, Kind::Sha256] {
        let pack = Pack::at(path.clone(), kind);
        let _ = pack.find(&some_id(kind));
        let _ = pack.begin_with("00ab", 5);
    }
}

/// An entry of a pack: its header, its compressed data, and deltas to other entries.
pub fn pack_entry(bytes: &[u8]) {
    let Some(path) = file("entry.pack", bytes) else { return };
    let pack = Pack::at(path.with_extension("idx"), Kind::Sha1);
    for offset in [0, 12] {
        let Ok(entry) = pack.entry(offset) else { continue };
        if entry.size <= 1024 * 1024 {
            let _ = pack.data(&entry);
        }
    }
}

/// A delta, applied as a whole and for a range.
pub fn delta(bytes: &[u8]) {
    let base: Vec<u8> = (0..=255).collect();
    let whole = crate::delta::apply(&base, bytes, 1024 * 1024);
    let mut result = [0; 40];
    let pieces = vec![Piece { from: 3, to: 0, length: 20 }, Piece { from: 9, to: 20, length: 20 }];
    let _ = crate::range::through(bytes, pieces, &mut result);
    drop(whole);
}

/// A loose object.
pub fn loose_object(bytes: &[u8]) {
    use std::io::Read as _;
    if let Some((_, _, stream)) = crate::objects::open_loose(bytes) {
        let mut data = Vec::new();
        let _ = stream.take(1024 * 1024).read_to_end(&mut data);
    }
}

fn object(kind: gix_object::Kind, bytes: &[u8]) -> Object {
    Object { kind, data: std::rc::Rc::new(bytes.to_vec()) }
}

/// A tree.
pub fn tree(bytes: &[u8]) {
    let id = some_id(Kind::Sha1);
    let tree = object(gix_object::Kind::Tree, bytes);
    if let Ok(entries) = crate::tree::iterate(&id, &tree) {
        for entry in entries.map_while(Result::ok) {
            let text = crate::names::referable(entry.filename).into_owned();
            let _ = crate::names::referred(&text);
        }
    }
    if let Ok(objects) = Objects::at(Vec::new(), Kind::Sha1, Gaps::default()) {
        let _ = crate::tree::search(&objects, &id, &tree, b"name");
    }
}

/// A commit.
pub fn commit(bytes: &[u8]) {
    let _ = crate::log::describe(&some_id(Kind::Sha1), &object(gix_object::Kind::Commit, bytes));
}

/// An annotated tag.
pub fn tag(bytes: &[u8]) {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let _ = gix_object::TagRef::from_bytes(bytes, kind).map(|tag| tag.target());
    }
}

/// The file `packed-refs`.
pub fn packed_refs(bytes: &[u8]) {
    let Some(path) = file("packed-refs", bytes) else { return };
    let Some(directory) = path.parent() else { return };
    let mut store = gix_ref::file::Store::at(directory.to_path_buf(), Kind::Sha1);
    store.set_packed_buffer_mmap_threshold(u64::MAX);
    let _ = store.try_find("refs/heads/main");
    if let Ok(references) = store.iter()
        && let Ok(all) = references.all()
    {
        all.take(10_000).for_each(drop);
    }
}

/// A configuration.
pub fn config(bytes: &[u8]) {
    let config = crate::config::Config::parse(&String::from_utf8_lossy(bytes));
    let _ = (config.hash(), config.partial(), config.has_reftable());
}

/// A commit-graph, and the Bloom filters in it.
pub fn commit_graph(bytes: &[u8]) {
    let Some(path) = file("commit-graph", bytes) else { return };
    for kind in [Kind::Sha1, Kind::Sha256] {
        let Some(graph) = Graph::open(std::slice::from_ref(&path), kind) else { continue };
        let _ = graph.position(&some_id(kind));
        for position in 0..8 {
            let _ = (graph.node(position), graph.may_have_changed(position, &Key::of(b"src/a.rs")));
        }
    }
}

/// A multi-pack-index.
pub fn multi_pack_index(bytes: &[u8]) {
    let Some(path) = file("multi-pack-index", bytes) else { return };
    for kind in [Kind::Sha1, Kind::Sha256] {
        let _ = MultiIndex::open(&path, kind).map(|index| index.find(&some_id(kind)));
    }
}

/// A file of a reftable.
pub fn reftable(bytes: &[u8]) {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let _ = crate::reftable::parse(bytes, kind);
    }
}

/// The file `alternates`, and names in quotes.
pub fn alternates(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = crate::place::alternates(&text);
    let _ = crate::names::unquote(&text);
}

/// Text in the encoding of a commit. The first line is the name of the encoding.
pub fn encoding(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let charset = crate::charset::Charset::named(parts.next());
    let _ = charset.text(parts.next().unwrap_or_default());
}

#[cfg(test)]
mod tests {
    /// Bytes that a fuzzer would try early: none, few, and many of one kind.
    #[test]
    fn no_parser_panics_on_nonsense() {
        let magic: [&[u8]; 8] = [
            b"",
            b"\xfftOc\0\0\0\x02",
            b"REFT\x01\0\x10\0",
            b"CGPH\x01\x01\x04\0",
            b"MIDX\x01\x01\x04\0",
            b"x\x9c",
            b"100644 a\0",
            b"\"a\\3",
        ];
        for start in magic {
            for byte in [0u8, 1, b'r', 0x7f, 0x80, 0xff] {
                for length in [0, 1, 30, 1100, 3000] {
                    let bytes = [start, &vec![byte; length]].concat();
                    for parser in [
                        super::pack_index,
                        super::pack_entry,
                        super::delta,
                        super::loose_object,
                        super::tree,
                        super::commit,
                        super::tag,
                        super::packed_refs,
                        super::config,
                        super::commit_graph,
                        super::multi_pack_index,
                        super::reftable,
                        super::alternates,
                        super::encoding,
                    ] {
                        parser(&bytes);
                    }
                }
            }
        }
    }
}
