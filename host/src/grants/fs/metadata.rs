//! Metadata of files and directories, as `wasi:filesystem` shows it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rustix::fs::{FileType, Stat};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType, MetadataHashValue};

/// The metadata of a file or directory, and what identifies it as long as it exists.
pub(super) struct DescriptorMetadata {
    pub(super) stat: DescriptorStat,
    /// Device and inode number.
    pub(super) identity: (u64, u64),
}

impl DescriptorMetadata {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { stat: descriptor_stat(stat), identity: device_and_inode(stat) }
    }

    /// A hash of the identity. It has 64 bits; the upper half repeats the lower one.
    pub(super) fn hash(&self) -> MetadataHashValue {
        let mut hasher = DefaultHasher::new();
        self.identity.hash(&mut hasher);
        let lower = hasher.finish();
        MetadataHashValue { lower, upper: lower.rotate_left(32) }
    }
}

/// Converts a file type into its WASI form.
pub(super) fn type_of(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// Converts metadata into its WASI form. Leaves out the time of the last read: a read must not be visible to the next
/// call.
#[expect(clippy::useless_conversion, reason = "widths differ by platform")]
fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    // WASI has no times before 1970.
    let time = |seconds: i64, nanoseconds: u64| {
        let seconds = u64::try_from(seconds).ok()?;
        Some(Datetime { seconds, nanoseconds: u32::try_from(nanoseconds).ok()? })
    };
    DescriptorStat {
        type_: type_of(FileType::from_raw_mode(stat.st_mode)),
        link_count: stat.st_nlink.into(),
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        data_access_timestamp: None,
        data_modification_timestamp: time(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        status_change_timestamp: time(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
    }
}

/// Device and inode number. They identify a file as long as the file exists.
fn device_and_inode(stat: &Stat) -> (u64, u64) {
    #[expect(clippy::useless_conversion, reason = "widths differ by platform")]
    (stat.st_dev.into(), stat.st_ino.into())
}
