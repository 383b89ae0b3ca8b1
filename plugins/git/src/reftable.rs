//! Reads references from a reftable (<https://git-scm.com/docs/reftable>): a stack of files, of which a later one replaces the
//! records of an earlier one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use belljar_guest::{Error, Result};
use gix_hash::{Kind, ObjectId};

/// The longest file that is read, in bytes. A reference needs about 40.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The most files of a stack. Git merges them into few.
const MAX_FILES: usize = 100;

/// The value of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// The object, and the commit behind it if it is an annotated tag.
    Object(ObjectId, Option<ObjectId>),
    /// The full name of another reference.
    Symbolic(String),
}

/// The references in the directory `reftable` of a repository or of a linked work tree.
pub(crate) fn read(directory: &Path, hash: Kind) -> Result<BTreeMap<String, Value>> {
    let list = crate::place::text(&directory.join("tables.list"))
        .ok_or_else(|| Error::failed("the repository stores references as reftable, but has no \"tables.list\""))?;
    let mut all = BTreeMap::new();
    for name in list.lines().map(str::trim).filter(|name| !name.is_empty() && !name.contains('/')).take(MAX_FILES) {
        let wrong = |why: &str| Error::failed(format_args!("the reftable \"{name}\" {why}"));
        let file = File::open(directory.join(name)).map_err(|error| {
            wrong(&format!("of tables.list cannot be opened: {error}; read again, or run  git fsck"))
        })?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(wrong(&format!("has more than {MAX_BYTES} bytes; run  git refs migrate --ref-format=files")));
        }
        for (name, value) in parse(&bytes, hash).ok_or_else(|| wrong("is damaged; run  git fsck"))? {
            match value {
                Some(value) => all.insert(name, value),
                None => all.remove(&name),
            };
        }
    }
    Ok(all)
}

/// The records of a file. A record without a value deletes the reference of an earlier file.
pub(crate) fn parse(bytes: &[u8], hash: Kind) -> Option<Vec<(String, Option<Value>)>> {
    let (length, trailer) = match bytes.get(..5)? {
        [b'R', b'E', b'F', b'T', 1] if hash == Kind::Sha1 => (24, 68),
        [b'R', b'E', b'F', b'T', 2] => {
            let id: &[u8] = if hash == Kind::Sha1 { b"sha1" } else { b"s256" };
            (bytes.get(24..28)? == id).then_some((28, 72))?
        }
        _ => return None,
    };
    let block_size = three(bytes, 5)?;
    // The trailer repeats the header, and says where other sections begin.
    let end = bytes.len().checked_sub(trailer)?;
    let mut found = Vec::new();
    let mut at = 0;
    while at < end {
        // The first block has the header of the file before its own.
        let head = if at == 0 { length } else { at };
        if *bytes.get(head)? != b'r' || head >= end {
            break;
        }
        let size = three(bytes, head + 1)?;
        let block = bytes.get(at..at.checked_add(size)?.min(end))?;
        records(block, head - at, hash, &mut found)?;
        // Blocks are padded to the size in the header, unless the byte after them says otherwise.
        let is_padded = block_size > size && bytes.get(at + size) == Some(&0);
        at += if is_padded { block_size } else { size.max(head - at + 4) };
    }
    Some(found)
}

/// The records of one block, whose own header begins at `head`.
fn records(block: &[u8], head: usize, hash: Kind, found: &mut Vec<(String, Option<Value>)>) -> Option<()> {
    let (rest, count) = block.split_last_chunk::<2>()?;
    let end = rest.len().checked_sub(usize::from(u16::from_be_bytes(*count)) * 3)?;
    let mut at = head + 4;
    let mut name: Vec<u8> = Vec::new();
    while at < end {
        let shared = number(block, &mut at)?;
        let kind = number(block, &mut at)?;
        let mut take = |length: u64| {
            let bytes = block.get(at..at.checked_add(usize::try_from(length).ok()?)?)?;
            at += bytes.len();
            Some(bytes)
        };
        let suffix = take(kind >> 3)?;
        let shared = usize::try_from(shared).ok().filter(|shared| *shared <= name.len())?;
        name.truncate(shared);
        name.extend_from_slice(suffix);
        number(block, &mut at)?;
        let mut id = || {
            let bytes = block.get(at..at + hash.len_in_bytes())?;
            at += bytes.len();
            ObjectId::try_from(bytes).ok()
        };
        let value = match kind & 7 {
            0 => None,
            1 => Some(Value::Object(id()?, None)),
            2 => Some(Value::Object(id()?, Some(id()?))),
            3 => {
                let length = usize::try_from(number(block, &mut at)?).ok()?;
                let target = block.get(at..at.checked_add(length)?)?;
                at += length;
                Some(Value::Symbolic(String::from_utf8_lossy(target).into_owned()))
            }
            _ => return None,
        };
        // Names that are not UTF-8 cannot be asked for.
        if let Ok(name) = String::from_utf8(name.clone()) {
            found.push((name, value));
        }
    }
    Some(())
}

/// A number of variable length, as in the offsets of packs.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut byte = *bytes.get(*at)?;
    *at += 1;
    let mut value = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
    }
    Some(value)
}

/// A number of three bytes.
fn three(bytes: &[u8], at: usize) -> Option<usize> {
    Some(bytes.get(at..at.checked_add(3)?)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}
