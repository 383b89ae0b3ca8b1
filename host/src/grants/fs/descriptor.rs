//! What a guest's handle stands for: an open file, or an open directory with the granted one above it.
//!
//! A descriptor of what may stall is made only in a call that has a thread of its own, so that what is done with one may
//! wait: see [`super::resolve`].

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use rustix::fs::{FileType, Stat, fstat};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue};

use super::place::Root;
use super::resolve::code;

/// How long the path of a directory may be that is remembered for its links. What is longer has none that are told.
const MAX_BELOW: usize = 512;

/// A handle of a guest's.
pub(super) enum Descriptor {
    File(Arc<File>),
    Dir(Dir),
}

/// An open directory.
#[derive(Clone)]
pub(super) struct Dir {
    pub(super) file: Arc<File>,
    pub(super) root: Arc<Root>,
    /// How it was reached from the root, by the guest's own paths; none where that is too long.
    pub(super) below: Option<Box<str>>,
}

impl Dir {
    /// The granted directory itself.
    pub(super) fn of_root(root: &Arc<Root>) -> Self {
        Self { file: Arc::clone(root.dir()), root: Arc::clone(root), below: Some("".into()) }
    }

    /// The directory that was opened at `path` below this one.
    pub(super) fn inner(&self, path: &str, file: File) -> Self {
        Self { file: Arc::new(file), root: Arc::clone(&self.root), below: self.path_from_root(path).map(Into::into) }
    }

    /// The path from the root of what lies at `path` below this one.
    pub(super) fn path_from_root(&self, path: &str) -> Option<String> {
        let below = self.below.as_deref()?;
        let joined = if below.is_empty() { path.to_owned() } else { format!("{below}/{path}") };
        (joined.len() <= MAX_BELOW).then_some(joined)
    }
}

impl Descriptor {
    pub(super) fn handle(&self) -> &Arc<File> {
        match self {
            Self::File(file) | Self::Dir(Dir { file, .. }) => file,
        }
    }

    /// For what only files can do.
    pub(super) fn file(&self) -> Result<&Arc<File>, ErrorCode> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(ErrorCode::BadDescriptor),
        }
    }

    /// For what only directories can do.
    pub(super) fn dir(&self) -> Result<&Dir, ErrorCode> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(ErrorCode::NotDirectory),
        }
    }

    pub(super) fn stat(&self) -> Result<Stat, ErrorCode> {
        fstat(self.handle()).map_err(code)
    }
}

/// A kind of file, as guests call it.
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

/// What a guest is told of a file. When it was read last is not: a read must not be seen by the next one.
#[expect(clippy::useless_conversion, reason = "widths differ by platform")]
pub(super) fn told(stat: &Stat) -> DescriptorStat {
    // Before 1970 there is no time that could be told.
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

/// What tells a file from every other, for as long as it lives.
pub(super) fn identity(stat: &Stat) -> (u64, u64) {
    #[expect(clippy::useless_conversion, reason = "widths differ by platform")]
    (stat.st_dev.into(), stat.st_ino.into())
}

/// The same as a hash. The upper half repeats the lower one: there are 64 bits of it.
pub(super) fn hash(stat: &Stat) -> MetadataHashValue {
    let mut hasher = DefaultHasher::new();
    identity(stat).hash(&mut hasher);
    let lower = hasher.finish();
    MetadataHashValue { lower, upper: lower.rotate_left(32) }
}
