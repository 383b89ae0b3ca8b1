//! The values behind a guest's file handles: an open file, or an open directory with the granted directory above it.
//!
//! A descriptor on a file system that may stall exists only in a call with a dedicated thread. Therefore operations on
//! descriptors may block; see [`super::resolve`].

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use rustix::fs::{FileType, Stat, fstat};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue};

use super::resolve::error_code;
use super::root::OpenRoot;

/// The longest remembered path of an open directory, in bytes. For directories with a longer path, `readlink` refuses
/// targets with `..`.
const MAX_PATH_BYTES: usize = 512;

/// An open file or directory of a guest.
pub(super) enum Descriptor {
    File(Arc<File>),
    Dir(Dir),
}

/// An open directory.
#[derive(Clone)]
pub(super) struct Dir {
    pub(super) file: Arc<File>,
    pub(super) root: Arc<OpenRoot>,
    /// The path from the root, made of the guest's own paths. `None` if it is longer than [`MAX_PATH_BYTES`].
    pub(super) path: Option<Box<str>>,
}

impl Dir {
    /// The descriptor of the granted directory itself.
    pub(super) fn of_root(root: &Arc<OpenRoot>) -> Self {
        Self { file: Arc::clone(root.dir()), root: Arc::clone(root), path: Some("".into()) }
    }

    /// The descriptor of the directory that was opened at `path` below this one.
    pub(super) fn child(&self, path: &str, file: File) -> Self {
        Self { file: Arc::new(file), root: Arc::clone(&self.root), path: self.path_from_root(path).map(Into::into) }
    }

    /// The path from the root to `path` below this directory. `None` if it is too long.
    pub(super) fn path_from_root(&self, path: &str) -> Option<String> {
        let below = self.path.as_deref()?;
        let joined = if below.is_empty() { path.to_owned() } else { format!("{below}/{path}") };
        (joined.len() <= MAX_PATH_BYTES).then_some(joined)
    }
}

impl Descriptor {
    pub(super) fn handle(&self) -> &Arc<File> {
        match self {
            Self::File(file) | Self::Dir(Dir { file, .. }) => file,
        }
    }

    /// The file, or the error of operations that need one.
    pub(super) fn file(&self) -> Result<&Arc<File>, ErrorCode> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(ErrorCode::BadDescriptor),
        }
    }

    /// The directory, or the error of operations that need one.
    pub(super) fn dir(&self) -> Result<&Dir, ErrorCode> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(ErrorCode::NotDirectory),
        }
    }

    pub(super) fn stat(&self) -> Result<Stat, ErrorCode> {
        fstat(self.handle()).map_err(error_code)
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
pub(super) fn descriptor_stat(stat: &Stat) -> DescriptorStat {
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
pub(super) fn device_and_inode(stat: &Stat) -> (u64, u64) {
    #[expect(clippy::useless_conversion, reason = "widths differ by platform")]
    (stat.st_dev.into(), stat.st_ino.into())
}

/// A hash of device and inode number. It has 64 bits; the upper half repeats the lower one.
pub(super) fn metadata_hash(stat: &Stat) -> MetadataHashValue {
    let mut hasher = DefaultHasher::new();
    device_and_inode(stat).hash(&mut hasher);
    let lower = hasher.finish();
    MetadataHashValue { lower, upper: lower.rotate_left(32) }
}
