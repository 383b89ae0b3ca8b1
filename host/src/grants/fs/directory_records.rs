//! The entries of a directory as bytes, from any position.
//!
//! A stream of `wasi:filesystem` begins at the first entry, so the last page of a large directory would cost as much as the
//! whole directory. The kernel can continue at a position. A guest gets records by `descriptor.read` of a directory at the
//! offset [`POSITIONS`] plus a position, where other hosts answer `is-directory`. Position 0 is the beginning.
//!
//! A record is the position after it (8 bytes), the type (1 byte, in the order of `descriptor-type`), the length of the
//! name (2 bytes) and the name. Numbers are little-endian. `sdk-guest/tree` reads them.

use std::fs::File;
use std::mem::MaybeUninit;

use rustix::fs::{RawDir, SeekFrom, seek};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, ErrorCode};

use super::directory_entries::reopen;
use super::metadata::type_of;
use super::resolve::error_code;

/// The offset of position 0. Offsets of files are below it.
pub(super) const POSITIONS: u64 = 1 << 63;

/// The bytes that the kernel gives at once.
const BUFFER: usize = 32 << 10;

/// The most bytes of records that one call gives.
const MAX_BYTES: usize = 256 << 10;

/// Whole records of `dir` from `position` on, at most `length` bytes, and true if there are no more. `.` and `..` are left
/// out.
///
/// # Errors
/// [`ErrorCode::Invalid`] if not even one record fits, or the position is none of this directory.
pub(super) fn records(dir: &File, position: u64, length: usize) -> Result<(Vec<u8>, bool), ErrorCode> {
    let own = reopen(dir)?;
    seek(&own, SeekFrom::Start(position)).map_err(error_code)?;
    let most = length.min(MAX_BYTES);
    let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER];
    let mut entries = RawDir::new(&own, &mut buffer);
    let mut out = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(error_code)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let length = u16::try_from(name.len()).map_err(|_| ErrorCode::NameTooLong)?;
        if out.len() + 8 + 1 + 2 + name.len() > most {
            return if out.is_empty() { Err(ErrorCode::Invalid) } else { Ok((out, false)) };
        }
        out.extend_from_slice(&entry.next_entry_cookie().to_le_bytes());
        out.push(number(type_of(entry.file_type())));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(name);
    }
    Ok((out, true))
}

/// The number of a type, in the order of `wasi:filesystem`.
fn number(kind: DescriptorType) -> u8 {
    match kind {
        DescriptorType::Unknown => 0,
        DescriptorType::BlockDevice => 1,
        DescriptorType::CharacterDevice => 2,
        DescriptorType::Directory => 3,
        DescriptorType::Fifo => 4,
        DescriptorType::SymbolicLink => 5,
        DescriptorType::RegularFile => 6,
        DescriptorType::Socket => 7,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "makes the directory of the test")]

    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    use super::*;

    #[test]
    fn pages_from_positions_have_each_entry_once() {
        let place = tempfile::tempdir().unwrap();
        let mut names: BTreeSet<Vec<u8>> = (0..2000).map(|n| format!("file-{n}").into_bytes()).collect();
        names.insert(b"not\xffutf-8".to_vec());
        names.iter().for_each(|name| drop(File::create(place.path().join(OsString::from_vec(name.clone()))).unwrap()));
        let dir = File::open(place.path()).unwrap();
        let (mut position, mut found, mut pages) = (0, Vec::new(), 0);
        loop {
            let (bytes, is_end) = records(&dir, position, 1000).unwrap();
            assert!(bytes.len() <= 1000);
            let mut rest = bytes.as_slice();
            while let Some((head, after)) = rest.split_first_chunk::<11>() {
                position = u64::from_le_bytes(head[..8].try_into().unwrap());
                let length = usize::from(u16::from_le_bytes(head[9..].try_into().unwrap()));
                assert_eq!(head[8], 6);
                found.push(std::ffi::OsStr::from_bytes(&after[..length]).as_bytes().to_vec());
                rest = &after[length..];
            }
            pages += 1;
            if is_end {
                break;
            }
        }
        assert!(pages > 20 && found.len() == names.len(), "{pages} {}", found.len());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), names);
        assert!(matches!(records(&dir, 0, 5), Err(ErrorCode::Invalid)));
    }
}
