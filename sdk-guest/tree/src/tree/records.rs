//! Directory records: the entries of a directory as bytes, with positions.
//!
//! `wasi:filesystem` has streams of entries, which always begin at the first one. In belljar's host, a read of a directory
//! at the offset `1 << 63` plus a position gives records from that position. Other hosts answer that it is a directory.
//!
//! A record is the position after it (8 bytes), the type (1 byte, in the order of `descriptor-type`), the length of the
//! name (2 bytes) and the name. Numbers are little-endian.

use super::Kind;

/// The bytes of a record without its name.
const HEAD: usize = 11;

/// One record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// The position after it.
    pub(super) after: u64,
    pub(super) kind: Kind,
    pub(super) name: &'a [u8],
}

/// The records in `bytes`. Ends at the first incomplete one.
pub(super) fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let (after, head) = head.split_first_chunk::<8>()?;
        let (kind, length) = head.split_first()?;
        let length = u16::from_le_bytes(length.try_into().ok()?);
        let (name, rest) = rest.split_at_checked(length.into())?;
        bytes = rest;
        let kind = match kind {
            3 => Kind::Directory,
            5 => Kind::Symlink,
            6 => Kind::File,
            _ => Kind::Other,
        };
        Some(Record { after: u64::from_le_bytes(*after), kind, name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(after: u64, kind: u8, name: &[u8]) -> Vec<u8> {
        let length = u16::try_from(name.len()).unwrap();
        [&after.to_le_bytes()[..], &[kind], &length.to_le_bytes(), name].concat()
    }

    #[test]
    fn whole_records_are_read() {
        let all = [record(7, 6, b"a.md"), record(u64::MAX >> 1, 3, b"no\xff"), record(9, 4, b"")].concat();
        let read: Vec<Record<'_>> = records(&all).collect();
        assert_eq!(
            read,
            [
                Record { after: 7, kind: Kind::File, name: b"a.md" },
                Record { after: u64::MAX >> 1, kind: Kind::Directory, name: b"no\xff" },
                Record { after: 9, kind: Kind::Other, name: b"" },
            ]
        );
        for length in 0..all.len() {
            assert!(records(&all[..length]).count() < 3, "{length}");
        }
    }
}
